//! Whether the machine has a link: found out by passing a token through a ring of one.

use std::fs::File;
use std::io::{Read, Write};

use model::ring::{Case, Kind, Placement, Policy};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Signal, WaitOptions, getpid, getppid, set_parent_process_death_signal, waitpid,
};

use super::error::RingError;
use super::link::Make;
use super::member::Leader;
use super::work::NoWork;
use crate::sys::{Forked, deadline, default_alarm, exit_now, fork};

/// Seconds after which a link that passes no token is taken for one that does not work.
const PATIENCE_S: u32 = 5;

/// Tries a link in a process of its own: a worker changes its signals and its namespace for it.
pub fn try_out<M: Make>() -> Result<(), String> {
    let (answers, mut answer) = match pipe_with(PipeFlags::CLOEXEC) {
        Ok((read, write)) => (File::from(read), File::from(write)),
        Err(errno) => return Err(format!("it could not be tried: pipe: {errno}")),
    };
    let asker = getpid();
    match fork() {
        Err(errno) => Err(format!("it could not be tried: fork: {errno}")),
        Ok(Forked::Child) => {
            drop(answers);
            default_alarm();
            deadline(PATIENCE_S);
            // With whoever asks goes the question, also while it hangs.
            let asked = set_parent_process_death_signal(Some(Signal::KILL));
            if asked.is_err() || getppid() != Some(asker) {
                exit_now(1);
            }
            match pass_a_token::<M>() {
                Ok(()) => exit_now(0),
                Err(why) => {
                    // Unread, it leaves the exit status to speak.
                    let _ = answer.write_all(why.as_bytes());
                    exit_now(1);
                }
            }
        }
        Ok(Forked::Parent(pid)) => {
            drop(answer);
            let mut why = String::new();
            let mut answers = answers;
            let _ = answers.read_to_string(&mut why);
            let ended = loop {
                match waitpid(Some(pid), WaitOptions::empty()) {
                    Err(rustix::io::Errno::INTR) => {}
                    ended => break ended.ok().flatten().map(|(_, status)| status),
                }
            };
            match ended.and_then(|status| status.exit_status()) {
                Some(0) => Ok(()),
                Some(_) if !why.is_empty() => Err(why),
                _ => Err("it was tried, and no token came through".to_string()),
            }
        }
    }
}

fn pass_a_token<M: Make>() -> Result<(), String> {
    let case = Case {
        members: 1,
        // The kind that every link can serve.
        kind: Kind::Thread,
        link: M::NAME.to_string(),
        work: None,
        placement: Placement::Free { cpus: Vec::new() },
        policy: Policy::Other,
        priority: None,
        state: None,
    };
    let ring = M::make(&case, || NoWork, false).map_err(|error| match error {
        RingError::Unavailable { why, .. } => why,
        RingError::Refused { call, errno, .. } => {
            match super::build::unavailable::<M>(call, errno) {
                RingError::Unavailable { why, .. } => why,
                other => other.to_string(),
            }
        }
        other => other.to_string(),
    })?;
    let mut leader = Leader::new(ring.seat, &ring.area);
    let passed = leader.announce(1).and_then(|()| leader.batch(1, &mut || 0));
    passed.map(|_| ()).map_err(|error| RingError::Lead(error).to_string())
}
