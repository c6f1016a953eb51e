//! The recording: events go from the ring buffer to the file as they come, so that memory is
//! bounded.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Context, Result};
use rustix::system::uname;
use rustix::time::ClockId;

use super::perfetto::{Clocks, Encoder};
use crate::base::values::Destination;
use crate::observe::live::session::{Session, clock_ns};
use crate::report::output::file::{Place, Unfinished, begin, cannot_write};
use crate::report::output::ignore_broken_pipe;

/// Bytes of a recording; then it ends, and the figures go on.
const MOST_BYTES: u64 = 2 << 30;

/// Where it goes.
enum Sink {
    /// A file that is there whole or not at all.
    File(Unfinished, PathBuf),
    /// As it comes.
    Stream(Box<dyn Write>),
}

pub(super) struct Recording {
    sink: Sink,
    encoder: Encoder,
    bytes: u64,
    /// Seconds after which it was full.
    pub(super) full_s: Option<f64>,
    failure: Option<io::Error>,
}

impl Recording {
    pub(super) fn start(to: &Destination) -> Result<Self> {
        let sink = match to {
            Destination::Stdout => Sink::Stream(Box::new(io::stdout())),
            Destination::File(path) => match Place::of(path) {
                Ok(Place::File(old)) => Sink::File(
                    begin(path, old).map_err(|error| cannot_write(path, error))?,
                    path.clone(),
                ),
                _ => {
                    let file = File::options().append(true).open(path);
                    Sink::Stream(Box::new(file.map_err(|error| cannot_write(path, error))?))
                }
            },
        };
        let clocks = Clocks {
            monotonic: clock_ns(ClockId::Monotonic),
            boottime: clock_ns(ClockId::Boottime),
            realtime: clock_ns(ClockId::Realtime),
        };
        let kernel = uname();
        let names = [kernel.sysname(), kernel.release()].map(|name| name.to_string_lossy());
        let encoder = Encoder::new(clocks, [&names[0], &names[1]]);
        Ok(Self { sink, encoder, bytes: 0, full_s: None, failure: None })
    }

    /// Takes what is there out of the ring buffer.
    pub(super) fn take(&mut self, session: &mut Session) {
        let is_over = self.full_s.is_some() || self.failure.is_some();
        session.drain(|event| {
            if !is_over {
                self.encoder.event(&event);
            }
        });
        if !is_over {
            self.write(session);
        }
    }

    /// Names the threads of the last look.
    pub(super) fn name(&mut self, session: &Session) {
        if self.full_s.is_none() && self.failure.is_none() {
            self.encoder.name(session.account.threads());
            self.write(session);
        }
    }

    fn write(&mut self, session: &Session) {
        let bytes = self.encoder.take();
        self.bytes += bytes.len() as u64;
        let written = match &mut self.sink {
            Sink::File(file, _) => file.file().write_all(&bytes),
            Sink::Stream(stream) => stream.write_all(&bytes),
        };
        self.failure = written.err();
        if self.bytes >= MOST_BYTES {
            self.full_s = Some(session.since_begin().as_secs_f64());
        }
    }

    /// Puts the file into its place.
    pub(super) fn finish(self) -> Result<()> {
        match self.sink {
            Sink::File(file, path) => {
                let put = self.failure.map_or_else(|| file.put(&path), Err);
                put.map_err(|error| cannot_write(&path, error))
            }
            Sink::Stream(mut stream) => {
                let flushed = self.failure.map_or_else(|| stream.flush(), Err);
                ignore_broken_pipe(flushed).context("cannot write the recording")
            }
        }
    }
}
