//! getpinfo() of the caller, of siblings, of other processes, and of what is not there.
#![allow(unsafe_code, clippy::unwrap_used)]

mod common;
use common::{kernel_ns, spin_ns};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use threadclock::{TimeReadError, getpinfo, getpinfo_process};

fn own_tid() -> i32 {
    // SAFETY: no arguments.
    unsafe { libc::gettid() }
}

#[test]
fn zero_is_the_calling_thread() {
    let bound = threadclock::ThreadClock::for_this_thread().error_bound_ns();
    for _ in 0..1_000 {
        let before = kernel_ns();
        let own = getpinfo(0).unwrap().ns;
        assert!(own + bound >= before && own <= kernel_ns() + bound);
    }
}

#[test]
fn own_id_is_the_kernels_figure() {
    let before = kernel_ns();
    let own = getpinfo(own_tid()).unwrap();
    assert!((before..=kernel_ns()).contains(&own.ns));
}

#[test]
fn a_sibling_is_read_while_it_sleeps() {
    let (tell, told) = mpsc::channel();
    let (go_on, may_go) = mpsc::channel::<()>();
    let sibling = std::thread::spawn(move || {
        spin_ns(20_000_000);
        tell.send((own_tid(), kernel_ns())).unwrap();
        may_go.recv().unwrap_err();
    });
    let (tid, at_least_ns) = told.recv().unwrap();
    let time = getpinfo(tid).unwrap();
    assert!(time.ns >= at_least_ns);
    assert!(getpinfo_process(0).unwrap().ns >= time.ns);
    // A thread that is not its process's first has no process clock.
    assert_eq!(getpinfo_process(tid), Err(TimeReadError::InvalidId(tid)));
    drop(go_on);
    sibling.join().unwrap();
}

#[test]
fn dead_threads_count_for_the_process() {
    let used_ns = std::thread::spawn(|| {
        spin_ns(20_000_000);
        kernel_ns()
    })
    .join()
    .unwrap();
    assert!(getpinfo_process(0).unwrap().ns >= used_ns);
    let pid = std::process::id() as i32;
    assert!(getpinfo_process(pid).unwrap().ns >= used_ns);
}

#[test]
fn another_process_and_then_none() {
    let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let pid = child.id() as i32;
    // It starts at 0, and may stay there for as long as the hypervisor takes what it runs.
    let has_run = || (getpinfo_process(pid).unwrap().ns > 0).then_some(());
    testing::wait_for("time of a child that runs", has_run);
    let thread = getpinfo(pid).unwrap();
    // schedstat may lag, but cannot exceed what the process has used by now.
    assert!(thread.ns <= getpinfo_process(pid).unwrap().ns);
    drop(child.stdin.take());
    child.wait().unwrap();
    assert_eq!(getpinfo(pid), Err(TimeReadError::NoSuchTask(pid)));
    assert_eq!(getpinfo_process(pid), Err(TimeReadError::NoSuchTask(pid)));
}

#[test]
fn errors_have_their_errno() {
    assert_eq!(getpinfo(-1), Err(TimeReadError::InvalidId(-1)));
    assert_eq!(getpinfo_process(-1), Err(TimeReadError::InvalidId(-1)));
    assert_eq!(getpinfo(-1).unwrap_err().errno(), libc::EINVAL);
    // The second makes a clock id that names another clock.
    for nobody in [4_194_304, i32::MAX, 1 << 28] {
        assert_eq!(getpinfo(nobody).unwrap_err().errno(), libc::ESRCH);
        assert_eq!(getpinfo_process(nobody).unwrap_err().errno(), libc::ESRCH);
    }
}
