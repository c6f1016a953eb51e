//! `switchcost profile` as a program, on programs in C that make so many calls of such sizes. Needs
//! cc, which linking Rust needs as well.

// Also the functions that read what was counted are tests.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::common::schema::Schema;
use crate::common::{Home, Said, has, wait_for};
use testing::{Need, lacks, skip};

/// A program in C (or C++), compiled.
fn compiled(home: &Home, compiler: &str, source: &str, flags: &[&str]) -> PathBuf {
    let (code, program) = (home.path().join("program.c"), home.path().join("program"));
    fs::write(&code, source).unwrap();
    let mut command = Command::new(compiler);
    // What is not used must be called all the same.
    command.args(["-O0", "-fno-builtin", "-pthread", "-o"]).arg(&program).arg(&code).args(flags);
    let said = command.output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    program
}

/// Profiles a command; what was said, and its JSON.
fn profiled(home: &Home, flags: &[&str], command: &[&str]) -> (Said, Value) {
    let file = home.path().join("profile.json");
    let said = home
        .run(&[&["profile"], flags, &["--json", file.to_str().unwrap(), "--"], command].concat());
    (said, read(&file))
}

fn read(file: &Path) -> Value {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("no profile: {error}"));
    let profile = serde_json::from_str(&text).expect("JSON");
    Schema::of("profile").assert_holds(&profile);
    profile
}

/// Calls of a function in all runs, of sizes that have `bytes` among them.
fn calls(profile: &Value, function: &str, bytes: Option<u64>) -> u64 {
    let launches = profile["launches"].as_array().unwrap().iter();
    let counted = launches.flat_map(|launch| launch["counted"].as_array().unwrap());
    let has_size = |of: &&Value| {
        let Some(bytes) = bytes else { return true };
        let range = of["bytes"].as_array();
        range.is_some_and(|r| r[0].as_u64() <= Some(bytes) && Some(bytes) <= r[1].as_u64())
    };
    let own = counted.filter(|of| of["function"] == function).filter(has_size);
    own.map(|of| of["calls"].as_u64().unwrap()).sum()
}

const ALLOCATES: &str = r#"
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *thread(void *unused) {
    for (int i = 0; i < 500; i++) free(malloc(70000));
    return NULL;
}

int main(int count, char **words) {
    if (count > 1) {
        for (int i = 0; i < 300; i++) free(calloc(3, 100000));
        return 0;
    }
    char *kept[1000];
    for (int i = 0; i < 1000; i++) memset(kept[i] = malloc(40000), i, 40000);
    for (int i = 0; i < 1000; i++) {
        if (kept[i][39999] != (char)i) return 1;
        kept[i] = realloc(kept[i], 600000);
        if (kept[i][39999] != (char)i) return 2;
        free(kept[i]);
    }
    void *aligned;
    for (int i = 0; i < 50; i++) {
        if (posix_memalign(&aligned, 4096, 5000000) || (unsigned long)aligned % 4096) return 3;
        free(aligned);
        free(memalign(64, 5000000));
        free(aligned_alloc(64, 5000000));
    }
    if (malloc((size_t)1 << 60) || errno != ENOMEM) return 4;
    errno = 77;
    free(malloc(1));
    if (errno != 77) return 5;
    /* One after the other, so that each takes the place of the one before; then together. */
    pthread_t all[4];
    for (int i = 0; i < 4; i++) pthread_create(&all[i], NULL, thread, NULL), pthread_join(all[i], NULL);
    for (int i = 0; i < 4; i++) pthread_create(&all[i], NULL, thread, NULL);
    for (int i = 0; i < 4; i++) pthread_join(all[i], NULL);
    int status;
    pid_t child = fork();
    if (!child) {
        for (int i = 0; i < 200; i++) free(malloc(2000000));
        child = fork();
        if (!child) {
            for (int i = 0; i < 100; i++) free(malloc(2000000));
            execl("/proc/self/exe", "again", "again", NULL);
            _exit(9);
        }
        waitpid(child, &status, 0);
        /* What a killed process has counted is counted. */
        if (WEXITSTATUS(status) == 0) kill(getpid(), 9);
        _exit(8);
    }
    waitpid(child, &status, 0);
    puts("done");
    return WIFSIGNALED(status) ? 7 : 6;
}
"#;

#[test]
fn every_call_is_counted_by_size_in_all_threads_and_processes() {
    let home = Home::new();
    let source = ALLOCATES.replace("#include <stdio.h>", "#include <signal.h>\n#include <stdio.h>");
    let program = compiled(&home, "cc", &source, &[]);
    let (said, profile) = profiled(&home, &["--malloc"], &[program.to_str().unwrap()]);
    assert_eq!((said.code, &*said.out), (Some(7), "done\n"), "{}", said.err);
    let malloc = |bytes| calls(&profile, "malloc", Some(bytes));
    assert_eq!((malloc(40_000), malloc(2_000_000)), (1_000, 300));
    // With the thread's 70,000 in their class: nothing else is of 64 to 128 KiB.
    assert_eq!(malloc(70_000), 8 * 500);
    assert_eq!(calls(&profile, "calloc", Some(300_000)), 300);
    assert_eq!(calls(&profile, "realloc", Some(600_000)), 1_000);
    assert_eq!(calls(&profile, "aligned_alloc", Some(5_000_000)), 150);
    let frees = 1_000 + 150 + 1 + 4_000 + 300 + 300;
    let counted = calls(&profile, "free", None);
    assert!((frees..frees + 200).contains(&counted), "{counted}");
    let launch = &profile["launches"][0];
    // The command's two forks are not programs, what the second executes is one.
    assert_eq!(
        (&launch["processes"], &launch["missed_threads"]),
        (&Value::from(2), &Value::from(0))
    );
    let histogram = |of: &Value| -> u64 {
        let bins = of["histogram"].as_array().unwrap().iter();
        bins.map(|bin| bin["calls"].as_u64().unwrap()).sum()
    };
    for of in launch["counted"].as_array().unwrap() {
        assert_eq!(of["calls"], histogram(of), "{of}");
        assert!(of["max_ns"].as_u64() <= of["sum_ns"].as_u64(), "{of}");
    }
    let all = &profile["rows"][0];
    assert_eq!((&all["function"], &all["bytes"]), (&Value::Null, &Value::Null));
    assert_eq!(all["ns_per_call"]["low"], Value::Null, "one run has no interval");
    assert!(said.err.starts_with("An allocation or free takes "), "{}", said.err);
    home.wait_until_alone();
}

/// What a call of some nanoseconds takes is an upper bound, where the known call says so.
#[test]
fn short_calls_have_a_bound_that_was_measured() {
    let home = Home::new();
    let source = r#"
        #include <stdlib.h>
        int main(void) { for (int i = 0; i < 100000; i++) free(malloc(64)); }
    "#;
    let program = compiled(&home, "cc", source, &[]);
    let (said, profile) = profiled(&home, &["--malloc"], &[program.to_str().unwrap()]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let number = |of: &Value, path: &str| of.pointer(path).and_then(Value::as_f64);
    let [told, in_a_row, chained] = ["told", "in_a_row", "chained"]
        .map(|name| number(&profile, &format!("/known/{name}_ns")).expect("a known call"));
    let (overlap, shortfall) = ((told - in_a_row).max(0.0), (chained - told).max(0.0));
    for row in profile["rows"].as_array().unwrap() {
        let [value, least, most] =
            ["/ns_per_call/value", "/least_ns", "/most_ns"].map(|path| number(row, path).unwrap());
        let is_bound = value <= 0.0 || overlap + shortfall > 0.3 * (value + shortfall);
        assert_eq!(row["is_bound"], is_bound, "{row}");
        let ends = if is_bound { value.min(0.0) } else { value - overlap };
        assert!((least - ends).abs() < 1e-6 && (most - value - shortfall).abs() < 1e-6, "{row}");
    }
    let words = if profile["rows"][0]["is_bound"] == true { "at most " } else { "about " };
    let nothing = "no time that can be told";
    let first = said.err.lines().next().unwrap();
    assert!(first.contains(&format!("takes {words}")) || first.contains(nothing), "{first}");
}

const NAMED: &str = r#"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int main(void) {
    char text[500];
    for (int i = 0; i < 100; i++)
        snprintf(text, sizeof text, "%d %g %d %s %d %d %g %d %d %d %g %g %g %g %g %g %g %ld %d",
            i, 0.5, 2, "three", 4, 5, 6.25, 7, 8, 9, 10.5, 11.5, 12.5, 13.5, 14.5, 15.5, 16.5, 17L, 18);
    puts(text);
    div_t parts = div(1234567, 1000);
    printf("%d %d %g\n", parts.quot, parts.rem, strtod("2.5e3", NULL));
    for (int i = 0; i < 5; i++) {
        struct timespec time = {0, 20 * 1000 * 1000};
        nanosleep(&time, NULL);
    }
    usleep(20 * 1000);
    int status = 0;
    fflush(stdout);
    if (!fork()) _exit(3);
    wait(&status);
    return WEXITSTATUS(status);
}
"#;

#[test]
fn named_functions_get_all_arguments_and_a_sleep_is_not_cpu_time() {
    // --calls is for x86-64.
    if lacks([Need::X86]) {
        return;
    }
    let home = Home::new();
    let program = compiled(&home, "cc", NAMED, &[]);
    let plain = Command::new(&program).output().unwrap();
    let names = "snprintf,div,strtod,nanosleep,usleep,fork,no_such_function";
    let (said, profile) = profiled(&home, &["--calls", names], &[program.to_str().unwrap()]);
    assert_eq!((said.code, said.out.as_bytes()), (Some(3), &plain.stdout[..]), "{}", said.err);
    let counts = ["snprintf", "div", "strtod", "nanosleep", "usleep", "malloc"];
    let counts = counts.map(|name| calls(&profile, name, None));
    assert_eq!(counts, [100, 1, 1, 5, 1, 0]);
    let notices = profile["notices"].to_string();
    assert!(notices.contains("no_such_function was not called"), "{notices}");
    let counted = profile["launches"][0]["counted"].as_array().unwrap();
    let find = |name: &str| counted.iter().find(|of| of["function"] == name).unwrap();
    let sleeps = find("nanosleep");
    let number = |name: &str| sleeps[name].as_u64().unwrap();
    if profile["launches"][0]["clocks"].to_string().contains("kernel") {
        let why = "no fast clock of the thread: time off the CPU is not known";
        return skip(Need::TimeStamp, why);
    }
    // Five sleeps of 20 ms at least.
    assert_eq!(number("switched"), 5);
    assert!(number("sum_ns") + number("off_cpu_ns") >= 100_000_000, "{sleeps}");
    assert!(number("sum_ns") < number("off_cpu_ns"), "{sleeps}");
    // Of one call that was switched out the time by the wall clock is both.
    let sleep = find("usleep");
    let number = |name: &str| sleep[name].as_u64().unwrap();
    assert_eq!(number("switched"), 1);
    assert_eq!(number("sum_ns") + number("off_cpu_ns"), number("max_wall_ns"), "{sleep}");
}

#[test]
fn what_the_profiler_calls_itself_may_be_named() {
    // --calls is for x86-64.
    if lacks([Need::X86]) {
        return;
    }
    let home = Home::new();
    let source = r#"
        #include <stdio.h>
        #include <string.h>
        #include <time.h>
        int main(int count, char **words) {
            struct timespec now;
            char text[100];
            for (int i = 0; i < 1000; i++) {
                clock_gettime(CLOCK_MONOTONIC, &now);
                memcpy(text, words[0], strlen(words[0]) + 1);
            }
            puts(text);
        }
    "#;
    let program = compiled(&home, "cc", source, &[]);
    let names =
        "strlen,clock_gettime,memcpy,__errno_location,getrusage,mmap,syscall,getpid,open,write";
    let (said, profile) = profiled(&home, &["--calls", names], &[program.to_str().unwrap()]);
    assert_eq!((said.code, said.out.trim()), (Some(0), program.to_str().unwrap()), "{}", said.err);
    let counts = ["strlen", "clock_gettime", "memcpy"].map(|name| calls(&profile, name, None));
    assert!(counts.iter().all(|calls| (1_000..1_100).contains(calls)), "{counts:?}");
}

#[test]
fn a_fork_within_a_call_is_no_call_of_the_child() {
    // --calls is for x86-64.
    if lacks([Need::X86]) {
        return;
    }
    let home = Home::new();
    let library = r#"
        #include <stdlib.h>
        #include <unistd.h>
        int splits(void) { int child = fork(); if (!child) free(malloc(100)); return child; }
    "#;
    let built = compiled(&home, "cc", library, &["-shared", "-fPIC"]);
    let so = built.with_file_name("libsplits.so");
    fs::rename(&built, &so).unwrap();
    let source = r#"
        #include <sys/wait.h>
        int splits(void);
        int main(void) {
            int child = splits(), status;
            if (!child) return 4;
            waitpid(child, &status, 0);
            return WEXITSTATUS(status);
        }
    "#;
    let program = compiled(&home, "cc", source, &[so.to_str().unwrap()]);
    let (said, profile) = profiled(&home, &["--calls", "splits"], &[program.to_str().unwrap()]);
    assert_eq!(said.code, Some(4), "{}", said.err);
    assert_eq!(calls(&profile, "splits", None), 1);
}

#[test]
fn an_exception_passes_a_named_function() {
    // --calls is for x86-64.
    if lacks([Need::X86, Need::Program("g++")]) {
        return;
    }
    let home = Home::new();
    let source = r#"
        #include <cstdlib>
        #include <cstdio>
        static int compare(const void *, const void *) { throw 5; }
        int main() {
            int numbers[] = {3, 1, 2};
            for (int i = 0; i < 3; i++) try { qsort(numbers, 3, sizeof(int), compare); } catch (int thrown) {
                std::printf("%d\n", thrown);
            }
        }
    "#;
    let program = compiled(&home, "g++", source, &["-x", "none"]);
    let (said, profile) = profiled(&home, &["--calls", "qsort,puts"], &[program.to_str().unwrap()]);
    assert_eq!((said.code, &*said.out), (Some(0), "5\n5\n5\n"), "{}", said.err);
    // A call that does not return has no time.
    assert_eq!(calls(&profile, "qsort", None), 0);
}

#[test]
fn several_runs_have_intervals_and_print_nothing() {
    let home = Home::new();
    let command = ["sh", "-c", "ls / >/dev/null; echo printed; exit 0"];
    let flags = ["--malloc", "-n", "6", "--csv", "-"];
    let (said, profile) = profiled(&home, &flags, &command);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(profile["rows"][0]["ns_per_call"]["low"].is_number(), "{}", profile["rows"][0]);
    let rows: Vec<&str> = said.out.lines().collect();
    assert!(
        rows[0].starts_with("experiment,allocator,round,exit_code,function,from_bytes"),
        "{}",
        rows[0]
    );
    assert!(rows.iter().any(|row| row.starts_with("profile,its own,5,0,malloc,")), "{rows:?}");
    assert!(rows.iter().all(|row| !row.contains("printed")), "{rows:?}");
    let run = |flags: &[&str]| {
        home.run(&[&["profile", "--malloc"], flags, &["--"], &command[..]].concat())
    };
    // One run alone has its terminal, unless figures go there.
    assert_eq!(run(&[]).out, "printed\n");
    assert!(run(&["--json", "-"]).json()["rows"].is_array());
    assert_eq!(run(&["-n", "3"]).out, "");
    assert_eq!(run(&["-n", "3", "--show-output"]).out, "printed\n".repeat(3));
    let refused = run(&["--json", "-", "--show-output"]);
    assert!(refused.error().contains("with --show-output standard output is"), "{}", refused.err);
}

#[test]
fn allocators_are_compared_within_rounds() {
    let home = Home::new();
    let source = r#"
        #include <stddef.h>
        void *__libc_malloc(size_t);
        void *malloc(size_t bytes) {
            for (volatile int i = 0; i < 20000; i++);
            return __libc_malloc(bytes);
        }
    "#;
    let slow = compiled(&home, "cc", source, &["-shared", "-fPIC"]);
    let library = slow.with_file_name("libslow.so");
    fs::rename(&slow, &library).unwrap();
    let library = library.to_str().unwrap();
    let flags = ["--malloc", "--allocator", library, "-n", "6"];
    let (said, profile) = profiled(&home, &flags, &["sh", "-c", "ls / >/dev/null"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let ratios = profile["ratios"].as_array().unwrap();
    let malloc = ratios.iter().find(|of| of["function"] == "malloc" && of["bytes"].is_null());
    // Twenty thousand rounds of a loop are more than any malloc.
    let low = malloc.unwrap()["ratio"]["low"].as_f64().unwrap();
    assert!(low > 2.0, "{ratios:?}");
    assert!(said.err.contains("slow"), "{}", said.err);
}

#[test]
fn what_cannot_be_profiled_is_said() {
    let home = Home::new();
    let failed = |args: &[&str], what: &str| {
        let said = home.run(&[&["profile"], args].concat());
        assert_eq!(said.code, Some(2), "{args:?}: {}", said.err);
        assert!(said.err.contains(what), "{args:?}: {}", said.err);
    };
    failed(&["--", "true"], "--malloc");
    failed(&["--malloc", "--allocator", "/no/such.so", "--", "true"], "/no/such.so");
    failed(&["--malloc", "--allocator", "a:b", "--", "true"], "without blanks and colons");
    if cfg!(target_arch = "x86_64") {
        failed(&["--calls", "setjmp", "--", "true"], "--calls setjmp: ");
        failed(&["--calls", "write,write", "--", "true"], "twice");
        failed(&["--calls", "free", "--", "true"], "--malloc times it");
        failed(&["--calls", "dlopen", "--", "true"], "--calls dlopen: ");
        failed(&["--calls", "write", "--malloc", "--", "true"], "cannot be used with");
        failed(&["--calls", &"x".repeat(128), "--", "true"], "127 bytes");
    }
    let absent = home.run(&["profile", "--malloc", "--", "/no/such/command"]);
    assert_eq!(absent.code, Some(127), "{}", absent.err);
    // A program that preloads nothing.
    let (said, _) = profiled(&home, &["--malloc"], &[crate::common::PROGRAM, "--version"]);
    if has("readelf") && said.err.contains("No call of") {
        assert!(said.err.contains("did not load the profiler"), "{}", said.err);
    }
}

#[test]
fn an_interrupted_profile_keeps_what_was_counted() {
    let home = Home::new();
    let file = home.path().join("profile.json");
    let script = "ls / >/dev/null; echo started >\"$0\"; exec sleep 60";
    let mark = home.path().join("mark");
    let mut command = home.command(crate::common::PROGRAM);
    command.args(["profile", "--malloc", "-n", "3", "--json", file.to_str().unwrap(), "--"]);
    command.args(["sh", "-c", script, mark.to_str().unwrap()]);
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    wait_for("the command", || mark.exists().then_some(()));
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let profile = read(&file);
    assert_eq!(profile["launches"].as_array().unwrap().len(), 1);
    assert!(calls(&profile, "malloc", None) > 0);
    home.wait_until_alone();
}

/// The environment of a profiled command, a variable a line.
fn environment(home: &Home) -> Vec<String> {
    let (said, _) = profiled(home, &["--malloc", "--show-output"], &["env"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    said.out.lines().map(str::to_string).collect()
}

fn value<'a>(environment: &'a [String], name: &str) -> &'a str {
    let found = environment.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    found.unwrap_or_else(|| panic!("no {name} in {environment:?}"))
}

/// What a command leaves behind has its environment for days: a path below /proc/PID would be
/// somebody else's by then.
#[test]
fn what_a_command_inherits_is_in_a_folder_of_its_user_that_goes_with_the_program() {
    let home = Home::new();
    let seen = environment(&home);
    assert!(seen.iter().all(|line| !line.contains("/proc/")), "{seen:?}");
    let (library, data) = (value(&seen, "LD_PRELOAD"), value(&seen, "SWITCHCOST_PROFILE_DATA"));
    let (token, counts) = data.split_once(':').expect("a token and a path");
    assert!(token.len() == 16 && token.bytes().all(|byte| byte.is_ascii_hexdigit()), "{data}");
    let folder = Path::new(library).parent().unwrap();
    assert_eq!(Path::new(counts).parent(), Some(folder));
    assert!(folder.starts_with(home.path()) && !folder.exists(), "{}", folder.display());

    let script = "stat -c %a:%u \"${LD_PRELOAD%/*}\"";
    let (said, _) = profiled(&home, &["--malloc", "--show-output"], &["sh", "-c", script]);
    assert_eq!(said.out.trim(), format!("700:{}", rustix::process::geteuid().as_raw()));
}

#[test]
fn a_process_that_the_command_leaves_behind_is_told() {
    let home = Home::new();
    let (said, _) = profiled(&home, &["--malloc"], &["sh", "-c", "sleep 60 >/dev/null 2>&1 &"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.err.contains("still ran after the end of "), "{}", said.err);
    for process in home.processes() {
        process.kill();
    }
    home.wait_until_alone();
}

#[test]
fn memory_with_another_token_is_not_counted_in() {
    let home = Home::new();
    let other = "SWITCHCOST_PROFILE_DATA=0123456789abcdef:${SWITCHCOST_PROFILE_DATA#*:}";
    for (script, processes) in
        [("ls / >/dev/null; :".to_string(), 2), (format!("{other} ls / >/dev/null; :"), 1)]
    {
        let (said, profile) = profiled(&home, &["--malloc"], &["sh", "-c", &script]);
        assert_eq!(said.code, Some(0), "{}", said.err);
        assert_eq!(profile["launches"][0]["processes"], processes, "{script}");
    }
}

#[test]
fn a_folder_that_somebody_could_put_another_in_place_of_is_refused() {
    let home = Home::new();
    let cache = home.path().join("open/cache");
    fs::create_dir_all(&cache).unwrap();
    let open = cache.parent().unwrap();
    let run = || {
        let mut command = home.command(crate::common::PROGRAM);
        command.args(["profile", "--malloc", "--", "true"]).env("XDG_CACHE_HOME", &cache);
        Said::of(command.env_remove("XDG_RUNTIME_DIR"))
    };
    fs::set_permissions(open, fs::Permissions::from_mode(0o777)).unwrap();
    let said = run();
    assert_eq!(said.code, Some(1), "{}", said.err);
    assert!(said.err.contains(&format!("others may write to {}", open.display())), "{}", said.err);
    fs::set_permissions(open, fs::Permissions::from_mode(0o1777)).unwrap();
    let said = run();
    assert_eq!(said.code, Some(0), "{}", said.err);
}

#[test]
fn a_command_may_have_the_name_of_an_assignment() {
    let home = Home::new();
    let folder = home.path().join("eq");
    fs::create_dir(&folder).unwrap();
    let command = folder.join("x=ls");
    fs::copy("/bin/sh", &command).unwrap();
    let words = [command.to_str().unwrap(), "-c", "echo $0 $1; exit 7", "name", "word"];
    let (said, profile) = profiled(&home, &["--malloc", "--show-output"], &words);
    assert_eq!((said.code, said.out.trim()), (Some(7), "name word"), "{}", said.err);
    assert_eq!(profile["launches"][0]["processes"], 1);
}

#[test]
fn what_a_killed_profile_leaves_goes_with_the_next() {
    let home = Home::new();
    let mark = home.path().join("mark");
    let script = "dirname \"$LD_PRELOAD\" >\"$0.new\"; mv \"$0.new\" \"$0\"; exec sleep 60";
    let mut command = home.command(crate::common::PROGRAM);
    command.args(["profile", "--malloc", "--", "sh", "-c", script, mark.to_str().unwrap()]);
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    let folder = wait_for("the command", || fs::read_to_string(&mark).ok());
    let folder = Path::new(folder.trim());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(folder.exists());
    let (said, _) = profiled(&home, &["--malloc"], &["true"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(!folder.exists());
    for process in home.processes() {
        process.kill();
    }
    home.wait_until_alone();
}

/// Of two records only `free` differs: it takes twenty times as long in the second.
#[test]
fn records_of_profiles_are_compared_by_function() {
    let home = Home::new();
    let captured = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captured/profile.json");
    let mut profile = read(&captured);
    let (base, slow) = (home.path().join("base.json"), home.path().join("slow.json"));
    fs::write(&base, profile.to_string()).unwrap();
    profile["started"] = "2026-01-02T03:04:05Z".into();
    for row in profile["rows"].as_array_mut().unwrap() {
        if row["function"] == "free" {
            for field in ["value", "low", "high", "standard_error"] {
                let ns = row["ns_per_call"][field].as_f64().unwrap();
                row["ns_per_call"][field] = (20.0 * ns).into();
            }
        }
    }
    fs::write(&slow, profile.to_string()).unwrap();
    let sides = [base.to_str().unwrap(), slow.to_str().unwrap()];
    let said = home.run(&[&["compare"], &sides[..], &["--json", "-"]].concat());
    assert_eq!(said.code, Some(0), "{}", said.err);
    let comparison = said.json();
    let mut answers = Vec::new();
    for change in comparison["changes"].as_array().unwrap() {
        assert_eq!(change["of"], "call_ns", "{change}");
        let function = change["labels"]["function"].as_str().unwrap();
        answers.push((function.to_string(), change["answer"].as_str().unwrap().to_string()));
    }
    let expected = ["all", "malloc", "free", "realloc"].map(|function| {
        let answer = if function == "free" { "changed" } else { "cannot_tell" };
        (function.to_string(), answer.to_string())
    });
    assert_eq!(answers, expected);
    let gate = home.run(&[&["compare"], &sides[..], &["--fail-above", "3%"]].concat());
    assert_eq!(gate.code, Some(1), "{}", gate.out);
}
