//! A command that was watched to its end.

use std::ffi::OsString;
use std::time::Duration;

use model::command_use::Usage;
use model::program_cost::{Report, WorkingSet};
use model::reading::Reading;
use probe::program::Switches;

use super::{Ended, Known, Seen, Watcher};

/// All that is known of a command that has ended: its own counts are the kernel's, of all its threads
/// and of the children that it waited for.
pub(crate) fn report(
    words: &[OsString],
    pid: i32,
    watched: Duration,
    used: &Usage,
    watcher: Option<Watcher>,
) -> Report {
    let mut notices = vec![
        "switches and CPU time are those of the command and of all children that it waited for; the working set is its own"
            .to_string(),
    ];
    let text = |word: &OsString| word.to_string_lossy().into_owned();
    let (voluntary, involuntary) = (used.voluntary, used.involuntary);
    let seen = Seen {
        switches: Switches { voluntary, involuntary },
        cpu_ns: Reading::Known(used.cpu_ns()),
        watched,
    };
    let looked = watcher.filter(|watcher| watcher.last_look.is_some());
    let known = match looked {
        Some(mut watcher) => {
            // Its end is no finding here.
            watcher.ended = Ended::No;
            Known {
                pid: pid.unsigned_abs(),
                // Looked at before its exec was through, it may still have this program's name.
                name: words.first().map(text).unwrap_or_default(),
                threads: Some(watcher.count.threads as u64),
                seen,
                working_set: watcher.working_set(&mut notices),
                resident_bytes: watcher.resident_bytes,
                windows: watcher.windows,
                notices,
            }
        }
        None => {
            notices.push(
                "it ended before its memory was looked at: its working set may be anything up to the greatest resident memory that the kernel saw"
                    .to_string(),
            );
            Known {
                pid: pid.unsigned_abs(),
                name: words.first().map(text).unwrap_or_default(),
                threads: None,
                seen,
                working_set: Reading::Known(WorkingSet::within(used.max_resident_bytes)),
                resident_bytes: Reading::Known(used.max_resident_bytes),
                windows: Vec::new(),
                notices,
            }
        }
    };
    Report { command: Some(words.iter().map(text).collect()), ..known.report() }
}
