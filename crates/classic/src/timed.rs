//! getrusage and times (Sloan 1992): a command is started by fork(2) and execve(2), without a
//! search of PATH, and the lines of its start and end go to standard error.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use probe::classic::{
    ChildEnd, ChildTicks, ForkSide, child_ticks, execute, exit_now, fork, local_time, wait_for,
};
use probe::set_parent_death_signal;
use rustix::io::Errno;
use rustix::process::getpid;

use crate::{ProgramCall, failed, perror, print_error};

/// Runs `getrusage program [argument ...]`, which runs a program and prints every field of its
/// getrusage structure (appendix 3).
pub(crate) fn getrusage(call: &ProgramCall) -> crate::ProgramResult {
    let ended = run(call)?;
    for line in getrusage_lines(&ended) {
        print_error(&line);
    }
    Ok(ExitCode::from(ended.code))
}

/// Formats the fields. Names, spaces and order are those of the original.
fn getrusage_lines(ended: &EndedCommand) -> Vec<String> {
    let (time, used) = (&ended.end.usage, &ended.end.usage.0);
    let (user_us, system_us) = (time.user_ns() as i64 / 1000, time.system_ns() as i64 / 1000);
    let fields = [
        ("rtime", ended.real.as_micros() as i64, "usec"),
        ("utime", user_us, "usec"),
        ("stime", system_us, "usec"),
        ("total", system_us + user_us, "usec"),
        ("maxrss", used.ru_maxrss, ""),
        ("ixrss", used.ru_ixrss, ""),
        ("idrss", used.ru_idrss, ""),
        ("isrss", used.ru_isrss, ""),
        ("minflt", used.ru_minflt, ""),
        ("majflt", used.ru_majflt, ""),
        ("nswap", used.ru_nswap, ""),
        ("inblock", used.ru_inblock, ""),
        ("oublock", used.ru_oublock, ""),
        ("msgsnd", used.ru_msgsnd, ""),
        ("msgrcv", used.ru_msgrcv, ""),
        ("nsignals", used.ru_nsignals, ""),
        ("nvcsw", used.ru_nvcsw, ""),
        ("nivcsw", used.ru_nivcsw, ""),
    ];
    let pid = ended.pid;
    fields.map(|(name, value, unit)| format!("{pid}: {name}          {value}{unit}")).to_vec()
}

/// Runs `times program [argument ...]`, which runs a program and prints its times(2), in ticks and
/// in microseconds (appendix 4).
pub(crate) fn times(call: &ProgramCall) -> crate::ProgramResult {
    let ended = run(call)?;
    let (ticks, per_second) = (child_ticks(), rustix::param::clock_ticks_per_second());
    let pid = ended.pid;
    print_error(&format!("{pid}: rtime      {}usec", ended.real.as_micros()));
    for line in times_lines(pid, ticks, per_second) {
        print_error(&line);
    }
    Ok(ExitCode::from(ended.code))
}

fn times_lines(pid: i32, ticks: ChildTicks, per_second: u64) -> Vec<String> {
    let rows = [
        ("utime", ticks.user),
        ("stime", ticks.system),
        ("total", ticks.system + ticks.user),
        ("since", ticks.since),
    ];
    let mut lines = vec![format!("{pid}: tics/sec   {per_second}")];
    for (name, ticks) in rows {
        let us = ticks as f64 / (per_second as f64 / 1e6);
        lines.push(format!("{pid}: {name}      {us:.6}usec ({ticks}tics)"));
    }
    lines
}

/// The exit code for every failure before and in the command's start, and if it was killed.
const FAILED: u8 = 127;

/// A command that has ended.
struct EndedCommand {
    pid: i32,
    real: Duration,
    end: ChildEnd,
    /// The exit code of the command; [`FAILED`] if a signal killed it.
    code: u8,
}

/// Runs the command in the arguments, and prints lines of its start, its end and its exit.
fn run(call: &ProgramCall) -> Result<EndedCommand, ExitCode> {
    if call.args.is_empty() {
        return Err(call.usage("program [argument ...]", FAILED));
    }
    if call.parent.is_some_and(|parent| set_parent_death_signal(parent) != Ok(true)) {
        return Err(call.fail("--parent is an internal option of the sweep", FAILED));
    }
    let (started_at, clock) = (SystemTime::now(), Instant::now());
    let own_pid = getpid().as_raw_pid();
    let pid = match fork().map_err(failed("fork", FAILED))? {
        ForkSide::Child => {
            if call.parent.is_some() && set_parent_death_signal(own_pid) != Ok(true) {
                exit_now(i32::from(FAILED));
            }
            become_command(call);
        }
        ForkSide::Parent(pid) => pid.as_raw_pid(),
    };
    print_error(&format!("{pid}: start      {}", local_text(started_at)));
    let end = wait_for(pid).map_err(failed("wait4", FAILED))?;
    let real = clock.elapsed();
    print_error(&format!("{pid}: stop          {}", local_text(SystemTime::now())));
    let (words, code) = match (end.status & 0x7f, (end.status >> 8) & 0xff) {
        (0, code) => (format!("exit  {code}"), code as u8),
        (signal, _) => (format!("signal {signal}"), FAILED),
    };
    print_error(&format!("{pid}: {words}"));
    Ok(EndedCommand { pid, real, end, code })
}

/// Formats a moment in local time; in seconds since 1970 if that is not known.
fn local_text(moment: SystemTime) -> String {
    let seconds = moment.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let text = i64::try_from(seconds).ok().and_then(local_time);
    text.unwrap_or_else(|| seconds.to_string())
}

/// Makes this process the command; if that fails, prints why and ends it.
fn become_command(call: &ProgramCall) -> ! {
    // The arguments come from an execve: none contains a zero byte.
    let words = call.args.iter().filter_map(|word| CString::new(word.as_bytes()).ok());
    let words: Vec<CString> = words.collect();
    let words: Vec<&CStr> = words.iter().map(CString::as_c_str).collect();
    let errno = match words.first() {
        Some(path) => execute(path, &words),
        None => Errno::NOENT,
    };
    let name = call.args.first().map(OsString::as_os_str).unwrap_or_default();
    perror("execve", errno);
    let hint = exec_hint(name, errno);
    print_error(&format!("{}: '{}' was not run{hint}", call.name, name.to_string_lossy()));
    exit_now(i32::from(FAILED));
}

/// Returns what the user can do about a command that could not be executed, if that is known.
fn exec_hint(name: &OsStr, errno: Errno) -> String {
    let path = Path::new(name);
    match errno {
        Errno::NOENT if !name.is_empty() && !name.as_bytes().contains(&b'/') => {
            let only = ": without a / it is looked for in this folder only, not in PATH";
            match find_in_path(name) {
                Some(file) => format!("{only}; try {}", file.display()),
                None => only.to_string(),
            }
        }
        Errno::ACCESS if path.is_dir() => ": it is a directory".to_string(),
        Errno::ACCESS if path.is_file() => ": it is not executable (chmod +x)".to_string(),
        Errno::NOEXEC => {
            ": it is neither a program for this machine nor a script that begins with #!"
                .to_string()
        }
        _ => String::new(),
    }
}

/// Finds a file of this name in the folders of PATH.
fn find_in_path(name: &OsStr) -> Option<PathBuf> {
    let search = std::env::var_os("PATH").unwrap_or_default();
    let mut files = std::env::split_paths(&search).map(|folder| folder.join(name));
    files.find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use probe::classic::{UsageScope, usage};

    use super::*;

    #[test]
    fn a_sum_of_whole_seconds_is_carried() {
        let mut usage = usage(UsageScope::Own);
        let raw = &mut usage.0;
        (raw.ru_utime.tv_sec, raw.ru_utime.tv_usec) = (1, 400_000);
        (raw.ru_stime.tv_sec, raw.ru_stime.tv_usec) = (0, 600_000);
        let counts = [
            &mut raw.ru_maxrss,
            &mut raw.ru_ixrss,
            &mut raw.ru_idrss,
            &mut raw.ru_isrss,
            &mut raw.ru_minflt,
            &mut raw.ru_majflt,
            &mut raw.ru_nswap,
            &mut raw.ru_inblock,
            &mut raw.ru_oublock,
            &mut raw.ru_msgsnd,
            &mut raw.ru_msgrcv,
            &mut raw.ru_nsignals,
            &mut raw.ru_nvcsw,
            &mut raw.ru_nivcsw,
        ];
        counts.into_iter().zip(1..).for_each(|(count, number)| *count = number);
        let end = ChildEnd { status: 0, usage };
        let ended = EndedCommand { pid: 77, real: Duration::from_micros(5_000_001), end, code: 0 };
        let lines = getrusage_lines(&ended);
        assert_eq!(lines[0], "77: rtime          5000001usec");
        assert_eq!(lines[3], "77: total          2000000usec");
        // Each field under its own name: they are numbered in the original's order.
        for (index, line) in lines.iter().skip(4).enumerate() {
            assert!(line.ends_with(&format!("          {}", index + 1)), "{line}");
        }
    }

    #[test]
    fn ticks_become_microseconds_by_the_machines_own_rate() {
        let ticks = ChildTicks { user: 3, system: 5, since: 1_000_000 };
        let expected = [
            "7: tics/sec   250",
            "7: utime      12000.000000usec (3tics)",
            "7: stime      20000.000000usec (5tics)",
            "7: total      32000.000000usec (8tics)",
            "7: since      4000000000.000000usec (1000000tics)",
        ];
        assert_eq!(times_lines(7, ticks, 250), expected);
    }
}
