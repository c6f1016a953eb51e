//! A process that is stopped between fork and exec. In a program of its own: the watch takes any
//! child that stands for the one that is started.

#![allow(unsafe_code, reason = "what is done before an exec is given to std in an unsafe call")]

use std::io::{self, ErrorKind};
use std::os::unix::process::CommandExt;
use std::process::Command;

use probe::spawn_watched;
use rustix::process::{Pid, Signal, getpid, kill_process};

#[test]
fn a_process_that_is_stopped_before_its_exec_is_killed_and_told() {
    let mut command = Command::new("true");
    let status = spawn_watched(&mut command).and_then(|mut child| child.wait()).unwrap();
    assert!(status.success());
    // SAFETY: between fork and exec the child makes two system calls.
    unsafe {
        command.pre_exec(|| kill_process(getpid(), Signal::STOP).map_err(io::Error::from));
    }
    let error = spawn_watched(&mut command).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
    let said = error.to_string();
    let pid: i32 = said.split(' ').nth(1).unwrap().parse().unwrap();
    assert!(said.contains("stopped by a signal"), "{said}");
    let gone = kill_process(Pid::from_raw(pid).unwrap(), Signal::CONT);
    assert_eq!(gone, Err(rustix::io::Errno::SRCH));
}
