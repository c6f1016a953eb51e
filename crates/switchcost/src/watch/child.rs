//! A command that was watched to its end.

use std::ffi::OsString;
use std::time::Duration;

use model::command_use::Used;
use model::program_cost::{Report, WorkingSet};
use model::reading::Reading;
use probe::program::Switches;

use super::known::{Known, Seen};
use super::{Ended, Watcher};

/// Share of the CPU time from which on a command's working set is taken for that of all of it.
const MOSTLY_OWN: f64 = 0.9;

/// All that is known of a command that has ended: its own counts are the kernel's, of all its threads
/// and of the children that it waited for. Its time is the launcher's, from the start to the end.
pub(crate) fn report(
    words: &[OsString],
    pid: u32,
    used: &Used,
    watcher: Option<Watcher>,
) -> Report {
    let mut notices = Vec::new();
    let text = |word: &OsString| word.to_string_lossy().into_owned();
    let usage = &used.usage;
    let most = usage.max_resident_bytes;
    let (voluntary, involuntary) = (usage.voluntary, usage.involuntary);
    let seen = Seen {
        switches: Switches { voluntary, involuntary },
        cpu_ns: Reading::Known(usage.cpu_ns()),
        watched: Duration::from_nanos(used.real_ns),
    };
    let looked = watcher.filter(Watcher::has_looked);
    let (threads, working_set, windows) = match looked {
        Some(mut watcher) => {
            // Its end is no finding here.
            watcher.ended = Ended::No;
            let threads = watcher.count.threads as u64;
            (Some(threads), watcher.working_set(&mut notices), watcher.windows)
        }
        None => {
            notices.push(
                "it ended before its memory was looked at: its working set may be anything up to the greatest resident memory that the kernel saw"
                    .to_string(),
            );
            (None, Reading::Known(WorkingSet::within(most)), Vec::new())
        }
    };
    let (working_set, whose) = of_all(working_set, used);
    notices.insert(0, whose);
    let known = Known {
        pid,
        // Looked at before its exec was through, it may still have this program's name.
        name: words.first().map(text).unwrap_or_default(),
        threads,
        seen,
        working_set,
        resident_bytes: Reading::Known(most),
        windows,
        notices,
    };
    Report { command: Some(words.iter().map(text).collect()), ..known.report() }
}

/// The working set that goes with the switches of a command and its children, and a word on whose it
/// is: only the command's own pages were looked at, and at moments only.
fn of_all(own: Reading<WorkingSet>, used: &Used) -> (Reading<WorkingSet>, String) {
    let most = used.usage.max_resident_bytes;
    let all_ns = used.usage.cpu_ns() as f64;
    let share = used.own_cpu_ns.known().map(|own_ns| *own_ns as f64 / all_ns);
    match share {
        Some(share) if share >= MOSTLY_OWN => {
            let whose = "switches and CPU time are those of the command and of all children that it waited for; nearly all of the CPU time is its own, and so is the working set";
            let set = own.map(|set| WorkingSet { high_bytes: set.high_bytes.max(most), ..set });
            (set, whose.to_string())
        }
        _ => {
            let part = share
                .map_or("an unknown part".to_string(), |share| format!("{:.0} %", 100.0 * share));
            let whose = format!(
                "switches and CPU time are those of the command and of all children that it waited for, and {part} of the CPU time is its own: the working set may be anything up to the greatest resident memory of any of them"
            );
            let high = own.known().map_or(0, |set| set.high_bytes).max(most);
            (Reading::Known(WorkingSet::within(high)), whose)
        }
    }
}

#[cfg(test)]
mod tests {
    use model::command_use::{AtExec, Ending, Orphans, Usage, Used};
    use model::program_cost::WorkingSet;
    use model::reading::Reading;

    use super::of_all;

    fn used(own_cpu_ns: Option<u64>) -> Used {
        Used {
            real_ns: 1,
            ending: Ending::of_status(0),
            usage: Usage { user_ns: 1000, max_resident_bytes: 5000, ..Usage::default() },
            delay: Reading::default(),
            threads: Reading::default(),
            own_cpu_ns: own_cpu_ns.ok_or("refused").into(),
            sampled: Reading::default(),
            migrations: Reading::default(),
            io: Reading::default(),
            orphans: Orphans {
                ended: 0,
                usage: None,
                left_behind: Reading::default(),
                of_unknown_origin: 0,
            },
            at_exec: AtExec { resident_bytes: 0, minor_faults: 0, cpu_ns: 0 },
        }
    }

    #[test]
    fn childrens_switches_do_not_go_with_their_parents_working_set() {
        let own = Reading::Known(WorkingSet { low_bytes: 10, high_bytes: 400 });
        let range = |own_cpu_ns| {
            let (set, whose) = of_all(own.clone(), &used(own_cpu_ns));
            let set = *set.known().unwrap();
            (set.low_bytes, set.high_bytes, whose)
        };
        let (low, high, whose) = range(Some(950));
        assert_eq!((low, high), (10, 5000), "{whose}");
        for (own_cpu_ns, part) in [(Some(120), "12 %"), (None, "unknown part")] {
            let (low, high, whose) = range(own_cpu_ns);
            assert_eq!((low, high), (0, 5000));
            assert!(whose.contains(part), "{whose}");
        }
    }
}
