//! The links by family, the list of all, and whether the machine has one.

mod coroutine;
mod descriptors;
mod shared_memory;
mod signal;
mod tcp;

use model::placement::Placement;
use model::ring::{Case, Kind};
use rustix::io::Errno;

use super::build::{BuiltRing, RingMaker, make};
use super::link::{CallError, RingError};
use super::member::RingLeader;
use crate::sys::{
    ChildProcess, PosixQueue, SysvQueue, SysvSemaphore, TokenCondvar, UringLink, deadline,
    default_alarm,
};
use coroutine::CoroutineLink;
pub(super) use descriptors::PipeLink;
use descriptors::{EventfdLink, FifoLink, SocketLink, io_uring_hint};
use shared_memory::{FutexLink, NEEDS, YieldLink, namespace_hint};
use signal::{HandlerSignalLink, SignalLink};
use tcp::{TcpLoopback, loopback_hint};

/// A link as the registry knows it.
pub struct RegisteredLink {
    /// Its name on the command line, in tables and in records.
    pub name: &'static str,
    /// Other names that the command line takes for it.
    pub aliases: &'static [&'static str],
    /// What carries the token, for lists of links.
    pub summary: &'static str,
    /// What it needs of the kernel.
    pub needs: &'static str,
    /// A member that has passed the token on gives up its CPU by sleeping. Where none ever sleeps,
    /// no limit on running without a sleep can be set.
    pub(super) sleeps: bool,
    /// Whether it can carry the token of such a ring: if not, why, and what to do instead.
    suits: fn(&Case) -> Result<(), String>,
    /// What stands behind this refusal of its calls, and what helps, where that is known.
    hint: fn(Errno) -> Option<String>,
    make: fn(&Case, u64, bool) -> Result<BuiltRing, RingError>,
}

/// A link of which there is nothing else to say.
const fn of<M: RingMaker>(
    name: &'static str,
    summary: &'static str,
    needs: &'static str,
) -> RegisteredLink {
    let (suits, hint) = (|_: &_| Ok(()), |_| None);
    RegisteredLink {
        name,
        aliases: &[],
        summary,
        needs,
        sleeps: true,
        suits,
        hint,
        make: make::<M>,
    }
}

/// Every link there is. A new one implements `End` and `Link`, and has a line here.
pub const LINKS: &[RegisteredLink] = &[
    of::<PipeLink>("pipe", "one byte through a pipe", "pipe(2)"),
    of::<FifoLink>("fifo", "one byte through a named pipe", "mkfifo(3) in TMPDIR, or else /tmp"),
    RegisteredLink {
        aliases: &["unix"],
        ..of::<SocketLink<false>>(
            "socket-stream",
            "one byte through local stream sockets",
            "socketpair(2)",
        )
    },
    of::<SocketLink<true>>(
        "socket-dgram",
        "one byte through local datagram sockets",
        "socketpair(2)",
    ),
    RegisteredLink {
        aliases: &["tcp-loopback"],
        hint: loopback_hint,
        ..of::<TcpLoopback>(
            "tcp",
            "one byte through TCP over loopback",
            "a loopback device that is up (127.0.0.1)",
        )
    },
    of::<EventfdLink>("eventfd", "a count through an eventfd", "eventfd(2)"),
    of::<SignalLink>(
        "signal",
        "a real-time signal, waited for by sigwaitinfo",
        "rt_tgsigqueueinfo(2)",
    ),
    of::<HandlerSignalLink>(
        "handler-signal",
        "a signal and its handler",
        "tgkill(2), sigsuspend(2)",
    ),
    of::<PosixQueue>("posix-mq", "one byte through a POSIX message queue", "CONFIG_POSIX_MQUEUE"),
    RegisteredLink {
        hint: namespace_hint,
        ..of::<SysvQueue>("sysv-msg", "one byte through a System V message queue", NEEDS)
    },
    RegisteredLink {
        hint: namespace_hint,
        ..of::<SysvSemaphore>("sysv-sem", "a System V semaphore: one up, one down", NEEDS)
    },
    of::<FutexLink>("futex", "a word in shared memory, slept on by futex", "futex(2)"),
    of::<TokenCondvar>("condvar", "a pthread condition variable", "process-shared mutexes"),
    RegisteredLink {
        hint: io_uring_hint,
        ..of::<UringLink>("io-uring", "a pipe, written and read by io_uring", "io_uring_setup(2)")
    },
    RegisteredLink {
        sleeps: false,
        suits: |case| on_one_cpu(case, "members that poll on CPUs of their own never switch"),
        ..of::<YieldLink>("yield", "a byte, polled with sched_yield", "one CPU (--placement same)")
    },
    RegisteredLink {
        sleeps: false,
        suits: |case| match case.kind {
            Kind::Thread => on_one_cpu(case, "coroutines run in one thread, on one CPU at a time"),
            _ => Err("coroutines switch within one process: use --kind thread".to_string()),
        },
        ..of::<CoroutineLink>(
            "coroutine",
            "a stackful coroutine, without the kernel",
            "--kind thread",
        )
    },
];

/// Returns the link of that name or alias.
pub fn find_link(name: &str) -> Option<&'static RegisteredLink> {
    LINKS.iter().find(|link| link.name == name || link.aliases.contains(&name))
}

/// Whether all members of a ring run on one CPU; if not, why they must and what to do.
fn on_one_cpu(case: &Case, why: &str) -> Result<(), String> {
    let is_one_cpu = case.placement.is_one_cpu();
    is_one_cpu.then_some(()).ok_or(format!("{why}: use --placement same or a single CPU"))
}

/// Seconds after which a link that passes no token is taken for one that does not work.
const DEADLINE_S: u32 = 5;

impl RegisteredLink {
    /// Whether it can carry the token of such a ring.
    pub fn suits(&self, case: &Case) -> Result<(), RingError> {
        let unsuited = |why| RingError::Other(format!("--link {}: {why}", self.name));
        (self.suits)(case).map_err(unsuited)
    }

    /// Makes a ring whose members find their memory by `seed`; where `alone`, each also gets a
    /// channel of its own.
    pub(super) fn make(&self, case: &Case, seed: u64, alone: bool) -> Result<BuiltRing, RingError> {
        (self.make)(case, seed, alone).map_err(|error| match error {
            RingError::Call(call) => {
                let (name, why) = (self.name, self.unavailable(call));
                RingError::Other(format!("--link {name} cannot be used here: {why}"))
            }
            other => other,
        })
    }

    fn unavailable(&self, (call, errno): CallError) -> String {
        let known = match errno {
            Errno::NOSYS => Some(
                "this kernel was built without it, or a container's filter hides it".to_string(),
            ),
            Errno::PERM => Some("it is forbidden here, as containers do".to_string()),
            _ => None,
        };
        let hint = (self.hint)(errno).or(known).map_or(String::new(), |hint| format!(": {hint}"));
        format!("{call}: {errno}{hint}")
    }

    /// Whether this machine has it: tried in a process of its own, which passes a token by it and
    /// changes its signals and its namespace for that. If not, why. The calling process must be
    /// single-threaded.
    pub fn available(&self) -> Result<(), String> {
        let pass_a_token = || {
            default_alarm();
            deadline(DEADLINE_S);
            self.pass_a_token()
        };
        ChildProcess::start_ready(pass_a_token, |()| ()).map(|_| ())
    }

    fn pass_a_token(&self) -> Result<(), String> {
        let case = Case {
            // The kind that every link can serve.
            kind: Kind::Thread,
            link: self.name.to_string(),
            ..Case::of_processes(1, Placement::Free { cpus: Vec::new() })
        };
        let ring = (self.make)(&case, 0, false).map_err(|error| match error {
            RingError::Call(call) | RingError::Refused { call, .. } => self.unavailable(call),
            other => other.to_string(),
        })?;
        let mut leader = RingLeader::new(ring.leader, &ring.area);
        let passed = leader.announce(1).and_then(|()| leader.batch(1, &mut || 0));
        passed.map(|_| ()).map_err(|error| error.to_string())
    }
}
