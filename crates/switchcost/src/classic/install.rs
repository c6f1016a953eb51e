//! `switchcost classic install DIR`: links by which this program is called by the originals' names.
//!
//! Symbolic links: they may cross file systems, they go on working when this program is replaced by a
//! newer one, and whoever looks sees where they lead. Hard links do none of that.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{fs, io};

use anyhow::{Context, Result};

use super::InstallArgs;
use crate::failure::usage;
use crate::output::print;

/// What is at the place of a link.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    Nothing,
    /// A link to this program.
    Ours,
    /// Something else, in words.
    Other(String),
    Folder,
}

/// Makes all links, or none where one would overwrite what is not this program's.
pub(crate) fn run(args: &InstallArgs) -> Result<ExitCode> {
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let folder = &args.folder;
    if !folder.is_dir() {
        return Err(usage(format!("{}: not a folder (mkdir -p makes one)", folder.display())));
    }
    let places: Vec<PathBuf> = ::classic::names().map(|name| folder.join(name)).collect();
    let found: Vec<Found> = places
        .iter()
        .map(|place| {
            look(place, &program).with_context(|| format!("cannot look at {}", place.display()))
        })
        .collect::<Result<_>>()?;
    refuse(&places, &found, args.force)?;
    let mut told = String::new();
    for (place, found) in places.iter().zip(&found) {
        let done = match found {
            Found::Ours => "is there",
            _ => {
                link(&program, place)
                    .with_context(|| format!("cannot make the link {}", place.display()))?;
                if *found == Found::Nothing { "made" } else { "replaced" }
            }
        };
        told += &format!("{}: {done} (a link to {})\n", place.display(), program.display());
    }
    // After all of them: nobody to read it is no reason to make one alone.
    print(told.as_bytes()).context("cannot print what was done")?;
    Ok(ExitCode::SUCCESS)
}

fn look(place: &Path, program: &Path) -> io::Result<Found> {
    let kind = match fs::symlink_metadata(place) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
        found => found?.file_type(),
    };
    if kind.is_dir() {
        return Ok(Found::Folder);
    }
    if !kind.is_symlink() {
        return Ok(Found::Other("a file".to_string()));
    }
    let target = fs::read_link(place)?;
    // A link to another copy of this program is another's: it may be another version.
    Ok(match fs::canonicalize(place).is_ok_and(|file| file == *program) {
        true => Found::Ours,
        false => Found::Other(format!("a link to {}", target.display())),
    })
}

fn refuse(places: &[PathBuf], found: &[Found], force: bool) -> Result<()> {
    let why = |(place, found): (&PathBuf, &Found)| match found {
        Found::Folder => Some(format!("{} is a folder", place.display())),
        Found::Other(what) if !force => Some(format!("{} is {what}", place.display())),
        _ => None,
    };
    let why: Vec<String> = places.iter().zip(found).filter_map(why).collect();
    if why.is_empty() {
        return Ok(());
    }
    let next = match found.contains(&Found::Folder) {
        true => "choose another folder",
        false => "choose another folder, or --force replaces them",
    };
    Err(usage(format!("{}: nothing was done ({next})", why.join("; "))))
}

/// Made beside its place and moved there, so that nothing is missing or half there in between.
fn link(program: &Path, place: &Path) -> io::Result<()> {
    let mut beside = place.as_os_str().to_owned();
    beside.push(format!(".{}", std::process::id()));
    symlink(program, &beside)?;
    fs::rename(&beside, place).inspect_err(|_| {
        // What cannot be moved must not be left behind.
        let _ = fs::remove_file(&beside);
    })
}
