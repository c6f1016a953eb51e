//! One timed batch of laps, as the worker saw it. Raw figures only.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Case;
use crate::speed::{Slices, Triples};

/// What the kernel counted for all members of a ring between two moments at which the ring stood
/// still. A figure that the kernel did not give is absent, never zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counters {
    /// Switches made because the member had to wait (`nr_voluntary_switches`).
    pub voluntary: u64,
    /// Switches made because another was to run (`nr_involuntary_switches`).
    pub involuntary: u64,
    /// Moves from one CPU to another.
    pub migrations: Option<u64>,
    /// Page faults served without input or output.
    pub minor_faults: u64,
    /// Page faults that had to wait for input.
    pub major_faults: u64,
    /// CPU time by the scheduler's precise sum, in nanoseconds. Where the sample has slices, the reference
    /// quanta between them are in it (`Sample::cpu_ns` leaves them out).
    pub cpu_ns: u64,
    /// Part of `cpu_ns` in user mode by the kernel's tick sampling, in nanoseconds; absent when no
    /// tick fell into the sample.
    pub user_ns: Option<u64>,
    /// Part of `cpu_ns` in the kernel by its tick sampling, in nanoseconds; absent as `user_ns`.
    pub system_ns: Option<u64>,
}

impl Counters {
    /// All switches: the voluntary ones alone miss those of a writer whom the woken member preempts.
    pub fn switches(&self) -> u64 {
        self.voluntary + self.involuntary
    }
}

/// One timed batch of laps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "RingSample")]
pub struct Sample {
    /// Number of the case in the plan.
    pub case: usize,
    /// Round, from 0: one fresh worker for each case.
    pub round: u32,
    /// Sample within the round, from 0.
    pub sample: u32,
    /// Timed laps.
    pub laps: u64,
    /// Timed hops: laps times members.
    pub hops: u64,
    /// Time of the timed laps, in nanoseconds (CLOCK_MONOTONIC_RAW).
    pub elapsed_ns: u64,
    /// What the kernel counted around the timed laps.
    pub counters: Counters,
    /// Time stolen by the hypervisor from the ring's CPUs, in nanoseconds, in steps of the
    /// kernel's 10 ms; absent where it is not reported.
    pub steal_ns: Option<u64>,
    /// Time from the start of the ring's set-up to its first, untimed, lap, in nanoseconds.
    pub setup_ns: u64,
    /// The batch in slices and the reference quanta between them. Absent where the plan has no slices, in
    /// runs of schema 1, and on architectures that the quanta are not written for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slices: Option<Slices>,
    /// Solos on the same memory before and after the ring; absent where solos are rings of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub triples: Option<Triples>,
    /// Bytes of transparent huge pages that the members' processes had after their arrays were written (of small
    /// arrays more than they need: a page is given whole); absent without a working set and where the kernel
    /// does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub huge_page_bytes: Option<u64>,
}

/// What disturbed a sample.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum Disturbance {
    /// The hypervisor ran something else.
    Steal {
        /// For how long, in nanoseconds.
        ns: u64,
    },
    /// On the ring's one CPU something else ran: other tasks, interrupts, unreported steal.
    OtherWork {
        /// Share of the elapsed time, 0 to 1.
        share: f64,
    },
    /// Members waited for pages.
    MajorFaults {
        /// How often.
        count: u64,
    },
    /// A pinned member changed its CPU.
    Migrations {
        /// How often.
        count: u64,
    },
}

impl fmt::Display for Disturbance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Steal { ns } => write!(f, "steal:{ns}ns"),
            Self::OtherWork { share } => write!(f, "other-work:{:.0}%", share * 100.0),
            Self::MajorFaults { count } => write!(f, "major-faults:{count}"),
            Self::Migrations { count } => write!(f, "migrations:{count}"),
        }
    }
}

/// Share of the elapsed time that may go to others before a one-CPU sample counts as disturbed.
/// The timer tick and its soft interrupts take well below this on an idle machine.
pub const OTHER_WORK_LIMIT: f64 = 0.05;

impl Sample {
    /// Nanoseconds per hop.
    pub fn ns_per_hop(&self) -> f64 {
        self.elapsed_ns as f64 / self.hops as f64
    }

    /// CPU time of all members for the timed laps, in nanoseconds: without the reference quanta.
    pub fn cpu_ns(&self) -> u64 {
        self.counters.cpu_ns.saturating_sub(self.reference_ns())
    }

    /// User and system part of [`Self::cpu_ns`]. The quanta run in user mode; as the split rests on ticks, a
    /// sample of which few ticks fell into user mode may have spent less than nothing there. Sums are right.
    pub fn user_system_ns(&self) -> Option<(i64, i64)> {
        let (user, system) = self.counters.user_ns.zip(self.counters.system_ns)?;
        let reference = i64::try_from(self.reference_ns()).unwrap_or(i64::MAX);
        let signed = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        Some((signed(user).saturating_sub(reference), signed(system)))
    }

    fn reference_ns(&self) -> u64 {
        self.slices.as_ref().map_or(0, Slices::reference_ns)
    }

    /// The slices, if there are any and they are short enough to be judged by the quanta around them.
    pub fn judged_slices(&self) -> Option<&Slices> {
        self.slices.as_ref().filter(|slices| slices.can_be_judged())
    }

    /// Whether it was timed as the machine was found, waiting for nothing.
    pub fn is_as_found(&self) -> bool {
        self.slices.as_ref().is_none_or(Slices::are_as_found)
    }

    /// Whether a member that was to stay on its CPU moved.
    pub fn has_moved(&self, case: &Case) -> bool {
        let pinned = !matches!(case.placement, crate::placement::Placement::Free { .. });
        pinned && self.counters.migrations.is_some_and(|count| count > 0)
    }

    /// Nanoseconds of CPU time of all members per hop.
    pub fn cpu_ns_per_hop(&self) -> f64 {
        self.cpu_ns() as f64 / self.hops as f64
    }

    /// Counted switches, without those of a leader that waited for an unshared core.
    pub fn switches(&self) -> u64 {
        let in_waits = self.slices.as_ref().map_or(0, Slices::switches_in_waits);
        self.counters.switches().saturating_sub(in_waits)
    }

    /// Counted switches per hop.
    pub fn switches_per_hop(&self) -> f64 {
        self.switches() as f64 / self.hops as f64
    }

    /// By what the sample was disturbed, as far as the kernel's counts tell.
    pub fn disturbances(&self, case: &Case) -> Vec<Disturbance> {
        let mut all = Vec::new();
        if let Some(ns) = self.steal_ns.filter(|ns| *ns > 0) {
            all.push(Disturbance::Steal { ns });
        }
        if case.placement.is_one_cpu() && self.elapsed_ns > 0 {
            let share = 1.0 - self.cpu_ns() as f64 / self.elapsed_ns as f64;
            if share > OTHER_WORK_LIMIT {
                all.push(Disturbance::OtherWork { share });
            }
        }
        if self.counters.major_faults > 0 {
            all.push(Disturbance::MajorFaults { count: self.counters.major_faults });
        }
        if let Some(count) = self.counters.migrations.filter(|_| self.has_moved(case)) {
            all.push(Disturbance::Migrations { count });
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::{Kind, Placement, Policy};

    fn sample() -> Sample {
        Sample {
            case: 0,
            round: 0,
            sample: 0,
            laps: 500,
            hops: 1000,
            elapsed_ns: 4_000_000,
            counters: Counters {
                voluntary: 1000,
                involuntary: 370,
                migrations: Some(0),
                cpu_ns: 3_950_000,
                ..Counters::default()
            },
            steal_ns: Some(0),
            setup_ns: 1,
            slices: None,
            triples: None,
            huge_page_bytes: None,
        }
    }

    fn case(placement: Placement) -> Case {
        let (kind, policy) = (Kind::Process, Policy::Other);
        Case {
            members: 2,
            kind,
            link: "pipe".into(),
            work: None,
            placement,
            policy,
            priority: None,
            state: None,
        }
    }

    #[test]
    fn switches_are_voluntary_and_involuntary_ones() {
        assert_eq!(sample().counters.switches(), 1370);
        assert!((sample().switches_per_hop() - 1.37).abs() < 1e-12);
        assert!((sample().ns_per_hop() - 4000.0).abs() < 1e-12);
    }

    #[test]
    fn a_disturbed_sample_says_by_what() {
        let same = case(Placement::Same { cpu: 1 });
        assert_eq!(sample().disturbances(&same), []);
        let mut disturbed = sample();
        disturbed.counters.cpu_ns = 3_000_000;
        disturbed.counters.migrations = Some(2);
        disturbed.steal_ns = Some(10_000_000);
        let words: Vec<String> =
            disturbed.disturbances(&same).iter().map(Disturbance::to_string).collect();
        assert_eq!(words, ["steal:10000000ns", "other-work:25%", "migrations:2"]);
        // With several CPUs the members' CPU time says nothing of others, and moving is allowed.
        let free = case(Placement::Free { cpus: vec![0, 1] });
        disturbed.steal_ns = None;
        assert_eq!(disturbed.disturbances(&free), []);
    }
}
