//! The parts of a switch by pipe (`switchcost explain`): differences of rings that differ in one
//! thing, measured in the same rounds. Example of processes, whose hop takes 1,460 ns:
//!
//! ```text
//! system calls    two calls that do nothing, 60 each               120
//! link            hop of the solo ring, 420, less these calls      300
//! scheduler       switch of threads by yield, 310, less a call     250
//! address space   switch of processes by yield, 390, less 310       80
//! waking          switch of threads by eventfd, 700, less 250      450
//! rest            1,460 less the sum of the parts, 1,200           260
//! ```
//!
//! Parts and rest add up to the whole. The rest is not explained, and may be below zero. Burdens
//! that would be added to a switch, such as a filter of system calls, are rings that have them less
//! the same ring without; they are in no sum.

mod names;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::estimate::Estimate;
use crate::findings::headline_ns;
use crate::findings::wakeup::medians;
use crate::table::{ByRound, Figures, HopSum, LaunchScatter, Table};
use rundata::plan::Plan;
use rundata::ring::{MemberKind, RegisterState, RingCase};
use rundata::trial::Trial;
use rundata::trial::loops::GETUID;
use rundata::trial::wakeup::{DEFAULT_SLACK_NS, MIN_SLACK_NS, Wakeup};

pub use names::PartName;

/// The link that is explained: two system calls a hop, in a solo ring too.
pub const PIPE: &str = "pipe";
/// A link whose members switch without sleeping: one system call a switch.
pub const YIELD: &str = "yield";
/// A link that does little more than put to sleep and wake.
pub const EVENTFD: &str = "eventfd";
/// Runnable threads of the ring that measures a long run queue.
pub const MANY: u32 = 100;
/// System calls of a hop by pipe or eventfd, in a solo ring too.
const CALLS_PER_HOP: f64 = 2.0;

/// A part of a switch, or what would add to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SwitchPart")]
pub struct SwitchPart {
    /// The part's name.
    pub part: PartName,
    /// Numbers of the cases whose difference it is.
    pub cases: Vec<usize>,
    /// Time in nanoseconds. Signed.
    pub ns: Option<Estimate>,
    /// The setting that changes it.
    pub changed_by: String,
    /// Time by round, for comparisons; not stored.
    #[serde(skip)]
    pub by_round: Figures,
}

/// A switch and its parts.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ExplainFindings")]
pub struct ExplainedSwitch {
    /// The kind of the ring's members.
    pub kind: MemberKind,
    /// The whole as measured: a hop of the ring of two by pipe, its system calls included.
    pub whole_ns: Option<Estimate>,
    /// The part of it above the solo ring, which `ring` prints as the cost of a switch.
    pub above_solo_ns: Option<Estimate>,
    /// The parts that add up, in the order of a hop.
    pub parts: Vec<SwitchPart>,
    /// Their sum; absent where one of them was not measured.
    pub sum_ns: Option<Estimate>,
    /// The whole less the sum, which is not explained. Signed.
    pub rest_ns: Option<Estimate>,
    /// Burdens that would be added to a switch, each by itself.
    pub added: Vec<SwitchPart>,
    /// The whole and the rest by round, for comparisons; not stored.
    #[serde(skip)]
    pub by_round: [Figures; 2],
}

/// Returns the ring whose hop is explained: the first of two by pipe without state and burden.
pub fn explained_ring(plan: &Plan) -> Option<(usize, &RingCase)> {
    plan.rings().find(|(_, case)| {
        let is_bare = case.state.is_none() && case.burden.is_none();
        case.members == 2 && case.link == PIPE && is_bare
    })
}

/// Returns the parts of a run's switch; absent where its plan has no ring to explain.
pub(crate) fn find(table: &Table) -> Option<ExplainedSwitch> {
    let (number, ring) = explained_ring(table.plan)?;
    let rings = ExplainRings::new(table, ring);
    let hop = HopSum::hop(number);
    let above_solo = rings.above_solo(ring);
    let part_sums = rings.parts();
    let mut parts = Vec::new();
    for (name, sum) in &part_sums {
        parts.push(rings.part(*name, sum.as_ref(), LaunchScatter::Independent));
    }
    let mut added = Vec::new();
    for (name, sum) in rings.added(number) {
        added.push(rings.part(name, sum.as_ref(), LaunchScatter::Common));
    }
    added.extend(sleeper_parts(table));
    let mut explained = ExplainedSwitch {
        kind: ring.kind,
        whole_ns: rings.estimate(&hop, LaunchScatter::Independent, 0),
        above_solo_ns: above_solo.and_then(|sum| rings.estimate(&sum, LaunchScatter::Common, 1)),
        parts,
        sum_ns: None,
        rest_ns: None,
        added,
        by_round: [rings.by_round(&hop), Figures::new()],
    };
    if let Some(sum) = sum_of_parts(&part_sums) {
        let rest = hop.plus(&sum, -1.0);
        explained.sum_ns = rings.estimate(&sum, LaunchScatter::Independent, 2);
        explained.rest_ns = rings.estimate(&rest, LaunchScatter::Independent, 3);
        explained.by_round[1] = rings.by_round(&rest);
    }
    Some(explained)
}

/// A part and the hops that it is made of; these are absent where one was not measured.
type PartSum = (PartName, Option<HopSum>);

/// Returns the sum of parts; absent where one of them was not measured.
fn sum_of_parts(parts: &[PartSum]) -> Option<HopSum> {
    let mut sum = HopSum::default();
    for (_, part) in parts {
        sum = sum.plus(part.as_ref()?, 1.0);
    }
    Some(sum)
}

fn difference(upper: Option<HopSum>, lower: Option<&HopSum>) -> Option<HopSum> {
    Some(upper?.plus(lower?, -1.0))
}

/// The rings of a plan as sums of their hops.
struct ExplainRings<'a> {
    table: &'a Table<'a>,
    /// The ring that is explained.
    ring: &'a RingCase,
    call_case: Option<usize>,
    /// Time of a system call that does nothing.
    call: Option<Estimate>,
}

impl<'a> ExplainRings<'a> {
    fn new(table: &'a Table<'a>, ring: &'a RingCase) -> Self {
        let call_case = table.find(|trial| matches!(trial, Trial::Loop { call } if call == GETUID));
        let call = call_case.and_then(|case| headline_ns(table, case).estimate(table.plan));
        Self { table, ring, call_case, call }
    }

    fn number(&self, case: &RingCase) -> Option<usize> {
        self.table.plan.find_ring(|ring| ring == case)
    }

    /// Returns the cost of a counted switch above the solo ring. A solo ring of processes and one of
    /// threads do the same, so either will do.
    fn above_solo(&self, case: &RingCase) -> Option<HopSum> {
        let other_kind = match case.kind {
            MemberKind::Process => MemberKind::Thread,
            MemberKind::Thread => MemberKind::Process,
        };
        let solo = self
            .number(&case.solo())
            .or_else(|| self.number(&RingCase { kind: other_kind, ..case.solo() }))?;
        let ring = self.number(case)?;
        let hops_per_switch = 1.0 / self.table.switches_per_hop(ring)?;
        Some(HopSum::hop(ring).plus(&HopSum::hop(solo), -1.0).times(hops_per_switch))
    }

    /// Returns the cost of a switch of a ring of two by another link.
    fn by_link(&self, link: &str, kind: MemberKind) -> Option<HopSum> {
        self.above_solo(&RingCase { link: link.to_string(), kind, members: 2, ..self.ring.clone() })
    }

    /// Returns the parts in the order of a hop.
    fn parts(&self) -> Vec<PartSum> {
        let (mut calls, mut link) = (None, None);
        if self.call.is_some() {
            let two_calls = HopSum::time_apart(CALLS_PER_HOP);
            let solo = self.number(&self.ring.solo()).map(HopSum::hop);
            link = difference(solo, Some(&two_calls));
            calls = Some(two_calls);
        }
        let threads = self.by_link(YIELD, MemberKind::Thread);
        // A switch by yield is one system call.
        let scheduler = difference(threads.clone(), Some(&HopSum::time_apart(1.0)));
        let waking = difference(self.by_link(EVENTFD, MemberKind::Thread), scheduler.as_ref());
        let mut parts = vec![
            (PartName::SystemCalls, calls),
            (PartName::Link, link),
            (PartName::Scheduler, scheduler),
        ];
        if self.ring.kind == MemberKind::Process {
            let processes = self.by_link(YIELD, MemberKind::Process);
            parts.push((PartName::AddressSpace, difference(processes, threads.as_ref())));
        }
        parts.push((PartName::Waking, waking));
        parts
    }

    /// Returns the burdens that the plan has, each less the ring without it.
    fn added(&self, explained: usize) -> Vec<PartSum> {
        let mut added = Vec::new();
        let many = RingCase {
            link: YIELD.to_string(),
            kind: MemberKind::Thread,
            members: MANY,
            ..self.ring.clone()
        };
        if self.number(&many).is_some() {
            let two = self.by_link(YIELD, MemberKind::Thread);
            added.push((PartName::Runnable, difference(self.above_solo(&many), two.as_ref())));
        }
        let without_state = RingCase { state: Some(RegisterState::None), ..self.ring.clone() };
        for (number, case) in self.table.plan.rings() {
            if case.members != 2 {
                continue;
            }
            let is_elsewhere = case.placement != self.ring.placement;
            let above = HopSum::hop(number).plus(&HopSum::hop(explained), -1.0);
            match (case.state.and_then(PartName::of_state), case.burden) {
                (Some(name), None) => {
                    let base = self.above_solo(&without_state);
                    added.push((name, difference(self.above_solo(case), base.as_ref())));
                }
                (None, Some(burden)) => {
                    if let Some(name) = PartName::of_burden(burden, is_elsewhere) {
                        added.push((name, Some(above)));
                    }
                }
                (None, None) if is_elsewhere => added.push((PartName::OtherCpu, Some(above))),
                _ => {}
            }
        }
        added.sort_by_key(|(name, _)| *name);
        added
    }

    fn estimate(&self, sum: &HopSum, scatter: LaunchScatter, stream: u64) -> Option<Estimate> {
        self.table.sum_of_hops(sum, scatter, self.call.as_ref(), (8 << 32) + stream)
    }

    fn by_round(&self, sum: &HopSum) -> Figures {
        self.table.sum_by_round(sum, self.call.as_ref())
    }

    fn part(&self, name: PartName, sum: Option<&HopSum>, scatter: LaunchScatter) -> SwitchPart {
        let mut cases = Vec::new();
        let mut by_round = Figures::new();
        if let Some(sum) = sum {
            cases.extend(sum.hops.keys());
            if sum.apart != 0.0 {
                cases.extend(self.call_case);
            }
            // A system call alone has rounds of its own.
            by_round = if sum.hops.is_empty() {
                self.call_by_round(sum.apart)
            } else {
                self.by_round(sum)
            };
        }
        SwitchPart {
            part: name,
            cases,
            ns: sum.and_then(|sum| self.estimate(sum, scatter, 4 + name as u64)),
            changed_by: name.changed_by().to_string(),
            by_round,
        }
    }

    fn call_by_round(&self, times: f64) -> Figures {
        let Some(case) = self.call_case else { return Figures::new() };
        let calls = headline_ns(self.table, case);
        calls.figures().map(|(round, ns)| (round, times * ns)).collect()
    }
}

/// Returns the parts of a timer's wake-up that leaving an idle state and the timer slack of
/// applications take, as far as the plan has them.
fn sleeper_parts(table: &Table) -> Vec<SwitchPart> {
    let plain = sleeper(table, MIN_SLACK_NS, None);
    let awake = sleeper(table, MIN_SLACK_NS, Some(0));
    let slack = sleeper(table, DEFAULT_SLACK_NS, None);
    let mut parts = Vec::new();
    parts.extend(sleeper_part(table, PartName::LeavingIdle, plain, awake));
    parts.extend(sleeper_part(table, PartName::TimerSlack, slack, plain));
    parts
}

/// Returns the case of the sleeper with this timer slack and limit of idle states.
fn sleeper(table: &Table, slack_ns: u64, latency_us: Option<u32>) -> Option<usize> {
    table.find(|trial| match trial {
        Trial::Wakeup(Wakeup { timer_slack_ns, cpu_latency_us, .. }) => {
            *timer_slack_ns == slack_ns && *cpu_latency_us == latency_us
        }
        _ => false,
    })
}

/// Returns the median lateness of one sleeper less that of another, within rounds.
fn sleeper_part(
    table: &Table,
    name: PartName,
    later: Option<usize>,
    earlier: Option<usize>,
) -> Option<SwitchPart> {
    let cases = [later?, earlier?];
    let (later, earlier) = (medians(table, cases[0]), medians(table, cases[1]));
    let difference = ByRound::together([&later, &earlier], |[later, earlier]| later - earlier);
    Some(SwitchPart {
        part: name,
        cases: cases.to_vec(),
        ns: difference.estimate(table.plan),
        changed_by: name.changed_by().to_string(),
        by_round: difference.figures().collect(),
    })
}
