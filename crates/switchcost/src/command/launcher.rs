//! The hidden launcher: a process that does nothing but start commands, so that what the kernel
//! charges to a command is its own.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use probe::command::{channel, inherited_file, serve};

use crate::launcher::NAME;

/// The launcher's work, if this process was started as one. It is asked for before anything else is
/// done, the reading of arguments among it: whatever memory it had would be every command's too.
pub(crate) fn called() -> Option<Result<ExitCode>> {
    let mut words = std::env::args_os().skip(1);
    (words.next()? == NAME).then(|| work(words))
}

fn work(mut words: impl Iterator<Item = std::ffi::OsString>) -> Result<ExitCode> {
    let mut number = || words.next()?.to_str()?.parse::<i32>().ok();
    let (Some(parent), Some(socket @ 3..), Some(request @ 3..)) = (number(), number(), number())
    else {
        bail!("the launcher is started by switchcost itself, not by hand");
    };
    super::worker::die_with(parent).context("the launcher")?;
    let socket = channel(socket).context("the launcher's socket")?;
    let request = inherited_file(request).context("the launcher's request")?;
    serve(request, socket)?;
    Ok(ExitCode::SUCCESS)
}
