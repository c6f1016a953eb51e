//! `switchcost ring`, from what was typed to a plan.

use std::time::Duration;

use anyhow::{Context, Result};
use probe::ring;
use rundata::experiment::Experiment;
use rundata::notice::Notice;
use rundata::placement::Placement;
use rundata::plan;
use rundata::ring::{Flight, Policy, RegisterState, RingBatching, RingCase, Work, fewest_laps};

use super::RingArgs;
use crate::base::failure::usage;
use crate::base::values::{RingCounts, each_once};
use crate::engine::policies::Contention;
use crate::engine::setting::{CurrentLoad, LocalHost, PlacementArg, PlanWithNotices, pair};
use crate::experiments::{events, links};

/// Time that a member adds to a ring: its start, its laps and its end.
const MEMBER_TIME: Duration = Duration::from_millis(1);

/// Plans the rings, with a note on each link and state that was left out.
pub(crate) fn plan(args: &RingArgs, here: &LocalHost) -> Result<PlanWithNotices> {
    let policy = args.policy.unwrap_or(Policy::Other);
    ring::check_policy(policy).with_context(|| format!("--policy {policy}"))?;
    let load = here.current_load();
    let chosen_cpu = load.choose_one(here);
    let groups = match &args.rings {
        Some(counts) => RingGroups::new(counts, &args.placement, here, chosen_cpu)?,
        None => RingGroups::single(here.placements(&args.placement, chosen_cpu)?),
    };
    let placements = groups.first_placements();
    if groups.most_rings() > 1 && !args.events.is_empty() {
        return Err(usage("--events: are counted in a single ring only (without --rings)"));
    }
    let (states, left_out_states) = choose_states(&args.state)?;
    let mut notices = Notice::from_texts(left_out_states);
    let one_cpu = placements.iter().find(|placement| placement.is_one_cpu());
    let also_fifo = match (args.policy, one_cpu) {
        (None, Some(placement)) if groups.most_rings() == 1 => {
            is_also_fifo(placement.cpus()[0], &load, here, &mut notices)
        }
        _ => false,
    };
    Work::check_stride(args.stride).map_err(usage)?;
    let work = match args.work {
        0 => None,
        bytes => Some(Work::new(bytes, args.stride, args.op).map_err(usage)?),
    };
    let largest = args.members.iter().max().copied().unwrap_or(0);
    here.check_memory(
        &format!("--work {} in {largest} members", args.work),
        u128::from(args.work) * u128::from(largest) * u128::from(groups.most_rings()),
        "less work or fewer --members",
    )?;
    let mut placed = Vec::new();
    for placement in &placements {
        placed.push(RingCase { kind: args.kind, work, policy, ..pair(placement.clone()) });
    }
    let flights = args.flight.as_deref().unwrap_or(&[Flight::Items(1)]);
    check_members(flights, &args.members)?;
    if largest < 2
        && (groups.most_rings() > 1 || flights.iter().any(|flight| *flight != Flight::Items(1)))
    {
        return Err(usage(format!(
            "--members {largest}: a ring of one is always measured by itself, with one item under way \
             (use --members 2 or more with --rings and --flight)"
        )));
    }
    let (rings, left_out) = linked_rings(&args.link, &placed)?;
    notices.extend(Notice::from_texts(left_out));
    let (rings, left_out) = rings_in_flight(&rings, flights, args.link == [links::ALL])?;
    notices.extend(Notice::from_texts(left_out));
    check_laps(args.laps, &rings)?;
    let rings: Vec<RingCase> = rings.into_iter().map(|ring| ring.case).collect();
    let rings = groups.of_all(&rings);
    if args.placement == PlacementArg::Sweep && placements.len() < 2 {
        let note = "--placement sweep: this program may use one CPU only (see taskset -p $$ and \
                    the control group's cpuset)";
        notices.push(note.into());
    }
    let under_fifo =
        if also_fifo { rings.iter().filter(|ring| is_on_one_cpu(ring)).count() } else { 0 };
    let kinds = (rings.len() + under_fifo) * states.len();
    let (sizes, too_short) =
        args.effort.fitting(&args.members, kinds, kinds, |members| MEMBER_TIME * members);
    notices.extend(too_short);
    let cases = cases(&rings, &states, &sizes, also_fifo);
    let (events, not_counted) = events::choose(&args.events, one_cpu)?;
    notices.extend(Notice::from_texts(not_counted));
    let batching = RingBatching { laps: args.laps, events, ..RingBatching::default() };
    let plan = args.effort.plan(Experiment::Ring, cases, plan::Batching::of_rings(batching));
    Ok((plan.with_solos(), notices))
}

/// Checks that a stream over a full link has a writer and a reader, and nobody else.
fn check_members(flights: &[Flight], sizes: &[u32]) -> Result<()> {
    let other = sizes.iter().find(|members| **members > 2);
    match other {
        Some(members) if flights.contains(&Flight::Full) => Err(usage(format!(
            "--flight full with --members {members}: a stream has a writer and a reader (use \
             --members 2, or a number of items)"
        ))),
        _ => Ok(()),
    }
}

/// A ring and the items that are under way in it.
struct RingInFlight {
    case: RingCase,
    /// Items under way at once; over a full link as many as it was seen to hold.
    items: u32,
}

/// Checks that each sample of prescribed laps has enough of them for the items under way: fewer would
/// hardly, or never, have all of them under way.
fn check_laps(laps: Option<u64>, rings: &[RingInFlight]) -> Result<()> {
    let most = rings.iter().max_by_key(|ring| ring.items);
    let (Some(laps), Some(RingInFlight { case, items })) = (laps, most) else { return Ok(()) };
    let fewest = fewest_laps(*items);
    let (Some(flight), true) = (case.flight, laps < fewest) else { return Ok(()) };
    let held = match flight {
        Flight::Items(_) => String::new(),
        Flight::Full => format!(" by {}, which holds {items} items here", case.link),
    };
    Err(usage(format!(
        "--laps {laps} with --flight {flight}{held}: too few to have all items under way for most \
         laps (use --laps {fewest} or more, or leave it out)"
    )))
}

/// Returns each ring with each number of items under way, and a note on each that was left out. A
/// link that cannot carry them and was asked for by name is an error.
fn rings_in_flight(
    rings: &[RingCase],
    flights: &[Flight],
    is_all: bool,
) -> Result<(Vec<RingInFlight>, Vec<String>)> {
    let (mut in_flight, mut notices) = (Vec::new(), Vec::new());
    for ring in rings {
        for flight in flights.iter().map(|flight| flight.above_one()) {
            match check_flight(ring, flight) {
                Ok(items) => {
                    in_flight
                        .push(RingInFlight { case: RingCase { flight, ..ring.clone() }, items });
                }
                Err(why) if is_all => notices.push(format!("left out: {why}")),
                Err(why) => return Err(usage(why)),
            }
        }
    }
    Ok((in_flight, each_once(notices)))
}

/// Checks that the link of a ring carries so many items at once; returns their number. The error says
/// which links do.
fn check_flight(ring: &RingCase, flight: Option<Flight>) -> Result<u32, String> {
    match (flight, ring::find_link(&ring.link)) {
        (Some(flight), Some(link)) => link.check_flight(flight),
        _ => Ok(1),
    }
}

/// The rings that run at the same time.
struct RingGroups {
    /// Placements that rings have in turn, and the numbers of rings; several of these where rings
    /// differ in the relation of their CPUs.
    series: Vec<RingSeries>,
}

/// Placements that several rings have in turn, and how many rings there are.
struct RingSeries {
    placements: Vec<Placement>,
    counts: Vec<u32>,
}

impl RingGroups {
    /// Returns single rings with these placements.
    fn single(placements: Vec<Placement>) -> Self {
        let mut series = Vec::new();
        for placement in placements {
            series.push(RingSeries { placements: vec![placement], counts: vec![1] });
        }
        Self { series }
    }

    /// Returns the rings that were asked for, and always the single ring.
    fn new(
        asked: &RingCounts,
        placement: &PlacementArg,
        here: &LocalHost,
        chosen_cpu: Option<u32>,
    ) -> Result<Self> {
        let mut series = Vec::new();
        for placements in here.placements_of_rings(placement, chosen_cpu)? {
            let max = match placement {
                PlacementArg::Spread | PlacementArg::Pairs => placements.len(),
                _ => here.allowed.len(),
            };
            let counts = asked.resolve(max as u32);
            let mut counts =
                counts.map_err(|why| usage(format!("--rings (max is {max}): {why}")))?;
            if counts.first() != Some(&1) {
                counts.insert(0, 1);
            }
            series.push(RingSeries { placements, counts });
        }
        Ok(Self { series })
    }

    /// Returns the placement of the first ring of each series.
    fn first_placements(&self) -> Vec<Placement> {
        self.series.iter().filter_map(|series| series.placements.first().cloned()).collect()
    }

    fn most_rings(&self) -> u32 {
        self.series.iter().filter_map(|series| series.counts.last().copied()).max().unwrap_or(1)
    }

    /// Returns each of these single rings in each number.
    fn of_all(&self, singles: &[RingCase]) -> Vec<RingCase> {
        let mut rings = Vec::new();
        for ring in singles {
            let mut series = self.series.iter();
            let own = series.find(|series| series.placements.first() == Some(&ring.placement));
            let Some(RingSeries { placements, counts }) = own else { continue };
            for count in counts {
                let in_turn = placements.iter().cycle().skip(1);
                let beside = in_turn.take(*count as usize - 1).cloned().collect();
                rings.push(RingCase { beside, ..ring.clone() });
            }
        }
        rings
    }
}

/// Builds the cases: each ring in each state and size, and under SCHED_FIFO those on one CPU again,
/// behind the others.
fn cases(
    rings: &[RingCase],
    states: &[Option<RegisterState>],
    sizes: &[u32],
    also_fifo: bool,
) -> Vec<RingCase> {
    let mut cases = Vec::new();
    for ring in rings {
        for state in states {
            let ring = RingCase { state: *state, ..ring.clone() };
            for members in sizes {
                cases.push(match members {
                    // The solo ring of a sweep's pair is that of its first CPU: several may have
                    // the same.
                    1 => ring.solo(),
                    _ => RingCase { members: *members, ..ring.clone() },
                });
            }
        }
    }
    if also_fifo {
        let mut under_fifo = cases.clone();
        under_fifo.retain(is_on_one_cpu);
        for case in &mut under_fifo {
            case.policy = Policy::Fifo;
        }
        cases.extend(under_fifo);
    }
    each_once(cases)
}

/// Returns whether rings are measured under SCHED_FIFO beside those of the normal policy, as
/// competing tasks use their CPU. Adds a note on it, or on why not.
fn is_also_fifo(cpu: u32, load: &CurrentLoad, here: &LocalHost, notices: &mut Vec<Notice>) -> bool {
    match Contention::on_cpu(cpu, load, here) {
        Contention::Free => false,
        Contention::FifoGranted(busy) => {
            let busy = busy.in_words();
            notices.push(format!("{busy}: rings are measured under SCHED_FIFO, too").into());
            true
        }
        Contention::FifoRefused(_, why) => {
            notices.push(why.into());
            false
        }
    }
}

fn is_on_one_cpu(case: &RingCase) -> bool {
    case.placement.is_one_cpu()
}

/// Returns the rings of two for each link in each placement, and a note on each that was left out.
/// Links are chosen for the first placement; which of them suit the others shows there.
fn linked_rings(asked: &[String], placed: &[RingCase]) -> Result<(Vec<RingCase>, Vec<String>)> {
    let (first, others) = placed.split_first().context("no CPU is allowed")?;
    let (links, mut notices) = links::choose(asked, first)?;
    let mut rings = Vec::new();
    for link in links {
        rings.push(RingCase { link: link.name.to_string(), ..first.clone() });
        for other in others {
            match link.suits(other) {
                Ok(()) => rings.push(RingCase { link: link.name.to_string(), ..other.clone() }),
                Err(why) => notices.push(format!("left out: placement {}: {why}", other.placement)),
            }
        }
    }
    Ok((rings, notices))
}

/// Returns the states in their order, none among them, and a note on each that is left out of all.
/// A state that was asked for by name and that this CPU lacks is an error. Without any the members
/// leave the registers alone.
fn choose_states(asked: &[String]) -> Result<(Vec<Option<RegisterState>>, Vec<String>)> {
    if asked.is_empty() {
        return Ok((vec![None], Vec::new()));
    }
    let is_all = asked == [links::ALL];
    let wanted = if is_all { RegisterState::ALL.to_vec() } else { named_states(asked)? };
    let (mut states, mut notices) = (vec![RegisterState::None], Vec::new());
    for state in wanted {
        match ring::check_state(state) {
            Ok(()) => states.push(state),
            Err(why) if is_all => notices.push(format!("left out: {why}")),
            Err(why) => return Err(usage(why)),
        }
    }
    states.sort();
    states.dedup();
    Ok((states.into_iter().map(Some).collect(), notices))
}

fn named_states(asked: &[String]) -> Result<Vec<RegisterState>> {
    let mut states = Vec::new();
    for name in asked {
        match name.trim().parse::<RegisterState>() {
            Ok(state) => states.push(state),
            // The list of names in the error ends in a bracket.
            Err(why) => return Err(usage(format!("--state {}", why.replace(')', ", or all)")))),
        }
    }
    Ok(states)
}

#[cfg(test)]
mod tests {
    use rundata::plan::{Batching, Plan};
    use rustix::io::Errno;

    use super::*;
    use crate::engine::policies::tests::here;

    const OTHER: Policy = Policy::Other;
    const FIFO: Policy = Policy::Fifo;

    fn ring(placement: Placement) -> RingCase {
        pair(placement)
    }

    /// Members and policies of the rings of a plan, in order.
    fn planned(
        rings: &[RingCase],
        states: &[Option<RegisterState>],
        also_fifo: bool,
    ) -> Vec<(u32, Policy)> {
        let plan = Plan::from_cases(Experiment::Ring, cases(rings, states, &[2, 4], also_fifo));
        let plan = Plan { batching: Batching::default(), ..plan }.with_solos();
        plan.rings().map(|(_, case)| (case.members, case.policy)).collect()
    }

    #[test]
    fn under_fifo_each_ring_and_its_solo_is_measured_a_second_time() {
        let one_cpu = ring(Placement::Same { cpu: 1 });
        let both = [(1, OTHER), (1, FIFO), (2, OTHER), (4, OTHER), (2, FIFO), (4, FIFO)];
        assert_eq!(planned(std::slice::from_ref(&one_cpu), &[None], true), both);
        assert_eq!(
            planned(std::slice::from_ref(&one_cpu), &[None], false),
            [both[0], both[2], both[3]]
        );
        let by = |link: &str| RingCase { link: link.to_string(), ..one_cpu.clone() };
        let links = planned(&[by("pipe"), by("futex")], &[None], true);
        assert_eq!(links.iter().filter(|(_, policy)| *policy == FIFO).count(), 6);
        assert_eq!(links.len(), 12);
        let states =
            planned(&[one_cpu], &[Some(RegisterState::None), Some(RegisterState::Sse)], true);
        assert_eq!(states.iter().filter(|(_, policy)| *policy == FIFO).count(), 6);
    }

    #[test]
    fn rings_take_their_placements_in_turn_and_the_single_ring_is_there() {
        let here = here(0.0, Ok(()));
        let groups = |counts: &str, placement: PlacementArg| {
            RingGroups::new(&counts.parse().unwrap(), &placement, &here, Some(1)).unwrap()
        };
        let cpus = |groups: RingGroups| -> Vec<Vec<u32>> {
            let firsts = groups.first_placements().into_iter().map(ring);
            let rings = groups.of_all(&firsts.collect::<Vec<_>>());
            rings.iter().map(|ring| ring.placements().flat_map(Placement::cpus).collect()).collect()
        };
        let same = cpus(groups("3", PlacementArg::Same));
        assert_eq!(same, [vec![1], vec![1, 1, 1]]);
        let list = cpus(groups("1,2", PlacementArg::Cpus(vec![1])));
        assert_eq!(list, [vec![1], vec![1, 1]]);
        let spread = cpus(groups("1..max,5", PlacementArg::Spread));
        assert_eq!(spread[0], [1]);
        let most = &spread[spread.len() - 1];
        assert_eq!((most.len(), most[0]), (5, 1));
        let all = here.allowed.len();
        assert!((0..5).all(|ring| most[ring] == most[ring % all]), "{most:?}");
    }

    #[test]
    fn rings_on_several_cpus_are_never_measured_under_fifo_too() {
        let pinned = ring(Placement::Pinned { cpus: vec![0, 1], relation: None });
        let rings = planned(&[pinned], &[None], true);
        assert!(rings.iter().all(|(_, policy)| *policy == OTHER), "{rings:?}");
    }

    #[test]
    fn that_fifo_is_measured_too_or_why_not_is_noted() {
        let noted = |share, fifo| {
            let (here, mut notices) = (here(share, fifo), Vec::new());
            let also = is_also_fifo(1, &here.current_load(), &here, &mut notices);
            (also, notices.iter().map(Notice::to_string).collect::<String>())
        };
        let busy = "CPU 1 was busy when measuring began (38 %)";
        let too = format!("{busy}: rings are measured under SCHED_FIFO, too");
        assert_eq!(noted(0.38, Ok(())), (true, too));
        assert_eq!(noted(0.1, Ok(())), (false, String::new()));
        let (also, why) = noted(0.38, Err(Errno::PERM));
        assert!(!also && why.starts_with(busy) && why.contains("CAP_SYS_NICE"), "{why}");
    }
}
