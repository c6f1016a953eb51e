//! `switchcost fleet`: started from the Python package, which has what a fleet needs
//! (docs/decisions.md).

use std::env;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, anyhow};

const PROGRAM: &str = "switchcost-fleet";

/// Becomes [`PROGRAM`]: the file beside this program, or else the first on PATH. Returns only if that
/// fails. The variable `SWITCHCOST` names this program to it, unless the user has set it.
pub(crate) fn run(arguments: &[OsString]) -> Result<ExitCode> {
    let own_path = env::current_exe().ok();
    let mut program = PathBuf::from(PROGRAM);
    if let Some(path) = &own_path {
        let beside = path.with_file_name(PROGRAM);
        if beside.exists() {
            program = beside;
        }
    }
    let mut command = Command::new(&program);
    command.args(arguments);
    if let (Some(path), None) = (own_path, env::var_os("SWITCHCOST")) {
        command.env("SWITCHCOST", path);
    }
    let error = command.exec();
    if error.kind() == ErrorKind::NotFound {
        return Err(anyhow!(
            "fleet comes with the Python package: pip install 'switchcost[fleet]' (there is no \
             {PROGRAM} beside this program or on PATH)"
        ));
    }
    Err(error).with_context(|| format!("cannot run {}", program.display()))
}
