//! Pieces of the files of /proc, in the forms that proc(5) gives.

use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::str::FromStr;

/// Nanoseconds of a tick in these files: USER_HZ is 100 on every architecture in use but Alpha
/// (`include/asm-generic/param.h`).
const TICK_NS: u64 = 10_000_000;

/// PF_KTHREAD of `include/linux/sched.h`, in field 9 of `stat`: a thread of the kernel.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// A task's `stat` file (proc_pid_stat(5)).
pub(crate) struct StatFile {
    text: String,
    name_end: usize,
}

impl StatFile {
    /// The name in parentheses may itself hold blanks and parentheses: it ends with the last one.
    pub(crate) fn parse(text: impl Into<String>) -> Option<Self> {
        let text = text.into();
        let name_end = text.rfind(')').filter(|end| text[..*end].contains('('))?;
        Some(Self { text, name_end })
    }

    pub(crate) fn name(&self) -> &str {
        let name = self.text[..self.name_end].split_once('(');
        name.map_or("", |(_, name)| name)
    }

    /// A field from 3 on, numbered as in the manual; 3 is the state, one letter.
    pub(crate) fn number<T: FromStr>(&self, field: usize) -> Option<T> {
        self.text[self.name_end + 1..].split_whitespace().nth(field - 3)?.parse().ok()
    }

    /// Field 3.
    pub(crate) fn state(&self) -> Option<char> {
        self.text[self.name_end + 1..].trim_start().chars().next()
    }

    pub(crate) fn is_kernel_thread(&self) -> Option<bool> {
        Some(self.number::<u64>(9)? & KERNEL_THREAD != 0)
    }

    /// The sum of two fields that count ticks, in nanoseconds. In old kernels children's ticks may
    /// be negative.
    pub(crate) fn cpu_ns(&self, [user, system]: [usize; 2]) -> Option<u64> {
        let ticks = |field| Some(self.number::<i64>(field)?.max(0) as u64);
        Some(ticks(user)?.saturating_add(ticks(system)?).saturating_mul(TICK_NS))
    }
}

/// A name may be any bytes (PR_SET_NAME of prctl(2)), also ends of lines, which would make two lines
/// of one wherever it is printed: these become blanks, other control characters nothing.
pub fn one_line(name: &str) -> String {
    name.chars()
        .filter_map(|c| match c {
            '\n' | '\t' | '\r' => Some(' '),
            _ => (!c.is_control()).then_some(c),
        })
        .collect()
}

/// The state of a process, one letter.
pub(crate) fn state_of(pid: i32) -> Option<char> {
    StatFile::parse(fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?.state()
}

/// A file or clock of the kernel that could not be read: which, and why.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UnreadableFile(pub(crate) String);

/// The text of a file, and where it is from.
pub(crate) struct FileText {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl FileText {
    fn lacks(&self, item: &str) -> UnreadableFile {
        UnreadableFile(format!("{} has no readable '{item}'", self.path))
    }

    pub(crate) fn value(&self, item: &str) -> Result<&str, UnreadableFile> {
        value(&self.text, item).ok_or_else(|| self.lacks(item))
    }

    pub(crate) fn number<T: FromStr>(&self, item: &str) -> Result<T, UnreadableFile> {
        self.value(item)?.parse().map_err(|_| self.lacks(item))
    }

    pub(crate) fn bytes(&self, item: &str) -> Result<u64, UnreadableFile> {
        kilobytes(self.value(item)?).ok_or_else(|| self.lacks(item))
    }

    /// What a `stat` file says of `item`.
    pub(crate) fn of_stat<T>(
        &self,
        item: &str,
        of: impl Fn(StatFile) -> Option<T>,
    ) -> Result<T, UnreadableFile> {
        StatFile::parse(self.text.as_str()).and_then(of).ok_or_else(|| self.lacks(item))
    }
}

/// The value of the first line `key: value`.
pub(crate) fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(found, _)| found.trim() == key).map(|(_, value)| value.trim())
}

/// Bytes of a value like `123 kB`.
pub(crate) fn kilobytes(value: &str) -> Option<u64> {
    value.strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Time of all `cpus` together since boot by /proc/stat (proc_stat(5)), in nanoseconds: of tasks,
/// in interrupts, in soft interrupts, stolen. Absent where the file lacks one of the CPUs or the
/// column.
pub(crate) fn cpu_times_ns(text: &str, cpus: &[u32]) -> [Option<u64>; 4] {
    // Behind the name user, nice, system; then idle and iowait.
    [1..4, 6..7, 7..8, 8..9].map(|columns| {
        let mut ticks = 0_u64;
        for cpu in cpus {
            let name = format!("cpu{cpu}");
            let line = text.lines().find(|line| line.split_whitespace().next() == Some(&name))?;
            for field in line.split_whitespace().collect::<Vec<_>>().get(columns.clone())? {
                ticks = ticks.saturating_add(field.parse().ok()?);
            }
        }
        Some(ticks.saturating_mul(TICK_NS))
    })
}

/// The entries of a folder that are ids of tasks. There may be thousands.
pub(crate) fn ids_in(folder: &Path) -> Vec<i32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter(|id| *id > 0).collect()
}

/// The text of a file, with what is not UTF-8 replaced: a task may call itself anything.
pub(crate) fn read_at_most(path: &Path, most_bytes: u64) -> io::Result<String> {
    // In a captured tree a FIFO would be waited for.
    let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    // With room for most files, which are then read at once.
    let mut bytes = Vec::with_capacity(4096);
    file.take(most_bytes).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_is_the_sum_over_the_cpus_asked() {
        let text =
            "cpu  1 1 1 1 1 1 1 99 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\ncpu1 0 0 0 0 0 0 0 5 0 0\n";
        let steal = |text, cpus: &[u32]| cpu_times_ns(text, cpus)[3].map(|ns| ns / TICK_NS);
        assert_eq!(steal(text, &[0]), Some(8));
        assert_eq!(steal(text, &[0, 1]), Some(13));
        assert_eq!(steal(text, &[2]), None);
        assert_eq!(steal("cpu0 1 2 3 4", &[0]), None);
    }
}
