//! Limits, load, memory and its nodes, vulnerabilities, and what runs below the kernel.

use model::machine::{
    Bound, Limits, Load, Memory, Mitigations, Numa, NumaNode, ResourceLimit, Virtualization,
};
use model::reading::Reading;

use super::cpu::{CPUS, hypervisor_flag};
use super::tree::{ReadError, Result, Tree, kilobytes, parse, reading, value_of};

const LIMITS: &str = "/proc/self/limits";

pub(super) fn limits(tree: &Tree) -> Limits {
    let text = reading(tree.text(LIMITS));
    let limit = |name: &str| text.as_ref().and_then(|text| reading(limit_named(text, name)));
    let number = |path: &str| -> Reading<u64> { reading(tree.number(path)) };
    Limits {
        processes: limit("Max processes"),
        open_files: limit("Max open files"),
        realtime_priority: limit("Max realtime priority"),
        realtime_timeout_us: limit("Max realtime timeout"),
        locked_memory_bytes: limit("Max locked memory"),
        pid_max: number("/proc/sys/kernel/pid_max"),
        threads_max: number("/proc/sys/kernel/threads-max"),
        file_max: number("/proc/sys/fs/file-max"),
        pipe_max_bytes: number("/proc/sys/fs/pipe-max-size"),
        pipe_user_pages_soft: number("/proc/sys/fs/pipe-user-pages-soft"),
        pipe_user_pages_hard: number("/proc/sys/fs/pipe-user-pages-hard"),
    }
}

fn limit_named(text: &str, name: &str) -> Result<ResourceLimit> {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let line = line.ok_or_else(|| ReadError::no_item(LIMITS, name))?;
    let mut bounds = line.split_whitespace().map(bound);
    let mut next =
        || bounds.next().unwrap_or_else(|| Err(ReadError::invalid(LIMITS, line, "a limit")));
    Ok(ResourceLimit { soft: next()?, hard: next()? })
}

fn bound(item: &str) -> Result<Bound> {
    match item {
        "unlimited" => Ok(Bound::Unlimited),
        number => parse(LIMITS, number).map(Bound::At),
    }
}

pub(super) fn load(tree: &Tree) -> Load {
    let path = "/proc/loadavg";
    let text = reading(tree.text(path));
    let field = |index: usize| {
        text.as_ref().and_then(|text| {
            let field = text.split_whitespace().nth(index);
            reading(field.ok_or_else(|| ReadError::no_item(path, &format!("field {index}"))))
        })
    };
    let mean = |index| field(index).and_then(|item| reading(hundredths(path, item)));
    let tasks = field(3).and_then(|item| reading(pair(path, item)));
    Load {
        over_1_min: mean(0),
        over_5_min: mean(1),
        over_15_min: mean(2),
        runnable_tasks: tasks.as_ref().map(|(runnable, _)| *runnable),
        tasks: tasks.map(|(_, all)| all),
        uptime_s: uptime_s(tree),
    }
}

fn uptime_s(tree: &Tree) -> Reading<f64> {
    let path = "/proc/uptime";
    let text = reading(tree.word(path));
    text.and_then(|text| reading(hundredths(path, text.split(' ').next().unwrap_or_default())))
}

/// `12.34`. By way of a whole number, so that JSON gives back exactly what was read: `inf` and
/// `nan`, which `f64` takes too, have no JSON form.
fn hundredths(path: &str, item: &str) -> Result<f64> {
    let parts = item.split_once('.').filter(|(_, fraction)| fraction.len() == 2);
    let count = parts.and_then(|(whole, fraction)| {
        let whole = u64::from(whole.parse::<u32>().ok()?);
        Some(whole * 100 + u64::from(fraction.parse::<u8>().ok()?))
    });
    let count = count.ok_or_else(|| ReadError::invalid(path, item, "a number with two decimals"));
    Ok(count? as f64 / 100.0)
}

/// `3/123`.
fn pair(path: &str, item: &str) -> Result<(u64, u64)> {
    let parts = item.split_once('/');
    let (a, b) = parts.ok_or_else(|| ReadError::invalid(path, item, "two numbers with '/'"))?;
    Ok((parse(path, a)?, parse(path, b)?))
}

const NODES: &str = "/sys/devices/system/node";
const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage";

pub(super) fn memory(tree: &Tree) -> Memory {
    let path = "/proc/meminfo";
    let text = reading(tree.text(path));
    let bytes = |key: &str| {
        text.as_ref().and_then(|text| {
            reading(value_of(path, text, key).and_then(|value| kilobytes(path, value)))
        })
    };
    Memory {
        total_bytes: bytes("MemTotal"),
        available_bytes: bytes("MemAvailable"),
        swap_total_bytes: bytes("SwapTotal"),
        swap_free_bytes: bytes("SwapFree"),
        huge_page_bytes: bytes("Hugepagesize"),
        thp_enabled: reading(tree.chosen(&format!("{HUGE_PAGES}/enabled"))),
        thp_defrag: reading(tree.chosen(&format!("{HUGE_PAGES}/defrag"))),
        ksm_run: reading(tree.number("/sys/kernel/mm/ksm/run")),
    }
}

pub(super) fn numa(tree: &Tree) -> Numa {
    let nodes = reading(tree.numbered(NODES, "node"));
    Numa { nodes: nodes.map(|nodes| nodes.into_iter().map(|n| node(tree, n)).collect()) }
}

fn node(tree: &Tree, node: u32) -> NumaNode {
    let folder = format!("{NODES}/node{node}");
    NumaNode {
        node,
        cpus: reading(tree.cpu_list(&format!("{folder}/cpulist"))),
        memory_bytes: reading(node_memory(tree, node, &format!("{folder}/meminfo"))),
        distances: reading(numbers(tree, &format!("{folder}/distance"))),
    }
}

fn node_memory(tree: &Tree, node: u32, path: &str) -> Result<u64> {
    let text = tree.text(path)?;
    kilobytes(path, value_of(path, &text, &format!("Node {node} MemTotal"))?)
}

fn numbers(tree: &Tree, path: &str) -> Result<Vec<u32>> {
    tree.word(path)?.split_whitespace().map(|item| parse(path, item)).collect()
}

const DEVICE_TREE: &str = "/proc/device-tree";

pub(super) fn virtualization(tree: &Tree) -> Virtualization {
    let device_tree = |name: &str| reading(tree.word(&format!("{DEVICE_TREE}/{name}")));
    Virtualization {
        cpu_flag: reading(hypervisor_flag(tree)),
        hypervisor_type: reading(tree.word("/sys/hypervisor/type")),
        dmi_vendor: reading(tree.word("/sys/class/dmi/id/sys_vendor")),
        dmi_product: reading(tree.word("/sys/class/dmi/id/product_name")),
        device_tree_model: device_tree("model"),
        // A list of names with NULs between them, the most exact first.
        device_tree_hypervisor: device_tree("hypervisor/compatible")
            .map(|names| names.split('\0').next().unwrap_or_default().to_owned()),
    }
}

pub(super) fn mitigations(tree: &Tree) -> Result<Mitigations> {
    let folder = format!("{CPUS}/vulnerabilities");
    let names = tree.folder(&folder)?.into_iter();
    let state = |name: String| {
        let state = reading(tree.word(&format!("{folder}/{name}")));
        (name, state)
    };
    // A lone file of this name would make the map look like an unknown reading.
    Ok(names.filter(|name| name != "unknown").map(state).collect())
}
