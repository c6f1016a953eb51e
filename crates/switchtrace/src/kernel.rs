//! Where the running kernel keeps what the programs read.

use crate::btf::{Btf, Kind};
use crate::error::Error;
use std::fs;
use std::path::Path;

/// Byte offsets in `struct task_struct`. `None`: this kernel has no such field.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub(crate) pid: i16,
    pub(crate) tgid: i16,
    pub(crate) start_time: i16,
    pub(crate) sum_exec_runtime: i16,
    pub(crate) nvcsw: i16,
    pub(crate) nivcsw: i16,
    pub(crate) migrations: i16,
    /// Kernels with neither CONFIG_SCHEDSTATS nor CONFIG_TASK_DELAY_ACCT have none.
    pub(crate) run_delay: Option<i16>,
    pub(crate) cpu: i16,
    pub(crate) state: i16,
    pub(crate) prio: i16,
    pub(crate) comm: i16,
    pub(crate) parent: i16,
}

/// Which argument of `sched_switch` is which, in the order of the kernel.
#[derive(Clone, Debug)]
pub(crate) struct SwitchArguments {
    pub(crate) preempt: i16,
    pub(crate) prev: i16,
    pub(crate) next: i16,
    /// Linux 5.18; before, the state is read from the task, which may have been woken meanwhile.
    pub(crate) state: Option<i16>,
}

/// How a thread in sched_yield(2) is told: a field of its saved registers that has the call's
/// number.
#[derive(Clone, Debug)]
pub(crate) struct YieldSign {
    pub(crate) offset: i16,
    pub(crate) is_64_bit: bool,
    pub(crate) number: i32,
}

/// All of it.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    pub(crate) task: Task,
    pub(crate) switch: SwitchArguments,
    /// `None`: yields count as preemptions.
    pub(crate) yields: Option<YieldSign>,
    /// The ids that programs attach to.
    pub(crate) ids: Ids,
}

#[derive(Clone, Debug)]
pub(crate) struct Ids {
    pub(crate) switch: u32,
    pub(crate) migrate: u32,
    pub(crate) exec: u32,
    pub(crate) fork: u32,
    pub(crate) wakeup: u32,
    pub(crate) wakeup_new: u32,
    pub(crate) task_iterator: u32,
}

impl Kernel {
    /// That of the file system at `root` (`/`).
    pub(crate) fn read(root: &Path) -> Result<Self, Error> {
        let path = root.join("sys/kernel/btf/vmlinux");
        let data = fs::read(&path).map_err(|source| Error::NoBtf { path, source })?;
        Self::of_types(data)
    }

    pub(crate) fn of_types(data: Vec<u8>) -> Result<Self, Error> {
        let btf = Btf::parse(data).ok_or_else(|| Error::NotInBtf("readable types".into()))?;
        Self::of(&btf)
    }

    fn of(btf: &Btf) -> Result<Self, Error> {
        let id = |name| tracepoint(btf, name).map(|(id, _)| id);
        let iterator = btf.find(Kind::Function, "bpf_iter_task");
        let (switch, arguments) = tracepoint(btf, "sched_switch")?;
        Ok(Self {
            task: task(btf)?,
            switch: switch_arguments(&arguments).ok_or_else(|| {
                Error::NotInBtf("arguments of sched_switch that are known".into())
            })?,
            yields: yield_sign(btf),
            ids: Ids {
                switch,
                migrate: id("sched_migrate_task")?,
                exec: id("sched_process_exec")?,
                fork: id("sched_process_fork")?,
                wakeup: id("sched_wakeup")?,
                wakeup_new: id("sched_wakeup_new")?,
                task_iterator: iterator
                    .ok_or_else(|| Error::NotInBtf("iterator of tasks (Linux 5.8)".into()))?,
            },
        })
    }
}

fn tracepoint(btf: &Btf, name: &str) -> Result<(u32, Vec<bool>), Error> {
    btf.tracepoint_arguments(name).ok_or_else(|| Error::NotInBtf(format!("tracepoint {name}")))
}

fn task(btf: &Btf) -> Result<Task, Error> {
    let either = |paths: &[&str]| {
        let found = paths.iter().find_map(|path| btf.offset("task_struct", path));
        found.ok_or_else(|| Error::NotInBtf(format!("task_struct.{}", paths.join(" or "))))
    };
    Ok(Task {
        pid: either(&["pid"])?,
        tgid: either(&["tgid"])?,
        start_time: either(&["start_time"])?,
        sum_exec_runtime: either(&["se.sum_exec_runtime"])?,
        nvcsw: either(&["nvcsw"])?,
        nivcsw: either(&["nivcsw"])?,
        migrations: either(&["se.nr_migrations"])?,
        run_delay: btf.offset("task_struct", "sched_info.run_delay"),
        // It moved in 5.16.
        cpu: either(&["thread_info.cpu", "cpu"])?,
        // It was renamed in 5.14.
        state: either(&["__state", "state"])?,
        prio: either(&["prio"])?,
        comm: either(&["comm"])?,
        parent: either(&["real_parent"])?,
    })
}

/// (bool preempt, struct task_struct *prev, *next, unsigned int prev_state): since 5.18 at the end,
/// in its first releases second.
fn switch_arguments(is_pointer: &[bool]) -> Option<SwitchArguments> {
    let mut tasks = (0..is_pointer.len()).filter(|at| is_pointer[*at]);
    let (prev, next) = (tasks.next()?, tasks.next()?);
    let mut numbers = (0..is_pointer.len()).filter(|at| !is_pointer[*at]);
    let (preempt, state) = (numbers.next()?, numbers.next());
    let bytes = |at: usize| 8 * at as i16;
    Some(SwitchArguments {
        preempt: bytes(preempt),
        prev: bytes(prev),
        next: bytes(next),
        state: state.map(bytes),
    })
}

fn yield_sign(btf: &Btf) -> Option<YieldSign> {
    // The helper that finds the registers: Linux 5.15.
    btf.find(Kind::Function, "bpf_task_pt_regs")?;
    let number = i32::try_from(libc::SYS_sched_yield).ok()?;
    let field = |name, is_64_bit| {
        btf.offset("pt_regs", name).map(|offset| YieldSign { offset, is_64_bit, number })
    };
    if cfg!(target_arch = "x86_64") { field("orig_ax", true) } else { field("syscallno", false) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_of_all_kernels() {
        let found = |is_pointer: &[bool]| {
            switch_arguments(is_pointer).map(|found| (found.prev, found.next, found.state))
        };
        assert_eq!(found(&[false, true, true]), Some((8, 16, None)));
        assert_eq!(found(&[false, true, true, false]), Some((8, 16, Some(24))));
        assert_eq!(found(&[false, false, true, true]), Some((16, 24, Some(8))));
        assert_eq!(found(&[false, true]), None);
        assert_eq!(found(&[]), None);
    }

    #[test]
    fn a_kernel_without_types_is_named() {
        let root = tempfile::tempdir().unwrap();
        let said = Kernel::read(root.path()).unwrap_err().to_string();
        assert!(said.contains("sys/kernel/btf/vmlinux") && said.contains("CONFIG_DEBUG_INFO_BTF"));
        let place = root.path().join("sys/kernel/btf");
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join("vmlinux"), "no types").unwrap();
        assert!(matches!(Kernel::read(root.path()), Err(Error::NotInBtf(_))));
    }
}
