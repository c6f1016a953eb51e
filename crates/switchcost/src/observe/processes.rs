//! The processes of a running program: those that were asked for, by id, by name or by control
//! group, and their children.

use std::fs;
use std::path::Path;
use std::time::Duration;

use probe::command::{CpuClock, cpu_clock_ns};
use probe::one_line;
use probe::processes::{CgroupError, descendants, processes_in_cgroup, processes_named};
use probe::program::{WatchError, WatchedProcess};

use crate::base::failure::usage;
use crate::base::values::{List, each_once, pid};
use crate::observe::live::account::TraceScope;

/// A process, as typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ProcessName {
    Id(i32),
    /// The name of one or several.
    Name(String),
}

/// Parses a list of process ids and names.
pub(crate) fn process_names(text: &str) -> Result<List<ProcessName>, String> {
    let mut names = List::new();
    for word in text.split(',') {
        names.push(process_name(word)?);
    }
    Ok(names)
}

fn process_name(text: &str) -> Result<ProcessName, String> {
    let word = text.trim();
    if word.is_empty() {
        return Err(
            "an empty name (accepted: ids and names of processes, as 812,nginx)".to_string()
        );
    }
    if word.trim_start_matches(['-', '+']).bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(ProcessName::Id(pid(word)?));
    }
    Ok(ProcessName::Name(word.to_string()))
}

/// The processes of a program that is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProcessSet {
    /// The processes that were asked for; never empty.
    pub(crate) pids: Vec<i32>,
    /// Set if all that descends from them is part of the program.
    pub(crate) has_children: bool,
    /// The program's name, from those of its processes.
    pub(crate) name: String,
    /// The option that asks for them: `--pid 812`.
    pub(crate) typed: String,
}

impl ProcessSet {
    /// Finds the running program that was asked for with --pid or --cgroup, if any was.
    ///
    /// # Errors
    /// Fails like [`Self::by_name`] and [`Self::by_cgroup`].
    pub(crate) fn of_options(
        names: Option<&List<ProcessName>>,
        group: Option<&str>,
        has_children: bool,
    ) -> anyhow::Result<Option<Self>> {
        match (names, group) {
            (Some(names), _) => Self::by_name(names, has_children).map(Some),
            (None, Some(group)) => Self::by_cgroup(group, has_children).map(Some),
            (None, None) => Ok(None),
        }
    }

    /// Finds the processes of these ids and names.
    ///
    /// # Errors
    /// A message for the user where one of them is not there, or cannot be watched.
    pub(crate) fn by_name(names: &[ProcessName], has_children: bool) -> anyhow::Result<Self> {
        let (mut pids, mut texts) = (Vec::new(), Vec::new());
        for name in names {
            match name {
                ProcessName::Id(pid) => {
                    check_running(*pid)?;
                    pids.push(*pid);
                    texts.push(pid.to_string());
                }
                ProcessName::Name(name) => {
                    pids.extend(find_named(name)?);
                    texts.push(name.clone());
                }
            }
        }
        let texts = texts.join(",");
        let typed = format!("--pid {}", shell_words::quote(&texts));
        let pids = each_once(pids);
        let name = common_name(&pids);
        Ok(Self { pids, has_children, name, typed })
    }

    /// Finds the processes of a control group and of those below it.
    ///
    /// # Errors
    /// A message for the user where there is no such group, or no process in it.
    pub(crate) fn by_cgroup(group: &str, has_children: bool) -> anyhow::Result<Self> {
        let typed = format!("--cgroup {group}");
        let accepted = "a unit such as nginx.service, or a path below /sys/fs/cgroup; \
             systemd-cgls lists them";
        let mut pids = processes_in_cgroup(Path::new("/"), group).map_err(|error| match error {
            CgroupError::Unknown => usage(format!("{typed}: {error} (accepted: {accepted})")),
            CgroupError::Empty => usage(format!("{typed}: {error}: start the service first")),
        })?;
        pids.retain(|pid| !is_own(*pid));
        if pids.is_empty() {
            return Err(usage(format!("{typed}: there is no process in it but this program")));
        }
        let last = group.trim_end_matches('/').rsplit('/').next().unwrap_or(group);
        Ok(Self { pids, has_children, name: last.to_string(), typed })
    }

    /// Returns the scope of a tracer.
    pub(crate) fn scope(&self) -> TraceScope {
        let ids = self.pids.iter().map(|pid| pid.unsigned_abs()).collect();
        if self.has_children { TraceScope::Families(ids) } else { TraceScope::Processes(ids) }
    }

    /// Returns all processes of the program that live now: those that were asked for come first.
    pub(crate) fn all_pids(&self) -> Vec<i32> {
        let mut pids = self.pids.clone();
        if self.has_children {
            pids.extend(descendants(Path::new("/"), &self.pids));
        }
        pids.retain(|pid| !is_own(*pid));
        pids
    }

    /// Returns the process of the program that uses the most CPU time within a moment, for which
    /// `wait` waits where there are several. None where none has memory that could be watched:
    /// threads of the kernel have none.
    pub(crate) fn busiest(&self, wait: impl FnOnce(Duration)) -> Option<i32> {
        let mut pids = self.all_pids();
        pids.retain(|pid| WatchedProcess::find(Path::new("/"), *pid).is_ok());
        let mut before = Vec::new();
        for pid in pids {
            before.push(CpuUse { pid, ns: cpu_ns(pid) });
        }
        if before.len() > 1 {
            wait(COMPARED_TIME);
        }
        busiest(&before)
    }

    /// Returns the options that ask for the program, as a shell takes them.
    pub(crate) fn arguments(&self) -> String {
        let without = if self.has_children { "" } else { " --no-children" };
        format!("{}{without}", self.typed)
    }
}

/// Processes of which each id, or each name, is told.
const MAX_TOLD: usize = 3;

/// Returns the name of a program in a sentence: `postgres (pid 2075 and 13 children)`.
pub(crate) fn program_in_words(name: &str, pids: &[u32], children: usize) -> String {
    let processes = match pids {
        [] => return name.to_string(),
        [pid] => format!("pid {pid}"),
        pids if pids.len() <= MAX_TOLD => {
            let ids: Vec<String> = pids.iter().map(u32::to_string).collect();
            format!("pids {}", ids.join(", "))
        }
        pids => format!("{} processes", pids.len()),
    };
    match children {
        0 => format!("{name} ({processes})"),
        1 => format!("{name} ({processes} and 1 child)"),
        count => format!("{name} ({processes} and {count} children)"),
    }
}

/// Returns the name of these processes, or their names where they differ.
fn common_name(pids: &[i32]) -> String {
    let names = each_once(pids.iter().filter_map(|pid| read_name(*pid)));
    match &names[..] {
        [] => "program".to_string(),
        names if names.len() <= MAX_TOLD => names.join(", "),
        [first, ..] => format!("{first} and {} others", names.len() - 1),
    }
}

/// Reads the name of a process, of a thread of the kernel too.
fn read_name(pid: i32) -> Option<String> {
    let comm = fs::read(format!("/proc/{pid}/comm")).ok()?;
    Some(one_line(String::from_utf8_lossy(&comm).trim_end_matches('\n')))
}

/// Returns whether a process is this program itself.
fn is_own(pid: i32) -> bool {
    pid.unsigned_abs() == std::process::id()
}

/// Refuses what is no process that runs. A thread of the kernel has switches, if no memory.
fn check_running(pid: i32) -> anyhow::Result<()> {
    match WatchedProcess::find(Path::new("/"), pid) {
        Err(error @ (WatchError::Gone | WatchError::Ended(_))) => {
            Err(usage(format!("--pid {pid}: {error}")))
        }
        _ => Ok(()),
    }
}

fn find_named(name: &str) -> anyhow::Result<Vec<i32>> {
    let mut pids = processes_named(Path::new("/"), name);
    pids.retain(|pid| !is_own(*pid) && check_running(*pid).is_ok());
    if pids.is_empty() {
        return Err(usage(format!(
            "--pid {name}: no process is called '{name}' (ps -e lists those that run; accepted: \
             process ids and names, as 812,nginx; a service: --cgroup nginx.service)"
        )));
    }
    Ok(pids)
}

/// Time over which processes are compared by the CPU time that they use.
const COMPARED_TIME: Duration = Duration::from_millis(100);

/// CPU time that a process had used at some moment.
struct CpuUse {
    pid: i32,
    ns: u64,
}

/// Returns the CPU time that a process has used until now, in nanoseconds; 0 where it has ended.
fn cpu_ns(pid: i32) -> u64 {
    cpu_clock_ns(pid, false, CpuClock::Precise).unwrap_or_default()
}

/// Returns the process that used the most CPU time since `before`; of equals that with the most in
/// its life, then the first.
fn busiest(before: &[CpuUse]) -> Option<i32> {
    let mut most = None;
    for CpuUse { pid, ns } in before {
        let now_ns = cpu_ns(*pid);
        let used = (now_ns.saturating_sub(*ns), now_ns);
        if most.is_none_or(|(most_used, _)| used > most_used) {
            most = Some((used, *pid));
        }
    }
    most.map(|(_, pid)| pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_ids_and_names() {
        let name = |text: &str| ProcessName::Name(text.to_string());
        assert_eq!(process_names("812"), Ok(vec![ProcessName::Id(812)]));
        let several = vec![ProcessName::Id(1), name("nginx"), name("2fast")];
        assert_eq!(process_names("1,nginx, 2fast"), Ok(several));
        for bad in ["0", "-1", "4194304999", "1,0"] {
            let error = process_names(bad).unwrap_err();
            assert!(error.contains("a process id is a whole number from 1 on"), "{bad}: {error}");
        }
        for bad in ["", "1,,2", ","] {
            assert!(process_names(bad).unwrap_err().contains("an empty name"), "{bad}");
        }
    }

    #[test]
    fn programs_are_called_by_their_processes() {
        assert_eq!(program_in_words("postgres", &[2075], 0), "postgres (pid 2075)");
        assert_eq!(program_in_words("postgres", &[2075], 1), "postgres (pid 2075 and 1 child)");
        let text = program_in_words("postgres", &[2075], 13);
        assert_eq!(text, "postgres (pid 2075 and 13 children)");
        assert_eq!(program_in_words("nginx", &[1, 2], 0), "nginx (pids 1, 2)");
        let text = program_in_words("nginx", &[1, 2, 3, 4], 2);
        assert_eq!(text, "nginx (4 processes and 2 children)");
        assert_eq!(program_in_words("machine", &[], 0), "machine");
    }

    #[test]
    fn what_is_not_there_is_told_with_what_is_accepted() {
        let unknown = [ProcessName::Name("no such process".into())];
        let error = ProcessSet::by_name(&unknown, true).unwrap_err().to_string();
        assert!(error.contains("no process is called 'no such process'"), "{error}");
        let error = ProcessSet::by_cgroup("no-such.service", true).unwrap_err().to_string();
        assert!(error.contains("--cgroup no-such.service: there is no such"), "{error}");
    }
}
