//! A trace as a run file: its header, then a sample for each part as it ends, then its end.
//!
//! ```text
//! look at     0 s    1 s    2 s    3 s  3.1 s (end)
//! part            0      1      2         the rest is too short for a part: it is part of the last
//! ```
//!
//! A part is as long as the time between two looks, and in a long trace longer, so that a day has
//! some 2,000. Names of tasks are stored only where they were asked for.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use analysis::estimate::SHARED_LAUNCH_SCATTER;
use rundata::case::Sample;
use rundata::experiment::Experiment;
use rundata::machine::Machine;
use rundata::plan::{Batching, Plan, Reference, Stopping};
use rundata::ring::Policy;
use rundata::run::{Run, RunEnd, RunFileLine, StopReason};
use rundata::trial::switches::{self, SwitchTrace, TracedTasks};
use rundata::trial::{Tally, Trial, TrialBatching, TrialCase, TrialSample};
use switchtrace::{DurationHistogram, WaitHistogram};

use super::TraceArgs;
use super::stored;
use crate::base::failure::print_message;
use crate::base::secrets;
use crate::base::values::{nanoseconds, seconds_in_words};
use crate::engine::effort::CONFIDENCE;
use crate::engine::execute::{HeaderOptions, run_name};
use crate::engine::store::{RunFile, RunStore};
use crate::observe::live::account::{SwitchAccount, ThreadUsage};
use crate::observe::live::session::TracerSession;

/// Parts that the time until now is divided into at least, once it is long enough.
const PARTS_OF_TIME: u64 = 300;

/// Shortest part, in nanoseconds.
const MIN_PART_NS: u64 = 1_000_000_000;

/// Names of preempters that a part has, those that preempted most often.
const MAX_NAMES: usize = 64;

/// What was counted from the beginning of a trace to a look.
#[derive(Clone, Debug, Default)]
struct TraceTotals {
    elapsed_ns: u64,
    used: ThreadUsage,
    preemptions: PreemptionTotals,
    idle_ns: BTreeMap<u32, u64>,
}

/// Preemptions of the traced tasks, by who got the CPU.
#[derive(Clone, Debug, Default)]
struct PreemptionTotals {
    by_own: u64,
    by_others: u64,
    by_tracer: u64,
    /// By tasks of each name; empty where names are not stored.
    by_name: BTreeMap<String, u64>,
}

impl PreemptionTotals {
    fn from_account(account: &SwitchAccount, has_names: bool) -> Self {
        let mut totals = Self::default();
        for (task, count) in account.preempters(|from, _| !from.is_observer) {
            let Some(record) = account.task(task) else { continue };
            if record.is_observer {
                totals.by_tracer += count;
                continue;
            }
            if record.in_scope {
                totals.by_own += count;
            } else {
                totals.by_others += count;
            }
            if has_names {
                *totals.by_name.entry(record.name.clone()).or_default() += count;
            }
        }
        totals
    }

    /// Returns the counts of this look that an earlier one lacks, by their names in a sample.
    fn counts_since(&self, before: &Self, tasks: TracedTasks) -> BTreeMap<String, i64> {
        let mut counts = BTreeMap::new();
        if tasks != TracedTasks::Machine {
            // To the machine all tasks belong.
            let own = growth(before.by_own, self.by_own);
            counts.insert(switches::PREEMPTED_BY_OWN.to_string(), own);
            let others = growth(before.by_others, self.by_others);
            counts.insert(switches::PREEMPTED_BY_OTHERS.to_string(), others);
        }
        let tracer = growth(before.by_tracer, self.by_tracer);
        counts.insert(switches::PREEMPTED_BY_TRACER.to_string(), tracer);
        let mut names = Vec::new();
        for (name, now) in &self.by_name {
            let then = before.by_name.get(name).copied().unwrap_or(0);
            let count = growth(then, *now);
            if count > 0 {
                names.push((count, name));
            }
        }
        names.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
        names.truncate(MAX_NAMES);
        for (count, name) in names {
            // Names that differ only in letters that are not stored are one.
            let sum: &mut i64 = counts.entry(switches::preempted_by(name)).or_default();
            *sum = sum.saturating_add(count);
        }
        counts
    }
}

/// Returns by how much a count has grown, as samples have it.
fn growth(then: u64, now: u64) -> i64 {
    signed(now.saturating_sub(then))
}

/// Returns a count as samples have it.
fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

impl TraceTotals {
    fn read(session: &TracerSession, has_names: bool) -> Self {
        Self {
            elapsed_ns: nanoseconds(session.elapsed()),
            used: session.account.total(),
            preemptions: PreemptionTotals::from_account(&session.account, has_names),
            idle_ns: probe::idle_ns_by_cpu(Path::new("/")),
        }
    }

    /// Returns the part from this look to a later one.
    fn part_until(&self, end: &Self, number: u32, tasks: TracedTasks) -> TrialSample {
        let used = end.used.since(&self.used);
        let mut counts = end.preemptions.counts_since(&self.preemptions, tasks);
        for (name, count) in [
            (switches::VOLUNTARY, used.voluntary),
            (switches::PREEMPTED, used.preempted()),
            (switches::YIELDED, used.yields),
            (switches::MIGRATIONS, used.migrations),
            (switches::CPU_NS, used.cpu_ns),
        ] {
            counts.insert(name.to_string(), signed(count));
        }
        let elapsed_ns = end.elapsed_ns.saturating_sub(self.elapsed_ns);
        for (cpu, idle_ns) in &end.idle_ns {
            // A CPU that came online meanwhile has no time before.
            let Some(before_ns) = self.idle_ns.get(cpu) else { continue };
            // Idle time has coarse steps, so that it may exceed the part.
            let busy_ns = signed(elapsed_ns).saturating_sub(growth(*before_ns, *idle_ns));
            counts.insert(switches::busy_ns(*cpu), busy_ns);
        }
        let waits = (switches::WAIT_NS.to_string(), tally(&used.waits));
        let bursts = (switches::RUN_NS.to_string(), tally(&used.bursts));
        TrialSample {
            case: 0,
            round: number,
            elapsed_ns,
            elapsed_ticks: None,
            tallies: BTreeMap::from([waits, bursts]),
            sliced: Vec::new(),
            gaps: Vec::new(),
            counts,
            steal_ns: None,
        }
    }
}

/// Returns a histogram as a tally of the lower ends of its bins.
fn tally<const N: usize>(histogram: &DurationHistogram<N>) -> Tally {
    let mut pairs = Vec::new();
    for (bin, count) in histogram.counts().iter().enumerate() {
        pairs.push((signed(DurationHistogram::<N>::lower_ns(bin)), *count));
    }
    Tally::from(pairs)
}

/// Returns the lower ends of the bins of waits. Those of bursts, a bin an octave, are among them.
fn bins_ns() -> Vec<u64> {
    let bins = WaitHistogram::default().counts().len();
    (0..bins).map(WaitHistogram::lower_ns).collect()
}

/// The run file of a trace that goes on.
pub(super) struct StoredTrace {
    run: Run,
    /// Absent where the trace is not stored, or not completely.
    file: Option<RunFile>,
    tasks: TracedTasks,
    has_names: bool,
    /// The look from which on nothing is written.
    begun: TraceTotals,
    /// A later look: the part from `begun` to it waits for what is at least half as long.
    held: Option<TraceTotals>,
    /// The last look.
    seen: TraceTotals,
}

impl StoredTrace {
    /// Makes the file of a trace that has just begun; without one, tracing goes on all the same.
    pub(super) fn begin(args: &TraceArgs, machine: &Machine, session: &TracerSession) -> Self {
        let begun = TraceTotals::read(session, args.store_names);
        let tasks = args.traced_tasks();
        let started = SystemTime::now();
        let files = &args.output.files;
        let options = HeaderOptions {
            name: args.name.clone(),
            anonymous: files.anonymous,
            store_command: files.store_command,
            since: None,
            is_quick: false,
        };
        let name = run_name(Experiment::Trace, started);
        let header = options.header(name, started, plan(args, tasks), machine, Vec::new());
        let file = RunStore::of_user().and_then(|store| RunFile::create(&store.path, &header));
        if let Err(error) = &file {
            print_message(&format!("error: the trace is not stored: {error:#}; tracing continues"));
        }
        Self {
            run: Run::new(header),
            file: file.ok(),
            tasks,
            has_names: args.store_names,
            seen: begun.clone(),
            begun,
            held: None,
        }
    }

    /// Removes the file of a trace that could not begin.
    pub(super) fn remove(self) {
        if let Some(path) = self.path() {
            // What cannot be removed reads as a run that was killed.
            let _ = std::fs::remove_file(path);
        }
    }

    /// Returns the file that has all of the trace.
    pub(super) fn path(&self) -> Option<PathBuf> {
        Some(self.file.as_ref()?.path.clone())
    }

    /// Notes a look, at once, and writes the part that is complete.
    pub(super) fn look(&mut self, session: &TracerSession) {
        let now = TraceTotals::read(session, self.has_names);
        self.seen = now.clone();
        let begun_ns = self.held.as_ref().unwrap_or(&self.begun).elapsed_ns;
        if now.elapsed_ns.saturating_sub(begun_ns) < part_ns(now.elapsed_ns) {
            return;
        }
        if let Some(held) = self.held.replace(now) {
            self.write_part(held);
        }
    }

    /// Writes the last parts and the end.
    pub(super) fn end(&mut self, reason: StopReason) {
        let now = self.seen.clone();
        if let Some(held) = self.held.take() {
            let rest_ns = now.elapsed_ns.saturating_sub(held.elapsed_ns);
            if rest_ns >= part_ns(now.elapsed_ns) / 2 {
                self.write_part(held);
            }
        }
        let spent_ns = now.elapsed_ns;
        self.write_part(now);
        let finished = seconds_in_words(SystemTime::now());
        self.write(RunFileLine::End(RunEnd { reason, finished, spent_ns }));
        if let Some(result) = stored::result_of_run(&self.run) {
            self.write(RunFileLine::Result(result));
        }
        self.with_file(RunFile::sync);
    }

    /// Writes the part that ends with this look.
    fn write_part(&mut self, end: TraceTotals) {
        let number = self.run.samples.len() as u32;
        let part = self.begun.part_until(&end, number, self.tasks);
        self.begun = end;
        self.write(RunFileLine::Sample(Sample::Trial(part)));
    }

    fn write(&mut self, line: RunFileLine) {
        self.with_file(|file| file.write(&line));
        self.run.push(line);
    }

    /// Gives up a file that cannot be written any more, with an error message.
    fn with_file(&mut self, act: impl FnOnce(&mut RunFile) -> anyhow::Result<()>) {
        let Some(file) = &mut self.file else { return };
        if let Err(error) = act(file) {
            print_message(&format!(
                "error: the trace is not stored any further: {error:#}; tracing continues"
            ));
            self.file = None;
        }
    }
}

/// Returns the length of a part that ends so long after the beginning, in nanoseconds.
fn part_ns(elapsed_ns: u64) -> u64 {
    (elapsed_ns / PARTS_OF_TIME).max(MIN_PART_NS)
}

/// Returns the plan of a trace: one case, whose parts are its rounds.
fn plan(args: &TraceArgs, tasks: TracedTasks) -> Plan {
    let files = &args.output.files;
    let command = secrets::stored(&args.command, files.anonymous, files.store_command);
    let trace = SwitchTrace { tasks, command, bins_ns: bins_ns() };
    let case = TrialCase { trial: Trial::Switches(trace), cpu: 0, policy: Policy::Other };
    let budget = args.budget.max(Duration::from_nanos(1));
    Plan {
        batching: Batching::of_trials(TrialBatching { trials: 1 }),
        stopping: Stopping {
            precision: 0.0,
            budget_ns: nanoseconds(budget),
            rounds: None,
            confidence: CONFIDENCE,
            fixed_budget: true,
        },
        // Nobody judges the speed of what is traced.
        reference: Reference {
            launch_scatter: Some(SHARED_LAUNCH_SCATTER),
            ..Reference::default()
        },
        ..Plan::from_cases(Experiment::Trace, [case])
    }
}
