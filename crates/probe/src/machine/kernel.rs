//! The kernel: release, command line, configuration, clock source, preemption model, and how it
//! separates user from system time.

use rundata::machine::CpuAccounting;
use rundata::machine::{ClockSource, KernelPreemption, PreemptionModel, RunningKernel};
use rundata::reading::Reading;

use super::tree::{MachineTree, ReadError, Result, parse, reading};

const CLOCK_SOURCE: &str = "/sys/devices/system/clocksource/clocksource0";

/// Reads the facts of the kernel.
pub(super) fn read(tree: &MachineTree, config: &KernelConfig) -> RunningKernel {
    let mut kernel = RunningKernel {
        release: reading(tree.word("/proc/sys/kernel/osrelease")),
        version: reading(tree.word("/proc/sys/kernel/version")),
        banner: reading(tree.word("/proc/version")),
        command_line: reading(tree.text("/proc/cmdline")).map(|line| kernel_part(&line)),
        hz: reading(hz(config)),
        clock_source: clock_source(tree),
        randomize_va_space: reading(tree.number("/proc/sys/kernel/randomize_va_space")),
        perf_event_paranoid: reading(tree.number("/proc/sys/kernel/perf_event_paranoid")),
        sched_rt_runtime_us: real_time_limit(tree),
        boot_id: reading(tree.word("/proc/sys/kernel/random/boot_id")),
        ..RunningKernel::default()
    };
    kernel.preemption = read_preemption(tree, &kernel, config);
    kernel
}

/// Reads the time that real-time threads may use of each period.
pub(super) fn real_time_limit(tree: &MachineTree) -> Reading<i64> {
    reading(tree.number("/proc/sys/kernel/sched_rt_runtime_us"))
}

/// Reads the preemption model from the only file in which it changes while the kernel runs.
pub(super) fn current_preemption(tree: &MachineTree) -> Reading<PreemptionModel> {
    reading(from_debug(tree)).map(|(model, _)| model)
}

/// Returns the kernel's part of the command line: words after `--` are for init.
fn kernel_part(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().take_while(|word| *word != "--").collect();
    words.join(" ")
}

pub(super) fn hz(config: &KernelConfig) -> Result<u32> {
    let (path, value) = config.value("CONFIG_HZ")?;
    parse(path, value)
}

fn clock_source(tree: &MachineTree) -> ClockSource {
    let available = tree.text(&format!("{CLOCK_SOURCE}/available_clocksource"));
    ClockSource {
        current: reading(tree.word(&format!("{CLOCK_SOURCE}/current_clocksource"))),
        available: reading(available)
            .map(|text| text.split_whitespace().map(str::to_owned).collect()),
    }
}

/// Path and text of the kernel's configuration file, or why none could be read.
pub(super) struct KernelConfig(Result<(String, String)>);

impl KernelConfig {
    /// Reads the configuration of the running kernel.
    pub(super) fn read(tree: &MachineTree) -> Self {
        let mut paths = vec!["/proc/config.gz".to_owned()];
        if let Ok(release) = tree.word("/proc/sys/kernel/osrelease") {
            paths.push(format!("/boot/config-{release}"));
            paths.push(format!("/lib/modules/{release}/config"));
        }
        let mut errors = Vec::new();
        for path in paths {
            let text = if path.ends_with(".gz") { tree.gzip_text(&path) } else { tree.text(&path) };
            match text {
                Ok(text) => return Self(Ok((path, text))),
                Err(error) => errors.push(error),
            }
        }
        Self(Err(ReadError::all_of(&errors)))
    }

    /// Returns the path of the file and the value of an option that is set.
    pub(super) fn value(&self, option: &str) -> Result<(&str, &str)> {
        let (path, text) = self.0.as_ref().map_err(Clone::clone)?;
        for line in text.lines() {
            match line.split_once('=') {
                Some((key, value)) if key == option => return Ok((path, value.trim())),
                _ => {}
            }
        }
        Err(ReadError::no_item(path, option))
    }

    fn is_known(&self) -> bool {
        self.0.is_ok()
    }

    /// Returns whether an option is set to `y`.
    pub(super) fn has(&self, option: &str) -> bool {
        self.value(option).is_ok_and(|(_, value)| value == "y")
    }
}

const DEBUG: &str = "/sys/kernel/debug/sched/preempt";
const REALTIME: &str = "/sys/kernel/realtime";
const VERSION: &str = "/proc/sys/kernel/version";

/// A preemption model and the file that states it. There are several such files, each on some
/// kernels only.
type ModelSource = Reading<(PreemptionModel, String)>;

/// Reads the preemption model from the first source that states it.
fn read_preemption(
    tree: &MachineTree,
    kernel: &RunningKernel,
    config: &KernelConfig,
) -> KernelPreemption {
    let word = preemption_word(kernel);
    let dynamic = if config.is_known() {
        Reading::Known(config.has("CONFIG_PREEMPT_DYNAMIC"))
    } else {
        word.as_ref().and_then(|word| is_dynamic(word))
    };
    let realtime = match &word {
        _ if tree.number::<u32>(REALTIME).is_ok_and(|is_realtime| is_realtime == 1) => {
            Reading::Known(true)
        }
        Reading::Unknown { .. } if config.is_known() => {
            Reading::Known(config.has("CONFIG_PREEMPT_RT"))
        }
        word => word.as_ref().map(|word| *word == "PREEMPT_RT"),
    };
    let found = reading(from_debug(tree))
        .or_else(|| from_command_line(kernel, &dynamic))
        .or_else(|| from_config(config))
        .or_else(|| word.and_then(from_version));
    let model = found.as_ref().map(|(model, _)| *model);
    KernelPreemption { model, source: found.map(|(_, source)| source), realtime, dynamic }
}

/// Returns whether the preemption word says that the model can be changed while the kernel runs.
fn is_dynamic(word: &str) -> Reading<bool> {
    // Since 6.13 a real-time kernel may be dynamic too, and shows only PREEMPT_RT.
    if word == "PREEMPT_RT" {
        return Reading::unknown(format!("{VERSION}: PREEMPT_RT hides it"));
    }
    Reading::Known(word == "PREEMPT_DYNAMIC")
}

/// Returns the preemption word of `uname -v` (init/Makefile, scripts/mkcompile_h), which is empty
/// if there is none.
fn preemption_word(kernel: &RunningKernel) -> Reading<&'static str> {
    let version = kernel.version.clone().or_else(|| kernel.banner.clone());
    version.map(|version| {
        let version = version.replace("PREEMPT RT", "PREEMPT_RT");
        for word in ["PREEMPT_RT", "PREEMPT_DYNAMIC", "PREEMPT"] {
            if version.split_whitespace().any(|found| found == word) {
                return word;
            }
        }
        ""
    })
}

fn from_debug(tree: &MachineTree) -> Result<(PreemptionModel, String)> {
    let chosen = tree.chosen(DEBUG)?;
    let model = model_named(&chosen);
    let model = model.ok_or_else(|| ReadError::invalid(DEBUG, &chosen, "a preemption model"))?;
    Ok((model, DEBUG.to_owned()))
}

/// Reads the model from the command line: the kernel takes the last `preempt=` that it knows, and
/// none if the model is fixed.
fn from_command_line(kernel: &RunningKernel, dynamic: &Reading<bool>) -> ModelSource {
    if dynamic.known() != Some(&true) {
        return Reading::unknown(
            "/proc/cmdline: 'preempt' has no effect unless the model is dynamic",
        );
    }
    let model = kernel.parameters("preempt").filter_map(model_named).last();
    let model = model.ok_or_else(|| ReadError::no_item("/proc/cmdline", "preempt="));
    reading(model).map(|model| (model, "/proc/cmdline".to_owned()))
}

/// Reads the model from the kernel's configuration.
fn from_config(config: &KernelConfig) -> ModelSource {
    let found = MODELS.into_iter().find_map(|(_, option, model)| {
        let (path, value) = config.value(option).ok()?;
        (value == "y").then(|| (model, format!("{path} ({option})")))
    });
    // If no option is set, the error is that of the last, or that there is no file.
    reading(found.ok_or(()).or_else(|()| {
        let (path, value) = config.value("CONFIG_PREEMPT_NONE")?;
        Err(ReadError::invalid(path, value, "a preemption model"))
    }))
}

fn from_version(word: &str) -> ModelSource {
    let why = match word {
        "PREEMPT_RT" | "PREEMPT" => {
            return Reading::Known((PreemptionModel::Full, VERSION.to_owned()));
        }
        "PREEMPT_DYNAMIC" => "dynamic, without the choice",
        _ => "none or voluntary, without saying which",
    };
    Reading::unknown(format!("{VERSION}: {why}"))
}

/// Names of models, their configuration options, and models. In a dynamic kernel RT may be set
/// beside another option, which then is the default: RT comes last.
const MODELS: [(&str, &str, PreemptionModel); 5] = [
    ("lazy", "CONFIG_PREEMPT_LAZY", PreemptionModel::Lazy),
    ("full", "CONFIG_PREEMPT", PreemptionModel::Full),
    ("voluntary", "CONFIG_PREEMPT_VOLUNTARY", PreemptionModel::Voluntary),
    ("none", "CONFIG_PREEMPT_NONE", PreemptionModel::None),
    ("full", "CONFIG_PREEMPT_RT", PreemptionModel::Full),
];

fn model_named(name: &str) -> Option<PreemptionModel> {
    let found = MODELS.into_iter().find(|(known, ..)| *known == name);
    found.map(|(.., model)| model)
}

/// Reads from the configuration how the kernel separates user from system time
/// (kernel/sched/cputime.c). With GEN, CPUs account precisely only while they run without a tick
/// (nohz_full).
pub(super) fn accounting(tree: &MachineTree, config: &KernelConfig) -> Reading<CpuAccounting> {
    // Every kernel has this option: its error says why there is no configuration.
    reading(config.value("CONFIG_HZ").map(|_| ())).map(|()| {
        let tickless = tree.cpu_list("/sys/devices/system/cpu/nohz_full");
        if config.has("CONFIG_VIRT_CPU_ACCOUNTING_NATIVE") {
            CpuAccounting::Precise
        } else if config.has("CONFIG_VIRT_CPU_ACCOUNTING_GEN")
            && tickless.is_ok_and(|cpus| !cpus.is_empty())
        {
            CpuAccounting::Mixed
        } else {
            CpuAccounting::Tick
        }
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_kernels_do_by_their_options() {
        for (options, tickless, expected) in [
            ("CONFIG_HZ=250\nCONFIG_TICK_CPU_ACCOUNTING=y\n", "", CpuAccounting::Tick),
            ("CONFIG_HZ=250\nCONFIG_VIRT_CPU_ACCOUNTING_GEN=y\n", "(null)", CpuAccounting::Tick),
            ("CONFIG_HZ=250\nCONFIG_VIRT_CPU_ACCOUNTING_GEN=y\n", "2-3", CpuAccounting::Mixed),
            ("CONFIG_HZ=100\nCONFIG_VIRT_CPU_ACCOUNTING_NATIVE=y\n", "", CpuAccounting::Precise),
        ] {
            let root = tempfile::tempdir().unwrap();
            for folder in ["proc/sys/kernel", "boot", "sys/devices/system/cpu"] {
                fs::create_dir_all(root.path().join(folder)).unwrap();
            }
            fs::write(root.path().join("proc/sys/kernel/osrelease"), "9\n").unwrap();
            fs::write(root.path().join("boot/config-9"), options).unwrap();
            fs::write(root.path().join("sys/devices/system/cpu/nohz_full"), tickless).unwrap();
            let tree = &MachineTree::new(root.path());
            assert_eq!(
                accounting(tree, &KernelConfig::read(tree)),
                Reading::Known(expected),
                "{options}"
            );
            fs::remove_file(root.path().join("boot/config-9")).unwrap();
            assert!(accounting(tree, &KernelConfig::read(tree)).why().is_some());
        }
    }
}
