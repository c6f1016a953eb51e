//! What `switchcost explain` says: what a switch by pipe is made of, from differences of rings that
//! differ in one thing, measured in the same rounds. The parts form a chain that adds up to the
//! whole and a rest; what would add to it stands apart.

mod names;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::estimate::Estimate;
use crate::findings::headline_ns;
use crate::findings::wakeup::medians;
use crate::table::{ByRound, Figures, Scatter, SumOfHops, Table};
use rundata::plan::Plan;
use rundata::ring::{Case, Kind, State};
use rundata::trial::Trial;
use rundata::trial::loops::GETUID;
use rundata::trial::wakeup::{DEFAULT_SLACK_NS, LEAST_SLACK_NS, Wakeup};

pub use names::PartName;

/// The link that is explained: two calls a hop, whether it switches or not.
pub const PIPE: &str = "pipe";
/// The link whose members switch and do not sleep: one call a switch.
pub const YIELD: &str = "yield";
/// A link that sleeps and wakes and does little else.
pub const EVENTFD: &str = "eventfd";
/// Runnable threads that stand for many.
pub const MANY: u32 = 100;
/// Calls of a hop by pipe or eventfd, also of a solo ring.
const CALLS_PER_HOP: f64 = 2.0;

/// A part of a switch, or what would add to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SwitchPart")]
pub struct SwitchPart {
    /// Which.
    pub part: PartName,
    /// Numbers of the cases that it is a difference of.
    pub cases: Vec<usize>,
    /// In nanoseconds. Signed.
    pub ns: Option<Estimate>,
    /// What changes it.
    pub changed_by: String,
    /// By round: for comparisons, in no record.
    #[serde(skip)]
    pub by_round: Figures,
}

/// What a switch is made of.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ExplainFindings")]
pub struct ExplainedSwitch {
    /// What the members of the ring are.
    pub kind: Kind,
    /// The whole, measured by itself: a hop of the ring of two by pipe, its calls included.
    pub whole_ns: Option<Estimate>,
    /// What of it is above the solo ring: what `ring` prints as the cost of a switch.
    pub above_solo_ns: Option<Estimate>,
    /// The chain: parts that add up.
    pub parts: Vec<SwitchPart>,
    /// Their sum; absent where one of them was not measured.
    pub sum_ns: Option<Estimate>,
    /// The whole less the sum: what is not explained. Signed.
    pub rest_ns: Option<Estimate>,
    /// What would add to a switch, each by itself.
    pub added: Vec<SwitchPart>,
    /// The whole and the rest by round: for comparisons, in no record.
    #[serde(skip)]
    pub by_round: [Figures; 2],
}

/// Whose hop is the whole: the first ring of two by pipe with nothing special about it.
pub fn explained_ring(plan: &Plan) -> Option<(usize, &Case)> {
    let is_bare = |of: &Case| of.state.is_none() && of.burden.is_none();
    let is_it = |of: &Case| of.members == 2 && of.link == PIPE && is_bare(of);
    plan.rings().find(|(_, of)| is_it(of))
}

/// What a run says of its parts; absent where its plan has no whole.
pub(crate) fn find(table: &Table) -> Option<ExplainedSwitch> {
    let (number, whole) = explained_ring(table.plan)?;
    let of = Chain::of(table, whole);
    let (chain, added) = (of.chain(), of.added(number));
    let all = SumOfHops::of(number);
    let together = |sums: &[(PartName, Option<SumOfHops>)]| {
        let add = |sum: SumOfHops, of: &Option<SumOfHops>| Some(sum.plus(of.as_ref()?, 1.0));
        sums.iter().try_fold(SumOfHops::default(), |sum, (_, of)| add(sum, of))
    };
    let sum = together(&chain);
    let rest = sum.as_ref().map(|sum| all.clone().plus(sum, -1.0));
    let by_round = |sum: &SumOfHops| table.sum_by_round(sum, of.call.as_ref());
    let part = |scatter| {
        let of = &of;
        move |(name, sum): &(PartName, Option<SumOfHops>)| of.part(*name, sum.as_ref(), scatter)
    };
    let mut added: Vec<SwitchPart> = added.iter().map(part(Scatter::Common)).collect();
    added.extend(sleepers(table));
    Some(ExplainedSwitch {
        kind: whole.kind,
        whole_ns: of.estimate(&all, Scatter::OfEach, 0),
        above_solo_ns: of.above_solo(whole).and_then(|sum| of.estimate(&sum, Scatter::Common, 1)),
        parts: chain.iter().map(part(Scatter::OfEach)).collect(),
        sum_ns: sum.as_ref().and_then(|sum| of.estimate(sum, Scatter::OfEach, 2)),
        rest_ns: rest.as_ref().and_then(|rest| of.estimate(rest, Scatter::OfEach, 3)),
        added,
        by_round: [by_round(&all), rest.as_ref().map(by_round).unwrap_or_default()],
    })
}

/// The rings of a plan as sums of their hops.
struct Chain<'a> {
    table: &'a Table<'a>,
    whole: &'a Case,
    call_case: Option<usize>,
    /// A system call that does nothing.
    call: Option<Estimate>,
}

impl<'a> Chain<'a> {
    fn of(table: &'a Table<'a>, whole: &'a Case) -> Self {
        let is_call = |of: &Trial| matches!(of, Trial::Loop { call } if call == GETUID);
        let call_case = table.find(is_call);
        let call = call_case.and_then(|case| headline_ns(table, case).estimate(table.plan));
        Self { table, whole, call_case, call }
    }

    fn ring(&self, case: &Case) -> Option<usize> {
        self.table.plan.find_ring(|of| of == case)
    }

    /// What a counted switch costs above the solo ring. What a member alone does is the same in a
    /// process and in a thread.
    fn above_solo(&self, case: &Case) -> Option<SumOfHops> {
        let other = match case.kind {
            Kind::Process => Kind::Thread,
            Kind::Thread => Kind::Process,
        };
        let solos = [case.kind, other].map(|kind| Case { kind, ..case.solo() });
        let solo = solos.iter().find_map(|solo| self.ring(solo))?;
        let ring = self.ring(case)?;
        let each = 1.0 / self.table.switches_per_hop(ring)?;
        Some(SumOfHops::of(ring).plus(&SumOfHops::of(solo), -1.0).times(each))
    }

    /// The same of two, or more, by a link without work.
    fn by(&self, link: &str, kind: Kind, members: u32) -> Option<SumOfHops> {
        let link = link.to_string();
        self.above_solo(&Case { link, kind, members, ..self.whole.clone() })
    }

    /// The parts in the order of a hop.
    fn chain(&self) -> Vec<(PartName, Option<SumOfHops>)> {
        let call = |times: f64| SumOfHops::of_apart(times);
        let calls = self.call.map(|_| call(CALLS_PER_HOP));
        let solo = self.ring(&self.whole.solo()).map(SumOfHops::of);
        let link = solo.filter(|_| calls.is_some()).map(|of| of.plus(&call(CALLS_PER_HOP), -1.0));
        let threads = self.by(YIELD, Kind::Thread, 2);
        // A switch by yield is one call of its own.
        let scheduler = threads.clone().map(|of| of.plus(&call(1.0), -1.0));
        let less = |one: Option<SumOfHops>, other: &Option<SumOfHops>| {
            one.zip(other.as_ref()).map(|(one, other)| one.plus(other, -1.0))
        };
        let processes = || less(self.by(YIELD, Kind::Process, 2), &threads);
        let space =
            (self.whole.kind == Kind::Process).then(|| (PartName::AddressSpace, processes()));
        let waking = less(self.by(EVENTFD, Kind::Thread, 2), &scheduler);
        let first = [
            (PartName::SystemCalls, calls),
            (PartName::Link, link),
            (PartName::Scheduler, scheduler),
        ];
        first.into_iter().chain(space).chain([(PartName::Waking, waking)]).collect()
    }

    /// What would add to the whole, of those that the plan has.
    fn added(&self, whole: usize) -> Vec<(PartName, Option<SumOfHops>)> {
        let mut all = Vec::new();
        let less = |one: Option<SumOfHops>, other: Option<SumOfHops>| {
            one.zip(other).map(|(one, other)| one.plus(&other, -1.0))
        };
        let many = Case {
            link: YIELD.to_string(),
            kind: Kind::Thread,
            members: MANY,
            ..self.whole.clone()
        };
        if self.ring(&many).is_some() {
            let two = self.by(YIELD, Kind::Thread, 2);
            all.push((PartName::Runnable, less(self.above_solo(&many), two)));
        }
        let none = Case { state: Some(State::None), ..self.whole.clone() };
        for (number, of) in self.table.plan.rings().filter(|(_, of)| of.members == 2) {
            let is_elsewhere = of.placement != self.whole.placement;
            let above = || Some(SumOfHops::of(number).plus(&SumOfHops::of(whole), -1.0));
            match (of.state.and_then(PartName::of_state), of.burden) {
                (Some(name), None) => {
                    all.push((name, less(self.above_solo(of), self.above_solo(&none))));
                }
                (None, Some(burden)) => {
                    all.extend(
                        PartName::of_burden(burden, is_elsewhere).map(|name| (name, above())),
                    );
                }
                (None, None) if is_elsewhere => all.push((PartName::OtherCpu, above())),
                _ => {}
            }
        }
        all.sort_by_key(|(name, _)| *name);
        all
    }

    fn estimate(&self, sum: &SumOfHops, scatter: Scatter, stream: u64) -> Option<Estimate> {
        self.table.sum_of_hops(sum, scatter, self.call.as_ref(), (8 << 32) + stream)
    }

    fn part(&self, name: PartName, sum: Option<&SumOfHops>, scatter: Scatter) -> SwitchPart {
        let is_call = sum.is_some_and(|sum| sum.apart != 0.0);
        let cases = sum.into_iter().flat_map(|sum| sum.hops.keys().copied());
        let by_round = || match sum {
            // A call alone has rounds of its own.
            Some(sum) if sum.hops.is_empty() => self.call_by_round(sum.apart),
            Some(sum) => self.table.sum_by_round(sum, self.call.as_ref()),
            None => Figures::new(),
        };
        SwitchPart {
            part: name,
            cases: cases.chain(self.call_case.filter(|_| is_call)).collect(),
            ns: sum.and_then(|sum| self.estimate(sum, scatter, 4 + name as u64)),
            changed_by: name.changed_by().to_string(),
            by_round: by_round(),
        }
    }

    fn call_by_round(&self, times: f64) -> Figures {
        let calls = self.call_case.map(|case| headline_ns(self.table, case)).unwrap_or_default();
        calls.figures().map(|(round, ns)| (round, times * ns)).collect()
    }
}

/// What leaving an idle state and the slack of applications take of a timer's wake-up; each absent
/// where the plan does not have it.
fn sleepers(table: &Table) -> Vec<SwitchPart> {
    let sleeper = |slack_ns: u64, latency_us: Option<u32>| {
        let is_it = |of: &Wakeup| of.timer_slack_ns == slack_ns && of.cpu_latency_us == latency_us;
        table.find(|of| matches!(of, Trial::Wakeup(of) if is_it(of)))
    };
    let plain = sleeper(LEAST_SLACK_NS, None);
    let less = |name: PartName, one: Option<usize>, other: Option<usize>| {
        let cases = [one?, other?];
        let [own, others] = cases.map(|case| medians(table, case));
        let above = ByRound::together([&own, &others], |[own, others]| own - others);
        Some(SwitchPart {
            part: name,
            cases: cases.to_vec(),
            ns: above.estimate(table.plan),
            changed_by: name.changed_by().to_string(),
            by_round: above.figures().collect(),
        })
    };
    let idle = less(PartName::LeavingIdle, plain, sleeper(LEAST_SLACK_NS, Some(0)));
    let slack = less(PartName::TimerSlack, sleeper(DEFAULT_SLACK_NS, None), plain);
    idle.into_iter().chain(slack).collect()
}
