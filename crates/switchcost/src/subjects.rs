//! What is compared, by name: a stored run, a file, or a published machine.

use anyhow::{Context, Result};
use model::subject::{Comparable, PREFIX, Published, Subject, published};

use crate::failure::usage;
use crate::instruments::with_instrument_of;
use crate::store::{Folder, read};

/// The run or the published machine of that name.
pub(crate) fn find(name: &str) -> Result<Subject> {
    if let Some(machine) = name.strip_prefix(PREFIX) {
        return Ok(find_published(machine)?.subject());
    }
    let path = Folder::of_user()?.find(name)?.path;
    with_instrument_of!(&path, I => read::<I>(&path).map(|run| I::subject(&run)))
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
