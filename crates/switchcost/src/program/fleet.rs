//! `switchcost fleet`: handed on to the Python package, which has what a fleet needs
//! (docs/decisions.md).

use std::env;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Result, anyhow};

const PROGRAM: &str = "switchcost-fleet";

/// Becomes that program, the one beside this one or else the first of PATH; only returns if it
/// cannot. `SWITCHCOST` tells it which program to use, unless it is set.
pub(crate) fn run(arguments: &[OsString]) -> Result<ExitCode> {
    let own = env::current_exe().ok();
    let beside = own.as_ref().map(|own| own.with_file_name(PROGRAM)).filter(|path| path.exists());
    let program = beside.unwrap_or_else(|| PathBuf::from(PROGRAM));
    let mut command = Command::new(&program);
    command.args(arguments);
    if let (Some(own), None) = (own, env::var_os("SWITCHCOST")) {
        command.env("SWITCHCOST", own);
    }
    let error = command.exec();
    if error.kind() == ErrorKind::NotFound {
        return Err(anyhow!(
            "fleet comes with the Python package: pip install 'switchcost[fleet]' (there is no \
             {PROGRAM} beside this program or on PATH)"
        ));
    }
    Err(error).map_err(|error| anyhow!(error).context(format!("cannot run {}", program.display())))
}
