//! What the machine was like, in one line of a report with the one thing to do about it.

use analysis::marked;
use analysis::marked::{MarkedText, SpanRole};
use analysis::noise::{HaltedSamples, NoiseLevel, NoiseVerdict, SharedCore};
use rundata::competing::CompetingTasks;
use rundata::experiment::Experiment;
use rundata::machine::Machine;
use rundata::plan::Plan;
use rundata::ring::Policy;
use rundata::words;

/// Characters of the line, at most.
pub(crate) const MOST_CHARACTERS: usize = 80;

/// Characters of a task's name in it, at most.
const MOST_OF_A_NAME: usize = 16;

/// Names the CPU and the kernel: `AMD EPYC, Linux 6.18`.
pub(crate) fn cpu_and_kernel(machine: &Machine) -> String {
    let cpu = machine.cpu_name().map_or("unknown CPU".to_string(), Clone::clone);
    let kernel = machine.kernel.release.known().map_or("unknown", String::as_str);
    format!("{cpu}, Linux {kernel}")
}

/// Returns the line for a machine that was not quiet: `machine: noisy: rustc had 34 % of CPU 1;
/// try --policy fifo`. Absent of a quiet one.
pub(crate) fn machine_line(
    plan: &Plan,
    machine: &Machine,
    company: Option<&CompetingTasks>,
    noise: &NoiseVerdict,
) -> Option<MarkedText> {
    let run = MeasuredRun { plan, machine, company };
    if matches!(noise.level, NoiseLevel::Unknown | NoiseLevel::Quiet) {
        return None;
    }
    let (cause, advice) = cause_and_advice(&run, noise);
    let level = MarkedText::new(SpanRole::Doubtful, noise.level.in_words());
    let start = marked!["machine: ", level, ": "];
    let whole = marked![&start, &cause, "; ", advice];
    if whole.chars().count() <= MOST_CHARACTERS {
        return Some(whole);
    }
    let room = MOST_CHARACTERS - start.chars().count();
    Some(marked![start, shortened(cause, room)])
}

/// What of a run the line is made of, beside the verdict.
struct MeasuredRun<'a> {
    plan: &'a Plan,
    machine: &'a Machine,
    company: Option<&'a CompetingTasks>,
}

/// The largest disturbance, and what helps against it.
fn cause_and_advice(run: &MeasuredRun, noise: &NoiseVerdict) -> (String, &'static str) {
    if let Some(HaltedSamples { halt, count, samples }) = noise.halted {
        let cause = format!("{} in {count} of {samples} samples", halt.in_words());
        return (cause, "measure again");
    }
    let others = noise.not_alone_share.unwrap_or(0.0);
    let shared = noise.shared_core.map_or(0.0, |core| core.share);
    if others > 0.1 && others >= shared {
        return (who_had_the_cpu(run, others), against_others(run));
    }
    let busiest = run.company.and_then(|company| company.busiest());
    if busiest.is_some_and(|(_, share)| share > shared) {
        return (who_had_the_cpu(run, others), against_others(run));
    }
    if let Some(SharedCore { share, slowdown }) = noise.shared_core {
        let percent = 100.0 * share;
        let cause = format!("core shared {percent:.0} % of the time, {slowdown:.1}x slower");
        return (cause, "raise --budget");
    }
    match noise.reasons.first() {
        Some(reason) => (reason.clone(), "see --verbose"),
        None => ("its clock or its load changed".to_string(), "raise --budget"),
    }
}

/// `rustc had 34 % of CPU 1`.
fn who_had_the_cpu(run: &MeasuredRun, share: f64) -> String {
    let cpu = words::list(&run.plan.cpus());
    match run.company.and_then(|company| company.busiest()) {
        Some((name, share)) => {
            let name: String = name.chars().take(MOST_OF_A_NAME).collect();
            format!("{name} had {:.0} % of CPU {cpu}", 100.0 * share)
        }
        None => format!("other tasks ran on CPU {cpu} {:.0} % of the time", 100.0 * share),
    }
}

/// What helps against other tasks. A real-time policy is no advice for a run that had one, for an
/// experiment that takes none, and where no other CPU is left to watch from.
fn against_others(run: &MeasuredRun) -> &'static str {
    let plan = run.plan;
    let takes_policy = matches!(
        plan.experiment,
        Experiment::Ring | Experiment::Cost | Experiment::Response | Experiment::Explain
    );
    let is_normal = plan.rings().all(|(_, case)| case.policy == Policy::Other);
    let online = run.machine.cpu.online.known();
    let has_other_cpu = online.is_none_or(|list| list.iter().nth(1).is_some());
    match (has_other_cpu, takes_policy && is_normal) {
        (true, true) => "try --policy fifo",
        (true, false) => "try another CPU",
        (false, _) => "stop it",
    }
}

/// Cuts a text that has more than `room` characters.
fn shortened(text: String, room: usize) -> String {
    if text.chars().count() <= room {
        return text;
    }
    text.chars().take(room - 3).chain("...".chars()).collect()
}

#[cfg(test)]
mod tests {
    use rundata::competing::{CompetingTask, CpuRole};
    use rundata::ring::HaltCause;
    use rundata::run::Run;

    use super::*;

    /// A run on CPU 1 whose rings have this policy, beside a task that had a third of the CPU.
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
        run.company = Some(CompetingTasks { elapsed_ns, tasks, ..CompetingTasks::default() });
        run
    }

    fn line_of(run: &Run, noise: &NoiseVerdict) -> Option<String> {
        let line = machine_line(&run.header.plan, &run.header.machine, run.company.as_ref(), noise);
        line.map(String::from)
    }

    fn noise(level: NoiseLevel) -> NoiseVerdict {
        NoiseVerdict { level, ..NoiseVerdict::together([], &[]) }
    }

    #[test]
    fn the_largest_disturbance_is_named_with_what_helps() {
        let others = NoiseVerdict { not_alone_share: Some(0.6), ..noise(NoiseLevel::Unusable) };
        let line = |run: &Run, noise: &NoiseVerdict| line_of(run, noise).expect("a line");
        let words = line(&run(Policy::Other), &others);
        let named = "machine: very noisy: a-compiler-with- had 33 % of CPU ";
        assert!(words.starts_with(named), "{words}");
        assert!(words.ends_with("; try --policy fifo"), "{words}");
        // Nobody is told to use the policy that was used.
        let words = line(&run(Policy::Fifo), &others);
        assert!(words.ends_with("; try another CPU"), "{words}");
        let shared_core = Some(SharedCore { share: 0.96, slowdown: 1.7 });
        let shared = NoiseVerdict { shared_core, ..noise(NoiseLevel::Noisy) };
        assert_eq!(
            line(&run(Policy::Other), &shared),
            "machine: noisy: core shared 96 % of the time, 1.7x slower; raise --budget"
        );
        let halted = Some(HaltedSamples { halt: HaltCause::Stopped, count: 1, samples: 96 });
        let stopped = NoiseVerdict { halted, ..others };
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
            assert!(words.chars().count() <= MOST_CHARACTERS, "{words}");
        }
    }
}
