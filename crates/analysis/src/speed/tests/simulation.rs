//! How often intervals hold, on models of machines whose cores are shared.
//!
//! The models were fitted to slices recorded on the test machine: a ring of two takes 1.45 times as
//! long while the core is shared, its solo 1.30 times. Each launch is 25 rounds of 0.1 s with two
//! workers, in random order, of 30 ms in 84 slices.

use cdflib::{ContinuousCdf, Normal};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rundata::experiment::Experiment;
use rundata::placement::Placement;
use rundata::plan::Plan;
use rundata::plan::{CaseHistory, Reference};
use rundata::ring::{Counters, RingCase, RingSample};
use testing::repeats;

use super::cut;
use crate::estimate::Estimate;
use crate::estimate::Speed;
use crate::table::Table;

const SWITCH_NS: f64 = 1545.0;
const SOLO_NS: f64 = 472.0;
const RING_SLOWER: f64 = 0.45;
const SOLO_SLOWER: f64 = 0.30;
const ROUNDS: u32 = 25;
const SLICES: usize = 84;

/// Launches that are simulated of each model for the promise, and by how many per cent the share of those that
/// cover the truth may be off 95: two standard errors.
fn launches() -> (u64, f64) {
    repeats((40, 6.9), (400, 2.0))
}

/// As [`cut`] makes quanta, with the half of a percent by which they are late at the median.
pub(super) const UNSHARED_RATIO: f64 = 5920.0 / 5860.0 * 1.004;

pub(super) fn normal(rng: &mut ChaCha8Rng) -> f64 {
    Normal::standard().inverse_cdf(rng.random_range(1e-12..1.0)).unwrap()
}

fn exponential(rng: &mut ChaCha8Rng) -> f64 {
    -rng.random_range(1e-12..1.0_f64).ln()
}

/// A machine: when its core is shared.
#[derive(Clone, Copy, Debug)]
pub(super) enum Model {
    /// Never; rounds scatter independently by 3 %.
    Independent,
    /// In stretches of 0.1 to 2 s, for a share of the time that is another in each launch.
    Stretches,
    /// In milliseconds (mean cycle 9 ms), for a share that drifts over 0.25 s about a mean that is
    /// another in each launch.
    Fast,
    /// The same, for half of the time.
    Half,
    /// The same, all but always.
    Busy,
}

/// Shared time up to the moments at which the state changes.
pub(super) struct Trace {
    moments: Vec<f64>,
    shared: Vec<f64>,
}

impl Trace {
    pub(super) fn of(model: Model, seconds: f64, rng: &mut ChaCha8Rng) -> Self {
        let mut trace = Self { moments: vec![0.0], shared: vec![0.0] };
        match model {
            Model::Independent => trace.push(seconds, false),
            Model::Stretches => {
                let duty = rng.random_range(0.1..0.9);
                let mut is_shared = rng.random_bool(duty);
                let mut first = rng.random_range(0.0..1.0);
                while trace.end() < seconds {
                    let share = if is_shared { duty } else { 1.0 - duty };
                    let length = rng.random_range(0.1..2.0) * 2.0 * share;
                    trace.push(length * first, is_shared);
                    (is_shared, first) = (!is_shared, 1.0);
                }
            }
            Model::Fast | Model::Half | Model::Busy => {
                let mean = match model {
                    Model::Fast => -0.6 + 1.2 * normal(rng),
                    Model::Half => 0.0,
                    _ => 4.5,
                };
                let step: f64 = 0.02;
                let keep = (-step / 0.25_f64).exp();
                let mut z = normal(rng);
                let steps = (seconds / step) as usize + 10;
                let mut duty = Vec::with_capacity(steps);
                for _ in 0..steps {
                    let share: f64 = 1.0 / (1.0 + (-(mean + 1.3 * z)).exp());
                    duty.push(share.clamp(0.02, 0.995));
                    z = keep * z + (1.0 - keep * keep).sqrt() * normal(rng);
                }
                let mut is_shared = rng.random_bool(duty[0]);
                while trace.end() < seconds {
                    let duty = duty[((trace.end() / step) as usize).min(steps - 1)];
                    let share = if is_shared { duty } else { 1.0 - duty };
                    trace.push(exponential(rng) * 0.009 * share, is_shared);
                    is_shared = !is_shared;
                }
            }
        }
        trace
    }

    fn end(&self) -> f64 {
        *self.moments.last().unwrap()
    }

    fn push(&mut self, length: f64, is_shared: bool) {
        self.moments.push(self.end() + length);
        self.shared.push(self.shared.last().unwrap() + if is_shared { length } else { 0.0 });
    }

    /// Shared time up to a moment.
    fn up_to(&self, moment: f64) -> f64 {
        let after =
            self.moments.partition_point(|end| *end <= moment).clamp(1, self.moments.len() - 1);
        let (start, end) = (self.moments[after - 1], self.moments[after]);
        let part = ((moment - start) / (end - start)).clamp(0.0, 1.0);
        self.shared[after - 1] + part * (self.shared[after] - self.shared[after - 1])
    }

    /// Share of the time from one moment to another.
    pub(super) fn share(&self, from: f64, to: f64) -> f64 {
        (self.up_to(to) - self.up_to(from)) / (to - from)
    }
}

pub(super) fn plan() -> Plan {
    let case = |members| RingCase::of_processes(members, Placement::Same { cpu: 1 });
    Plan {
        seed: 7,
        reference: Reference {
            unshared_ratio: Some(UNSHARED_RATIO),
            established: true,
            ..Reference::default()
        },
        ..Plan::from_cases(Experiment::Ring, [case(1), case(2)])
    }
}

/// The samples of one launch. `tau` is the scatter of launches that nobody can see within one.
fn launch(model: Model, tau: f64, seed: u64) -> Vec<RingSample> {
    let between = if matches!(model, Model::Independent) { 0.03 } else { ROUND_SCATTER };
    launch_of_rounds(model, tau, (ROUNDS, between), seed)
}

/// How hops at full speed scatter between rounds, as recorded.
const ROUND_SCATTER: f64 = 0.006;

/// Like [`launch`], of so many rounds, which scatter by so much.
fn launch_of_rounds(
    model: Model,
    tau: f64,
    (rounds, between): (u32, f64),
    seed: u64,
) -> Vec<RingSample> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let trace = Trace::of(model, f64::from(rounds) * 0.1 + 0.2, &mut rng);
    let level = (tau * normal(&mut rng)).exp();
    let mut samples = Vec::new();
    for round in 0..rounds {
        let solo_first = rng.random_bool(0.5);
        for (case, hop, slower) in
            [(0, SOLO_NS, SOLO_SLOWER), (1, SWITCH_NS + SOLO_NS, RING_SLOWER)]
        {
            let second = (case == 0) != solo_first;
            let start = f64::from(round) * 0.1 + if second { 0.05 } else { 0.0 } + 0.015;
            let base = hop * level * (between * normal(&mut rng)).exp();
            let slower = slower * (0.1 * normal(&mut rng)).exp();
            samples.push(worker(case, round, base, slower, start, &trace, &mut rng));
        }
    }
    samples
}

fn worker(
    case: usize,
    round: u32,
    base: f64,
    slower: f64,
    start: f64,
    trace: &Trace,
    rng: &mut ChaCha8Rng,
) -> RingSample {
    let step = 0.03 / SLICES as f64;
    let members = if case == 0 { 1 } else { 2 };
    let slice_laps = (step * 1e9 / base) as u64 / members;
    let laps = slice_laps * SLICES as u64;
    let plain = RingSample {
        case,
        round,
        laps,
        hops: laps * members,
        elapsed_ns: 30_000_000,
        counters: Counters {
            voluntary: if members > 1 { laps * members } else { 0 },
            migrations: Some(0),
            ..Counters::default()
        },
        ..RingSample::default()
    };
    let mut sample = cut(plain, SLICES as u64, |_| true);
    let slices = sample.slices.as_mut().unwrap();
    for (index, ns) in slices.elapsed_ns.iter_mut().enumerate() {
        let from = start + step * index as f64;
        let mut hop = base * (1.0 + slower * trace.share(from, from + step));
        hop *= (0.008 * normal(rng)).exp();
        if rng.random_bool(0.01) {
            hop *= 1.0 + 0.3 * exponential(rng);
        }
        *ns = (hop * (slice_laps * members) as f64) as u64;
    }
    for (index, ns) in slices.throughput_ns.iter_mut().enumerate() {
        // Two quanta at each end have one neighbour only.
        let edge = (index as f64 - 1.0).clamp(0.0, SLICES as f64);
        let at = start + step * edge;
        let shared = 1.0 + 0.38 * trace.share(at, at + 12e-6) + (0.006 * normal(rng)).abs();
        *ns = (f64::from(*ns) * shared) as u32;
    }
    sample.elapsed_ns = slices.elapsed_ns.iter().sum();
    sample
}

/// What launches of one machine say.
struct Said {
    estimates: Vec<Option<Estimate>>,
}

impl Said {
    fn by(
        launches: u64,
        model: Model,
        tau: f64,
        look: impl Fn(&mut Plan, &mut Vec<RingSample>),
    ) -> Self {
        let one = |seed: u64| {
            let (mut plan, mut samples) = (plan(), launch(model, tau, 9000 + seed));
            look(&mut plan, &mut samples);
            Table::from_samples(&plan, &samples, []).above_solo(1, 1)
        };
        Self { estimates: (0..launches).map(one).collect() }
    }

    fn full(&self) -> impl Iterator<Item = &Estimate> {
        self.estimates.iter().flatten().filter(|estimate| estimate.speed == Speed::Full)
    }

    fn answered(&self) -> f64 {
        percent(self.full().count(), self.estimates.len())
    }

    fn covered(&self) -> f64 {
        let holds = |estimate: &&Estimate| {
            estimate.interval().is_some_and(|i| i.low <= SWITCH_NS && SWITCH_NS <= i.high)
        };
        percent(self.full().filter(holds).count(), self.full().count())
    }

    fn bias(&self) -> f64 {
        let values: Vec<f64> = self.full().map(|estimate| estimate.value).collect();
        100.0 * (stats::median(&values).unwrap() / SWITCH_NS - 1.0)
    }

    fn variation(&self) -> f64 {
        let values: Vec<f64> = self.full().map(|estimate| estimate.value).collect();
        let summary = stats::SampleSummary::from_values(&values).unwrap();
        100.0 * summary.deviation / summary.mean
    }

    fn print(&self, what: &str) {
        println!(
            "{what}: answered {:.1} %, bias {:+.2} %, variation {:.2} %, covered {:.1} %",
            self.answered(),
            self.bias(),
            self.variation(),
            self.covered()
        );
    }
}

fn percent(count: usize, of: usize) -> f64 {
    100.0 * count as f64 / of.max(1) as f64
}

fn as_it_is(_: &mut Plan, _: &mut Vec<RingSample>) {}

/// The promise behind every interval at full speed, where launches scatter by 1 % beside what is
/// seen within one: what the term for launches takes them to.
#[test]
fn nominal_95_percent_covers_93_to_97_whatever_shares_the_core() {
    let (launches, off) = launches();
    let (mut covered, mut answered) = (0.0, 0.0);
    for model in [Model::Independent, Model::Stretches, Model::Fast] {
        let said = Said::by(launches, model, 0.01, as_it_is);
        said.print(&format!("{model:?}"));
        assert!((said.covered() - 95.0).abs() <= off, "{model:?}: {:.1} %", said.covered());
        assert!(said.bias().abs() < repeats(0.8, 0.5), "{model:?}: {:.2} %", said.bias());
        assert!(said.variation() < repeats(1.8, 1.6), "{model:?}: {:.2} %", said.variation());
        assert!(said.answered() > repeats(65.0, 70.0), "{model:?}: {:.1} %", said.answered());
        covered += said.covered() * said.answered();
        answered += said.answered();
    }
    // Where launches are few, only all models together can cover too much.
    let covered = covered / answered;
    assert!((covered - 95.0).abs() <= repeats(4.0, 2.0), "{covered:.1} %");
}

/// Estimates of launches of so many rounds that saw full speed in few of them. Earlier launches say
/// how rounds scatter where `is_known`; else rounds of each machine scatter by an amount of its own,
/// as the assumed 1 % is known to four degrees of freedom.
fn few_rounds(launches: u64, model: Model, rounds: u32, is_known: bool) -> Said {
    let one = |seed: u64| {
        let mut plan = plan();
        let mut rng = ChaCha8Rng::seed_from_u64(49_000 + seed);
        let between = if is_known {
            // Beside the rounds' own scatter that of the middle of 30 slices.
            let scatter = Some(ROUND_SCATTER.hypot(0.002));
            let known = CaseHistory {
                round_scatter: scatter,
                hop_round_scatter: scatter,
                ..CaseHistory::default()
            };
            plan.reference.cases = vec![known; 2];
            ROUND_SCATTER
        } else {
            let squares: f64 = (0..4).map(|_| normal(&mut rng).powi(2)).sum();
            0.01 * (4.0 / squares).sqrt().min(5.0)
        };
        let samples = launch_of_rounds(model, 0.01, (rounds, between), 60_000 + seed);
        Table::from_samples(&plan, &samples, []).above_solo(1, 1)
    };
    let mut estimates: Vec<_> = (0..launches).map(one).collect();
    estimates.retain(|of| of.is_some_and(|of| of.speed == Speed::FewRounds));
    // They are counted as the others are.
    let full = |of: Estimate| Estimate { speed: Speed::Full, ..of };
    Said { estimates: estimates.into_iter().map(|of| of.map(full)).collect() }
}

/// Of one round to five, with rounds that drift together, and with cores that are shared so often
/// that clean slices are short stretches.
#[test]
fn few_rounds_cover_93_to_97_percent_and_have_no_tail() {
    let (launches, off) = repeats((30, 5.0), (2000, 2.0));
    for is_known in [true, false] {
        let (mut covered, mut answered) = (0.0, 0.0);
        for rounds in 1..=5 {
            for model in [Model::Stretches, Model::Fast] {
                let said = few_rounds(launches, model, rounds, is_known);
                said.print(&format!("{model:?}, {rounds} rounds, scatter known: {is_known}"));
                let count = said.estimates.len() as f64;
                covered += said.covered() * count;
                answered += count;
                let far = said.full().filter(|of| (of.value / SWITCH_NS - 1.0).abs() > 0.12);
                assert_eq!(if is_known { far.count() } else { 0 }, 0, "{model:?} {rounds}");
            }
        }
        let covered = covered / answered;
        println!("few rounds, scatter known: {is_known}: {covered:.1} % of {answered}");
        assert!((covered - 95.0).abs() <= off, "{covered:.1} %");
    }
}

/// Clean slices of a core that is all but always shared are luck: no figure is built on them that
/// is far off.
#[test]
fn luck_is_no_full_speed() {
    let launches = repeats(100, 1000);
    let said = few_rounds(launches, Model::Busy, 25, true);
    println!("busy: {} of {launches} in few rounds", said.estimates.len());
    let far = said.full().filter(|of| (of.value / SWITCH_NS - 1.0).abs() > 0.1);
    assert_eq!(far.count(), 0);
}

/// Broken on purpose: what each rule is for.
#[test]
fn without_its_rules_the_interval_does_not_hold() {
    let launches = repeats(24, 400);
    let without_quanta = Said::by(launches, Model::Fast, 0.01, |_, samples| {
        for slices in samples.iter_mut().filter_map(|sample| sample.slices.as_mut()) {
            let least = slices.throughput_ns.iter().copied().min().unwrap();
            slices.throughput_ns.fill(least);
        }
    });
    without_quanta.print("quanta that see nothing");
    // A share of 80 % and one and a half standard errors.
    let most = repeats(90.0, 80.0);
    assert!(without_quanta.covered() < most && without_quanta.variation() > 10.0);
    let without_tau = Said::by(launches, Model::Stretches, 0.01, |plan, _| {
        plan.reference.launch_scatter = Some(0.0);
    });
    without_tau.print("without the term for launches");
    assert!(without_tau.covered() < most);
    let contended_level = Said::by(launches, Model::Fast, 0.01, |plan, samples| {
        // k0 as a run has it that saw no unshared core: its quanta say that shared slices are the
        // clean ones.
        plan.reference.unshared_ratio = Some(1.38 * UNSHARED_RATIO);
        let throughput = samples.iter_mut().filter_map(|sample| sample.slices.as_mut());
        for ns in throughput.flat_map(|slices| &mut slices.throughput_ns) {
            *ns = if *ns < 6500 { 12_000 } else { *ns };
        }
    });
    contended_level.print("k0 of a shared core");
    assert!(contended_level.bias() > 20.0 && contended_level.covered() < 5.0);
}

/// On a CPU that nobody knows, a launch that was shared throughout may take a shared core's level
/// for its own. It says that the level is provisional, and once others have seen a lower one it
/// says less.
#[test]
fn what_a_launch_took_for_full_speed_is_taken_back_when_more_is_known() {
    let (mut taken_back, launches) = (0, repeats(24, 100));
    for seed in 0..launches {
        let samples = launch(Model::Stretches, 0.01, 700 + seed);
        let mut unknown = plan();
        unknown.reference = Reference::default();
        let table = Table::from_samples(&unknown, &samples, []);
        let first = table.above_solo(1, 1).unwrap();
        assert!(table.levels().values().all(|level| !level.established));
        let plan = plan();
        let later = Table::from_samples(&plan, &samples, []).above_solo(1, 1).unwrap();
        let is_wrong =
            |e: &Estimate| e.speed == Speed::Full && (e.value / SWITCH_NS - 1.0).abs() > 0.08;
        assert!(!is_wrong(&later), "{later:?}");
        taken_back += u32::from(is_wrong(&first));
    }
    println!("provisional and wrong: {taken_back} of {launches}");
    assert!(taken_back < repeats(6, 15), "{taken_back}");
}

/// A core that is all but always shared gives no figure at full speed, and no gate fails by that.
#[test]
fn a_busy_core_is_not_called_changed() {
    let (mut answered, launches) = (0, repeats(24, 100));
    for seed in 0..launches {
        let plan = plan();
        let samples = launch(Model::Busy, 0.01, 500 + seed);
        let cost = Table::from_samples(&plan, &samples, []).above_solo(1, 1).unwrap();
        answered += u32::from(cost.speed == Speed::Full);
        assert!(cost.answer_cost().is_ok(), "{cost:?}");
        // Few rounds are told with what they leave open, and no share of luck.
        if cost.speed == Speed::FewRounds {
            assert!((cost.value / SWITCH_NS - 1.0).abs() < 0.06, "{cost:?}");
        }
    }
    println!("busy: {answered} of {launches} answered");
    assert!(answered <= repeats(4, 10), "{answered}");
}
