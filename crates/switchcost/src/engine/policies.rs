//! The policy of what is measured, where other tasks use its CPU: under SCHED_FIFO they wait.

use anyhow::{Context, Result};
use probe::policy;
use rundata::notice::Notice;
use rundata::ring::Policy;

use super::setting::{CurrentLoad, LocalHost};
use crate::base::failure::usage;

/// Share of a CPU's time from which on it is busy: two of the ten ticks of a look may have met
/// anybody.
const MIN_BUSY_SHARE: f64 = 0.25;

/// A CPU that other tasks used when the plan was made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct BusyCpu {
    cpu: u32,
    share: f64,
}

impl BusyCpu {
    /// Returns `CPU 1 was busy when measuring began (38 %)`, the first words of a note.
    pub(crate) fn in_words(&self) -> String {
        format!("CPU {} was busy when measuring began ({:.0} %)", self.cpu, 100.0 * self.share)
    }
}

/// The competition on the CPU of a measurement, and whether SCHED_FIFO keeps other tasks away.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Contention {
    /// The CPU is free, or it is not known how busy it is.
    Free,
    /// The CPU is busy, and SCHED_FIFO is granted.
    FifoGranted(BusyCpu),
    /// The CPU is busy, and this note says why SCHED_FIFO cannot be had.
    FifoRefused(BusyCpu, String),
}

impl Contention {
    /// Judges the CPU on which everything is to be measured. Where this program has no other CPU to
    /// watch from, SCHED_FIFO is never taken.
    pub(crate) fn on_cpu(cpu: u32, load: &CurrentLoad, host: &LocalHost) -> Self {
        let Some(share) = load.shares.of_cpu(cpu).filter(|share| *share >= MIN_BUSY_SHARE) else {
            return Self::Free;
        };
        let busy = BusyCpu { cpu, share };
        if has_only(cpu, host) {
            return Self::Free;
        }
        match load.fifo {
            None => Self::Free,
            Some(Ok(())) => Self::FifoGranted(busy),
            Some(Err(errno)) => Self::FifoRefused(
                busy,
                format!(
                    "{}, and SCHED_FIFO, under which other tasks wait, was refused ({errno}; {})",
                    busy.in_words(),
                    policy::describe_needs(Policy::Fifo, errno)
                ),
            ),
        }
    }
}

/// Returns whether this program may run on this CPU alone.
fn has_only(cpu: u32, host: &LocalHost) -> bool {
    host.allowed.iter().all(|allowed| *allowed == cpu)
}

/// Takes the policy that was asked for, or SCHED_FIFO where the CPU is busy; adds a note where it
/// was not asked for. `what` is measured under it.
pub(crate) fn take_policy(
    asked: Option<Policy>,
    cpu: u32,
    what: &str,
    load: &CurrentLoad,
    host: &LocalHost,
    notices: &mut Vec<Notice>,
) -> Result<Policy> {
    if let Some(asked) = asked {
        check_policy(asked, cpu, host)?;
        return Ok(asked);
    }
    match Contention::on_cpu(cpu, load, host) {
        Contention::Free => Ok(Policy::Other),
        Contention::FifoGranted(busy) => {
            notices.push(
                format!(
                    "{}: {what} are measured under SCHED_FIFO (--policy other: under the normal \
                 policy)",
                    busy.in_words()
                )
                .into(),
            );
            Ok(Policy::Fifo)
        }
        Contention::FifoRefused(_, why) => {
            notices.push(why.into());
            Ok(Policy::Other)
        }
    }
}

/// Checks that a policy is granted, and that a real-time one leaves this program a CPU.
fn check_policy(asked: Policy, cpu: u32, host: &LocalHost) -> Result<()> {
    if asked.is_realtime() && has_only(cpu, host) {
        return Err(usage(format!(
            "--policy {asked}: this program may use one CPU only, and what runs there under a \
             real-time policy could not be watched (accepted here: other, batch)"
        )));
    }
    probe::ring::check_policy(asked).with_context(|| format!("--policy {asked}"))
}

#[cfg(test)]
pub(crate) mod tests {
    use probe::placement::CpuShares;
    use rundata::machine::Machine;
    use rustix::io::Errno;

    use super::*;

    /// Two CPUs, of which the second is used so much.
    pub(crate) fn here(share: f64, fifo: Result<(), Errno>) -> LocalHost {
        let shares = CpuShares::known(&[(0, share), (1, share)]);
        let load = Some(CurrentLoad { shares, fifo: Some(fifo) });
        LocalHost { allowed: vec![0, 1], machine: Machine::default(), load }
    }

    fn on_second(here: &LocalHost) -> Contention {
        Contention::on_cpu(1, &here.current_load(), here)
    }

    #[test]
    fn fifo_is_taken_on_a_busy_cpu_that_can_be_watched_from_another() {
        let busy = BusyCpu { cpu: 1, share: 0.38 };
        assert_eq!(on_second(&here(0.38, Ok(()))), Contention::FifoGranted(busy));
        assert_eq!(busy.in_words(), "CPU 1 was busy when measuring began (38 %)");
        assert_eq!(on_second(&here(0.2, Ok(()))), Contention::Free);
        let alone = LocalHost { allowed: vec![1], ..here(0.38, Ok(())) };
        assert_eq!(on_second(&alone), Contention::Free);
        let shares = CpuShares::default();
        let unknown = CurrentLoad { shares, fifo: Some(Ok(())) };
        let unknown = LocalHost { load: Some(unknown), ..here(0.38, Ok(())) };
        assert_eq!(on_second(&unknown), Contention::Free);
        let mut elsewhere = here(0.38, Ok(()));
        elsewhere.load.as_mut().expect("known").fifo = None;
        assert_eq!(on_second(&elsewhere), Contention::Free);
    }

    #[test]
    fn where_fifo_is_refused_the_note_says_what_it_needs() {
        let Contention::FifoRefused(busy, why) = on_second(&here(0.5, Err(Errno::PERM))) else {
            panic!("not refused");
        };
        assert!(why.starts_with(&busy.in_words()), "{why}");
        assert!(why.contains("CAP_SYS_NICE"), "{why}");
    }

    #[test]
    fn a_policy_that_was_asked_for_is_taken_however_busy_the_cpu_is() {
        let taken = |asked, here: &LocalHost| {
            let mut notices = Vec::new();
            let policy = take_policy(asked, 1, "rings", &here.current_load(), here, &mut notices);
            (policy.map_err(|error| error.to_string()), notices)
        };
        let busy = here(0.5, Ok(()));
        assert_eq!(taken(Some(Policy::Other), &busy), (Ok(Policy::Other), Vec::new()));
        let (policy, notices) = taken(None, &busy);
        assert_eq!(policy, Ok(Policy::Fifo));
        assert!(
            notices[0].text.contains("(50 %): rings are measured under SCHED_FIFO"),
            "{notices:?}"
        );
        let (policy, notices) = taken(None, &here(0.5, Err(Errno::PERM)));
        assert_eq!((policy, notices.len()), (Ok(Policy::Other), 1));
        let alone = LocalHost { allowed: vec![1], ..busy };
        let (refused, _) = taken(Some(Policy::Fifo), &alone);
        assert!(refused.is_err_and(|why| why.contains("one CPU only")));
    }
}
