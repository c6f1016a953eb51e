//! A process that is stopped between fork and exec. In a program of its own: what its only child is
//! counts.

#![allow(unsafe_code, clippy::unwrap_used)]

use std::io::{self, ErrorKind};
use std::os::unix::process::CommandExt;
use std::process::Command;

use probe::spawn_watched;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpid, kill_process};

/// Has the process stop itself, and nothing after that.
fn that_stops(command: &mut Command) {
    // SAFETY: between fork and exec the child makes two system calls.
    unsafe {
        command.pre_exec(|| kill_process(getpid(), Signal::STOP).map_err(io::Error::from));
    }
}

fn is_killed_and_told(command: &mut Command) {
    let error = spawn_watched(command).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
    let said = error.to_string();
    let pid: i32 = said.split(' ').nth(1).unwrap().parse().unwrap();
    assert!(said.contains("stopped by a signal"), "{said}");
    let gone = kill_process(Pid::from_raw(pid).unwrap(), Signal::CONT);
    assert_eq!(gone, Err(Errno::SRCH));
}

#[test]
fn a_process_that_is_stopped_before_its_exec_is_killed_and_told() {
    // It has not told its number when it stops, and is the only one.
    let mut alone = Command::new("true");
    that_stops(&mut alone);
    is_killed_and_told(&mut alone);
    // It has told its number; another child stands, whose matter that is.
    let mut command = Command::new("true");
    let status = spawn_watched(&mut command).and_then(|mut child| child.wait()).unwrap();
    assert!(status.success());
    that_stops(&mut command);
    let mut another = Command::new("sleep").arg("1000").process_group(0).spawn().unwrap();
    kill_process(Pid::from_child(&another), Signal::STOP).unwrap();
    is_killed_and_told(&mut command);
    assert_eq!(another.try_wait().unwrap(), None);
    another.kill().unwrap();
    another.wait().unwrap();
}
