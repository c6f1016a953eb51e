//! The recording for Perfetto: events go from the ring buffer to the file as they come, so that
//! memory is bounded.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Context, Result};
use rustix::system::uname;
use rustix::time::ClockId;

use super::perfetto::{ClockSnapshot, PerfettoEncoder};
use crate::base::values::Destination;
use crate::observe::live::session::{TracerSession, clock_ns};
use crate::report::output::file::{UnfinishedFile, WriteTarget, begin_file, cannot_write};
use crate::report::output::ignore_broken_pipe;

/// Bytes of a recording; then it ends, and the figures go on.
const MAX_BYTES: u64 = 2 << 30;

/// The file or pipe of a recording.
enum RecordingSink {
    /// A file that is there complete or not at all.
    File(UnfinishedFile, PathBuf),
    /// A pipe, written as events come.
    Stream(Box<dyn Write>),
}

pub(super) struct PerfettoRecording {
    sink: RecordingSink,
    encoder: PerfettoEncoder,
    bytes: u64,
    /// Seconds from the start after which the file had its largest size; `None` before.
    pub(super) full_s: Option<f64>,
    failure: Option<io::Error>,
}

impl RecordingSink {
    fn open(to: &Destination) -> Result<Self> {
        let Destination::File(path) = to else {
            return Ok(Self::Stream(Box::new(io::stdout())));
        };
        let opened = match WriteTarget::from_path(path) {
            Ok(WriteTarget::File(existing)) => {
                begin_file(path, existing).map(|file| Self::File(file, path.clone()))
            }
            Ok(WriteTarget::Stream) => {
                let stream = File::options().append(true).open(path);
                stream.map(|stream| Self::Stream(Box::new(stream)))
            }
            // It may have become a link since the arguments were checked.
            Err(why) => Err(io::Error::other(why)),
        };
        opened.map_err(|error| cannot_write(path, error))
    }
}

impl PerfettoRecording {
    /// Opens the file and writes the beginning of the trace.
    pub(super) fn start(to: &Destination) -> Result<Self> {
        let sink = RecordingSink::open(to)?;
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

    fn is_over(&self) -> bool {
        self.full_s.is_some() || self.failure.is_some()
    }

    /// Takes the events out of the ring buffer and writes them.
    pub(super) fn take(&mut self, session: &mut TracerSession) {
        let is_over = self.is_over();
        session.drain(|event| {
            if !is_over {
                self.encoder.event(&event);
            }
        });
        if !is_over {
            self.write(session);
        }
    }

    /// Writes the names of the threads of the last look.
    pub(super) fn name(&mut self, session: &TracerSession) {
        if !self.is_over() {
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
        if self.bytes >= MAX_BYTES {
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
