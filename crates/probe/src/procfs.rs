//! Parts of the files of /proc, in the formats of proc(5).

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::str::FromStr;

/// Nanoseconds of a tick in these files: USER_HZ is 100 on every architecture in use but Alpha
/// (`include/asm-generic/param.h`).
const TICK_NS: u64 = 10_000_000;

/// Upper bound of the size of /proc/stat, with thousands of CPUs and interrupts.
pub(crate) const MAX_STAT_BYTES: u64 = 4 << 20;

/// PF_KTHREAD of `include/linux/sched.h`, in field 9 of `stat`: a thread of the kernel.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// Text of a task's `stat` file (proc_pid_stat(5)).
pub(crate) struct StatFile {
    text: String,
    name_end: usize,
}

impl StatFile {
    /// Finds the name, which is in parentheses and may itself have blanks and parentheses: it ends
    /// at the last one.
    pub(crate) fn parse(text: impl Into<String>) -> Option<Self> {
        let text = text.into();
        let name_end = text.rfind(')').filter(|end| text[..*end].contains('('))?;
        Some(Self { text, name_end })
    }

    pub(crate) fn name(&self) -> &str {
        let name = self.text[..self.name_end].split_once('(');
        name.map_or("", |(_, name)| name)
    }

    /// Parses a field from 3 on, numbered as in the manual. Field 3 is the state, a letter.
    pub(crate) fn number<T: FromStr>(&self, field: usize) -> Option<T> {
        self.text[self.name_end + 1..].split_whitespace().nth(field - 3)?.parse().ok()
    }

    /// Returns field 3, the state.
    pub(crate) fn state(&self) -> Option<char> {
        self.text[self.name_end + 1..].trim_start().chars().next()
    }

    pub(crate) fn is_kernel_thread(&self) -> Option<bool> {
        Some(self.number::<u64>(9)? & KERNEL_THREAD != 0)
    }

    /// Sums two fields that count ticks, in nanoseconds. In old kernels children's ticks may be
    /// negative.
    pub(crate) fn cpu_ns(&self, [user, system]: [usize; 2]) -> Option<u64> {
        let ticks = self.ticks(user)?.saturating_add(self.ticks(system)?);
        Some(ticks.saturating_mul(TICK_NS))
    }

    fn ticks(&self, field: usize) -> Option<u64> {
        Some(self.number::<i64>(field)?.max(0) as u64)
    }
}

/// Returns a task's name in one line. It may have any bytes (PR_SET_NAME of prctl(2)): ends of
/// lines and tabs become blanks, other control characters are removed.
pub fn one_line(name: &str) -> String {
    let mut line = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            '\n' | '\t' | '\r' => line.push(' '),
            _ if c.is_control() => {}
            _ => line.push(c),
        }
    }
    line
}

/// Reads the state of a process, a letter.
pub(crate) fn state_of(pid: i32) -> Option<char> {
    StatFile::parse(fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?.state()
}

/// Error of a file or clock of the kernel that could not be read: which one, and why.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UnreadableFile(pub(crate) String);

/// Text of a file, and the file's path.
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

    /// Reads a field of a `stat` file; `item` is its name in the error.
    pub(crate) fn stat_field<T>(
        &self,
        item: &str,
        read: impl Fn(StatFile) -> Option<T>,
    ) -> Result<T, UnreadableFile> {
        StatFile::parse(self.text.as_str()).and_then(read).ok_or_else(|| self.lacks(item))
    }
}

/// Returns the value of the first line `key: value`.
pub(crate) fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(found, _)| found.trim() == key).map(|(_, value)| value.trim())
}

/// Parses a value like `123 kB`; returns bytes.
pub(crate) fn kilobytes(value: &str) -> Option<u64> {
    value.strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Sums the times of some CPUs since boot by the text of /proc/stat (proc_stat(5)), in nanoseconds:
/// in tasks, in interrupts, in soft interrupts, stolen. `None` if the file lacks a CPU or the
/// column.
pub(crate) fn cpu_times_ns(text: &str, cpus: &[u32]) -> [Option<u64>; 4] {
    // Column 0 is the name; 1 to 3 are user, nice and system; 4 and 5 are idle and iowait.
    [1..4, 6..7, 7..8, 8..9].map(|columns| sum_columns_ns(text, cpus, columns))
}

/// Returns the time since boot that each CPU was idle, by /proc/stat below `root`, in nanoseconds; in
/// steps of the kernel's 10 ms. Empty if the file cannot be read.
pub fn idle_ns_by_cpu(root: &Path) -> BTreeMap<u32, u64> {
    let text = read_at_most(&root.join("proc/stat"), MAX_STAT_BYTES).unwrap_or_default();
    let mut idle = BTreeMap::new();
    for line in text.lines() {
        let Some((name, times)) = line.split_once(' ') else { continue };
        let Some(Ok(cpu)) = name.strip_prefix("cpu").map(str::parse) else { continue };
        let mut ticks = 0_u64;
        for (column, field) in times.split_whitespace().enumerate() {
            // user, nice and system; then idle and iowait; then the interrupts.
            if matches!(column, 3..5) {
                ticks = ticks.saturating_add(field.parse().unwrap_or(0));
            }
        }
        idle.insert(cpu, ticks.saturating_mul(TICK_NS));
    }
    idle
}

/// Sums some columns of /proc/stat over some CPUs, in nanoseconds.
fn sum_columns_ns(text: &str, cpus: &[u32], columns: Range<usize>) -> Option<u64> {
    let mut ticks = 0_u64;
    for cpu in cpus {
        let name = format!("cpu{cpu}");
        let line = text.lines().find(|line| line.split_whitespace().next() == Some(&name))?;
        let fields: Vec<&str> = line.split_whitespace().collect();
        for field in fields.get(columns.clone())? {
            ticks = ticks.saturating_add(field.parse().ok()?);
        }
    }
    Some(ticks.saturating_mul(TICK_NS))
}

/// Lists the entries of a folder that are ids of tasks. There may be thousands.
pub(crate) fn ids_in(folder: &Path) -> Vec<i32> {
    let mut ids = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_name().to_str().map(str::parse) {
            Some(Ok(id)) if id > 0 => ids.push(id),
            _ => {}
        }
    }
    ids
}

/// Reads the text of a file, with bytes replaced that are not UTF-8: a task may have any name.
pub(crate) fn read_at_most(path: &Path, most_bytes: u64) -> io::Result<String> {
    // Without O_NONBLOCK a FIFO in a captured tree would be waited for.
    let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    // Most files fit, and are then read at once.
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

    #[test]
    fn a_cpu_is_idle_with_and_without_a_disk_at_work() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(idle_ns_by_cpu(root.path()), BTreeMap::new());
        std::fs::create_dir(root.path().join("proc")).unwrap();
        let text = "cpu  9 9 9\ncpu0 1 2 4 80 90 8 16 99 0 0\ncpu11 5 0 0 0\nintr 1 2\n";
        std::fs::write(root.path().join("proc/stat"), text).unwrap();
        let expected = BTreeMap::from([(0, 170 * TICK_NS), (11, 0)]);
        assert_eq!(idle_ns_by_cpu(root.path()), expected);
    }
}
