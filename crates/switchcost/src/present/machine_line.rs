//! What the machine was like, in one line of a report with the one thing to do about it.

use model::experiment::Experiment;
use model::noise::{HaltedSamples, NoiseLevel, NoiseVerdict, SharedCore};
use model::plan::Plan;
use model::ring::Policy;
use model::run::Run;
use model::words;

/// Characters of the line, at most.
pub(crate) const MOST_CHARACTERS: usize = 80;

/// Characters of a task's name in it, at most.
const MOST_OF_A_NAME: usize = 16;

/// Returns the line for a machine that was not quiet: `machine: noisy: rustc had 34 % of CPU 1;
/// stop it, or use --policy fifo`. Absent of a quiet one.
pub(crate) fn machine_line(run: &Run, noise: &NoiseVerdict) -> Option<String> {
    let level = match noise.level {
        NoiseLevel::Unknown | NoiseLevel::Quiet => return None,
        NoiseLevel::Noisy => "noisy",
        NoiseLevel::Unusable => "very noisy",
    };
    let (cause, advice) = cause_and_advice(run, noise);
    let line = format!("machine: {level}: {cause}");
    let whole = format!("{line}; {advice}");
    Some(if whole.chars().count() <= MOST_CHARACTERS { whole } else { shortened(line) })
}

/// The largest disturbance, and what helps against it.
fn cause_and_advice(run: &Run, noise: &NoiseVerdict) -> (String, &'static str) {
    if let Some(HaltedSamples { halt, count, samples }) = noise.halted {
        let cause = format!("{} in {count} of {samples} samples", halt.in_words());
        return (cause, "measure again");
    }
    let plan = &run.header.plan;
    let others = noise.not_alone_share.unwrap_or(0.0);
    let shared = noise.shared_core.map_or(0.0, |core| core.share);
    if others > 0.1 && others >= shared {
        return (who_had_the_cpu(run, others), against_others(plan));
    }
    let busiest = run.company.as_ref().and_then(|company| company.busiest());
    if busiest.is_some_and(|(_, share)| share > shared) {
        return (who_had_the_cpu(run, others), against_others(plan));
    }
    if let Some(SharedCore { share, slowdown }) = noise.shared_core {
        let percent = 100.0 * share;
        let cause =
            format!("core shared {percent:.0} % of the time, {} slower", words::times(slowdown));
        return (cause, "try a longer --budget");
    }
    match noise.reasons.first() {
        Some(reason) => (reason.clone(), "see --verbose"),
        None => ("its clock or its load changed".to_string(), "try a longer --budget"),
    }
}

/// `rustc had 34 % of CPU 1`.
fn who_had_the_cpu(run: &Run, share: f64) -> String {
    let cpu = words::list(&run.header.plan.cpus());
    match run.company.as_ref().and_then(|company| company.busiest()) {
        Some((name, share)) => {
            let name: String = name.chars().take(MOST_OF_A_NAME).collect();
            format!("{name} had {:.0} % of CPU {cpu}", 100.0 * share)
        }
        None => format!("other tasks ran on CPU {cpu} {:.0} % of the time", 100.0 * share),
    }
}

/// What helps against other tasks: a real-time policy is no advice for a run that had one, nor for
/// an experiment that takes none.
fn against_others(plan: &Plan) -> &'static str {
    let takes_policy = matches!(
        plan.experiment,
        Experiment::Ring | Experiment::Cost | Experiment::Response | Experiment::Explain
    );
    let is_normal = plan.rings().all(|(_, case)| case.policy == Policy::Other);
    match takes_policy && is_normal {
        true => "stop it, or use --policy fifo",
        false => "stop it, or use another CPU",
    }
}

fn shortened(line: String) -> String {
    match line.chars().count() <= MOST_CHARACTERS {
        true => line,
        false => line.chars().take(MOST_CHARACTERS - 3).chain("...".chars()).collect(),
    }
}
