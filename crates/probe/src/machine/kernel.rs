//! The kernel: release, command line, switches, clock source.

use model::machine::{ClockSource, Kernel};

use super::config::Config;
use super::preemption;
use super::tree::{Result, Tree, parse, reading};

const CLOCK_SOURCE: &str = "/sys/devices/system/clocksource/clocksource0";

pub(super) fn read(tree: &Tree, config: &Config) -> Kernel {
    let mut kernel = Kernel {
        release: reading(tree.word("/proc/sys/kernel/osrelease")),
        version: reading(tree.word("/proc/sys/kernel/version")),
        banner: reading(tree.word("/proc/version")),
        command_line: reading(tree.text("/proc/cmdline")).map(|line| kernel_part(&line)),
        hz: reading(hz(config)),
        clock_source: clock_source(tree),
        randomize_va_space: reading(tree.number("/proc/sys/kernel/randomize_va_space")),
        perf_event_paranoid: reading(tree.number("/proc/sys/kernel/perf_event_paranoid")),
        sched_rt_runtime_us: reading(tree.number("/proc/sys/kernel/sched_rt_runtime_us")),
        boot_id: reading(tree.word("/proc/sys/kernel/random/boot_id")),
        ..Kernel::default()
    };
    kernel.preemption = preemption::read(tree, &kernel, config);
    kernel
}

/// Words after `--` are for init.
fn kernel_part(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().take_while(|word| *word != "--").collect();
    words.join(" ")
}

pub(super) fn hz(config: &Config) -> Result<u32> {
    let (path, value) = config.value("CONFIG_HZ")?;
    parse(path, value)
}

fn clock_source(tree: &Tree) -> ClockSource {
    let available = tree.text(&format!("{CLOCK_SOURCE}/available_clocksource"));
    ClockSource {
        current: reading(tree.word(&format!("{CLOCK_SOURCE}/current_clocksource"))),
        available: reading(available)
            .map(|text| text.split_whitespace().map(str::to_owned).collect()),
    }
}
