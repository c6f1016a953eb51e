//! A child that a signal has stopped (SIGSTOP, Ctrl-Z) and that nobody continues: its own deadlines
//! (SIGALRM) wait with it, and so would whoever waits for it.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use crate::procfs::state_of;

/// Time between two looks, where nothing is heard of the child.
const PAUSE: Duration = Duration::from_secs(1);
/// Looks take at most such a part of the time: of a ring of 20,000 one takes 0.2 s.
const LEAST_PAUSE_PER_LOOK: u32 = 10;
/// A child that stands for so long is given up.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// Looks again and again whether a child stands.
#[derive(Debug)]
pub struct StandstillWatch {
    child: Pid,
    /// Its own children count as itself.
    with_children: bool,
    pause: Duration,
    /// Who stood at the last look, and the pauses since it was first seen so: no clock, as whoever
    /// looks may have been stopped together with it.
    stands: Option<(i32, Duration)>,
}

impl StandstillWatch {
    /// Of a child of this process.
    pub fn new(child: Pid) -> Self {
        Self { child, with_children: false, pause: PAUSE, stands: None }
    }

    /// Of a child and all that it has forked. Where the kernel keeps no list of these
    /// (CONFIG_PROC_CHILDREN), of the child alone.
    pub fn with_children(child: Pid) -> Self {
        Self { with_children: true, ..Self::new(child) }
    }

    /// How long to wait before the next look.
    pub fn pause(&self) -> Duration {
        self.pause
    }

    /// Looks; gives the process that has stood still for [`PATIENCE`].
    pub fn look(&mut self) -> Option<i32> {
        let begun = Instant::now();
        let (before, passed) = (self.stands, self.pause);
        let stood = |pid: i32| match before {
            Some((known, stood)) if known == pid => stood + passed,
            _ => Duration::ZERO,
        };
        // The one that stood before is asked first: of several each is as good.
        let known = before.map(|(pid, _)| pid).filter(|pid| self.is_stopped(*pid));
        self.stands = known.or_else(|| self.stopped()).map(|pid| (pid, stood(pid)));
        self.pause = PAUSE.max(begun.elapsed() * LEAST_PAUSE_PER_LOOK);
        self.stands.filter(|(_, stood)| *stood >= PATIENCE).map(|(pid, _)| pid)
    }

    fn stopped(&self) -> Option<i32> {
        let child = self.child.as_raw_pid();
        if self.is_stopped(child) {
            return Some(child);
        }
        let path = format!("/proc/{child}/task/{child}/children");
        let list = self.with_children.then(|| fs::read_to_string(path).ok()).flatten()?;
        list.split_whitespace().flat_map(str::parse).find(|pid| self.is_stopped(*pid))
    }

    fn is_stopped(&self, pid: i32) -> bool {
        if pid != self.child.as_raw_pid() {
            return state_of(pid) == Some('T');
        }
        // Nothing is taken note of: neither its stop nor its end, which others wait for.
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
        wait_for("a stop", || watch.stopped());
        assert_eq!(watch.look(), None, "one look is not enough");
        assert_eq!(looks_until_told(&mut watch), Some(pid.as_raw_pid()));
        kill_process(pid, Signal::CONT).unwrap();
        wait_for("its end", || watch.look().is_none().then_some(()));
        assert_eq!(looks_until_told(&mut watch), None);
        end(child);
    }

    #[test]
    fn a_child_of_the_child_counts_where_it_was_asked_for() {
        let script = "sleep 1000 & kill -STOP $!; echo $! >&2; wait";
        let mut shell = Command::new("sh");
        shell.process_group(0);
        let child = shell.args(["-c", script]).stderr(std::process::Stdio::null()).spawn().unwrap();
        let pid = Pid::from_child(&child);
        let mut watch = StandstillWatch::with_children(pid);
        let Ok(_) = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")) else {
            return end(child);
        };
        let sleep = wait_for("a stop", || watch.stopped());
        assert_ne!(sleep, pid.as_raw_pid());
        assert_eq!(looks_until_told(&mut watch), Some(sleep));
        assert_eq!(StandstillWatch::new(pid).stopped(), None);
        kill_process(Pid::from_raw(sleep).unwrap(), Signal::KILL).unwrap();
        end(child);
    }
}
