//! Who was switched to whom, for other tools.

use std::collections::BTreeMap;

use analysis::program::Price;
use anyhow::Result;

use super::report::{all_pairs, named};
use crate::observe::live::account::{SwitchAccount, TracedTask};
use crate::report::output::csv::{self, known};

/// A row for each pair of threads of which one was traced.
pub(super) fn pairs_csv(account: &SwitchAccount) -> Result<Vec<u8>> {
    let names = ["from", "from_id", "to", "to_id", "voluntary", "involuntary"];
    let rows = all_pairs(account, 1.0, Price::default()).into_iter().map(|pair| {
        let (voluntary, involuntary) = (pair.voluntary.to_string(), pair.involuntary.to_string());
        vec![pair.from, known(pair.from_id), pair.to, known(pair.to_id), voluntary, involuntary]
    });
    csv::write(&names, rows)
}

/// Folded stacks for flame graphs, as wide as the switches are many: process, thread, kind of
/// switch, who got the CPU.
pub(super) fn folded(account: &SwitchAccount) -> Vec<u8> {
    let frame = |text: &String| charts::clean(text).replace(';', ",");
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for ((prev, next), counts) in &account.pairs {
        let Some(life) = account.life(prev).filter(|life| life.inside) else { continue };
        let process = account.process_of(life.tgid).map_or_else(|| life.name.clone(), |of| of.1);
        let thread = match prev {
            TracedTask::Thread(of) => format!("{} ({})", life.name, of.tid),
            _ => life.name.clone(),
        };
        let next = named(account, next).0;
        for (kind, count) in ["slept", "could have run on"].into_iter().zip(counts) {
            let line = [&process, &thread, &kind.to_string(), &next].map(frame).join(";");
            *lines.entry(line).or_default() += count;
        }
    }
    let lines = lines.into_iter().filter(|(_, count)| *count > 0);
    lines.map(|(line, count)| format!("{line} {count}\n")).collect::<String>().into_bytes()
}
