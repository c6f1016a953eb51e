//! As what a process was started: what a command that stands before it has made of it.

use std::io;

use model::case::Policy;
use serde::{Deserialize, Serialize};

use crate::placement;
use crate::procfs::Stat;

/// What a process has from whoever started it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// Its id.
    pub pid: u32,
    /// The CPUs that it may run on, sorted.
    pub cpus: Vec<u32>,
    /// Its policy, by the kernel's number (sched(7)).
    pub policy: i32,
    /// Its real-time priority; 0 under a normal policy.
    pub priority: u32,
    /// Its nice value.
    pub nice: i32,
}

impl Standing {
    /// That of the calling process.
    pub fn own() -> io::Result<Self> {
        let stat = std::fs::read_to_string("/proc/self/stat")?;
        let [nice, priority, policy] = fields(&stat).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidData, "/proc/self/stat: fields are missing")
        })?;
        Ok(Self {
            pid: std::process::id(),
            cpus: placement::allowed_cpus()?,
            policy,
            priority: u32::try_from(priority).unwrap_or(0),
            nice,
        })
    }

    /// Its policy, where members of a ring can have it.
    pub fn policy(&self) -> Option<Policy> {
        match self.policy {
            libc::SCHED_OTHER => Some(Policy::Other),
            libc::SCHED_BATCH => Some(Policy::Batch),
            libc::SCHED_FIFO => Some(Policy::Fifo),
            libc::SCHED_RR => Some(Policy::Rr),
            _ => None,
        }
    }
}

/// Fields 19, 40 and 41 of proc_pid_stat(5): nice value, real-time priority, policy.
fn fields(stat: &str) -> Option<[i32; 3]> {
    let stat = Stat::parse(stat)?;
    Some([stat.number(19)?, stat.number(40)?, stat.number(41)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_counted_behind_the_name() {
        let numbers: Vec<String> = (4..=52).map(|number| number.to_string()).collect();
        let stat = format!("7 (a ) b) S {}", numbers.join(" "));
        assert_eq!(fields(&stat), Some([19, 40, 41]));
        assert_eq!(fields("7 (a) S 1 2"), None);
        assert_eq!(fields(""), None);
    }

    #[test]
    fn this_process_stands_somewhere() {
        let own = Standing::own().expect("/proc/self/stat is readable");
        assert_eq!(own.pid, std::process::id());
        assert!(!own.cpus.is_empty());
    }
}
