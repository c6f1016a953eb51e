//! The answer of a run of costs by working set, in a sentence or two: the cost of a switch at the
//! smallest and at the largest of what was swept, and the largest jump between.

use analysis::cost::{CostCurve, CostFindings, CostSweep, JumpCandidate};
use analysis::estimate::Estimate;
use analysis::jump::{CostJump, CostPeak};
use analysis::marked;
use analysis::marked::MarkedText;
use analysis::record::RingRecord;
use analysis::regions::{CacheRegion, SizeAxis};
use rundata::ring::{MemberKind, Policy, Walk, Work};
use rundata::run::unfinished;
use rundata::words;

use super::figures::jump_extent;
use crate::base::values::each_once;

/// Returns `A switch costs 940 ns (921 to 958) without a working set, 181 us (178 to 185) with 1 MiB;
/// it jumps from 1.05 us to 181 us between 256 KiB and 1 MiB, 172x (167x to 178x). Possible causes:
/// L2 2 MiB.`
pub(crate) fn headline(record: &RingRecord, cost: &CostFindings) -> MarkedText {
    let series = main_series(record, cost);
    let Some(series) = series else {
        return "What a switch costs was not measured.".into();
    };
    let ring = &series.ring;
    if let Some(words) = series.unknown_in_words() {
        return format!("What a switch{ring} costs{words}{}.", policy_in_words(record)).into();
    }
    let what = format!("A switch{ring} costs ");
    // On a run that did not end nothing is built.
    if unfinished(record.end.as_ref()).is_some() {
        return marked![what, series.ends_in_words(), policy_in_words(record), "."];
    }
    let mut tail = series.jump_in_words();
    let access = if series.jump.is_none() { access_in_words(cost) } else { None };
    if let Some(words) = access.or(series.beyond_cache.clone()) {
        tail += &format!("; {words}");
    }
    tail += ".";
    tail += &causes_in_words(&series.candidates);
    marked![what, series.ends_in_words(), policy_in_words(record), tail]
}

/// Costs along what was swept, and what was found of them.
struct CostSeries {
    axis: SizeAxis,
    /// Words for the ring, which follow `A switch`.
    ring: String,
    /// The cost at each size, with the words for the size that follow it.
    costs: Vec<(Estimate, String)>,
    jump: Option<CostJump>,
    /// Jump of the indirect cost, where the sentence is on that.
    indirect_jump: Option<CostJump>,
    peak: Option<CostPeak>,
    candidates: Vec<JumpCandidate>,
    /// From where on working sets do not fit together any more.
    beyond_cache: Option<String>,
}

/// Returns the series with the largest jump; where none has one that of most sizes, of lines at
/// random and of small rings first.
fn main_series(record: &RingRecord, cost: &CostFindings) -> Option<CostSeries> {
    let mut curves: Vec<&CostCurve> = cost.curves.iter().collect();
    curves.sort_by_key(|curve| {
        let has_one_size = curve.points.len() < 2;
        (has_one_size, curve.work.walk != Walk::Chase, curve.members)
    });
    let mut sweeps: Vec<&CostSweep> = cost.by_members.iter().collect();
    sweeps.extend(&cost.by_stride);
    sweeps.sort_by_key(|sweep| sweep.work.is_none());
    let mut arrays = Vec::new();
    for curve in &curves {
        arrays.push(array_series(record, cost, curve));
    }
    let mut all = Vec::new();
    for sweep in sweeps {
        all.push(sweep_series(record, sweep));
    }
    // Several arrays tell more than several rings, and these more than one array alone.
    if !curves.is_empty() && curves[0].points.len() > 1 {
        arrays.append(&mut all);
        all = arrays;
    } else {
        all.append(&mut arrays);
    }
    if cost.curves.is_empty() {
        all.push(series_without_work(record, cost));
    }
    // Of equals the first.
    let largest = all
        .into_iter()
        .rev()
        .max_by(|one, other| jump_extent(one.jump).total_cmp(&jump_extent(other.jump)))?;
    if largest.costs.is_empty() { None } else { Some(largest) }
}

fn series_without_work(record: &RingRecord, cost: &CostFindings) -> CostSeries {
    let (mut ring, mut costs) = (String::new(), Vec::new());
    for direct in &cost.direct {
        if let Some(c1) = direct.cost_ns {
            ring = ring_in_words(record, direct.members);
            costs.push((c1, WITHOUT_WORK.to_string()));
            break;
        }
    }
    CostSeries {
        axis: SizeAxis::ARRAY,
        ring,
        costs,
        jump: None,
        indirect_jump: None,
        peak: None,
        candidates: Vec::new(),
        beyond_cache: None,
    }
}

const WITHOUT_WORK: &str = " without a working set";

/// Most sizes that are all told.
const MAX_TOLD_SIZES: usize = 3;

/// Returns costs by array, from none on.
fn array_series(record: &RingRecord, cost: &CostFindings, curve: &CostCurve) -> CostSeries {
    let mut costs = Vec::new();
    let direct = cost.direct_of(curve.members);
    if let Some(c1) = direct {
        costs.push((c1, WITHOUT_WORK.to_string()));
    }
    for point in &curve.points {
        let Some(total) = point.total_ns else { continue };
        let size = format!(" with {}", array_in_words(curve.work, point.array_bytes));
        costs.push((total, size));
    }
    CostSeries {
        axis: curve.axis(),
        ring: ring_in_words(record, curve.members),
        costs,
        jump: curve.jump,
        indirect_jump: None,
        peak: curve.peak,
        candidates: curve.candidates.clone(),
        beyond_cache: beyond_cache_in_words(curve),
    }
}

/// Returns costs by members, or by stride.
fn sweep_series(record: &RingRecord, sweep: &CostSweep) -> CostSeries {
    let is_by_members = sweep.breaks.axis == SizeAxis::MEMBERS;
    let work = match sweep.work {
        None => WITHOUT_WORK.to_string(),
        Some(work) if is_by_members => format!(" with {}", array_in_words(work, work.bytes)),
        Some(work) => format!(" with {}, {} of it", array_in_words(work, work.bytes), work.op),
    };
    let mut costs = Vec::new();
    for (number, point) in sweep.points.iter().enumerate() {
        let size = match (is_by_members, number) {
            (true, 0) => work.clone(),
            (true, _) => format!(" among {}", point.size),
            (false, 0) => format!("{work} by {}", words::bytes(point.size)),
            (false, _) => format!(" by {}", words::bytes(point.size)),
        };
        if let Some(total) = point.cost.total_ns {
            costs.push((total, size));
        }
    }
    let members = if is_by_members { sweep.points[0].size as u32 } else { sweep.members };
    let mut ring = ring_in_words(record, members);
    if ring.is_empty() && is_by_members {
        ring = format!(" among 2 {}", plural(record));
    }
    CostSeries {
        axis: sweep.breaks.axis.clone(),
        ring,
        costs,
        jump: sweep.jump,
        indirect_jump: sweep.indirect_jump,
        peak: sweep.peak,
        candidates: sweep.candidates.clone(),
        beyond_cache: None,
    }
}

impl CostSeries {
    /// Returns the costs at the smallest and at the largest size of which one is known, and why
    /// that of the largest size is not. Of few sizes, which somebody has asked for, all.
    fn ends_in_words(&self) -> MarkedText {
        if self.costs.len() <= MAX_TOLD_SIZES {
            return self.all_in_words();
        }
        let mut known = Vec::new();
        for (cost, size) in &self.costs {
            if let Ok(answer) = cost.answer_cost() {
                known.push(marked![answer.marked_time(), size]);
            }
        }
        if known.len() > 2 {
            known.drain(1..known.len() - 1);
        }
        let mut words = MarkedText::join(each_once(known), ", ");
        if let Some((cost, size)) = self.costs.last() {
            if let Err(why) = cost.answer_cost() {
                words.push(format!(";{size}: {}", why.with_time_unit()));
            }
        }
        words
    }

    /// Returns the cost at each size, or why it is not known.
    fn all_in_words(&self) -> MarkedText {
        let (mut known, mut unknown) = (Vec::new(), String::new());
        for (cost, size) in &self.costs {
            match cost.answer_cost() {
                Ok(answer) => known.push(marked![answer.marked_time(), size]),
                Err(why) => unknown += &format!(";{size}: {}", why.with_time_unit()),
            }
        }
        marked![MarkedText::join(known, ", "), unknown]
    }

    /// Returns that no cost is known, neither at the smallest nor at the largest size, and why;
    /// `None` if one is.
    fn unknown_in_words(&self) -> Option<String> {
        let mut whys = Vec::new();
        for (cost, _) in &self.costs {
            whys.push(cost.answer_cost().err()?.with_time_unit());
        }
        let sizes = each_once([&self.costs.first()?.1, &self.costs.last()?.1].map(String::as_str));
        let whys = each_once([whys.first()?, whys.last()?].map(String::as_str));
        Some(format!("{} is not known ({})", sizes.join(" and"), whys.join("; ")))
    }

    /// Returns the jump and the peak, each behind a semicolon.
    fn jump_in_words(&self) -> String {
        let mut words = String::new();
        if let Some(jump) = self.jump {
            words += &match self.indirect_jump {
                Some(indirect) if !indirect.falls() && !jump.falls() => {
                    let (from, to) = (words::time(jump.from_ns), words::time(jump.to_ns));
                    let added = indirect.in_words(&self.axis);
                    format!(
                        "; what the working set adds {added} (the whole switch: {from} to {to})"
                    )
                }
                _ => format!("; it {}", jump.in_words(&self.axis)),
            };
        }
        let Some(peak) = self.peak else { return words };
        words += &match self.jump {
            Some(jump) if jump.to == peak.at => {
                let (down, at) = (words::time(peak.down_ns), self.axis.size(peak.down_at));
                format!(", and falls to {down} with {at}")
            }
            _ => format!("; it {}", peak.in_words(&self.axis)),
        };
        words
    }
}

/// Returns ` Possible causes: L1 48 KiB.`; empty without a candidate.
pub(crate) fn causes_in_words(candidates: &[JumpCandidate]) -> String {
    let names: Vec<&str> = candidates.iter().map(|candidate| candidate.name.as_str()).collect();
    if names.is_empty() {
        String::new()
    } else {
        format!(" Possible causes: {}.", names.join("; "))
    }
}

/// Returns the cheapest and the dearest kind of access, where nothing but these differs.
fn access_in_words(cost: &CostFindings) -> Option<String> {
    let first = cost.curves.first()?;
    let mut known = Vec::new();
    for curve in &cost.curves {
        let [point] = &curve.points[..] else { return None };
        let is_alike = (curve.members, point.array_bytes)
            == (first.members, first.points.first()?.array_bytes);
        let total = point.total_ns?;
        if !is_alike {
            return None;
        }
        if let Ok(quoted) = total.quote_cost() {
            known.push((curve.work.walk_in_words(), quoted));
        }
    }
    known.sort_by(|(_, one), (_, other)| one.value().total_cmp(&other.value()));
    let [(least, low), .., (most, high)] = &known[..] else { return None };
    let factor = analysis::jump::CostRatio::between(low, high);
    if factor.low <= 1.0 {
        return None;
    }
    let (low, high) = (words::time(low.value()), words::time(high.value()));
    let times = factor.in_words();
    Some(format!("{least} is cheapest at {low}, {most} most expensive at {high}, {times}"))
}

/// Returns `256 KiB`, or how many pages have one line touched.
fn array_in_words(work: Work, bytes: u64) -> String {
    match work.walk {
        Walk::Whole => words::bytes(bytes),
        Walk::Chase => format!("{} of lines at random", words::bytes(bytes)),
        Walk::Sparse => {
            let pages = Work { bytes, ..work }.touches();
            format!("a line in each of {}", SizeAxis::PAGES.size(pages))
        }
    }
}

/// Returns from where on the working sets of a curve's members do not fit together any more.
fn beyond_cache_in_words(curve: &CostCurve) -> Option<String> {
    let regions = curve.outcome.regions()?;
    regions.extent(CacheRegion::TogetherTooLarge)?;
    let place = regions.breaks.breaks.first()?.place(&regions.breaks.axis);
    Some(format!("{} from {place} on", CacheRegion::TogetherTooLarge.in_words()))
}

fn plural(record: &RingRecord) -> &'static str {
    match record.header.plan.ring(0) {
        Some(case) if case.kind == MemberKind::Thread => "threads",
        _ => "processes",
    }
}

/// Returns ` among 4 processes`; empty for a ring of two processes.
fn ring_in_words(record: &RingRecord, members: u32) -> String {
    match (members, plural(record)) {
        (2, "processes") => String::new(),
        (_, plural) => format!(" among {members} {plural}"),
    }
}

/// Returns `, policy fifo`; empty for the usual policy.
fn policy_in_words(record: &RingRecord) -> String {
    match record.header.plan.ring(0) {
        Some(case) if case.policy != Policy::Other => format!(", policy {}", case.policy),
        _ => String::new(),
    }
}
