//! How the kernel preempts itself. Several files know, each on some kernels only.

use model::machine::{Kernel, Preemption, PreemptionModel};
use model::reading::Reading;

use super::config::Config;
use super::tree::{ReadError, Result, Tree, reading};

const DEBUG: &str = "/sys/kernel/debug/sched/preempt";
const REALTIME: &str = "/sys/kernel/realtime";
const VERSION: &str = "/proc/sys/kernel/version";

/// A model and the file that told it.
type Told = Reading<(PreemptionModel, String)>;

pub(super) fn read(tree: &Tree, kernel: &Kernel, config: &Config) -> Preemption {
    let words = Words::of(kernel);
    let dynamic = is_dynamic(&words, config);
    let told = reading(from_debug(tree))
        .or_else(|| from_command_line(kernel, &dynamic))
        .or_else(|| from_config(config))
        .or_else(|| from_version(&words));
    Preemption {
        model: told.as_ref().map(|(model, _)| *model),
        source: told.map(|(_, source)| source),
        realtime: is_realtime(tree, &words, config),
        dynamic,
    }
}

/// The preemption words of `uname -v` (init/Makefile, scripts/mkcompile_h).
enum Words {
    Realtime,
    Dynamic,
    Static,
    /// None of them.
    No,
    Unknown(String),
}

impl Words {
    fn of(kernel: &Kernel) -> Self {
        let version = match kernel.version.clone().or_else(|| kernel.banner.clone()) {
            Reading::Known(version) => version,
            Reading::Unknown { why } => return Words::Unknown(why),
        };
        let words: Vec<&str> = version.split_whitespace().collect();
        if words.contains(&"PREEMPT_RT") || words.windows(2).any(|pair| pair == ["PREEMPT", "RT"]) {
            Words::Realtime
        } else if words.contains(&"PREEMPT_DYNAMIC") {
            Words::Dynamic
        } else if words.contains(&"PREEMPT") {
            Words::Static
        } else {
            Words::No
        }
    }
}

fn from_debug(tree: &Tree) -> Result<(PreemptionModel, String)> {
    let chosen = tree.chosen(DEBUG)?;
    let model = model_named(&chosen);
    let model = model.ok_or_else(|| ReadError::invalid(DEBUG, &chosen, "a preemption model"))?;
    Ok((model, DEBUG.to_owned()))
}

/// The kernel takes the last `preempt=` that it knows, and none if the model is fixed.
fn from_command_line(kernel: &Kernel, dynamic: &Reading<bool>) -> Told {
    if dynamic.known() != Some(&true) {
        return Reading::unknown(
            "/proc/cmdline: 'preempt' has no effect unless the model is dynamic",
        );
    }
    let model = kernel.parameters("preempt").filter_map(model_named).last();
    let model = model.ok_or_else(|| ReadError::no_item("/proc/cmdline", "preempt="));
    reading(model).map(|model| (model, "/proc/cmdline".to_owned()))
}

fn from_config(config: &Config) -> Told {
    let options = [
        // With a dynamic model, RT and one of the others are both set: the other is the default.
        ("CONFIG_PREEMPT_LAZY", PreemptionModel::Lazy),
        ("CONFIG_PREEMPT", PreemptionModel::Full),
        ("CONFIG_PREEMPT_VOLUNTARY", PreemptionModel::Voluntary),
        ("CONFIG_PREEMPT_NONE", PreemptionModel::None),
        ("CONFIG_PREEMPT_RT", PreemptionModel::Full),
    ];
    let told = options.into_iter().find_map(|(option, model)| {
        let (path, value) = config.value(option).ok()?;
        (value == "y").then(|| (model, format!("{path} ({option})")))
    });
    // None is set: the reason is that of the last, or that there is no file.
    reading(told.ok_or(()).or_else(|()| {
        let (path, value) = config.value("CONFIG_PREEMPT_NONE")?;
        Err(ReadError::invalid(path, value, "a preemption model"))
    }))
}

fn from_version(words: &Words) -> Told {
    match words {
        Words::Realtime | Words::Static => {
            Reading::Known((PreemptionModel::Full, VERSION.to_owned()))
        }
        Words::Dynamic => Reading::unknown(format!("{VERSION}: dynamic, without the choice")),
        Words::No => {
            Reading::unknown(format!("{VERSION}: none or voluntary, without saying which"))
        }
        Words::Unknown(why) => Reading::unknown(why.clone()),
    }
}

fn is_dynamic(words: &Words, config: &Config) -> Reading<bool> {
    if config.path().is_some() {
        return Reading::Known(config.has("CONFIG_PREEMPT_DYNAMIC"));
    }
    match words {
        Words::Dynamic => Reading::Known(true),
        Words::Static | Words::No => Reading::Known(false),
        // Since 6.13 a real-time kernel may be dynamic too, and shows only PREEMPT_RT.
        Words::Realtime => Reading::unknown(format!("{VERSION}: PREEMPT_RT hides it")),
        Words::Unknown(why) => Reading::unknown(why.clone()),
    }
}

fn is_realtime(tree: &Tree, words: &Words, config: &Config) -> Reading<bool> {
    if tree.number::<u32>(REALTIME).is_ok_and(|is_realtime| is_realtime == 1) {
        return Reading::Known(true);
    }
    match words {
        Words::Unknown(_) if config.path().is_some() => {
            Reading::Known(config.has("CONFIG_PREEMPT_RT"))
        }
        Words::Unknown(why) => Reading::unknown(why.clone()),
        words => Reading::Known(matches!(words, Words::Realtime)),
    }
}

fn model_named(name: &str) -> Option<PreemptionModel> {
    match name {
        "none" => Some(PreemptionModel::None),
        "voluntary" => Some(PreemptionModel::Voluntary),
        "full" => Some(PreemptionModel::Full),
        "lazy" => Some(PreemptionModel::Lazy),
        _ => None,
    }
}
