//! What a run of costs by working set answers, in a sentence or two: what a switch costs at the
//! smallest and at the largest of what was swept, and the largest jump between.

use analysis::cost::{CostCurve, CostFindings, CostSweep, JumpCandidate};
use analysis::estimate::Estimate;
use analysis::jump::{CostJump, CostPeak};
use analysis::marked;
use analysis::marked::MarkedText;
use analysis::record::RingRecord;
use analysis::regions::{CacheRegion, SizeAxis};
use rundata::ring::{MemberKind, RingCase, Walk, Work};
use rundata::run::unfinished;
use rundata::words;

use crate::base::values::each_once;

/// `A switch costs 940 ns (921 to 958) without a working set, 181 us (178 to 185) with 1 MiB; it
/// jumps from 1.05 us to 181 us between 256 KiB and 1 MiB, 172x (167x to 178x). Possible causes:
/// L2 2 MiB.`
pub(crate) fn headline(record: &RingRecord, cost: &CostFindings) -> MarkedText {
    let series = main_series(record, cost);
    let Some(series) = series.filter(|series| !series.costs.is_empty()) else {
        return "What a switch costs was not measured.".into();
    };
    if let Some(words) = series.unknown() {
        return format!("What a switch{} costs{words}{}.", series.ring, policy(record)).into();
    }
    // On a run that did not end nothing is built.
    if unfinished(record.end.as_ref()).is_some() {
        let policy = policy(record);
        return marked![format!("A switch{} costs ", series.ring), series.ends(), policy, "."];
    }
    let kinds = if series.jump.is_none() { by_access(cost) } else { None };
    let beyond = kinds.or(series.beyond.clone()).map(|words| format!("; {words}"));
    marked![
        format!("A switch{} costs ", series.ring),
        series.ends(),
        policy(record),
        series.jump_words(),
        beyond.unwrap_or_default(),
        ".",
        candidates(&series.candidates)
    ]
}

/// Costs along what was swept, and what was found of them.
struct Series {
    axis: SizeAxis,
    /// What is said of the ring after `A switch`.
    ring: String,
    /// The cost at each size, with what follows it.
    costs: Vec<(Estimate, String)>,
    jump: Option<CostJump>,
    /// Of the indirect cost, where the jump is told of that.
    indirect: Option<CostJump>,
    peak: Option<CostPeak>,
    candidates: Vec<JumpCandidate>,
    /// Where working sets do not fit together any more.
    beyond: Option<String>,
}

/// The series with the largest jump; where none has one that of most sizes, of lines at random and
/// of small rings first.
fn main_series(record: &RingRecord, cost: &CostFindings) -> Option<Series> {
    let mut curves: Vec<&CostCurve> = cost.curves.iter().collect();
    curves.sort_by_key(|curve| {
        let few = curve.points.len() < 2;
        (few, curve.work.walk != Walk::Chase, curve.members)
    });
    let mut sweeps: Vec<&CostSweep> = cost.by_members.iter().chain(&cost.by_stride).collect();
    sweeps.sort_by_key(|sweep| sweep.work.is_none());
    let arrays = curves.iter().map(|curve| of_curve(record, cost, curve));
    // Several arrays tell more than several rings, and these more than one array alone.
    let several = curves.first().is_some_and(|curve| curve.points.len() > 1);
    let sweeps = sweeps.iter().map(|sweep| of_sweep(record, sweep));
    let mut all: Vec<Series> =
        if several { arrays.chain(sweeps).collect() } else { sweeps.chain(arrays).collect() };
    all.extend(cost.curves.is_empty().then(|| bare(record, cost)));
    let extent = |of: &Series| of.jump.map_or(0.0, |jump| jump.factor.value.ln().abs());
    // The first of equals.
    all.into_iter().rev().max_by(|one, other| extent(one).total_cmp(&extent(other)))
}

/// Without any work.
fn bare(record: &RingRecord, cost: &CostFindings) -> Series {
    let first = cost.direct.iter().find_map(|of| Some((of.members, of.cost_ns?)));
    Series {
        axis: SizeAxis::ARRAY,
        ring: first.map_or(String::new(), |(members, _)| ring(record, members)),
        costs: first.map(|(_, c1)| (c1, WITHOUT.to_string())).into_iter().collect(),
        jump: None,
        indirect: None,
        peak: None,
        candidates: Vec::new(),
        beyond: None,
    }
}

const WITHOUT: &str = " without a working set";

/// So many sizes are all told.
const FEW_SIZES: usize = 3;

/// By array, from none on.
fn of_curve(record: &RingRecord, cost: &CostFindings, curve: &CostCurve) -> Series {
    let direct = cost.direct_of(curve.members).map(|c1| (c1, WITHOUT.to_string()));
    let measured = curve.points.iter().filter_map(|point| {
        Some((point.total_ns?, format!(" with {}", array(curve.work, point.array_bytes))))
    });
    Series {
        axis: curve.axis(),
        ring: ring(record, curve.members),
        costs: direct.into_iter().chain(measured).collect(),
        jump: curve.jump,
        indirect: None,
        peak: curve.peak,
        candidates: curve.candidates.clone(),
        beyond: beyond_the_cache(curve),
    }
}

/// By members, or by stride.
fn of_sweep(record: &RingRecord, sweep: &CostSweep) -> Series {
    let by_members = sweep.breaks.axis == SizeAxis::MEMBERS;
    let what = sweep.work.map_or(WITHOUT.to_string(), |work| {
        let by = if by_members { String::new() } else { format!(", {} of it", work.op) };
        format!(" with {}{by}", array(work, work.bytes))
    });
    let measured = sweep.points.iter().enumerate().filter_map(|(number, point)| {
        let size = match (by_members, number) {
            (true, 0) => what.clone(),
            (true, _) => format!(" among {}", point.size),
            (false, 0) => format!("{what} by {}", words::bytes(point.size)),
            (false, _) => format!(" by {}", words::bytes(point.size)),
        };
        Some((point.cost.total_ns?, size))
    });
    let members = if by_members { sweep.points[0].size as u32 } else { sweep.members };
    let ring = match ring(record, members) {
        two if two.is_empty() && by_members => format!(" among 2 {}", plural(record)),
        other => other,
    };
    Series {
        axis: sweep.breaks.axis.clone(),
        ring,
        costs: measured.collect(),
        jump: sweep.jump,
        indirect: sweep.indirect_jump,
        peak: sweep.peak,
        candidates: sweep.candidates.clone(),
        beyond: None,
    }
}

impl Series {
    /// Returns the costs at the smallest and at the largest size of which one is known, and why that
    /// of the largest size is not. Of few sizes, which somebody has asked for, all.
    fn ends(&self) -> MarkedText {
        if self.costs.len() <= FEW_SIZES {
            return self.all();
        }
        let known = |(cost, size): &(Estimate, String)| {
            cost.answer_cost().ok().map(|answer| marked![answer.marked_time(), size])
        };
        let first = self.costs.iter().find_map(known);
        let last = self.costs.iter().rev().find_map(known);
        let mut words = MarkedText::join(each_once(first.into_iter().chain(last)), ", ");
        if let Some((Err(why), size)) =
            self.costs.last().map(|(cost, size)| (cost.answer_cost(), size))
        {
            words.push(format!(";{size}: {}", why.with_time_unit()));
        }
        words
    }

    /// Returns the cost at each size, or why it is not known.
    fn all(&self) -> MarkedText {
        let (mut known, mut unknown) = (Vec::new(), String::new());
        for (cost, size) in &self.costs {
            match cost.answer_cost() {
                Ok(answer) => known.push(marked![answer.marked_time(), size]),
                Err(why) => unknown += &format!(";{size}: {}", why.with_time_unit()),
            }
        }
        marked![MarkedText::join(known, ", "), unknown]
    }

    /// That no cost may be quoted, neither at the smallest nor at the largest size, and why.
    fn unknown(&self) -> Option<String> {
        let why = |(cost, _): &(Estimate, String)| {
            cost.answer_cost().err().map(|why| why.with_time_unit())
        };
        let whys: Vec<String> = self.costs.iter().map(why).collect::<Option<_>>()?;
        let ends = each_once([self.costs.first()?, self.costs.last()?].map(|(_, size)| size));
        let sizes: Vec<String> = ends.into_iter().cloned().collect();
        let whys = each_once([whys.first()?, whys.last()?]).into_iter().cloned();
        let whys = whys.collect::<Vec<_>>().join("; ");
        Some(format!("{} is not known ({whys})", sizes.join(" and")))
    }

    fn jump_words(&self) -> String {
        let jump = self.jump.map(|jump| match self.indirect.filter(|of| !of.falls()) {
            Some(indirect) if !jump.falls() => {
                let (from, to) = (words::time(jump.from_ns), words::time(jump.to_ns));
                let added = indirect.in_words(&self.axis);
                format!("; what the working set adds {added} (the whole switch: {from} to {to})")
            }
            _ => format!("; it {}", jump.in_words(&self.axis)),
        });
        let peak = self.peak.filter(|peak| self.jump.is_none_or(|jump| jump.to != peak.at));
        let before = self.peak.filter(|peak| self.jump.is_some_and(|jump| jump.to == peak.at));
        let peak = peak.map(|peak| format!("; it {}", peak.in_words(&self.axis)));
        let before = before.map(|peak| {
            let (down, at) = (words::time(peak.down_ns), self.axis.size(peak.down_at));
            format!(", and falls to {down} with {at}")
        });
        [jump, before, peak].into_iter().flatten().collect()
    }
}

/// ` Possible causes: L1 48 KiB.`
fn candidates(all: &[JumpCandidate]) -> String {
    let names: Vec<&str> = all.iter().map(|of| of.name.as_str()).collect();
    if names.is_empty() {
        String::new()
    } else {
        format!(" Possible causes: {}.", names.join("; "))
    }
}

/// The cheapest and the dearest kind of access, where nothing but these differs.
fn by_access(cost: &CostFindings) -> Option<String> {
    let one = |curve: &CostCurve| match &curve.points[..] {
        [point] => Some((curve.members, point.array_bytes, curve.work, point.total_ns?)),
        _ => None,
    };
    let all: Vec<(u32, u64, Work, Estimate)> =
        cost.curves.iter().map(one).collect::<Option<_>>()?;
    let (members, bytes, ..) = *all.first()?;
    let alike = all.iter().all(|of| (of.0, of.1) == (members, bytes));
    let mut known: Vec<(String, Estimate)> = all
        .iter()
        .filter(|(.., cost)| cost.quote_cost().is_ok())
        .map(|(_, _, work, cost)| (work.walk_in_words(), *cost))
        .collect();
    known.sort_by(|(_, one), (_, other)| one.value.total_cmp(&other.value));
    let [(least, low), .., (most, high)] = &known[..] else { return None };
    let factor =
        analysis::jump::CostRatio::between(&low.quote_cost().ok()?, &high.quote_cost().ok()?);
    let apart = if factor.low > 1.0 { factor.in_words() } else { return None };
    let (low, high) = (words::time(low.value), words::time(high.value));
    alike.then(|| format!("{least} is cheapest at {low}, {most} most expensive at {high}, {apart}"))
}

/// `256 KiB`, or how many pages have one line touched.
fn array(work: Work, bytes: u64) -> String {
    match work.walk {
        Walk::Whole => words::bytes(bytes),
        Walk::Chase => format!("{} of lines at random", words::bytes(bytes)),
        Walk::Sparse => {
            let pages = Work { bytes, ..work }.touches();
            format!("a line in each of {}", SizeAxis::PAGES.size(pages))
        }
    }
}

/// Where the working sets of a curve's members do not fit together any more.
fn beyond_the_cache(curve: &CostCurve) -> Option<String> {
    let regions = curve.outcome.regions()?;
    regions.extent(CacheRegion::TogetherTooLarge)?;
    let place = regions.breaks.breaks.first()?.place(&regions.breaks.axis);
    Some(format!("{} from {place} on", CacheRegion::TogetherTooLarge.in_words()))
}

fn plural(record: &RingRecord) -> &'static str {
    match record.header.plan.ring(0).map_or(MemberKind::Process, |case| case.kind) {
        MemberKind::Process => "processes",
        MemberKind::Thread => "threads",
    }
}

/// The ring, where it is not one of two processes.
fn ring(record: &RingRecord, members: u32) -> String {
    match (members, plural(record)) {
        (2, "processes") => String::new(),
        (_, plural) => format!(" among {members} {plural}"),
    }
}

/// The policy, where it is not the usual one.
fn policy(record: &RingRecord) -> String {
    let policy = record.header.plan.ring(0).map(|case: &RingCase| case.policy);
    let policy = policy.filter(|policy| policy.name() != "other");
    policy.map_or(String::new(), |policy| format!(", policy {policy}"))
}
