//! What is compared, by name: a stored run, a file, or a published machine.

use std::path::PathBuf;

use anyhow::{Context, Result};
use model::subject::{PREFIX, Published, Subject, published};

use crate::failure::usage;
use crate::store::{Entry, Folder, header, read};

/// The published machine of that name, or the runs of these names, with a comma between each two: launches of
/// the same plan. A run that was measured as one of several launches stands for all of them.
pub(crate) fn find(names: &str) -> Result<Subject> {
    if let Some(machine) = names.strip_prefix(PREFIX) {
        return Ok(find_published(machine)?.subject());
    }
    let folder = Folder::of_user()?;
    let mut paths: Vec<PathBuf> = Vec::new();
    for name in names.split(',') {
        let found = folder.find(name)?;
        let all = launches(&folder, &found)?;
        paths.extend(all.into_iter().filter(|path| !paths.contains(path)).collect::<Vec<_>>());
    }
    let subjects = paths.iter().map(|path| read(path).map(|run| Subject::of_run(&run)));
    let subjects = subjects.collect::<Result<Vec<Subject>>>()?;
    if let [first, others @ ..] = &subjects[..]
        && let Some(other) = others.iter().find(|other| other.experiment != first.experiment)
    {
        return Err(usage(format!(
            "{names}: {} is a run of {}, {} of {}: launches on one side are of one experiment",
            first.name, first.experiment, other.name, other.experiment
        )));
    }
    Subject::of_launches(subjects).context("no run was named")
}

/// The files of all launches that a run is one of: its own alone where it is a file outside of the folder.
fn launches(folder: &Folder, found: &Entry) -> Result<Vec<PathBuf>> {
    let alone = || Ok(vec![found.path.clone()]);
    let Some(launch) = header(&found.path)?.launch else { return alone() };
    if found.path.parent() != Some(folder.path()) {
        return alone();
    }
    let is_one = |entry: &Entry| entry.name.starts_with(&launch.set) && !entry.is_running();
    let all = folder.entries()?.into_iter().filter(is_one);
    Ok(all.map(|entry| entry.path).collect())
}

/// The published machine meant by a name, or by the start of one that no other shares.
pub(crate) fn find_published(wanted: &str) -> Result<Published> {
    let wanted = wanted.to_lowercase();
    let mut all = published().context("the published figures")?;
    if let Some(index) = all.iter().position(|machine| machine.name == wanted) {
        return Ok(all.swap_remove(index));
    }
    let names = |all: &[Published]| {
        all.iter().map(|machine| machine.name.clone()).collect::<Vec<_>>().join(", ")
    };
    let known = names(&all);
    all.retain(|machine| !wanted.is_empty() && machine.name.starts_with(&wanted));
    match (all.pop(), all.is_empty()) {
        (Some(machine), true) => Ok(machine),
        (None, _) => Err(usage(format!(
            "{PREFIX}{wanted}: no such machine (accepted: {known}; see `switchcost history`)"
        ))),
        (Some(last), false) => {
            all.push(last);
            let names = names(&all);
            Err(usage(format!("{PREFIX}{wanted}: the start of several names: {names}")))
        }
    }
}
