//! Commands that no signal is kept from, whatever this test itself was started with: nohup(1), `&`
//! in a script and some CI runners have signals ignored, and a program goes on with what it finds.

use std::ffi::OsStr;
use std::fs;
use std::process::Command;
use std::sync::OnceLock;

use rustix::process::Signal;

use testing::{Need, skip};

/// A command that starts with every signal at its default, and none blocked.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    static ARE_DEFAULT: OnceLock<bool> = OnceLock::new();
    if *ARE_DEFAULT.get_or_init(|| kept_from(&own_status()) == 0) {
        return Command::new(program);
    }
    // A shell cannot: what was ignored when it started stays so. GNU coreutils 8.31 or later; not
    // looked up, as a test may say what PATH is.
    let mut command = Command::new("/usr/bin/env");
    command.arg("--default-signal").arg(program);
    command
}

fn own_status() -> String {
    fs::read_to_string("/proc/self/status").expect("a status")
}

/// The signals that a process with that status hands on ignored or blocked, a bit each. Of SIGPIPE,
/// which every Rust program ignores, its children know nothing.
fn kept_from(status: &str) -> u64 {
    let pipe = 1 << (Signal::PIPE.as_raw() - 1);
    (mask(status, "SigIgn:") & !pipe) | mask(status, "SigBlk:")
}

/// A set of signals of a status (proc_pid_status(5)), without the two that the C library keeps to
/// itself: no program can change them.
fn mask(status: &str, name: &str) -> u64 {
    const OF_THE_LIBRARY: u64 = 0b11 << 31;
    let set = status.lines().find_map(|line| line.strip_prefix(name)).expect("a set of signals");
    u64::from_str_radix(set.trim(), 16).expect("a mask") & !OF_THE_LIBRARY
}

#[test]
fn what_is_ignored_or_blocked_is_seen() {
    let status = |ignored: &str, blocked: &str| {
        format!("Name:\tsuite\nSigBlk:\t{blocked}\nSigIgn:\t{ignored}\n")
    };
    let (none, pipe, interrupt) = ("0000000000000000", "0000000000001000", "0000000000001002");
    assert_eq!(kept_from(&status(pipe, none)), 0);
    assert_eq!(kept_from(&status(interrupt, none)), 2);
    assert_eq!(kept_from(&status(none, "0000000000004000")), 1 << 14);
    assert_eq!(kept_from(&status("0000000180001000", none)), 0, "what nobody can change");
}

/// Also of a test that was started with signals ignored and blocked: this one, again.
#[test]
fn a_command_finds_no_signal_ignored_or_blocked() {
    const AGAIN: &str = "SWITCHCOST_TEST_SIGNALS";
    let status = command("cat").arg("/proc/self/status").output().expect("cat").stdout;
    let status = String::from_utf8(status).expect("UTF-8");
    assert_eq!((mask(&status, "SigIgn:"), mask(&status, "SigBlk:")), (0, 0));
    if std::env::var_os(AGAIN).is_some() {
        return;
    }
    let kept = ["--ignore-signal=INT,QUIT,HUP,PIPE,TSTP", "--block-signal=TERM,CHLD"];
    let this = ["--exact", "common::signals::a_command_finds_no_signal_ignored_or_blocked"];
    let mut again = Command::new("env");
    again.args(kept).arg(std::env::current_exe().expect("this test")).args(this).env(AGAIN, "");
    let output = again.output().expect("env(1)");
    if String::from_utf8_lossy(&output.stderr).contains("--ignore-signal") {
        return skip(Need::Program("env --ignore-signal"), "this env(1) does not ignore signals");
    }
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}
