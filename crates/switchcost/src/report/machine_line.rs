//! What the machine was like, in one line of a report with the one thing to do about it:
//! `machine: noisy: rustc had 34 % of CPU 1; try --policy fifo`.

use analysis::marked;
use analysis::marked::{MarkedText, SpanRole};
use analysis::noise::{HaltedSamples, NoiseLevel, NoiseVerdict, SharedCore};
use rundata::competing::CompetingTasks;
use rundata::experiment::Experiment;
use rundata::machine::Machine;
use rundata::plan::Plan;
use rundata::ring::Policy;
use rundata::trial::Trial;
use rundata::words;

/// Longest line, in characters.
pub(crate) const MAX_LINE_CHARACTERS: usize = 80;

/// Most characters of a task's name in the line.
const MAX_NAME_CHARACTERS: usize = 16;

/// Names the CPU and the kernel: `AMD EPYC, Linux 6.18`.
pub(crate) fn cpu_and_kernel(machine: &Machine) -> String {
    let cpu = machine.cpu_name().map_or("unknown CPU", String::as_str);
    let kernel = machine.kernel.release.known().map_or("unknown", String::as_str);
    format!("{cpu}, Linux {kernel}")
}

/// Returns the line for a machine that was not quiet; absent for a quiet one.
pub(crate) fn machine_line(
    plan: &Plan,
    machine: &Machine,
    competing: Option<&CompetingTasks>,
    noise: &NoiseVerdict,
) -> Option<MarkedText> {
    if matches!(noise.level, NoiseLevel::Unknown | NoiseLevel::Quiet) {
        return None;
    }
    let MachineDisturbance { cause, advice } =
        MachineDisturbance::find(&MeasuredRun { plan, machine, competing }, noise);
    let level = MarkedText::new(SpanRole::Doubtful, noise.level.in_words());
    let start = marked!["machine: ", level, ": "];
    let whole = marked![&start, &cause, "; ", advice];
    if whole.chars().count() <= MAX_LINE_CHARACTERS {
        return Some(whole);
    }
    let room = MAX_LINE_CHARACTERS - start.chars().count();
    Some(marked![start, shortened(cause, room)])
}

/// The parts of a run that the line is made from, beside the verdict.
struct MeasuredRun<'a> {
    plan: &'a Plan,
    machine: &'a Machine,
    competing: Option<&'a CompetingTasks>,
}

/// The largest disturbance of a run, in words, and what helps against it.
struct MachineDisturbance {
    cause: String,
    advice: &'static str,
}

impl MachineDisturbance {
    /// Finds the largest disturbance: halted samples first, then competing tasks or a shared core,
    /// whichever took the larger share of the time.
    fn find(run: &MeasuredRun, noise: &NoiseVerdict) -> Self {
        if let Some(HaltedSamples { halt, count, samples }) = noise.halted {
            let cause = format!("{} in {count} of {samples} samples", halt.in_words());
            return Self { cause, advice: "measure again" };
        }
        let competing_share = noise.not_alone_share.unwrap_or(0.0);
        let shared_core_share = noise.shared_core.map_or(0.0, |core| core.share);
        let busiest = run.competing.and_then(CompetingTasks::busiest);
        let has_competing = competing_share > 0.1 && competing_share >= shared_core_share;
        if has_competing || busiest.is_some_and(|(_, share)| share > shared_core_share) {
            return Self {
                cause: competing_cause(run, competing_share),
                advice: competing_advice(run),
            };
        }
        if let Some(SharedCore { share, slowdown }) = noise.shared_core {
            let percent = 100.0 * share;
            let cause = format!("core shared {percent:.0} % of the time, {slowdown:.1}x slower");
            return Self { cause, advice: "raise --budget" };
        }
        match noise.reasons.first() {
            Some(reason) => Self { cause: reason.clone(), advice: "see --verbose" },
            None => {
                let cause = "its clock or its load changed".to_string();
                Self { cause, advice: "raise --budget" }
            }
        }
    }
}

/// Names the competing task with the most CPU time: `rustc had 34 % of CPU 1`. Where none is known,
/// says in which share of the slices other tasks ran.
fn competing_cause(run: &MeasuredRun, competing_share: f64) -> String {
    let cpu = words::list(&run.plan.cpus());
    match run.competing.and_then(CompetingTasks::busiest) {
        Some((name, share)) => {
            let name: String = name.chars().take(MAX_NAME_CHARACTERS).collect();
            format!("{name} had {:.0} % of CPU {cpu}", 100.0 * share)
        }
        None => {
            format!("other tasks ran on CPU {cpu} {:.0} % of the time", 100.0 * competing_share)
        }
    }
}

/// Returns what helps against competing tasks. A real-time policy is no advice for a run that had
/// one, for an experiment or parts of `response` that take none, and where no other CPU is left to stop the run from.
fn competing_advice(run: &MeasuredRun) -> &'static str {
    let plan = run.plan;
    let takes_policy = matches!(
        plan.experiment,
        Experiment::Ring | Experiment::Cost | Experiment::Response | Experiment::Explain
    );
    let is_normal = plan.rings().all(|(_, case)| case.policy == Policy::Other);
    let has_policy_trials = plan.trials().any(|(_, case)| {
        !matches!(case.trial, Trial::Load(_) | Trial::Wakeup(_) | Trial::Gaps { .. })
    });
    let has_policy_cases = plan.rings().next().is_some() || has_policy_trials;
    let online = run.machine.cpu.online.known();
    let has_other_cpu = online.is_none_or(|list| list.iter().nth(1).is_some());
    if !has_other_cpu {
        "stop it"
    } else if takes_policy && is_normal && has_policy_cases {
        "try --policy fifo"
    } else {
        "try another CPU"
    }
}

/// Cuts a text that has more than `room` characters.
fn shortened(text: String, room: usize) -> String {
    if text.chars().count() <= room {
        return text;
    }
    let mut cut: String = text.chars().take(room - 3).collect();
    cut.push_str("...");
    cut
}

#[cfg(test)]
mod tests {
    use rundata::competing::{CompetingTask, CpuRole};
    use rundata::ring::HaltCause;
    use rundata::run::Run;
    use rundata::trial::TrialCase;

    use super::*;

    /// Returns a run on CPU 1 whose rings have the policy, beside a task with a third of the CPU.
    fn run(policy: Policy) -> Run {
        let text = include_str!("../../../rundata/tests/fixtures/run-v1.jsonl");
        let mut run = Run::parse(text).expect("the fixture");
        for case in run.header.plan.cases.iter_mut().filter_map(rundata::case::Case::ring_mut) {
            case.policy = policy;
        }
        let task = CompetingTask {
            name: "a-compiler-with-a-long-name".to_string(),
            pid: 812,
            processes: 3,
            kernel: false,
            cpu: 1,
            on: CpuRole::Measured,
            cpu_ns: 330_000_000,
        };
        let tasks = vec![task];
        let elapsed_ns = 1_000_000_000;
        run.competing_tasks =
            Some(CompetingTasks { elapsed_ns, tasks, ..CompetingTasks::default() });
        run
    }

    fn line_of(run: &Run, noise: &NoiseVerdict) -> Option<String> {
        let line = machine_line(
            &run.header.plan,
            &run.header.machine,
            run.competing_tasks.as_ref(),
            noise,
        );
        line.map(String::from)
    }

    fn noise(level: NoiseLevel) -> NoiseVerdict {
        NoiseVerdict { level, ..NoiseVerdict::together([], &[]) }
    }

    #[test]
    fn the_largest_disturbance_is_named_with_what_helps() {
        let competing = NoiseVerdict { not_alone_share: Some(0.6), ..noise(NoiseLevel::Unusable) };
        let line = |run: &Run, noise: &NoiseVerdict| line_of(run, noise).expect("a line");
        let words = line(&run(Policy::Other), &competing);
        let named = "machine: very noisy: a-compiler-with- had 33 % of CPU ";
        assert!(words.starts_with(named), "{words}");
        assert!(words.ends_with("; try --policy fifo"), "{words}");
        // Nobody is told to use the policy that was used.
        let words = line(&run(Policy::Fifo), &competing);
        assert!(words.ends_with("; try another CPU"), "{words}");
        // Nor to use one that is refused: these parts have policies of their own.
        let mut gaps = run(Policy::Other);
        gaps.header.plan.experiment = Experiment::Response;
        let trial = Trial::Gaps { duration_ns: 1 };
        let case = TrialCase { trial, cpu: 1, policy: Policy::Other };
        gaps.header.plan.cases = vec![case.into()];
        let words = line(&gaps, &competing);
        assert!(words.ends_with("; try another CPU"), "{words}");
        let shared_core = Some(SharedCore { share: 0.96, slowdown: 1.7 });
        let shared = NoiseVerdict { shared_core, ..noise(NoiseLevel::Noisy) };
        assert_eq!(
            line(&run(Policy::Other), &shared),
            "machine: noisy: core shared 96 % of the time, 1.7x slower; raise --budget"
        );
        let halted = Some(HaltedSamples { halt: HaltCause::Stopped, count: 1, samples: 96 });
        let stopped = NoiseVerdict { halted, ..competing };
        let words = line(&run(Policy::Other), &stopped);
        assert!(words.contains("a member was stopped by a signal in 1 of 96 samples"), "{words}");
        assert_eq!(line_of(&run(Policy::Other), &noise(NoiseLevel::Quiet)), None);
    }

    #[test]
    fn the_line_fits_a_terminal_whatever_it_says() {
        for halt in HaltCause::ALL {
            let halted = Some(HaltedSamples { halt, count: 4_000, samples: 4_000_000 });
            let noise = NoiseVerdict { halted, ..noise(NoiseLevel::Unusable) };
            let words = line_of(&run(Policy::Other), &noise).expect("a line");
            assert!(words.chars().count() <= MAX_LINE_CHARACTERS, "{words}");
        }
    }
}
