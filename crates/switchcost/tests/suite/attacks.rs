//! What gave way when it was attacked: stops, other users, hostile commands and surroundings.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use testing::{Need, lacks, skip};

use crate::common::{Home, PROGRAM, Said, copy_program, wait_for};

const SMALL: [&str; 7] = ["ring", "--members", "2", "--rounds", "1", "--laps", "50"];

/// The program behind a shell's `commands`.
fn behind(home: &Home, commands: &str, args: &[&str]) -> Command {
    let mut shell = home.command("sh");
    shell.args(["-c", &format!("{commands}; exec \"$0\" \"$@\""), PROGRAM]).args(args);
    shell
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a change of mode");
}

/// The launcher of a running program.
fn launcher_of(home: &Home, own: u32) -> i32 {
    let launcher = fs::read_to_string(format!("/proc/{own}/task/{own}/children")).ok();
    let launcher = launcher.and_then(|list| list.split_whitespace().next()?.parse().ok());
    // Without that file (CONFIG_PROC_CHILDREN).
    let by_parent = || home.processes().iter().find(|of| of.parent == own as i32).map(|of| of.pid);
    launcher.or_else(by_parent).expect("the launcher")
}

/// Stops the launcher of a command that has written `lines` lines to the file `marks`; what was
/// said of it.
fn stop_launcher(home: &Home, args: &[&str], lines: usize) -> Said {
    let marks = home.path().join("marks");
    // A group of its own: one that is orphaned with somebody in it who stands is sent SIGHUP.
    let mut program = home.command(PROGRAM);
    program.args(args).process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = program.spawn().expect("the program starts");
    wait_for("a command that runs", || {
        let done = fs::read_to_string(&marks).ok()?;
        (done.lines().count() >= lines).then_some(())
    });
    let launcher = launcher_of(home, child.id());
    kill_process(Pid::from_raw(launcher).expect("a process"), Signal::STOP).expect("a signal");
    let said = Said::at_end(child);
    assert_eq!(said.code, Some(1), "{said:?}");
    let told = format!("the launcher (process {launcher}) was stopped by a signal");
    assert!(said.err.contains(&told), "{}", said.err);
    said
}

#[test]
fn a_launcher_that_was_stopped_and_not_continued_is_told_and_runs_before_it_are_kept() {
    let home = Home::new();
    let script = format!("echo >> {}; sleep 0.2", home.path().join("marks").display());
    let run = ["run", "--no-estimate", "-n", "1000", "--", "sh", "-c", &script];
    let said = stop_launcher(&home, &run, 4);
    assert!(said.err.contains("\nreal "), "{said:?}");
    home.wait_until_alone();
}

#[test]
fn so_is_that_of_a_command_that_is_watched() {
    let home = Home::new();
    let script = format!("echo >> {}; exec sleep 15", home.path().join("marks").display());
    stop_launcher(&home, &["cost", "--", "sh", "-c", &script], 1);
}

/// Whatever the umask says.
#[test]
fn what_is_stored_is_its_owners_alone() {
    let home = Home::new();
    let said = Said::of(&mut behind(&home, "umask 0", &SMALL));
    assert_eq!(said.code, Some(0), "{}", said.err);
    let folder = home.runs_folder();
    assert_eq!([mode(folder.parent().expect("above")), mode(&folder)], [0o700, 0o700]);
    assert_eq!(mode(&home.run_file()), 0o600);
    let state = home.path().join("state/switchcost");
    if state.exists() {
        assert_eq!([mode(&state), mode(&state.join("full-speed.json"))], [0o700, 0o600]);
    }
}

/// Whoever can write there chooses what `last` is.
#[test]
fn a_store_that_others_may_write_to_is_refused() {
    let home = Home::new();
    home.measure(&["--members", "2", "--rounds", "1", "--laps", "9"]);
    let folder = home.runs_folder();
    for (path, with) in [(folder.clone(), 0o777), (home.path().join("switchcost"), 0o770)] {
        set_mode(&path, with);
        for args in [&["runs", "show", "last"][..], &["runs", "list"]] {
            let said = home.run(args);
            assert_eq!((said.code, &*said.out), (Some(1), ""), "{said:?}");
            let told = format!("others may write to {}", path.display());
            assert!(said.error().contains(&told), "{}", said.err);
            assert!(said.error().contains("chmod go-w"), "{}", said.err);
        }
        let file = home.run_file();
        assert_eq!(home.run(&["runs", "show", &file.display().to_string()]).code, Some(0));
        let said = home.run(&SMALL);
        assert!(said.err.contains("others may write to"), "{said:?}");
        assert_eq!(home.run_files(), [file], "nothing is stored there");
        set_mode(&path, 0o700);
    }
    assert_eq!(home.run(&["runs", "show", "last"]).code, Some(0));
}

#[test]
fn words_that_a_terminal_would_obey_are_spelt_out() {
    let home = Home::new();
    for args in
        [&["ring", "--no\u{202e}such"][..], &["no\u{1b}[31msuch"], &["ring", "--link", "\u{2066}"]]
    {
        let said = home.run(args);
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(!said.err.contains(['\u{202e}', '\u{1b}', '\u{2066}']), "{:?}", said.err);
        assert!(said.err.contains("no such link") || said.err.contains("\\u{"), "{:?}", said.err);
    }
}

#[test]
fn a_small_stack_is_enough() {
    let home = Home::new();
    for stack_kib in [64, 100, 500] {
        let said =
            Said::of(&mut behind(&home, &format!("ulimit -s {stack_kib}"), &["runs", "list"]));
        assert_eq!(said.code, Some(0), "{stack_kib}: {said:?}");
        let said = Said::of(&mut behind(&home, &format!("ulimit -s {stack_kib}"), &SMALL));
        assert_eq!(said.code, Some(0), "{stack_kib}: {said:?}");
    }
}

/// With few descriptors a part of the program that fails must not speak for the others.
#[test]
fn few_descriptors_are_told_as_that() {
    let home = Home::new();
    for most in 3..16 {
        let run = ["run", "--no-estimate", "--", "/bin/true"];
        let said = Said::of(&mut behind(&home, &format!("ulimit -n {most}"), &run));
        assert!(!said.err.contains("internal command"), "{most}: {}", said.err);
        if said.err.contains("loading shared libraries") {
            continue;
        }
        let is_told = said.err.contains("ulimit -n") || said.err.contains("descriptor");
        let is_told = is_told || said.err.contains("open files");
        assert!(said.code == Some(0) || is_told, "{most}: {said:?}");
    }
}

#[test]
fn a_command_is_run_without_proc() {
    if lacks([Need::Root, Need::Program("unshare")]) {
        return;
    }
    let home = Home::new();
    let hidden = "mount -t tmpfs none /proc && [ ! -e /proc/self ] || exit 77";
    let commands = format!("{hidden}; exec \"$0\" \"$@\"");
    let mut shell = home.command("unshare");
    shell.args(["--mount", "sh", "-c", &commands, PROGRAM]);
    let said = Said::of(shell.args(["run", "--no-estimate", "--", "/bin/true"]));
    if said.code != Some(0) && said.err.contains("mount") || said.code == Some(77) {
        return skip(Need::Mounts, said.err);
    }
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(!said.err.contains("the launcher has ended"), "{}", said.err);
}

/// The profiled command finds the memory for counts by its environment.
#[test]
fn a_profiled_command_that_writes_to_the_table_keeps_its_exit_code() {
    let home = Home::new();
    let profile = |script: &str| home.run(&["profile", "--malloc", "--", "sh", "-c", script]);
    let said = profile("(: > ${SWITCHCOST_PROFILE_DATA#*:}); exit 0");
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.err.contains("ns/call"), "what is sealed cannot be taken away: {said:?}");
    let zero =
        "dd if=/dev/zero of=${SWITCHCOST_PROFILE_DATA#*:} bs=8 count=1 conv=notrunc 2> /dev/null";
    let odd = "tr '\\0' '\\376' < /dev/zero | dd of=${SWITCHCOST_PROFILE_DATA#*:} bs=4096 seek=2 count=300 \
               iflag=fullblock conv=notrunc 2> /dev/null";
    for script in [zero, odd] {
        for code in [0, 3] {
            let said = profile(&format!("{script}; exit {code}"));
            assert_eq!((said.code, &*said.out), (Some(code), ""), "{script}: {said:?}");
            assert!(said.error().contains("was written to"), "{}", said.err);
        }
    }
}

/// It is no worker that could ask for that itself.
#[test]
fn what_a_prefix_is_ends_with_the_program() {
    let home = Home::new();
    let mut child = home.start(&["compare", "--ab", "", "sh -c 'while :; do read x; done'"]);
    let own = child.id() as i32;
    let is_shell = |pid: i32| {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        name.trim_end() == "sh"
    };
    wait_for("the prefix", || {
        home.processes().iter().any(|of| of.parent == own && is_shell(of.pid)).then_some(())
    });
    child.kill().expect("the program is killed");
    child.wait().expect("it has ended");
    home.wait_until_alone();
}

/// A process whose name has ends of lines in it.
#[test]
fn a_name_forges_no_line() {
    if lacks([Need::Program("python3")]) {
        return;
    }
    let home = Home::new();
    let script =
        "open('/proc/self/comm', 'w').write('a\\nforged\\t1'); print(flush=True)\nwhile 1: pass";
    let mut python = home.command("python3");
    let mut named = python.args(["-c", script]).stdout(Stdio::piped()).spawn().expect("python3");
    let pid = named.id().to_string();
    wait_for("its name", || {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
        name.starts_with("a\nforged").then_some(())
    });
    let said = home.run(&["cost", "--pid", &pid, "--budget", "300ms"]);
    let traced = home.run(&["trace", "--pid", &pid, "--budget", "300ms", "--verbose"]);
    let top = home.run(&["top", "--batch", "--updates", "1", "--interval", "0.3"]);
    named.kill().expect("a signal");
    named.wait().expect("its end");
    for said in [said, traced, top] {
        let forged =
            said.out.lines().chain(said.err.lines()).find(|line| line.starts_with("forged"));
        assert_eq!(forged, None, "{said:?}");
        assert!(!said.out.contains('\t'), "{said:?}");
    }
}

/// A program that asks its parent to trace it, and waits for that.
fn traced_by_nobody(home: &Home) -> String {
    let (code, program) = (home.path().join("traced.c"), home.path().join("traced"));
    let source = "#include <signal.h>\n#include <sys/ptrace.h>\n\
                  int main(void) { ptrace(PTRACE_TRACEME, 0, 0, 0); raise(SIGSTOP); return 7; }\n";
    fs::write(&code, source).expect("a source");
    let made = home.command("cc").arg("-o").arg(&program).arg(&code).status();
    assert!(made.expect("cc").success());
    program.display().to_string()
}

#[test]
fn a_command_that_waits_for_a_tracer_goes_on() {
    let home = Home::new();
    let command = traced_by_nobody(&home);
    for args in [&["run", "--no-estimate", "-n", "2"][..], &["cost", "--budget", "600s"]] {
        let said = home.run(&[args, &["--", &command]].concat());
        assert_eq!(said.code, Some(7), "{args:?}: {said:?}");
        assert!(said.err.contains("asked to be traced"), "{args:?}: {}", said.err);
    }
    let said = home.run(&["profile", "--malloc", "--", &command]);
    assert_eq!(said.code, Some(7), "{said:?}");
}

#[test]
fn a_watched_command_that_stands_or_ignores_its_end_is_ended() {
    let home = Home::new();
    let stands = "kill -STOP $$; exit 5";
    let ignores = "trap '' TERM; while :; do sleep 0.1; done";
    for (script, words) in [(stands, "stopped by SIGTERM"), (ignores, "was killed")] {
        let said = home.run(&["cost", "--budget", "1s", "--", "sh", "-c", script]);
        assert!(said.err.contains(words), "{script}: {said:?}");
    }
    home.wait_until_alone();
}

#[test]
fn a_working_set_that_is_refused_is_told_without_a_panic() {
    let home = Home::new();
    let args = ["cost", "--array", "4K", "--members", "2", "--rounds", "1", "--budget", "600s"];
    let said = Said::of(&mut behind(&home, "ulimit -d 4000", &args));
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.err.contains("a working set of 4096 bytes cannot be allocated"), "{}", said.err);
    assert!(!said.err.contains("panicked at crates/"), "{}", said.err);
}

/// Whoever may rename what is above a store puts another in its place.
#[test]
fn a_store_below_a_folder_that_everybody_may_write_to_is_refused() {
    let home = Home::new();
    home.measure(&["--members", "2", "--rounds", "1", "--laps", "9"]);
    set_mode(home.path(), 0o777);
    let said = home.run(&["runs", "list"]);
    assert_eq!((said.code, &*said.out), (Some(1), ""), "{said:?}");
    let told = format!("everybody may write to {}", home.path().display());
    assert!(said.error().contains(&told) && said.error().contains("chmod o-w"), "{}", said.err);
    // In a folder like /tmp only owners may rename.
    set_mode(home.path(), 0o1777);
    assert_eq!(home.run(&["runs", "list"]).code, Some(0));
}

#[test]
fn root_keeps_runs_in_the_home_of_the_user_who_asked_and_of_no_other() {
    if lacks([Need::Root]) {
        return;
    }
    let home = Home::new();
    home.measure(&["--members", "2", "--rounds", "1", "--laps", "9"]);
    let other = 65_534;
    let store = home.path().join("switchcost");
    for path in [store.clone(), store.join("runs")] {
        chown(path, Some(other), None).expect("root changes owners");
    }
    let said = home.run(&["runs", "list"]);
    assert!(said.code == Some(1) && said.error().contains("belongs to another user"), "{said:?}");
    let mut asked = home.command(PROGRAM);
    asked.args(["runs", "list"]).env("SUDO_UID", other.to_string());
    assert_eq!(Said::of(&mut asked).code, Some(0));
    asked.env("SUDO_UID", "1");
    assert_eq!(Said::of(&mut asked).code, Some(1));
}

/// Another user may not read where such a program's links in /proc lead, and the dynamic linker
/// loads nothing into it.
#[test]
fn a_program_with_file_capabilities_compares_settings_and_refuses_to_preload() {
    if lacks([Need::Root, Need::Program("setcap"), Need::Program("setpriv")]) {
        return;
    }
    let home = Home::new();
    let program = home.path().join("capable");
    copy_program(Path::new(PROGRAM), &program);
    let set = Command::new("setcap").arg("cap_sys_nice+ep").arg(&program).status();
    assert!(set.expect("setcap").success());
    let other = 65_534;
    set_mode(home.path(), 0o755);
    chown(home.path(), Some(other), None).expect("root changes owners");
    let run_as_other = |args: &[&str]| {
        let mut command = home.command("setpriv");
        command.args(["--reuid", &other.to_string(), "--clear-groups"]).arg(&program).args(args);
        Said::of(&mut command)
    };
    let rings = ["--members", "2", "--rounds", "1", "--laps", "20"];
    let said = run_as_other(&[&["compare", "--ab", "", "nice -n 1"], &rings[..]].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    let malloc = ["classic", "experiment", "malloc", "--preload", "libm.so.6", "--rounds", "1"];
    let said = run_as_other(&malloc);
    assert!(said.code == Some(2) && said.error().contains("file has capabilities"), "{said:?}");
    home.wait_until_alone();
}

/// The call's number, and the name under which it is told.
const NEEDED_CALLS: [(&str, i64); 7] = [
    ("sched_yield", 24),
    ("getpid", 39),
    ("recvfrom", 45),
    ("kill", 62),
    ("clock_gettime", 228),
    ("clock_nanosleep", 230),
    ("ppoll", 271),
];

/// Runs a command under a filter that answers one system call with an error.
fn run_filtered(home: &Home, call: i64, errno: i32, args: &[&str]) -> Said {
    let mut python = home.command("python3");
    let runner = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/filtered");
    python.args([runner, &call.to_string(), &errno.to_string(), PROGRAM]).args(args);
    Said::of(&mut python)
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_system_call_that_is_needed_and_refused_is_named_before_anything_starts() {
    if lacks([Need::Program("python3")]) {
        return;
    }
    let home = Home::new();
    let commands: [&[&str]; 3] = [
        &["explain", "--budget", "0.1"],
        &["top", "--batch", "--updates", "1"],
        &["run", "--no-estimate", "-n", "1", "--", "true"],
    ];
    for (name, number) in NEEDED_CALLS {
        for errno in [Errno::NOSYS, Errno::PERM] {
            for args in commands {
                let said = run_filtered(&home, number, errno.raw_os_error(), args);
                let told = said.error().contains(&format!("the system call {name} is refused"));
                assert!(said.code == Some(1) && told, "{name} {args:?}: {said:?}");
            }
        }
    }
    assert!(home.run_files().is_empty());
    home.wait_until_alone();
}

/// Calls that one link needs, by their names in its error and their numbers on x86-64, and the
/// errno that a filter answers them with.
#[cfg(target_arch = "x86_64")]
const LINKS_CALLS: [(&str, &str, i64, Errno); 7] = [
    ("eventfd", "eventfd", 290, Errno::NOSYS),
    ("epoll-socket", "epoll_create1", 291, Errno::PERM),
    ("epoll-eventfd", "epoll_pwait", 281, Errno::PERM),
    ("futex-waitv", "futex_waitv", 449, Errno::NOSYS),
    ("io-uring-msg", "io_uring_setup", 425, Errno::PERM),
    ("io-uring-poll", "io_uring_enter", 426, Errno::PERM),
    ("io-uring-futex", "io_uring_register", 427, Errno::NOSYS),
];

#[test]
#[cfg(target_arch = "x86_64")]
fn a_refused_call_that_one_link_needs_is_told_with_its_errno() {
    if lacks([Need::Program("python3")]) {
        return;
    }
    let home = Home::new();
    for (link, call, number, errno) in LINKS_CALLS {
        for (asked, code) in [(link, Some(1)), ("pipe", Some(0))] {
            let args = ["ring", "--members", "2", "--link", asked, "--rounds", "1", "--laps", "20"];
            let said = run_filtered(&home, number, errno.raw_os_error(), &args);
            assert_eq!(said.code, code, "{said:?}");
            let told = said.err.contains(&format!("{call}: {errno}: "));
            assert_eq!(told, asked == link, "{said:?}");
        }
    }
    home.wait_until_alone();
}
