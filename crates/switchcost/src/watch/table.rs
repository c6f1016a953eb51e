//! `switchcost cost --pid` and `-- CMD` on the terminal.

use model::reading::Reading;

use super::findings::{ProgramCost, Report};
use crate::terminal::figure;

/// The whole report, ending with a newline.
pub(crate) fn text(Report { seen, program, profile, cost, in_words, .. }: &Report) -> String {
    let threads = match seen.threads {
        Some(1) => ", 1 thread".to_string(),
        Some(threads) => format!(", {threads} threads"),
        None => String::new(),
    };
    let rate = |reading: &Reading<f64>| figure(reading.known().copied());
    let kib = |bytes: u64| figure(bytes as f64 / 1024.0);
    let share = known(&program.cpu_share, |share| format!("{} % of a CPU", figure(100.0 * share)));
    let windows = match seen.windows.len() {
        0 => String::new(),
        windows => format!(" ({windows} windows)"),
    };
    let set = known(&program.working_set, |set| {
        let (low, high) = (kib(set.low_bytes), kib(set.high_bytes));
        format!("{low} to {high} KiB between two switches{windows}")
    });
    let costs =
        known(profile, |profile| format!("{} costs of {}", profile.points.len(), profile.run));
    let mut text = format!(
        "{} (process {}): watched for {} s{threads}\n\n\
         switches      {} voluntary and {} involuntary a second\n\
         CPU time      {share}\n\
         working set   {set}\n\
         cost profile  {costs}\n\n\
         {in_words}\n",
        seen.name,
        seen.pid,
        figure(seen.watched_ns as f64 / 1e9),
        rate(&program.voluntary_per_s),
        rate(&program.involuntary_per_s),
    );
    if let ProgramCost::Estimated { assumptions, .. } = cost {
        text += &format!("assumed: {}\n", assumptions.join("; "));
    }
    text.extend(seen.notices.iter().map(|notice| format!("note: {notice}\n")));
    text
}

fn known<T>(reading: &Reading<T>, words: impl Fn(&T) -> String) -> String {
    match reading {
        Reading::Known(value) => words(value),
        Reading::Unknown { why } => format!("not known: {why}"),
    }
}
