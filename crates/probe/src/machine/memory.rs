//! Memory and its nodes.

use model::machine::{Memory, Numa, NumaNode};

use super::tree::{Result, Tree, kilobytes, parse, reading, value_of};

const NODES: &str = "/sys/devices/system/node";
const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage";

pub(super) fn read(tree: &Tree) -> Memory {
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
