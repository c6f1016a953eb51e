//! The least that a ring of N processes can cost to set up: a loop that forks N - 1 children, which
//! do nothing but wait. Prints its time in nanoseconds; `bench/against-perf.sh` divides by it.
#![allow(unsafe_code)]

use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    let Some(Ok(members)) = std::env::args().nth(1).map(|arg| arg.parse::<usize>()) else {
        eprintln!("usage: bare_fork MEMBERS");
        return ExitCode::from(2);
    };
    let mut children = Vec::with_capacity(members);
    let start = Instant::now();
    for _ in 1..members {
        // SAFETY: this program has one thread.
        match unsafe { libc::fork() } {
            -1 => break,
            0 => loop {
                // SAFETY: prctl and pause touch no memory. The child ends with its parent.
                unsafe {
                    libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                    libc::pause();
                }
            },
            pid => children.push(pid),
        }
    }
    let elapsed_ns = start.elapsed().as_nanos();
    for pid in &children {
        // SAFETY: the pids are those of our own children, not waited for yet.
        unsafe { libc::kill(*pid, libc::SIGKILL) };
    }
    for pid in &children {
        // SAFETY: as above; a null status is allowed.
        unsafe { libc::waitpid(*pid, std::ptr::null_mut(), 0) };
    }
    if children.len() + 1 < members {
        eprintln!("only {} of {members} processes could be made", children.len() + 1);
        return ExitCode::FAILURE;
    }
    println!("{elapsed_ns}");
    ExitCode::SUCCESS
}
