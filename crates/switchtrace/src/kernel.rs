//! The layout of the running kernel, read from its BTF: offsets of fields, arguments of
//! tracepoints, ids to attach to. They differ from kernel to kernel:
//!
//! ```text
//! task_struct.state      renamed to __state in Linux 5.14
//! task_struct.cpu        moved to task_struct.thread_info.cpu in 5.16
//! sched_switch           (preempt, prev, next); prev_state second in 5.18, then last
//! ```
//!
//! A program that clang compiled would carry relocations for them (CO-RE), which a loader resolves.
//! Here the programs are written after the offsets are known, so there is nothing to relocate.

use crate::btf::{Btf, TypeKind};
use crate::error::Error;
use std::fs;
use std::path::Path;

/// Byte offsets in `struct task_struct`. `None`: this kernel has no such field.
#[derive(Clone, Debug)]
pub(crate) struct TaskOffsets {
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
    pub(crate) exit_state: i16,
    pub(crate) prio: i16,
    pub(crate) comm: i16,
    pub(crate) parent: i16,
}

/// Byte offsets of the arguments of `sched_switch` in a program's context.
#[derive(Clone, Debug)]
pub(crate) struct SwitchArguments {
    pub(crate) preempt: i16,
    pub(crate) prev: i16,
    pub(crate) next: i16,
    /// Linux 5.18; before, the state is read from the task, which may have been woken meanwhile.
    pub(crate) state: Option<i16>,
}

/// The sign that a thread is in sched_yield(2): the field of its saved registers that has the number
/// of the system call.
#[derive(Clone, Debug)]
pub(crate) struct YieldSign {
    pub(crate) offset: i16,
    pub(crate) is_64_bit: bool,
    pub(crate) number: i32,
}

/// Everything that the programs must know of a kernel.
#[derive(Clone, Debug)]
pub(crate) struct KernelLayout {
    pub(crate) task: TaskOffsets,
    pub(crate) switch: SwitchArguments,
    /// `None`: yields count as preemptions.
    pub(crate) yields: Option<YieldSign>,
    pub(crate) ids: AttachIds,
}

/// BTF ids of the tracepoints and of the iterator that programs attach to.
#[derive(Clone, Debug)]
pub(crate) struct AttachIds {
    pub(crate) switch: u32,
    pub(crate) migrate: u32,
    pub(crate) exec: u32,
    pub(crate) fork: u32,
    pub(crate) free: u32,
    pub(crate) wakeup: u32,
    pub(crate) wakeup_new: u32,
    pub(crate) task_iterator: u32,
}

impl KernelLayout {
    /// Reads the layout of the kernel whose /sys is in the file system at `root` (`/`).
    pub(crate) fn read(root: &Path) -> Result<Self, Error> {
        let path = root.join("sys/kernel/btf/vmlinux");
        let data = fs::read(&path).map_err(|source| Error::NoBtf { path, source })?;
        Self::from_btf(data)
    }

    /// Finds the layout in the content of /sys/kernel/btf/vmlinux.
    pub(crate) fn from_btf(data: Vec<u8>) -> Result<Self, Error> {
        let btf = Btf::parse(data).ok_or_else(|| Error::NotInBtf("readable types".into()))?;
        let task_iterator = btf.find(TypeKind::Function, "bpf_iter_task");
        let (switch_id, is_pointer) = tracepoint(&btf, "sched_switch")?;
        let task = task_offsets(&btf)?;
        let switch = switch_arguments(&is_pointer)
            .ok_or_else(|| Error::NotInBtf("arguments of sched_switch that are known".into()))?;
        let ids = AttachIds {
            switch: switch_id,
            migrate: tracepoint_id(&btf, "sched_migrate_task")?,
            exec: tracepoint_id(&btf, "sched_process_exec")?,
            fork: tracepoint_id(&btf, "sched_process_fork")?,
            free: tracepoint_id(&btf, "sched_process_free")?,
            wakeup: tracepoint_id(&btf, "sched_wakeup")?,
            wakeup_new: tracepoint_id(&btf, "sched_wakeup_new")?,
            task_iterator: task_iterator
                .ok_or_else(|| Error::NotInBtf("iterator of tasks (Linux 5.8)".into()))?,
        };
        Ok(Self { task, switch, yields: yield_sign(&btf), ids })
    }
}

/// Returns a tracepoint's id, and which of its arguments are pointers.
fn tracepoint(btf: &Btf, name: &str) -> Result<(u32, Vec<bool>), Error> {
    btf.tracepoint_arguments(name).ok_or_else(|| Error::NotInBtf(format!("tracepoint {name}")))
}

fn tracepoint_id(btf: &Btf, name: &str) -> Result<u32, Error> {
    Ok(tracepoint(btf, name)?.0)
}

/// Returns the offset of the first of these fields of `task_struct` that this kernel has.
fn task_field(btf: &Btf, paths: &[&str]) -> Result<i16, Error> {
    let offset = paths.iter().find_map(|path| btf.offset("task_struct", path));
    offset.ok_or_else(|| Error::NotInBtf(format!("task_struct.{}", paths.join(" or "))))
}

fn task_offsets(btf: &Btf) -> Result<TaskOffsets, Error> {
    Ok(TaskOffsets {
        pid: task_field(btf, &["pid"])?,
        tgid: task_field(btf, &["tgid"])?,
        start_time: task_field(btf, &["start_time"])?,
        sum_exec_runtime: task_field(btf, &["se.sum_exec_runtime"])?,
        nvcsw: task_field(btf, &["nvcsw"])?,
        nivcsw: task_field(btf, &["nivcsw"])?,
        migrations: task_field(btf, &["se.nr_migrations"])?,
        run_delay: btf.offset("task_struct", "sched_info.run_delay"),
        // It moved in 5.16.
        cpu: task_field(btf, &["thread_info.cpu", "cpu"])?,
        // It was renamed in 5.14.
        state: task_field(btf, &["__state", "state"])?,
        exit_state: task_field(btf, &["exit_state"])?,
        prio: task_field(btf, &["prio"])?,
        comm: task_field(btf, &["comm"])?,
        parent: task_field(btf, &["real_parent"])?,
    })
}

/// Tells the arguments of `sched_switch` apart: (bool preempt, struct task_struct *prev, *next,
/// unsigned int prev_state). The state came with 5.18, at the end; in its first releases second.
fn switch_arguments(is_pointer: &[bool]) -> Option<SwitchArguments> {
    let (mut tasks, mut numbers) = (Vec::new(), Vec::new());
    for (position, is_task) in is_pointer.iter().enumerate() {
        let offset = 8 * position as i16;
        if *is_task { tasks.push(offset) } else { numbers.push(offset) }
    }
    Some(SwitchArguments {
        preempt: *numbers.first()?,
        prev: *tasks.first()?,
        next: *tasks.get(1)?,
        state: numbers.get(1).copied(),
    })
}

fn yield_sign(btf: &Btf) -> Option<YieldSign> {
    // The helper that finds the registers: Linux 5.15.
    btf.find(TypeKind::Function, "bpf_task_pt_regs")?;
    let number = i32::try_from(libc::SYS_sched_yield).ok()?;
    let is_64_bit = cfg!(target_arch = "x86_64");
    let register = if is_64_bit { "orig_ax" } else { "syscallno" };
    let offset = btf.offset("pt_regs", register)?;
    Some(YieldSign { offset, is_64_bit, number })
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
        let said = KernelLayout::read(root.path()).unwrap_err().to_string();
        assert!(said.contains("sys/kernel/btf/vmlinux") && said.contains("CONFIG_DEBUG_INFO_BTF"));
        let place = root.path().join("sys/kernel/btf");
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join("vmlinux"), "no types").unwrap();
        assert!(matches!(KernelLayout::read(root.path()), Err(Error::NotInBtf(_))));
    }
}
