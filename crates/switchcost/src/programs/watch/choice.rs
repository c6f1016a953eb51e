//! Which stored run is the machine's cost profile.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use analysis::program::{
    CandidateWorth, CostProfile, NO_PROFILE, ProfileCandidate, ProfileGrade, Range, WorkingSet,
    choose, clock_of, cost_at, cost_of, direct, is_clean, is_of_two, is_walk, points_of,
    rough_points_of, short, unfinished,
};
use analysis::record::RingRecord;
use analysis::speed::clock_ghz;
use anyhow::Result;
use rundata::experiment::Experiment;
use rundata::machine::Machine;
use rundata::plan::Plan;
use rundata::ring::{MemberKind, Policy, RingCase, Walk};
use rundata::run::{Header, Run};

use crate::base::failure::usage;
use crate::engine::execute::build_info;
use crate::engine::store::{RunStore, StoredRun, find, header, read};
use crate::report::terminal::counted;

/// Which runs may be the profile without being asked for: costs of a second's measurement for
/// another purpose are no profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accepts {
    /// Runs of `cost`.
    Costs,
    /// And quick measurements of `run`, where there is no other.
    CostsAndQuick,
}

impl Accepts {
    fn takes(self, header: &Header) -> bool {
        header.plan.spans().iter().any(|(experiment, _)| *experiment == Experiment::Cost)
            || self == Self::CostsAndQuick && header.is_quick
    }
}

/// Returns the part of a run of several experiments that has the costs by working set; any other
/// run as it is.
fn costs_of(run: Run) -> Run {
    if run.header.plan.parts.is_empty() {
        return run;
    }
    let is_cost = |part: &Run| part.header.plan.experiment == Experiment::Cost;
    analysis::parts::part_runs(&run).into_iter().find(is_cost).unwrap_or(run)
}

/// Like [`costs_of`], of a plan.
fn cost_plan(plan: &Plan) -> Plan {
    let is_cost = |part: &Plan| part.experiment == Experiment::Cost;
    plan.part_plans().into_iter().find(is_cost).unwrap_or_else(|| plan.clone())
}

/// A profile, and why it is the one.
#[derive(Clone, Debug)]
pub(crate) struct ChosenProfile {
    pub(crate) profile: CostProfile,
    /// Its run file.
    pub(crate) path: PathBuf,
    /// Why it was chosen.
    pub(crate) why: String,
    /// What lowers its worth beside the grade of its costs: another machine, a run that did not end.
    pub(crate) notices: Vec<String>,
}

/// Differences of machines that are named one by one.
const MOST_DIFFERENCES: usize = 3;

/// Fields of a machine on which costs of switches depend: where one differs it is another machine.
const OF_SWITCHES: [&str; 3] = ["cpu.models", "kernel.release", "mitigations"];
/// What in them says nothing of a switch: which CPUs are of a model, and the revision of its
/// microcode.
const NOT_OF_SWITCHES: [&str; 2] = [".cpus", ".microcode"];

/// The run that was asked for by name, or what is wrong with it.
pub(crate) fn find_profile(name: &str) -> Result<ChosenProfile> {
    let entry = find(name)?;
    let refuse = |why: &str| {
        usage(format!(
            "--profile {name}: no costs by working set: {why} (accepted: a run of `switchcost \
             cost`, or of `ring --members 2 --work SIZE`)"
        ))
    };
    let run = costs_of(read(&entry.path)?);
    if let Some(why) = unfit(&run.header.plan) {
        return Err(refuse(&why));
    }
    let profile = profile_of(&run, entry.name.clone(), clock_now());
    if profile.points.is_empty() {
        return Err(refuse("none of its rings of two processes has enough rounds"));
    }
    let differs = differences(&run.header.machine, &this_machine(), &entry.name);
    let unfinished = unfinished(run.end.map(|end| end.reason));
    let unfinished = unfinished.map(|why| format!("the cost profile ({}): {why}", entry.name));
    let why = "asked for with --profile".to_string();
    let notices = differs.into_iter().chain(unfinished).collect();
    Ok(ChosenProfile { profile, path: entry.path, why, notices })
}

/// Why a plan has no costs by working set; nothing where it has.
fn unfit(plan: &Plan) -> Option<String> {
    let mut left: Vec<&RingCase> = plan.rings().map(|(_, case)| case).collect();
    let mut without = |why: &str, has: &dyn Fn(&RingCase) -> bool| {
        left.retain(|case| has(case));
        left.is_empty().then(|| why.to_string())
    };
    let kind = format!("it is a run of `{}`, without rings", plan.experiment);
    without(&kind, &|_| true)
        .or_else(|| without("it has no ring of two", &|case| case.members == 2))
        .or_else(|| without("its members are threads", &|case| case.kind == MemberKind::Process))
        .or_else(|| without("its members run on several CPUs", &is_of_two))
        .or_else(|| without("its rings of two do no work", &|case| case.work.is_some()))
        .or_else(|| {
            let walks = |case: &RingCase| case.work.as_ref().is_some_and(is_walk);
            without("it touches one line a page (--tlb)", &walks)
        })
}

/// Array sizes of the rings of two that work, 0 for those without; none if none works.
fn sizes(plan: &Plan) -> Vec<u64> {
    let rings = plan.rings().map(|(_, case)| case).filter(|case| is_of_two(case));
    let walked = rings.filter(|case| case.work.as_ref().is_none_or(is_walk));
    let sizes: Vec<u64> = walked.map(|case| case.work.map_or(0, |work| work.bytes)).collect();
    if sizes.iter().all(|size| *size == 0) { Vec::new() } else { sizes }
}

/// What the choice goes by of a stored run that may be the profile; nothing of one that may not.
fn candidate(
    entry: &StoredRun,
    set: Option<WorkingSet>,
    accepts: Accepts,
    here: &Machine,
) -> Option<ProfileCandidate> {
    // One that cannot be read is passed over.
    let header = header(&entry.path).ok().filter(|header| accepts.takes(header))?;
    let plan = cost_plan(&header.plan);
    let sizes = sizes(&plan);
    let (least, most) = sizes.iter().min().zip(sizes.iter().max())?;
    Some(ProfileCandidate {
        end: entry.brief().ok().and_then(|brief| brief.end),
        foreign: foreign(&header.machine, here),
        is_quick: header.is_quick,
        apart: apart_from(&plan, set),
        encloses: set.is_none_or(|set| *least <= set.low_bytes && set.high_bytes <= *most),
        name: header.name.unwrap_or_else(|| short(&entry.name)),
    })
}

/// The costs that a run has, at the clock that there is now. Where no cost has an interval, those
/// of the few rounds that there are.
fn profile_of(run: &Run, name: String, clock_ghz: Option<f64>) -> CostProfile {
    let record = RingRecord::from_run(run);
    let measured_ghz = record.cases.iter().find_map(clock_of);
    let began = humantime::parse_rfc3339(&run.header.started).ok();
    let age = began.and_then(|began| SystemTime::now().duration_since(began).ok());
    let points = points_of(&record, clock_ghz);
    let (grade, points) = if is_clean(&record) {
        (ProfileGrade::FullSpeed, points)
    } else if direct(&points).is_some() {
        (ProfileGrade::BusyCore, points)
    } else {
        (ProfileGrade::FewRounds, rough_points_of(&record))
    };
    CostProfile {
        run: name,
        name: run.header.name.clone(),
        age_s: age.map(|age| age.as_secs()),
        measured_ghz,
        clock_ghz: clock_ghz.filter(|_| measured_ghz.is_some()),
        grade,
        points,
    }
}

/// The clock of the core that this runs on, in GHz, where it can be told.
fn clock_now() -> Option<f64> {
    let quantum_ns = probe::busy_quantum_ns()?;
    clock_ghz(quantum_ns as f64, &build_info().target)
}

/// Parts of a plan's setting that are not the program's: the normal policy, a pipe, as many members
/// as it has working sets on a CPU, the walks and the yields that sampled accesses are priced by.
fn apart_from(plan: &Plan, set: Option<WorkingSet>) -> u32 {
    let has = |fits: &dyn Fn(&RingCase) -> bool| {
        plan.rings().any(|(_, case)| case.members > 1 && case.placement.is_one_cpu() && fits(case))
    };
    let walks = |case: &RingCase, walk: Walk| case.work.is_some_and(|work| work.walk == walk);
    let works = |case: &RingCase| case.work.as_ref().is_some_and(is_walk);
    let mut all = vec![
        has(&|case| works(case) && case.policy == Policy::Other),
        has(&|case| works(case) && case.link == "pipe"),
    ];
    if let Some(sampled) = set.and_then(|set| set.sampled) {
        all.push(has(&|case| works(case) && 2.0 * f64::from(case.members) >= sampled.sets_per_cpu));
        all.extend([Walk::Chase, Walk::Whole].map(|walk| has(&|case| walks(case, walk))));
        all.push(has(&|case| case.link == "yield"));
    }
    all.into_iter().filter(|fits| !fits).count() as u32
}

/// The costs of the stored run that fits best, by [`choose`]. `between_ns` as in [`cost_at`].
pub(super) fn best(
    set: Option<WorkingSet>,
    between_ns: Option<f64>,
    accepts: Accepts,
    here: &Machine,
) -> Result<ChosenProfile, String> {
    let entries = RunStore::of_user().and_then(|folder| folder.entries());
    let entries = entries.map_err(|error| format!("{error:#}"))?;
    let newest_first = entries.into_iter().rev();
    let (entries, candidates): (Vec<StoredRun>, Vec<ProfileCandidate>) = newest_first
        .filter_map(|entry| candidate(&entry, set, accepts, here).map(|of| (entry, of)))
        .unzip();
    // Reading it takes a twentieth of a second, for nothing where nothing is stored.
    let clock_ghz = if entries.is_empty() { None } else { clock_now() };
    let mut found: HashMap<usize, ChosenProfile> = HashMap::new();
    let number = choose(&candidates, |number| {
        let StoredRun { name, path, .. } = &entries[number];
        let read = read(path).ok().map(costs_of);
        let read = read.map(|run| (profile_of(&run, name.clone(), clock_ghz), run));
        let Some((profile, run)) = read.filter(|(profile, _)| direct(&profile.points).is_some())
        else {
            return CandidateWorth::None("it has no cost of a switch between two processes");
        };
        let covers = set.map(|set| cost_at(set, between_ns, &profile.points).is_ok());
        let why = why(&candidates[number], covers == Some(true));
        let notices = differences(&run.header.machine, here, name).into_iter().collect();
        let grade = profile.grade;
        found.insert(number, ChosenProfile { profile, path: path.clone(), why, notices });
        CandidateWorth::Some { grade, answers: covers != Some(false) }
    })?;
    found.remove(&number).ok_or_else(|| NO_PROFILE.to_string())
}

fn why(candidate: &ProfileCandidate, answers: bool) -> String {
    let kind = if candidate.is_quick { "quick measurement of `run`" } else { "run of `cost`" };
    let reaches = if answers { " that covers the working set" } else { "" };
    format!("the best {kind} on this machine{reaches}")
}

/// What handing over to another CPU costs on this machine.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HandOverCost {
    /// A hop between two CPUs in ns, above that of a ring of one: the wake-up and the switches of
    /// both.
    pub(crate) hand_over_ns: Range,
    /// The stored run.
    pub(crate) run: String,
}

/// Sweeps that are read in search of one with figures.
const MOST_SWEEPS: usize = 5;

/// That of the newest `ring --placement sweep` of this machine, between the two CPUs where it is
/// least.
pub(crate) fn find_hand_over_cost() -> Option<HandOverCost> {
    let is_pair = |case: &RingCase| {
        let bare = case.members == 2 && case.work.is_none() && case.link == "pipe";
        bare && case.placement.relation().is_some()
    };
    let here = this_machine();
    let fits = |entry: &StoredRun| {
        let header = header(&entry.path).ok();
        header.is_some_and(|header| {
            header.plan.rings().any(|(_, case)| is_pair(case))
                && foreign(&header.machine, &here).is_empty()
        }) && entry.brief().is_ok_and(|brief| unfinished(brief.end).is_none())
    };
    let entries = RunStore::of_user().and_then(|folder| folder.entries()).ok()?;
    entries.into_iter().rev().filter(fits).take(MOST_SWEEPS).find_map(|entry| {
        let record = RingRecord::from_run(&read(&entry.path).ok()?);
        let hops = record.cases.iter().filter(|of| is_pair(&of.case)).filter_map(|pair| {
            let switches = pair.switches_per_hop?.value;
            Some(Range::from(cost_of(pair)?).map(|ns| ns * switches))
        });
        let hand_over_ns = hops.min_by(|one, other| one.high.total_cmp(&other.high))?;
        Some(HandOverCost { hand_over_ns, run: entry.name })
    })
}

/// The machine that this program runs on.
pub(super) fn this_machine() -> Machine {
    probe::machine::read(Path::new("/"))
}

/// In what `machine` switches otherwise than `here`.
pub(super) fn foreign(machine: &Machine, here: &Machine) -> Vec<String> {
    fields_of(machine, here, |field| {
        OF_SWITCHES.iter().any(|of| field.starts_with(of))
            && !NOT_OF_SWITCHES.iter().any(|not| field.ends_with(not))
    })
}

fn fields_of(machine: &Machine, here: &Machine, is_meant: impl Fn(&str) -> bool) -> Vec<String> {
    let fields = machine.differences(here).into_iter().map(|difference| difference.field);
    fields.filter(|field| is_meant(field)).collect()
}

/// A notice of all in which they differ, if that is anything of the processors or the kernel.
fn differences(machine: &Machine, here: &Machine, name: &str) -> Option<String> {
    let of_machine = ["cpu.", "kernel.", "mitigations"];
    let fields =
        fields_of(machine, here, |field| of_machine.iter().any(|of| field.starts_with(of)));
    let more = if fields.len() > MOST_DIFFERENCES { ", ..." } else { "" };
    let (count, named) = (counted(fields.len(), "field"), fields.iter().take(MOST_DIFFERENCES));
    let named = named.map(String::as_str).collect::<Vec<_>>().join(", ");
    (!fields.is_empty()).then(|| {
        format!(
            "the cost profile ({name}) was measured on a machine that differs in {count}: \
             {named}{more}"
        )
    })
}

#[cfg(test)]
mod tests {
    use rundata::machine::CpuModel;
    use rundata::reading::Reading;

    use super::*;

    fn machine(change: impl Fn(&mut Machine)) -> Machine {
        let mut machine = Machine::default();
        machine.cpu.models = Reading::Known(vec![CpuModel {
            name: Reading::Known("a CPU".into()),
            ..CpuModel::default()
        }]);
        machine.kernel.release = Reading::Known("6.18".into());
        machine.mitigations =
            Reading::Known([("srso".into(), Reading::Known("off".into()))].into());
        change(&mut machine);
        machine
    }

    #[test]
    fn a_machine_is_another_one_by_what_switches_cost_on_it() {
        let here = machine(|_| {});
        let of = |change: fn(&mut Machine)| foreign(&machine(change), &here);
        assert_eq!(of(|other| other.memory.total_bytes = Reading::Known(1 << 40)), [""; 0]);
        assert_eq!(
            of(|other| other.kernel.release = Reading::Known("6.1".into())),
            ["kernel.release"]
        );
        let mitigated = of(|other| {
            other.mitigations =
                Reading::Known([("srso".into(), Reading::Known("on".into()))].into());
        });
        assert_eq!(mitigated, ["mitigations.srso"]);
        let model = |change: fn(&mut CpuModel)| {
            foreign(
                &machine(|other| {
                    let mut model =
                        CpuModel { name: Reading::Known("a CPU".into()), ..CpuModel::default() };
                    change(&mut model);
                    other.cpu.models = Reading::Known(vec![model]);
                }),
                &here,
            )
        };
        assert_eq!(model(|of| of.name = Reading::Known("another".into())), ["cpu.models[0].name"]);
        assert_eq!(model(|of| of.microcode = Reading::Known("0x1".into())), [""; 0]);
    }

    /// A captured run whose rings are measured with a working set, too, in so many rounds.
    fn run_of(rounds: u32) -> Run {
        use rundata::ring::{AccessKind, Work};
        let text = include_str!("../../../../rundata/tests/fixtures/run-v1.jsonl");
        let mut run = Run::parse(text).unwrap();
        let count = run.header.plan.cases.len();
        for original in [0, 1] {
            let mut case = run.header.plan.ring(original).unwrap().clone();
            case.work = Some(Work::new(4096, 8, AccessKind::Rmw).unwrap());
            run.header.plan.cases.push(case.into());
            let rings: Vec<_> = rundata::case::rings(&run.samples).cloned().collect();
            for mut sample in rings.into_iter().filter(|sample| sample.case == original) {
                sample.case = count + original;
                sample.elapsed_ns += 1000 * sample.counters.switches();
                run.samples.push(sample.into());
            }
        }
        run.samples.retain(|sample| match sample {
            rundata::case::Sample::Ring(sample) => sample.round < rounds,
            _ => true,
        });
        run
    }

    /// A busy machine leaves so few rounds that no cost has an interval.
    #[test]
    fn few_rounds_are_a_profile_that_says_so() {
        let all = profile_of(&run_of(u32::MAX), "20261128T101500".into(), None);
        assert_ne!(all.grade, ProfileGrade::FewRounds);
        let few = profile_of(&run_of(2), "20261128T101500".into(), None);
        assert_eq!(few.grade, ProfileGrade::FewRounds);
        assert!(direct(&few.points).is_some_and(|cost| cost.low_ns > 0.0), "{few:?}");
        assert!(few.called().ends_with(", which was measured in few rounds"), "{}", few.called());
        let none = profile_of(&run_of(0), "20261128T101500".into(), None);
        assert_eq!(direct(&none.points), None);
    }
}
