//! The recording: events go from the ring buffer to the file as they come, so that memory is
//! bounded.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Context, Result};
use rustix::system::uname;
use rustix::time::ClockId;

use super::perfetto::{ClockSnapshot, PerfettoEncoder};
use crate::base::values::Destination;
use crate::observe::live::session::{TracerSession, clock_ns};
use crate::report::output::file::{Place, Unfinished, begin, cannot_write};
use crate::report::output::ignore_broken_pipe;

/// Bytes of a recording; then it ends, and the figures go on.
const MOST_BYTES: u64 = 2 << 30;

/// Where it goes.
enum RecordingSink {
    /// A file that is there whole or not at all.
    File(Unfinished, PathBuf),
    /// As it comes.
    Stream(Box<dyn Write>),
}

pub(super) struct PerfettoRecording {
    sink: RecordingSink,
    encoder: PerfettoEncoder,
    bytes: u64,
    /// Seconds after which it was full.
    pub(super) full_s: Option<f64>,
    failure: Option<io::Error>,
}

impl PerfettoRecording {
    pub(super) fn start(to: &Destination) -> Result<Self> {
        let sink = match to {
            Destination::Stdout => RecordingSink::Stream(Box::new(io::stdout())),
            Destination::File(path) => match Place::of(path) {
                Ok(Place::File(old)) => RecordingSink::File(
                    begin(path, old).map_err(|error| cannot_write(path, error))?,
                    path.clone(),
                ),
                _ => {
                    let file = File::options().append(true).open(path);
                    RecordingSink::Stream(Box::new(
                        file.map_err(|error| cannot_write(path, error))?,
                    ))
                }
            },
        };
        let clocks = ClockSnapshot {
            monotonic: clock_ns(ClockId::Monotonic),
            boottime: clock_ns(ClockId::Boottime),
            realtime: clock_ns(ClockId::Realtime),
        };
        let kernel = uname();
        let names = [kernel.sysname(), kernel.release()].map(|name| name.to_string_lossy());
        let encoder = PerfettoEncoder::new(clocks, [&names[0], &names[1]]);
        Ok(Self { sink, encoder, bytes: 0, full_s: None, failure: None })
    }

    /// Takes what is there out of the ring buffer.
    pub(super) fn take(&mut self, session: &mut TracerSession) {
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
    pub(super) fn name(&mut self, session: &TracerSession) {
        if self.full_s.is_none() && self.failure.is_none() {
            self.encoder.name(session.account.threads());
            self.write(session);
        }
    }

    fn write(&mut self, session: &TracerSession) {
        let bytes = self.encoder.take();
        self.bytes += bytes.len() as u64;
        let written = match &mut self.sink {
            RecordingSink::File(file, _) => file.file().write_all(&bytes),
            RecordingSink::Stream(stream) => stream.write_all(&bytes),
        };
        self.failure = written.err();
        if self.bytes >= MOST_BYTES {
            self.full_s = Some(session.since_begin().as_secs_f64());
        }
    }

    /// Puts the file into its place.
    pub(super) fn finish(self) -> Result<()> {
        match self.sink {
            RecordingSink::File(file, path) => {
                let put = self.failure.map_or_else(|| file.put(&path), Err);
                put.map_err(|error| cannot_write(&path, error))
            }
            RecordingSink::Stream(mut stream) => {
                let flushed = self.failure.map_or_else(|| stream.flush(), Err);
                ignore_broken_pipe(flushed).context("cannot write the recording")
            }
        }
    }
}
