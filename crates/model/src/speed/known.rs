//! Which ratio unshared cores have, by CPU model: the program's table, and what earlier launches saw.

use serde::{Deserialize, Serialize};

use super::level::{Level, TOLERANCE};
use crate::machine::Machine;
use crate::plan::Reference;
use crate::reading::Reading;

/// Launches that must agree on a level before it is established.
const FEWEST_LAUNCHES: u32 = 3;
/// Levels that are remembered of a CPU.
const MOST_LEVELS: usize = 8;
/// A level is one launch's finding only if so large a share of its quanta were at it.
const LEAST_SHARE: f64 = 0.05;

/// k0 of CPU models, as [`cpu_key`] says them, that were measured while their cores were seen both shared and not
/// (docs/validation.md).
pub(super) const KNOWN: &[(&str, f64)] = &[
    // Zen 4 (EPYC 9004): four additions a cycle and three cycles a multiplication would be 1.
    ("AuthenticAMD family 25 model 17 stepping 1 microcode 0x1000065 capacity 1024", 1.010),
];

/// A level that launches have seen.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// Ratio of throughput-bound to latency-bound loop.
    pub ratio: f64,
    /// Launches that saw it.
    pub launches: u32,
}

/// What launches have seen of CPUs: the file in the user's state directory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SpeedFile {
    /// By [`cpu_key`].
    pub cpus: std::collections::BTreeMap<String, Vec<Seen>>,
}

impl SpeedFile {
    /// What is known of a CPU from the table and from launches: the lower of both.
    pub fn reference(&self, cpu: &str) -> Reference {
        let table = KNOWN.iter().find(|(known, _)| *known == cpu).map(|(_, ratio)| *ratio);
        let seen = self.cpus.get(cpu).map_or(&[][..], Vec::as_slice);
        let is_sound = |level: &&Seen| level.ratio.is_finite() && level.ratio > 0.0;
        let lowest = |fewest: u32| {
            let enough = seen.iter().filter(|level| level.launches >= fewest).filter(is_sound);
            enough.map(|level| level.ratio).reduce(f64::min)
        };
        let established = [table, lowest(FEWEST_LAUNCHES)].into_iter().flatten().reduce(f64::min);
        Reference {
            unshared_ratio: established.or_else(|| lowest(1)),
            established: established.is_some(),
            launch_scatter: None,
        }
    }

    /// Takes up the level of a launch. Levels only come to be known lower: one that a shared core may have
    /// had is forgotten when enough launches agree on a lower one. Says whether anything is new.
    pub fn learn(&mut self, cpu: &str, level: &Level) -> bool {
        if level.unshared_share < LEAST_SHARE || !level.unshared_ratio.is_finite() {
            return false;
        }
        let levels = self.cpus.entry(cpu.to_string()).or_default();
        let is_same =
            |seen: &&mut Seen| (seen.ratio / level.unshared_ratio - 1.0).abs() <= TOLERANCE / 2.0;
        match levels.iter_mut().find(is_same) {
            Some(seen) => {
                // The mean of the launches, so that no single one decides.
                let launches = f64::from(seen.launches.min(20));
                seen.ratio = (seen.ratio * launches + level.unshared_ratio) / (launches + 1.0);
                seen.launches = seen.launches.saturating_add(1);
            }
            None => levels.push(Seen { ratio: level.unshared_ratio, launches: 1 }),
        }
        levels.sort_by(|a, b| a.ratio.total_cmp(&b.ratio));
        let established = levels.iter().position(|seen| seen.launches >= FEWEST_LAUNCHES);
        levels.truncate(established.map_or(MOST_LEVELS, |first| first + 1));
        true
    }
}

/// A CPU's model as the table and the file name it: vendor, family, model, stepping and microcode, and of
/// machines with several kinds of cores the kind's relative capacity. Absent where the vendor is not known.
pub fn cpu_key(machine: &Machine, cpu: u32) -> Option<String> {
    let models = machine.cpu.models.known()?;
    let model = models.iter().find(|model| model.cpus.contains(cpu)).or_else(|| models.first())?;
    let part = |reading: &Reading<String>| {
        reading.known().map_or_else(|| "?".to_string(), |text| text.trim().to_string())
    };
    let topology = machine.cpu.topology.known().into_iter().flatten().find(|one| one.cpu == cpu);
    let capacity = topology.and_then(|one| one.capacity.known());
    Some(format!(
        "{} family {} model {} stepping {} microcode {}{}",
        model.vendor.known()?,
        part(&model.family),
        part(&model.model),
        part(&model.stepping),
        part(&model.microcode),
        capacity.map(|capacity| format!(" capacity {capacity}")).unwrap_or_default()
    ))
}
