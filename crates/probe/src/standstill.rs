//! Detection of a child that a signal has stopped (SIGSTOP, Ctrl-Z) and that nobody continues: its
//! own deadlines (SIGALRM) stop with it, so that the parent would wait for ever.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use crate::procfs::state_of;

/// Time between two looks while the child reports nothing.
const PAUSE: Duration = Duration::from_secs(1);
/// Shortest pause as a multiple of a look's time: one at a ring of 20,000 takes 0.2 s.
const MIN_PAUSE_FACTOR: u32 = 10;
/// Time after which a child that stands still is given up.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// Most children whose own children are searched: those of one large ring have none.
const MAX_LEADERS: usize = 1024;

/// Lists the children of a process with one thread; empty where the kernel does not list them.
fn children_of(pid: i32) -> Vec<i32> {
    let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let list = list.unwrap_or_default();
    list.split_whitespace().flat_map(str::parse).collect()
}

/// Looks again and again whether a child stands still.
#[derive(Debug)]
pub struct StandstillWatch {
    child: Pid,
    /// Whether its children and theirs are watched, too.
    with_children: bool,
    pause: Duration,
    /// The process that stood still at the last look.
    stopped: Option<StoppedProcess>,
}

/// A process that stands still, and for how long: the sum of the pauses since the first look that
/// found it, not a clock, as this process may have been stopped together with it.
#[derive(Clone, Copy, Debug)]
struct StoppedProcess {
    pid: i32,
    stood: Duration,
}

impl StandstillWatch {
    /// Watches a child of this process.
    pub fn new(child: Pid) -> Self {
        Self { child, with_children: false, pause: PAUSE, stopped: None }
    }

    /// Watches a child, its children and theirs. Without the kernel's list of these (CONFIG_PROC_CHILDREN)
    /// only the child is watched.
    pub fn with_children(child: Pid) -> Self {
        Self { with_children: true, ..Self::new(child) }
    }

    /// Returns how long to wait before the next look.
    pub fn pause(&self) -> Duration {
        self.pause
    }

    /// Looks once. Returns the process that has stood still for [`PATIENCE`].
    pub fn look(&mut self) -> Option<i32> {
        let begun = Instant::now();
        // The process that stood before is tried first: any of several is as good.
        let before = self.stopped.filter(|process| self.is_stopped(process.pid));
        self.stopped = match before {
            Some(StoppedProcess { pid, stood }) => {
                Some(StoppedProcess { pid, stood: stood + self.pause })
            }
            None => self.find_stopped().map(|pid| self.newly_found(pid)),
        };
        self.pause = PAUSE.max(begun.elapsed() * MIN_PAUSE_FACTOR);
        let stopped = self.stopped?;
        if stopped.stood >= PATIENCE { Some(stopped.pid) } else { None }
    }

    /// Builds the entry of a process found by a search. It may be the one that stood at the last
    /// look, if that was continued for a moment and stopped again.
    fn newly_found(&self, pid: i32) -> StoppedProcess {
        match self.stopped {
            Some(before) if before.pid == pid => {
                StoppedProcess { pid, stood: before.stood + self.pause }
            }
            _ => StoppedProcess { pid, stood: Duration::ZERO },
        }
    }

    /// Finds a process that stands still.
    fn find_stopped(&self) -> Option<i32> {
        let child = self.child.as_raw_pid();
        if self.is_stopped(child) {
            return Some(child);
        }
        if !self.with_children {
            return None;
        }
        let children = children_of(child);
        let stopped = children.iter().copied().find(|pid| self.is_stopped(*pid));
        if stopped.is_some() || children.len() > MAX_LEADERS {
            return stopped;
        }
        // Of several rings the members are children of their leaders.
        children.into_iter().flat_map(children_of).find(|pid| self.is_stopped(*pid))
    }

    fn is_stopped(&self, pid: i32) -> bool {
        if pid != self.child.as_raw_pid() {
            return state_of(pid) == Some('T');
        }
        // WNOWAIT: neither its stop nor its end is consumed, which others wait for.
        let how = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        matches!(waitid(WaitId::Pid(self.child), how), Ok(Some(_)))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command};

    use rustix::process::{Signal, kill_process};
    use testing::wait_for;

    use super::*;

    /// Looks without a pause between them until it says who stands.
    fn looks_until_told(of: &mut StandstillWatch) -> Option<i32> {
        (0..20).find_map(|_| of.look())
    }

    fn end(mut child: Child) {
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_child_that_stands_is_told_and_one_that_was_continued_is_not() {
        // A group of its own: one that is orphaned with somebody in it who stands is sent SIGHUP.
        let child = Command::new("sleep").arg("1000").process_group(0).spawn().unwrap();
        let pid = Pid::from_child(&child);
        let mut watch = StandstillWatch::new(pid);
        assert_eq!(looks_until_told(&mut watch), None);
        kill_process(pid, Signal::STOP).unwrap();
        wait_for("a stop", || watch.find_stopped());
        assert_eq!(watch.look(), None, "one look is not enough");
        assert_eq!(looks_until_told(&mut watch), Some(pid.as_raw_pid()));
        kill_process(pid, Signal::CONT).unwrap();
        wait_for("its end", || watch.look().is_none().then_some(()));
        assert_eq!(looks_until_told(&mut watch), None);
        end(child);
    }

    #[test]
    fn a_child_of_the_child_counts_where_it_was_asked_for() {
        assert_found("sleep 1000 & kill -STOP $!; wait");
    }

    #[test]
    fn a_member_of_one_of_several_rings_counts_too() {
        assert_found("sh -c 'sleep 1000 & kill -STOP $!; wait' & wait");
    }

    /// Checks that the process is found that this script of a shell stops.
    fn assert_found(script: &str) {
        let mut shell = Command::new("sh");
        shell.process_group(0);
        let child = shell.args(["-c", script]).stderr(std::process::Stdio::null()).spawn().unwrap();
        let pid = Pid::from_child(&child);
        let mut watch = StandstillWatch::with_children(pid);
        let Ok(_) = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")) else {
            return end(child);
        };
        let sleep = wait_for("a stop", || watch.find_stopped());
        assert_ne!(sleep, pid.as_raw_pid());
        assert_eq!(looks_until_told(&mut watch), Some(sleep));
        assert_eq!(StandstillWatch::new(pid).find_stopped(), None);
        kill_process(Pid::from_raw(sleep).unwrap(), Signal::KILL).unwrap();
        // The shells wait for nothing else.
        drop(child.wait_with_output());
    }
}
