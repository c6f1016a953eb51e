//! Readers of watched programs, on captured trees (Linux 6.18, a Python program of three threads
//! and kthreadd) and on copies of them that were changed.

use std::fs;
use std::path::{Path, PathBuf};

use probe::program::{SwitchCounter, SwitchCounts, WatchedProcess};

fn tree(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/program").join(name)
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a captured tree");
    for entry in fs::read_dir(from).expect("a captured tree").flatten() {
        let target = to.join(entry.file_name());
        match entry.file_type().expect("a captured tree").is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).expect("a captured tree")),
        }
    }
}

/// A copy of the program with threads, to be changed.
fn changed() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a captured tree");
    copy(&tree("threads"), folder.path());
    let process = folder.path().join("proc/500");
    (folder, process)
}

fn edit(file: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(file).expect("a captured tree");
    assert!(text.contains(from), "{} has no {from}", file.display());
    fs::write(file, text.replacen(from, to, 1)).expect("a captured tree");
}

/// Voluntary switches of a captured thread.
fn voluntary(task: &Path) -> u64 {
    let text = fs::read_to_string(task.join("status")).expect("a captured tree");
    let line = text.lines().find(|line| line.starts_with("voluntary")).expect("a captured tree");
    line.split_whitespace().nth(1).expect("a captured tree").parse().expect("a captured tree")
}

fn set_voluntary(task: &Path, count: u64) {
    let old = voluntary(task);
    let line = |count| format!("\nvoluntary_ctxt_switches:\t{count}");
    edit(&task.join("status"), &line(old), &line(count));
}

#[test]
fn all_threads_are_counted_from_the_first_look_and_later_ones_from_their_start() {
    let (folder, process) = changed();
    let program = WatchedProcess::find(folder.path(), 500).expect("a captured tree");
    let mut count = SwitchCounter::default();
    program.look(&mut count).expect("a captured tree");
    assert_eq!((count.threads, count.switches()), (3, SwitchCounts::default()));
    let [a, b, late] = ["15561", "15562", "15600"].map(|tid| process.join("task").join(tid));
    // One goes on, one ends after that, one comes.
    set_voluntary(&a, voluntary(&a) + 10);
    set_voluntary(&b, voluntary(&b) + 5);
    copy(&b, &late);
    set_voluntary(&late, 7);
    edit(&late.join("status"), "nonvoluntary_ctxt_switches:\t", "nonvoluntary_ctxt_switches:\t000");
    program.look(&mut count).expect("a captured tree");
    let of_late = {
        let text = fs::read_to_string(late.join("status")).expect("a captured tree");
        let line =
            text.lines().find(|line| line.starts_with("nonvoluntary")).expect("a captured tree");
        line.split_whitespace().nth(1).expect("a captured tree").parse().expect("a captured tree")
    };
    assert_eq!(count.switches(), SwitchCounts { voluntary: 22, involuntary: of_late });
    assert_eq!((count.threads, count.ended), (4, 0));
    fs::remove_dir_all(&b).expect("a captured tree");
    program.look(&mut count).expect("a captured tree");
    assert_eq!((count.threads, count.ended, count.switches().voluntary), (3, 1, 22));
}

#[test]
fn a_thread_with_the_id_of_an_earlier_one_is_another() {
    let (folder, process) = changed();
    let program = WatchedProcess::find(folder.path(), 500).expect("a captured tree");
    let mut count = SwitchCounter::default();
    program.look(&mut count).expect("a captured tree");
    let task = process.join("task/15561");
    let stat = fs::read_to_string(task.join("stat")).expect("a captured tree");
    let start = stat
        .rsplit_once(')')
        .expect("a captured tree")
        .1
        .split_whitespace()
        .nth(19)
        .expect("a captured tree");
    edit(&task.join("stat"), &format!(" {start} "), &format!(" {start}9 "));
    set_voluntary(&task, 3);
    program.look(&mut count).expect("a captured tree");
    assert_eq!(count.switches().voluntary, 3);
}

#[test]
fn memory_is_read_in_bytes() {
    let (folder, process) = changed();
    let program = WatchedProcess::find(folder.path(), 500).expect("a captured tree");
    let bytes = |file: &str, key: &str| -> u64 {
        let text = fs::read_to_string(process.join(file)).expect("a captured tree");
        let line = text.lines().find(|line| line.starts_with(key)).expect("a captured tree");
        let kilobytes = line.split_whitespace().nth(1).and_then(|number| number.parse().ok());
        kilobytes.map(|kilobytes: u64| kilobytes * 1024).expect("a captured tree")
    };
    assert_eq!(program.resident_bytes().expect("a captured tree"), bytes("status", "VmRSS:"));
    let referenced = program.referenced().expect("a captured tree").bytes;
    assert!(referenced > 0);
    assert_eq!(referenced, bytes("smaps_rollup", "Referenced:"));
}

#[test]
fn huge_pages_of_every_kind_are_told_apart() {
    let (folder, process) = changed();
    let program = WatchedProcess::find(folder.path(), 500).expect("a captured tree");
    let text = fs::read_to_string(process.join("smaps_rollup")).expect("a captured tree");
    for item in ["AnonHugePages", "ShmemPmdMapped", "FilePmdMapped"] {
        let old = text.lines().find(|line| line.starts_with(item)).expect("a captured tree");
        edit(&process.join("smaps_rollup"), old, &format!("{item}:      2048 kB"));
    }
    assert_eq!(program.referenced().expect("a captured tree").huge_bytes, 3 * 2048 * 1024);
    // An older kernel does not have all of them, nor them.
    let few: Vec<&str> = text.lines().filter(|line| !line.contains("PmdMapped")).collect();
    fs::write(process.join("smaps_rollup"), few.join("\n")).expect("a captured tree");
    assert_eq!(program.referenced().expect("a captured tree").huge_bytes, 0);
}

#[test]
fn a_kernel_without_the_files_of_pages_is_not_the_programs_end() {
    let (folder, process) = changed();
    let program = WatchedProcess::find(folder.path(), 500).expect("a captured tree");
    fs::remove_file(process.join("smaps_rollup")).expect("a captured tree");
    let told = [program.clear_referenced().unwrap_err(), program.referenced().unwrap_err()];
    for (error, file) in told.iter().zip(["clear_refs", "smaps_rollup"]) {
        assert!(!error.is_end(), "{error}");
        let words = format!("there is no /proc/500/{file} in this kernel");
        assert!(error.to_string().starts_with(&words), "{error}");
    }
    assert!(!process.join("clear_refs").exists(), "nothing is made there");
}

#[test]
fn another_process_with_the_same_id_is_not_taken_for_it() {
    let (folder, process) = changed();
    let program = WatchedProcess::find(folder.path(), 500).expect("a captured tree");
    fs::remove_dir_all(&process).expect("a captured tree");
    copy(&tree("threads"), folder.path());
    fs::write(process.join("clear_refs"), "").expect("a captured tree");
    assert!(program.look(&mut SwitchCounter::default()).unwrap_err().is_end());
    assert!(program.clear_referenced().unwrap_err().is_end());
    assert_eq!(fs::read_to_string(process.join("clear_refs")).expect("a captured tree"), "");
    assert!(WatchedProcess::find(folder.path(), 500).is_ok());
}

#[test]
fn the_threads_own_cpu_time_is_counted_from_the_first_look() {
    let (folder, process) = changed();
    let program = WatchedProcess::find(folder.path(), 500).expect("a captured tree");
    let tasks = ["15560", "15561", "15562"].map(|tid| process.join("task").join(tid));
    let set = |task: &Path, ns: u64| {
        fs::write(task.join("schedstat"), format!("{ns} 7 9\n")).expect("a captured tree");
    };
    tasks.iter().for_each(|task| set(task, 1000));
    let mut count = SwitchCounter::default();
    program.look(&mut count).expect("a captured tree");
    assert_eq!(count.cpu_ns(), Some(0));
    set(&tasks[1], 1400);
    let late = process.join("task/15600");
    copy(&tasks[1], &late);
    set(&late, 30);
    program.look(&mut count).expect("a captured tree");
    assert_eq!(count.cpu_ns(), Some(430));
    fs::remove_file(late.join("schedstat")).expect("a captured tree");
    program.look(&mut count).expect("a captured tree");
    assert_eq!(count.cpu_ns(), None, "what the kernel does not tell is not zero");
}

#[test]
fn what_is_no_program_says_what_it_is() {
    let (folder, process) = changed();
    let find = |root: &Path, pid| WatchedProcess::find(root, pid).unwrap_err();
    assert!(find(folder.path(), 501).is_end());
    let kernel = find(&tree("kernel"), 2);
    assert!(kernel.to_string().starts_with("'kthreadd' is a thread of the kernel"), "{kernel}");
    edit(&process.join("status"), "Tgid:\t500", "Tgid:\t499");
    let thread = find(folder.path(), 500);
    assert!(thread.to_string().starts_with("it is a thread of process 499"), "{thread}");
    edit(&process.join("status"), "Tgid:\t499", "Tgid:\tx");
    assert_eq!(find(folder.path(), 500).to_string(), "/proc/500/status has no readable 'Tgid'");
}

#[test]
fn a_name_may_hold_anything_and_a_leader_may_end_before_its_threads() {
    let (folder, process) = changed();
    let stat = fs::read_to_string(process.join("stat")).expect("a captured tree");
    let (_, rest) = stat.rsplit_once(')').expect("a captured tree");
    let (_, fields) = rest.trim_start().split_once(' ').expect("a captured tree");
    fs::write(process.join("stat"), format!("500 (a) Z (b)) Z {fields}")).expect("a captured tree");
    let program = WatchedProcess::find(folder.path(), 500).expect("a captured tree");
    for tid in ["15561", "15562"] {
        fs::remove_dir_all(process.join("task").join(tid)).expect("a captured tree");
    }
    assert!(program.look(&mut SwitchCounter::default()).unwrap_err().is_end());
}
