//! Signals between this program and one that it started.

use crate::sys;

/// Hands a signal on to a process; one that is gone needs none.
pub fn hand_on(pid: u32, signal: i32) {
    // Above all 0, which would mean this process's whole group.
    if let Some(pid) = i32::try_from(pid).ok().filter(|pid| *pid > 0) {
        sys::send_signal(pid, signal);
    }
}

/// Whether the calling process ignores a signal, as nohup(1) has it. Signals that are caught are not
/// ignored by what it starts, those that are ignored are.
pub fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    ignores(&status, signal).unwrap_or(false)
}

fn ignores(status: &str, signal: i32) -> Option<bool> {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    let mask = u64::from_str_radix(mask.trim(), 16).ok()?;
    let bit = u32::try_from(signal).ok()?.checked_sub(1)?;
    Some(mask.checked_shr(bit)? & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_the_bits_of_the_mask() {
        // nohup: SIGHUP (1) alone; sh ... &: SIGINT (2) and SIGQUIT (3).
        let status = |mask: &str| format!("Name:\tx\nSigBlk:\t00000000000000ff\nSigIgn:\t{mask}\n");
        let of = |mask: &str| [1, 2, 3, 15].map(|signal| ignores(&status(mask), signal));
        let told = |all: [bool; 4]| all.map(Some);
        assert_eq!(of("0000000000000001"), told([true, false, false, false]));
        assert_eq!(of("0000000000000006"), told([false, true, true, false]));
        assert_eq!(of("0000000000000000"), told([false; 4]));
        assert_eq!(ignores("Name:\tx\n", 1), None);
        assert_eq!(ignores(&status("1"), 0), None);
    }
}
