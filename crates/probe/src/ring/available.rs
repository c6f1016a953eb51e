//! Whether the machine has a link: found out by passing a token through a ring of one.

use std::fs::File;
use std::io::{Read, Write};

use model::ring::{Case, Kind, Placement, Policy};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

use super::build::Make;
use super::error::RingError;
use super::member::Leader;
use super::work::NoWork;
use crate::child::Child;
use crate::sys::{deadline, default_alarm};

/// Seconds after which a link that passes no token is taken for one that does not work.
const DEADLINE_S: u32 = 5;

/// What the process that tries a link answers when the token came through.
const PASSED: &str = "passed";

/// Tries a link in a process of its own: a worker changes its signals and its namespace for it.
pub fn try_out<M: Make>() -> Result<(), String> {
    let failed = |call| move |errno: Errno| format!("it could not be tried: {call}: {errno}");
    let (answers, answer) = pipe_with(PipeFlags::CLOEXEC).map_err(failed("pipe"))?;
    let child = Child::start(move || {
        default_alarm();
        deadline(DEADLINE_S);
        let answered = pass_a_token::<M>().map_or_else(|why| why, |()| PASSED.to_string());
        // Without an answer the link is taken for one that does not work.
        let _ = File::from(answer).write_all(answered.as_bytes());
    });
    let child = child.map_err(failed("fork"))?;
    let mut answer = String::new();
    let _ = File::from(answers).read_to_string(&mut answer);
    child.join();
    match answer.as_str() {
        PASSED => Ok(()),
        "" => Err("it was tried, and no token came through".to_string()),
        _ => Err(answer),
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
    let mut leader = Leader::new(ring.leader, &ring.area);
    let passed = leader.announce(1).and_then(|()| leader.batch(1, &mut || 0));
    passed.map(|_| ()).map_err(|error| error.to_string())
}
