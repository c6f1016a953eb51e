//! What the launcher answers, in bytes: numbers of eight, texts with their length before them. JSON of
//! a run takes longer to write and to read than some commands run.

use std::io::{self, Read};

use model::command_use::{AtExec, Delay, Ending, IoBytes, Orphans, Sampled, Threads, Usage, Used};
use model::reading::Reading;

use super::NotStarted;

/// What happened to a command of a series.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// It has an id; told only of who asks for it.
    Started {
        /// The id.
        pid: u32,
    },
    /// It has ended.
    Ran {
        /// Which command.
        command: usize,
        /// Round, from 0, the warm-up's first.
        round: u32,
        /// The last signal that asked to stop while it ran.
        signal: Option<u8>,
        /// What it used.
        used: Box<Used>,
    },
    /// It could not be started, and no other will be.
    NotStarted {
        /// Which command.
        command: usize,
        /// Why.
        failure: NotStarted,
    },
    /// There is no more to do, or a signal asked to stop.
    Done {
        /// The last one that did.
        signal: Option<u8>,
    },
}

/// Longest text, and most ids: more was not written by us.
const MOST: u64 = 1 << 24;

impl Answer {
    /// Puts it behind what is there.
    pub fn write(&self, to: &mut Vec<u8>) {
        match self {
            Self::Started { pid } => (0_u64, *pid).put(to),
            Self::Ran { command, round, signal, used } => {
                (1_u64, (*command as u64, (*round, (signal.map(u64::from), &**used)))).put(to);
            }
            Self::NotStarted { command, failure } => {
                let step = failure.step.clone();
                (2_u64, (*command as u64, (step, failure.errno as u32))).put(to);
            }
            Self::Done { signal } => (3_u64, signal.map(u64::from)).put(to),
        }
    }

    /// The next one.
    pub fn read(from: &mut impl Read) -> io::Result<Self> {
        let signal = |number: Option<u64>| number.map(|number| number as u8);
        Ok(match u64::get(from)? {
            0 => Self::Started { pid: u32::get(from)? },
            1 => Self::Ran {
                command: u64::get(from)? as usize,
                round: u32::get(from)?,
                signal: signal(Option::get(from)?),
                used: Box::new(Used::get(from)?),
            },
            2 => {
                let command = u64::get(from)? as usize;
                let failure =
                    NotStarted { step: String::get(from)?, errno: u32::get(from)? as i32 };
                Self::NotStarted { command, failure }
            }
            3 => Self::Done { signal: signal(Option::get(from)?) },
            _ => return Err(io::ErrorKind::InvalidData.into()),
        })
    }
}

trait Put {
    fn put(&self, to: &mut Vec<u8>);
}

trait Get: Sized {
    fn get(from: &mut impl Read) -> io::Result<Self>;
}

impl Put for u64 {
    fn put(&self, to: &mut Vec<u8>) {
        to.extend(self.to_ne_bytes());
    }
}

impl Get for u64 {
    fn get(from: &mut impl Read) -> io::Result<Self> {
        let mut bytes = [0; 8];
        from.read_exact(&mut bytes)?;
        Ok(Self::from_ne_bytes(bytes))
    }
}

impl Put for u32 {
    fn put(&self, to: &mut Vec<u8>) {
        u64::from(*self).put(to);
    }
}

impl Get for u32 {
    fn get(from: &mut impl Read) -> io::Result<Self> {
        Ok(u64::get(from)? as u32)
    }
}

impl Put for String {
    fn put(&self, to: &mut Vec<u8>) {
        (self.len() as u64).put(to);
        to.extend(self.as_bytes());
    }
}

impl Get for String {
    fn get(from: &mut impl Read) -> io::Result<Self> {
        let mut bytes = vec![0; length(from)?];
        from.read_exact(&mut bytes)?;
        Self::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }
}

fn length(from: &mut impl Read) -> io::Result<usize> {
    match u64::get(from)? {
        length @ ..MOST => Ok(length as usize),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

impl Put for Vec<u32> {
    fn put(&self, to: &mut Vec<u8>) {
        (self.len() as u64).put(to);
        self.iter().for_each(|number| number.put(to));
    }
}

impl Get for Vec<u32> {
    fn get(from: &mut impl Read) -> io::Result<Self> {
        (0..length(from)?).map(|_| u32::get(from)).collect()
    }
}

impl<A: Put, B: Put> Put for (A, B) {
    fn put(&self, to: &mut Vec<u8>) {
        self.0.put(to);
        self.1.put(to);
    }
}

impl<T: Put> Put for &T {
    fn put(&self, to: &mut Vec<u8>) {
        (*self).put(to);
    }
}

impl<T: Put> Put for Option<T> {
    fn put(&self, to: &mut Vec<u8>) {
        u64::from(self.is_some()).put(to);
        self.iter().for_each(|value| value.put(to));
    }
}

impl<T: Get> Get for Option<T> {
    fn get(from: &mut impl Read) -> io::Result<Self> {
        Ok(if u64::get(from)? == 0 { None } else { Some(T::get(from)?) })
    }
}

impl<T: Put> Put for Reading<T> {
    fn put(&self, to: &mut Vec<u8>) {
        match self {
            Self::Known(value) => (1_u64, value).put(to),
            Self::Unknown { why } => {
                0_u64.put(to);
                why.put(to);
            }
        }
    }
}

impl<T: Get> Get for Reading<T> {
    fn get(from: &mut impl Read) -> io::Result<Self> {
        Ok(match u64::get(from)? {
            0 => Self::Unknown { why: String::get(from)? },
            _ => Self::Known(T::get(from)?),
        })
    }
}

impl Put for Ending {
    fn put(&self, to: &mut Vec<u8>) {
        let number = match *self {
            Self::Exited { code } => u64::from(code),
            Self::Killed { signal, core_dumped } => {
                1 << 8 | u64::from(core_dumped) << 9 | u64::from(signal)
            }
        };
        number.put(to);
    }
}

impl Get for Ending {
    fn get(from: &mut impl Read) -> io::Result<Self> {
        let number = u64::get(from)?;
        Ok(match number >> 8 & 1 {
            0 => Self::Exited { code: number as u8 },
            _ => Self::Killed { signal: number as u8, core_dumped: number >> 9 & 1 == 1 },
        })
    }
}

/// All fields, one after the other; a field that is left out does not compile.
macro_rules! by_fields {
    ($($type:ident { $($field:ident),+ })+) => {$(
        impl Put for $type {
            fn put(&self, to: &mut Vec<u8>) {
                let Self { $($field),+ } = self;
                $($field.put(to);)+
            }
        }

        impl Get for $type {
            fn get(from: &mut impl Read) -> io::Result<Self> {
                $(let $field = Get::get(from)?;)+
                Ok(Self { $($field),+ })
            }
        }
    )+};
}

by_fields! {
    Usage {
        user_ns, system_ns, max_resident_bytes, minor_faults, major_faults, input_blocks, output_blocks,
        voluntary, involuntary
    }
    AtExec { resident_bytes, minor_faults, cpu_ns }
    Sampled { user_ns, both_ns }
    Delay { run_delay_ns, covered_cpu_ns }
    IoBytes {
        read_call_bytes, write_call_bytes, storage_read_bytes, storage_write_bytes,
        cancelled_write_bytes
    }
    Threads { peak_seen, looks }
    Orphans { ended, usage, of_unknown_origin, left_behind }
    Used {
        real_ns, ending, usage, own_cpu_ns, sampled, delay, migrations, io, threads, orphans, at_exec
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_back_as_they_were() {
        let usage = Usage { user_ns: u64::MAX, voluntary: 3, ..Usage::default() };
        let used = Used {
            real_ns: 5,
            ending: Ending::Killed { signal: 11, core_dumped: true },
            usage,
            own_cpu_ns: Reading::Known(0),
            sampled: Reading::unknown("é: no"),
            delay: Reading::Known(Delay { run_delay_ns: 1, covered_cpu_ns: 2 }),
            migrations: Reading::unknown(""),
            io: Reading::Known(IoBytes { storage_read_bytes: 9, ..IoBytes::default() }),
            threads: Reading::Known(Threads { peak_seen: 4, looks: 2 }),
            orphans: Orphans {
                ended: 1,
                usage: Some(usage),
                of_unknown_origin: 2,
                left_behind: Reading::Known(vec![7, 8]),
            },
            at_exec: AtExec { resident_bytes: 1, minor_faults: 2, cpu_ns: 3 },
        };
        let exited = Used { ending: Ending::Exited { code: 255 }, ..used.clone() };
        let ran = |used, signal| Answer::Ran { command: 1, round: 6, signal, used: Box::new(used) };
        let failure = NotStarted { step: "execve".to_owned(), errno: 2 };
        let all = [
            Answer::Started { pid: 77 },
            ran(used, Some(15)),
            ran(exited, None),
            Answer::NotStarted { command: 0, failure },
            Answer::Done { signal: Some(2) },
        ];
        let mut bytes = Vec::new();
        all.iter().for_each(|answer| answer.write(&mut bytes));
        let mut from = &bytes[..];
        let read: Vec<Answer> = all.iter().map(|_| Answer::read(&mut from).unwrap()).collect();
        assert_eq!(read, all);
        assert!(Answer::read(&mut from).is_err(), "the end");
        assert!(Answer::read(&mut &[255; 64][..]).is_err(), "no answer of ours");
    }
}
