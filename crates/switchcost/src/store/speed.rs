//! What launches have found of this machine's CPUs: the file of the user's state directory.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use directories::ProjectDirs;
use model::machine::Machine;
use model::run::Run;
use model::speed::{Level, Reference, SpeedFile, cpu_key};

/// What is known of the CPUs that are measured on. Of several kinds of CPU nothing is: one ratio would be
/// wrong for one of them.
pub(crate) fn known_speed(machine: &Machine, cpus: &[u32]) -> Reference {
    let Some(key) = key(machine, cpus) else { return Reference::default() };
    // A file that cannot be read is as good as none: it is written anew.
    path().and_then(|path| read(&path)).unwrap_or_default().reference(&key)
}

/// A stored run as it is read by what is known of its CPUs now: a level that was provisional, or that lower ones
/// have replaced since, decides no more.
pub(super) fn by_known_speed(mut run: Run) -> Run {
    let known = known_speed(&run.header.machine, &run.header.plan.cpus());
    run.header.plan.reference.learn(&known);
    run
}

/// Takes up the level that a run has found.
pub(crate) fn keep_speed(machine: &Machine, cpus: &[u32], level: &Level) -> Result<()> {
    let Some(key) = key(machine, cpus) else { return Ok(()) };
    let path = path()?;
    let mut file = read(&path).unwrap_or_default();
    match file.learn(&key, level) {
        true => write(&path, &file),
        false => Ok(()),
    }
}

fn key(machine: &Machine, cpus: &[u32]) -> Option<String> {
    let mut keys: Vec<String> =
        cpus.iter().map(|cpu| cpu_key(machine, *cpu)).collect::<Option<_>>()?;
    keys.dedup();
    keys.pop().filter(|_| keys.is_empty())
}

fn path() -> Result<PathBuf> {
    let dirs = ProjectDirs::from("", "", "switchcost").context("there is no home directory")?;
    let state = dirs.state_dir().context("there is no state directory (XDG_STATE_HOME)")?;
    Ok(state.join("full-speed.json"))
}

fn read(path: &Path) -> Result<SpeedFile> {
    Ok(serde_json::from_slice(&std::fs::read(path)?)?)
}

/// Written beside it and renamed: two runs that end at once leave one of the two, whole.
fn write(path: &Path, file: &SpeedFile) -> Result<()> {
    let cannot = || format!("cannot write {}", path.display());
    let folder = path.parent().context("it has no folder")?;
    std::fs::create_dir_all(folder).with_context(cannot)?;
    let beside = folder.join(format!("full-speed.json.{}", std::process::id()));
    let written = serde_json::to_vec_pretty(file)
        .map_err(anyhow::Error::from)
        .and_then(|text| Ok(std::fs::write(&beside, text)?))
        .and_then(|()| Ok(std::fs::rename(&beside, path)?));
    if written.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    written.with_context(cannot)
}
