//! getrusage and times (Sloan 1992): a command is started by fork(2) and execve(2), without a
//! search of PATH, and the lines of its start and end go to standard error.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use probe::classic::{
    ChildEnd, ChildTicks, ForkSide, child_ticks, execute, exit_now, fork, local_time, wait_for,
};
use probe::set_parent_death_signal;
use rustix::io::Errno;
use rustix::process::getpid;

use crate::{Call, failed, perror, say};

/// `getrusage program [argument ...]`: runs a program and prints every field of its getrusage
/// structure (appendix 3).
pub(crate) fn getrusage(call: &Call) -> crate::Ended {
    let ended = run(call)?;
    getrusage_lines(&ended).iter().for_each(|line| say(line));
    Ok(ExitCode::from(ended.code))
}

/// Names, spaces and order are the original's.
fn getrusage_lines(ended: &Ended) -> Vec<String> {
    let (time, used) = (&ended.end.usage, &ended.end.usage.0);
    let (user_us, system_us) = (time.user_ns() as i64 / 1000, time.system_ns() as i64 / 1000);
    let all = [
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
    let line = |(name, value, unit)| format!("{}: {name}          {value}{unit}", ended.pid);
    all.map(line).to_vec()
}

/// `times program [argument ...]`: runs a program and prints what times(2) says of it, in ticks and
/// converted (appendix 4).
pub(crate) fn times(call: &Call) -> crate::Ended {
    let ended = run(call)?;
    let (ticks, per_second) = (child_ticks(), rustix::param::clock_ticks_per_second());
    let pid = ended.pid;
    say(&format!("{pid}: rtime      {}usec", ended.real.as_micros()));
    times_lines(pid, ticks, per_second).iter().for_each(|line| say(line));
    Ok(ExitCode::from(ended.code))
}

fn times_lines(pid: i32, ticks: ChildTicks, per_second: u64) -> Vec<String> {
    let rows = [
        ("utime", ticks.user),
        ("stime", ticks.system),
        ("total", ticks.system + ticks.user),
        ("since", ticks.since),
    ];
    let row = |(name, ticks): (&str, i64)| {
        let us = ticks as f64 / (per_second as f64 / 1e6);
        format!("{pid}: {name}      {us:.6}usec ({ticks}tics)")
    };
    let first = format!("{pid}: tics/sec   {per_second}");
    std::iter::once(first).chain(rows.into_iter().map(row)).collect()
}

/// The exit code for all that goes wrong before and in the command's start, and for its being
/// killed.
const FAILED: u8 = 127;

/// A command that has ended.
struct Ended {
    pid: i32,
    real: Duration,
    end: ChildEnd,
    /// The command's own; that a signal ended it is no code of its own.
    code: u8,
}

/// Runs the command that the arguments are, and tells of its start, its end and its exit.
fn run(call: &Call) -> Result<Ended, ExitCode> {
    if call.args.is_empty() {
        return Err(call.usage("program [argument ...]", FAILED));
    }
    if call.parent.is_some_and(|parent| set_parent_death_signal(parent) != Ok(true)) {
        return Err(call.fail("--parent is an internal option of the sweep", FAILED));
    }
    let (started_at, clock) = (SystemTime::now(), Instant::now());
    let own = getpid().as_raw_pid();
    let pid = match fork().map_err(failed("fork", FAILED))? {
        ForkSide::Child => {
            if call.parent.is_some() && set_parent_death_signal(own) != Ok(true) {
                exit_now(i32::from(FAILED));
            }
            become_command(call);
        }
        ForkSide::Parent(pid) => pid.as_raw_pid(),
    };
    say(&format!("{pid}: start      {}", local(started_at)));
    let end = wait_for(pid).map_err(failed("wait4", FAILED))?;
    let real = clock.elapsed();
    say(&format!("{pid}: stop          {}", local(SystemTime::now())));
    let (words, code) = match (end.status & 0x7f, (end.status >> 8) & 0xff) {
        (0, code) => (format!("exit  {code}"), code as u8),
        (signal, _) => (format!("signal {signal}"), FAILED),
    };
    say(&format!("{pid}: {words}"));
    Ok(Ended { pid, real, end, code })
}

fn local(moment: SystemTime) -> String {
    let seconds = moment.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    i64::try_from(seconds).ok().and_then(local_time).unwrap_or_else(|| seconds.to_string())
}

/// Becomes the command.
fn become_command(call: &Call) -> ! {
    // Arguments come from an execve: none has a zero in it.
    let words = call.args.iter().filter_map(|word| CString::new(word.as_bytes()).ok());
    let words: Vec<CString> = words.collect();
    let words: Vec<&CStr> = words.iter().map(CString::as_c_str).collect();
    let errno = words.first().map_or(Errno::NOENT, |path| execute(path, &words));
    let name = call.args.first().map(OsString::as_os_str).unwrap_or_default();
    perror("execve", errno);
    let hint = hint(name, errno);
    say(&format!("{}: '{}' was not run{hint}", call.name, name.to_string_lossy()));
    exit_now(i32::from(FAILED));
}

/// What to do about it, as far as it is known.
fn hint(name: &OsStr, errno: Errno) -> String {
    let elsewhere = || {
        let search = std::env::var_os("PATH").unwrap_or_default();
        let mut folders = std::env::split_paths(&search);
        folders.find_map(|folder| Some(folder.join(name)).filter(|file| file.is_file()))
    };
    let path = Path::new(name);
    match errno {
        Errno::NOENT if !name.is_empty() && !name.as_bytes().contains(&b'/') => {
            let only = ": without a / it is looked for in this folder only, not in PATH";
            elsewhere().map_or(only.to_string(), |file| format!("{only}; try {}", file.display()))
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
        let ended = Ended { pid: 77, real: Duration::from_micros(5_000_001), end, code: 0 };
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
