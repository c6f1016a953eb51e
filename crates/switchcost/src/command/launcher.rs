//! The hidden launcher: a process that does nothing but start commands, so that what the kernel
//! charges to a command is its own. Asked and answered in lines of JSON on a socket.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use probe::command::Launcher;

use crate::launcher::{Answer, NAME, Request};

/// The launcher's work, if this process was started as one. It is asked for before anything else is
/// done, the reading of arguments among it: whatever memory it had would be every command's too.
pub(crate) fn called() -> Option<Result<ExitCode>> {
    let mut words = std::env::args_os().skip(1);
    (words.next()? == NAME).then(|| serve(words))
}

fn serve(mut words: impl Iterator<Item = OsString>) -> Result<ExitCode> {
    let mut number = || words.next()?.to_str()?.parse::<i32>().ok();
    let (Some(parent), Some(descriptor @ 3..)) = (number(), number()) else {
        bail!("the launcher is started by switchcost itself, not by hand");
    };
    super::worker::die_with(parent).context("the launcher")?;
    let channel = probe::command::channel(descriptor).context("the launcher's socket")?;
    let mut launcher = Launcher::new();
    for line in BufReader::new(&channel).lines() {
        let Request { words, tree, announce } =
            serde_json::from_str(&line?).context("the launcher's request cannot be read")?;
        let mut lost = None;
        let mut started = |pid| {
            if announce {
                lost = speak(&channel, &Answer::Started(pid)).err();
            }
        };
        let answer = match &mut launcher {
            Ok(launcher) => launcher.run(words, tree, &mut started),
            Err(failure) => Err(failure.clone()),
        };
        lost.map_or(Ok(()), Err)?;
        speak(
            &channel,
            &answer.map_or_else(Answer::NotStarted, |used| Answer::Ended(used.into())),
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

fn speak(mut channel: &UnixStream, answer: &Answer) -> Result<()> {
    let mut line = serde_json::to_vec(answer)?;
    line.push(b'\n');
    channel.write_all(&line).context("the launcher cannot answer")
}
