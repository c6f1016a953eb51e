//! Exports of pairs, from whom to whom was switched, for other tools.

use std::collections::BTreeMap;
use std::fmt::Write;

use analysis::program::Price;
use anyhow::Result;

use super::report::{all_pairs, named};
use crate::observe::live::account::{SwitchAccount, TracedTask};
use crate::report::output::csv::{self, known};

/// Returns a table with a row for each pair of threads of which one was in scope.
pub(super) fn pairs_csv(account: &SwitchAccount) -> Result<Vec<u8>> {
    let names = ["from", "from_id", "to", "to_id", "voluntary", "involuntary"];
    let mut rows = Vec::new();
    for pair in all_pairs(account, 1.0, Price::default()) {
        let (voluntary, involuntary) = (pair.voluntary.to_string(), pair.involuntary.to_string());
        let (from_id, to_id) = (known(pair.from_id), known(pair.to_id));
        rows.push(vec![pair.from, from_id, pair.to, to_id, voluntary, involuntary]);
    }
    csv::write(&names, rows)
}

/// Returns folded stacks for flame graphs, as wide as the switches are many: process, thread, kind
/// of switch, who got the CPU.
pub(super) fn folded(account: &SwitchAccount) -> Vec<u8> {
    let mut stacks: BTreeMap<String, u64> = BTreeMap::new();
    for ((prev, next), counts) in &account.pairs {
        let Some(record) = account.task(prev) else { continue };
        if !record.in_scope {
            continue;
        }
        let process = match account.living_thread(record.tgid) {
            Some(thread) => frame(&thread.comm),
            None => frame(&record.name),
        };
        let thread = match prev {
            TracedTask::Thread(key) => frame(&format!("{} ({})", record.name, key.tid)),
            _ => frame(&record.name),
        };
        let next = frame(&named(account, next).name);
        let kinds = [("slept", counts.voluntary), ("could have run on", counts.involuntary)];
        for (kind, count) in kinds {
            *stacks.entry(format!("{process};{thread};{kind};{next}")).or_default() += count;
        }
    }
    let mut text = String::new();
    for (stack, count) in stacks {
        if count > 0 {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{stack} {count}");
        }
    }
    text.into_bytes()
}

/// Returns a name as a frame of a stack: frames are separated by semicolons.
fn frame(text: &str) -> String {
    charts::clean(text).replace(';', ",")
}
