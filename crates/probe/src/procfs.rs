//! Pieces of the files of /proc, in the forms that proc(5) gives.

use std::str::FromStr;

/// Nanoseconds of a tick in these files: USER_HZ is 100 on every architecture in use but Alpha
/// (`include/asm-generic/param.h`).
pub(crate) const TICK_NS: u64 = 10_000_000;

/// PF_KTHREAD of `include/linux/sched.h`, in field 9 of `stat`: a thread of the kernel.
pub(crate) const KERNEL_THREAD: u64 = 0x0020_0000;

/// A task's `stat` file (proc_pid_stat(5)).
pub(crate) struct Stat<'a> {
    pub(crate) name: &'a str,
    behind_name: Vec<&'a str>,
}

impl<'a> Stat<'a> {
    /// The name in parentheses may itself hold blanks and parentheses: it ends with the last one.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let (before, behind_name) = text.rsplit_once(')')?;
        let (_, name) = before.split_once('(')?;
        Some(Self { name, behind_name: behind_name.split_whitespace().collect() })
    }

    /// Field 3, one letter.
    pub(crate) fn state(&self) -> Option<char> {
        self.behind_name.first()?.chars().next()
    }

    /// A field from 4 on, numbered as in the manual.
    pub(crate) fn number<T: FromStr>(&self, field: usize) -> Option<T> {
        self.behind_name.get(field - 3)?.parse().ok()
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

/// The line of one CPU in /proc/stat (proc_stat(5)): its name, then ticks since boot.
pub(crate) fn cpu_line(text: &str, cpu: u32) -> Option<Vec<&str>> {
    let name = format!("cpu{cpu}");
    let line = text.lines().find(|line| line.split_whitespace().next() == Some(&name))?;
    Some(line.split_whitespace().collect())
}
