//! What is written to files: whole or not at all, and only into the file that was named.

use std::fs;
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Stdio;

use crate::common::stored::stored_run;
use crate::common::{Home, PROGRAM, Said};
use testing::{Need, lacks, repeats, skip};

/// A home with a run file, its path, and a folder that has nothing but what a test puts there.
fn home() -> (Home, String, String) {
    let home = Home::new();
    let run = stored_run(&home, "run.jsonl", |_| {});
    let folder = home.path().join("out");
    fs::create_dir(&folder).expect("a folder");
    (home, run, folder.display().to_string())
}

/// Each command that writes a file; its place is the last word.
fn commands<'a>(run: &'a str, file: &'a str) -> [Vec<&'a str>; 4] {
    [
        vec!["runs", "export", run, "--output", file],
        vec!["runs", "export", run, "--format", "csv", "--output", file],
        vec!["runs", "list", "--history", "--json", file],
        vec!["report", run, "--output", file],
    ]
}

fn names(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// A report by its first bytes, of which only its own kind is written over.
const OLD: &str = "<meta name=\"generator\" content=\"switchcost old\">\n";

/// The program under a shell that limits it first.
fn limited(home: &Home, limit: &str, args: &[&str]) -> Said {
    let script = format!("{limit}; exec \"$0\" \"$@\"");
    Said::of(home.command("sh").args(["-c", &script, PROGRAM]).args(args))
}

#[test]
fn a_file_that_grows_too_large_leaves_the_old_one() {
    for limit in ["ulimit -f 0", "ulimit -f 2"] {
        let (home, run, folder) = home();
        let file = format!("{folder}/file");
        for args in commands(&run, &file) {
            fs::write(&file, OLD).expect("a file");
            let said = limited(&home, limit, &args);
            assert_eq!(said.code, Some(1), "{limit}: {args:?}: {said:?}");
            for told in ["File too large (os error 27)", &file, "ulimit -f"] {
                assert!(said.error().contains(told), "no {told} in {}", said.err);
            }
            assert_eq!(fs::read_to_string(&file).expect("the old file"), OLD, "{args:?}");
            assert_eq!(names(&folder), ["file"], "{args:?}");
        }
    }
}

/// A disk of its own, which is smaller than what is written.
#[test]
fn a_full_disk_leaves_the_old_file() {
    if lacks([Need::Root, Need::Program("unshare")]) {
        return;
    }
    let (home, run, folder) = home();
    let file = format!("{folder}/file");
    for args in commands(&run, &file) {
        let script = "mount -t tmpfs -o size=8k none \"$1\" && printf %s \"$2\" > \"$3\" && shift 3 || exit 77
            \"$0\" \"$@\"; code=$?; cat \"$OUT/file\"; ls -A \"$OUT\"; exit $code";
        let said = Said::of(
            home.command("unshare")
                .args(["-m", "sh", "-c", script, PROGRAM, &folder, OLD, &file])
                .args(&args)
                .env("OUT", &folder),
        );
        if said.code == Some(77) {
            return skip(Need::Mounts, "no tmpfs can be mounted here");
        }
        assert_eq!((said.code, &*said.out), (Some(1), &*format!("{OLD}file\n")), "{said:?}");
        assert!(said.error().contains("No space left on device (os error 28)"), "{}", said.err);
    }
}

/// It is killed as soon as anything is seen of what it writes.
#[test]
fn a_killed_writer_leaves_the_old_file_or_the_new_one() {
    let (home, run, folder) = home();
    let file = format!("{folder}/report.html");
    let args = ["report", &*run, "--output", &*file];
    assert_eq!(home.run(&args).code, Some(0));
    let whole = fs::metadata(&file).expect("a report").len();
    for _ in 0..repeats(5, 20) {
        fs::write(&file, OLD).expect("a file");
        let mut child = home.start(&args);
        while fs::metadata(&file).expect("a report").len() == OLD.len() as u64
            && child.try_wait().expect("a child").is_none()
        {}
        let _ = child.kill();
        Said::at_end(child);
        let length = fs::metadata(&file).expect("a report").len();
        assert!([OLD.len() as u64, whole].contains(&length), "{length} of {whole} bytes");
        assert_eq!(names(&folder), ["report.html"]);
    }
}

#[test]
fn a_link_is_not_followed() {
    let (home, run, folder) = home();
    let (link, target) = (format!("{folder}/link"), format!("{folder}/target"));
    fs::write(&target, OLD).expect("a file");
    let measured = |flag| ["ring", "--members", "2", "--rounds", "1", "--laps", "1", flag, &*link];
    let pictures = ["report", &*run, "--output", "-", "--svg", &*folder];
    for to in ["target", "nowhere"] {
        let _ = fs::remove_file(&link);
        symlink(to, &link).expect("a link");
        let own = [measured("--json").to_vec(), measured("--csv").to_vec()];
        for args in commands(&run, &link).into_iter().chain(own) {
            let said = home.run(&args);
            assert_eq!((said.code, &*said.out), (Some(2), ""), "{args:?}: {said:?}");
            for told in [&*link, &format!("it is a link to {to}"), "name that file itself"] {
                assert!(said.error().contains(told), "no {told} in {}", said.err);
            }
        }
    }
    symlink("target", format!("{folder}/cost-by-size.svg")).expect("a link");
    symlink("target", format!("{folder}/cost.svg")).expect("a link");
    let said = home.run(&pictures);
    let drawn = names(&folder).iter().filter(|name| name.ends_with(".svg")).count();
    assert!(said.code == Some(2) || drawn > 2, "{said:?}");
    assert_eq!(fs::read_to_string(&target).expect("the target"), OLD);
    assert_eq!(home.run_files().len(), 0, "nothing was measured");
}

#[test]
fn what_is_no_file_is_written_to_as_it_is() {
    let (home, run, folder) = home();
    let wanted = home.run(&["runs", "export", &run]).out;
    let to = |place: &str| ["runs", "export", &*run, "--output", place].map(str::to_string);
    let fifo = format!("{folder}/fifo");
    let made = home.command("mkfifo").arg(&fifo).status();
    assert!(made.expect("mkfifo").success());
    let fifo_link = format!("{folder}/link");
    symlink("fifo", &fifo_link).expect("a link");
    for place in [&fifo, &fifo_link] {
        let mut child = home.command(PROGRAM).args(to(place)).spawn().expect("the program");
        assert_eq!(fs::read_to_string(&fifo).expect("a FIFO"), wanted, "{place}");
        assert!(child.wait().expect("its end").success());
    }
    for place in ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
        let said = Said::of(home.command(PROGRAM).args(to(place)));
        assert_eq!((said.code, &said.out), (Some(0), &wanted), "{place}");
        // Standard output that is a file is still standard output.
        let file = fs::File::create(format!("{folder}/out")).expect("a file");
        let status = home.command(PROGRAM).args(to(place)).stdout(file).status();
        assert!(status.expect("the program").success(), "{place}");
        assert_eq!(fs::read_to_string(format!("{folder}/out")).expect("a file"), wanted, "{place}");
    }
    let mut text = String::new();
    let mut child = home.command(PROGRAM);
    let mut child = child.args(to("/dev/stderr")).stderr(Stdio::piped()).spawn().expect("it");
    child.stderr.take().expect("a pipe").read_to_string(&mut text).expect("text");
    assert!(child.wait().expect("its end").success() && text == wanted);
    assert_eq!(home.run(&to("/dev/null").each_ref().map(|word| &**word)).code, Some(0));
    let null = fs::metadata("/dev/null").expect("a device");
    assert!(!null.is_file(), "the device is still one");
}

#[test]
fn a_file_that_is_replaced_keeps_its_mode() {
    let (home, run, folder) = home();
    let file = format!("{folder}/file");
    for mode in [0o600, 0o664] {
        fs::write(&file, OLD).expect("a file");
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("a mode");
        assert_eq!(home.run(&["report", &run, "--output", &file]).code, Some(0));
        let found = Path::new(&file).metadata().expect("a file").permissions().mode();
        assert_eq!(found & 0o777, mode);
    }
}

/// A run file has command lines.
#[test]
fn a_run_file_is_its_owners_alone() {
    let home = Home::new();
    home.measure(&["--members", "2", "--rounds", "1", "--laps", "1"]);
    let mode = home.run_file().metadata().expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

/// What was measured is printed, whatever can be stored of it.
#[test]
fn without_room_for_any_file_the_figures_are_printed() {
    let (home, _, folder) = home();
    let file = format!("{folder}/samples.csv");
    let small = ["ring", "--members", "2", "--rounds", "1", "--laps", "9", "--budget", "600s"];
    let args = [&small[..], &["--csv", &file]].concat();
    let said = limited(&home, "ulimit -f 0", &args);
    assert_eq!((said.code, said.sizes()), (Some(1), vec!["1".to_string(), "2".to_string()]));
    for told in ["the run is not stored: cannot ", "measuring continues", &file] {
        assert!(said.err.contains(told), "no {told} in {}", said.err);
    }
    assert!(said.err.contains("File too large (os error 27)"), "{}", said.err);
    assert_eq!((names(&folder).len(), home.run_files().len()), (0, 0));
}
