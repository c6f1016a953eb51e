//! The list of all links, and the check that a machine has one. Each file has a family of links.

mod coroutine;
mod descriptors;
mod epoll;
mod shared_memory;
mod signal;
mod tcp;
mod uring;

use rundata::placement::Placement;
use rundata::ring::{MemberKind, RingCase};
use rustix::io::Errno;

use super::build::{BuiltRing, RingMaker, build_ring};
use super::flight::{
    CountRoom, FlightAbility, FlightRefusal, room_of_descriptors, room_of_posix_queue,
    room_of_signals, room_of_slots, room_of_sysv_queue, room_of_sysv_semaphore,
};
use super::link::{CallError, RingError};
use super::member::RingLeader;
use crate::sys::{
    ChildProcess, PosixQueue, SysvItemSemaphore, SysvQueue, SysvSemaphore, TokenCondvar, UringLink,
    reset_alarm, set_deadline,
};
use coroutine::CoroutineLink;
use descriptors::{EventfdLink, FifoLink, SemaphoreEventfd, SocketLink};
pub(super) use descriptors::{PipeLink, posix_queue};
use epoll::{EpollEventfdItems, EpollEventfdLink, EpollSocketItems, EpollSocketLink};
use shared_memory::{FutexLink, FutexVectorLink, NEEDS, YieldLink, namespace_hint};
use signal::{HandlerSignalLink, SignalLink};
use tcp::{TcpLoopback, loopback_hint};
use uring::{
    UringFutexLink, UringMessageLink, UringPollItems, UringPollLink, io_uring_hint,
    newer_uring_hint,
};

/// Entry of a link in the list of links.
pub struct RegisteredLink {
    /// Name on the command line, in tables and in records.
    pub name: &'static str,
    /// Other names that the command line accepts.
    pub aliases: &'static [&'static str],
    /// Description of what carries the token, for lists of links.
    pub summary: &'static str,
    /// Calls, options or privileges that it needs.
    pub needs: &'static str,
    /// Whether a member that has passed the token on sleeps. If members never sleep, no limit on
    /// running without a sleep can be set.
    pub(super) sleeps: bool,
    /// Checks that the link can carry the token of a case's ring. The error says why not, and what
    /// to do instead.
    suits: fn(&RingCase) -> Result<(), String>,
    /// Explains an errno of its calls, and what helps, if that is known.
    hint: fn(Errno) -> Option<String>,
    /// Whether the link carries several items at once.
    pub(super) flight: FlightAbility,
    build: fn(&RingCase, u64, bool) -> Result<BuiltRing, RingError>,
}

/// Builds the entry of a link without aliases, limits or hints.
const fn link<M: RingMaker>(
    name: &'static str,
    summary: &'static str,
    needs: &'static str,
    flight: FlightAbility,
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
        flight,
        build: build_ring::<M>,
    }
}

/// Builds the entry of a link that queues items and makes the sender wait when it is full.
const fn queue<M: RingMaker>(
    name: &'static str,
    summary: &'static str,
    needs: &'static str,
    room: CountRoom,
) -> RegisteredLink {
    link::<M>(name, summary, needs, FlightAbility::queue(room))
}

/// Builds the entry of a link that carries one item by `One`, and several by `Several`.
const fn several_by<One: RingMaker, Several: RingMaker>(
    name: &'static str,
    summary: &'static str,
    needs: &'static str,
    flight: FlightAbility,
) -> RegisteredLink {
    let build = build_for_flight::<One, Several>;
    RegisteredLink { build, ..link::<One>(name, summary, needs, flight) }
}

/// Builds the ring of a case, by `Several` if it has several items under way.
fn build_for_flight<One: RingMaker, Several: RingMaker>(
    case: &RingCase,
    seed: u64,
    has_solos: bool,
) -> Result<BuiltRing, RingError> {
    match case.flight {
        None => build_ring::<One>(case, seed, has_solos),
        Some(_) => build_ring::<Several>(case, seed, has_solos),
    }
}

/// Ability of a link whose token lies in one word.
const ONE_SLOT: FlightAbility = FlightAbility::HoldsOne(FlightRefusal::OneSlot);

/// How an eventfd behind epoll or io_uring carries several items.
const COUNTED_BEFORE_WAIT: &str = "one item is waited for and is the count; several are counted \
    (EFD_SEMAPHORE), lie in shared memory, and are all read before a wait";

/// All links. A new one implements `LinkEnd` and `Link`, and has an entry here.
pub const LINKS: &[RegisteredLink] = &[
    queue::<PipeLink>(
        "pipe",
        "one byte through a pipe",
        "pipe(2)",
        room_of_descriptors::<PipeLink>,
    ),
    queue::<FifoLink>(
        "fifo",
        "one byte through a named pipe",
        "mkfifo(3) in TMPDIR, or else /tmp",
        room_of_descriptors::<FifoLink>,
    ),
    RegisteredLink {
        aliases: &["unix"],
        ..queue::<SocketLink<false>>(
            "socket-stream",
            "one byte through local stream sockets",
            "socketpair(2)",
            room_of_descriptors::<SocketLink<false>>,
        )
    },
    queue::<SocketLink<true>>(
        "socket-dgram",
        "one byte through local datagram sockets",
        "socketpair(2)",
        room_of_descriptors::<SocketLink<true>>,
    ),
    RegisteredLink {
        aliases: &["tcp-loopback"],
        hint: loopback_hint,
        ..queue::<TcpLoopback>(
            "tcp",
            "one byte through TCP over loopback",
            "a loopback device that is up (127.0.0.1)",
            room_of_descriptors::<TcpLoopback>,
        )
    },
    several_by::<EventfdLink, SemaphoreEventfd>(
        "eventfd",
        "a count through an eventfd",
        "eventfd(2)",
        FlightAbility::Holds {
            room: room_of_slots,
            never_full: Some(FlightRefusal::NeverFull),
            several: Some(
                "one item is its count; several are counted (EFD_SEMAPHORE) and lie in shared memory",
            ),
        },
    ),
    several_by::<EpollSocketLink, EpollSocketItems>(
        "epoll-socket",
        "one byte through local stream sockets, waited for by epoll",
        "epoll_pwait(2), socketpair(2)",
        FlightAbility::Holds {
            room: room_of_descriptors::<SocketLink<false>>,
            never_full: Some(FlightRefusal::SenderNeverBlocks),
            several: Some(
                "one item is waited for, then read; of several all are read before a wait",
            ),
        },
    ),
    several_by::<EpollEventfdLink, EpollEventfdItems>(
        "epoll-eventfd",
        "a count through an eventfd, waited for by epoll",
        "epoll_pwait(2), eventfd(2)",
        FlightAbility::Holds {
            room: room_of_slots,
            never_full: Some(FlightRefusal::NeverFull),
            several: Some(COUNTED_BEFORE_WAIT),
        },
    ),
    link::<SignalLink>(
        "signal",
        "a real-time signal, waited for by sigwaitinfo",
        "rt_tgsigqueueinfo(2)",
        FlightAbility::Holds {
            room: room_of_signals,
            never_full: Some(FlightRefusal::SenderRefused),
            several: None,
        },
    ),
    link::<HandlerSignalLink>(
        "handler-signal",
        "a signal and its handler",
        "tgkill(2), sigsuspend(2)",
        FlightAbility::HoldsOne(FlightRefusal::SignalsMerge),
    ),
    queue::<PosixQueue>(
        "posix-mq",
        "one byte through a POSIX message queue",
        "CONFIG_POSIX_MQUEUE",
        room_of_posix_queue,
    ),
    RegisteredLink {
        hint: namespace_hint,
        ..queue::<SysvQueue>(
            "sysv-msg",
            "one byte through a System V message queue",
            NEEDS,
            room_of_sysv_queue,
        )
    },
    RegisteredLink {
        hint: namespace_hint,
        ..several_by::<SysvSemaphore, SysvItemSemaphore>(
            "sysv-sem",
            "a System V semaphore: one up, one down",
            NEEDS,
            FlightAbility::Holds {
                room: room_of_sysv_semaphore,
                never_full: Some(FlightRefusal::CounterEnds),
                several: None,
            },
        )
    },
    link::<FutexLink>("futex", "a word in shared memory, slept on by futex", "futex(2)", ONE_SLOT),
    link::<FutexVectorLink>(
        "futex-waitv",
        "a word in shared memory, slept on by futex_waitv",
        "futex_waitv(2) of Linux 5.16",
        ONE_SLOT,
    ),
    link::<TokenCondvar>(
        "condvar",
        "a pthread condition variable",
        "process-shared mutexes",
        FlightAbility::HoldsOne(FlightRefusal::UnderMutex),
    ),
    RegisteredLink {
        hint: io_uring_hint,
        ..queue::<UringLink>(
            "io-uring",
            "a pipe, written and read by io_uring",
            "io_uring_setup(2)",
            room_of_descriptors::<PipeLink>,
        )
    },
    RegisteredLink {
        hint: |errno| newer_uring_hint(errno, "6.1"),
        ..link::<UringMessageLink>(
            "io-uring-msg",
            "a message from one io_uring to the next",
            "io_uring of Linux 6.1",
            FlightAbility::HoldsOne(FlightRefusal::OneMessage),
        )
    },
    RegisteredLink {
        hint: |errno| newer_uring_hint(errno, "6.7"),
        ..link::<UringFutexLink>(
            "io-uring-futex",
            "a word in shared memory, slept on by io_uring",
            "io_uring of Linux 6.7",
            ONE_SLOT,
        )
    },
    RegisteredLink {
        hint: |errno| newer_uring_hint(errno, "6.1"),
        ..several_by::<UringPollLink, UringPollItems>(
            "io-uring-poll",
            "a count through an eventfd, polled by io_uring",
            "io_uring of Linux 6.1, eventfd(2)",
            FlightAbility::Holds {
                room: room_of_slots,
                never_full: Some(FlightRefusal::NeverFull),
                several: Some(COUNTED_BEFORE_WAIT),
            },
        )
    },
    RegisteredLink {
        sleeps: false,
        suits: |case| check_one_cpu(case, "members that poll on CPUs of their own never switch"),
        ..link::<YieldLink>(
            "yield",
            "a byte, polled with sched_yield",
            "one CPU (--placement same)",
            ONE_SLOT,
        )
    },
    RegisteredLink {
        sleeps: false,
        suits: |case| match case.kind {
            MemberKind::Thread => {
                check_one_cpu(case, "coroutines run in one thread, on one CPU at a time")
            }
            _ => Err("coroutines switch within one process: use --kind thread".to_string()),
        },
        ..link::<CoroutineLink>(
            "coroutine",
            "a stackful coroutine, without the kernel",
            "--kind thread",
            FlightAbility::HoldsOne(FlightRefusal::HandedOver),
        )
    },
];

/// Returns the link of that name or alias.
pub fn find_link(name: &str) -> Option<&'static RegisteredLink> {
    LINKS.iter().find(|link| link.name == name || link.aliases.contains(&name))
}

/// Checks that all members of a ring run on one CPU. `why` says why they must.
fn check_one_cpu(case: &RingCase, why: &str) -> Result<(), String> {
    if case.placement.is_one_cpu() {
        return Ok(());
    }
    Err(format!("{why}: use --placement same or a single CPU"))
}

/// Seconds after which a link that passes no token is taken not to work.
const DEADLINE_S: u32 = 5;

impl RegisteredLink {
    /// Checks that the link can carry the token of a case's ring.
    pub fn suits(&self, case: &RingCase) -> Result<(), RingError> {
        if let Some(flight) = case.flight {
            self.check_kind_of_flight(flight).map_err(RingError::Other)?;
        }
        (self.suits)(case).map_err(|why| RingError::Other(format!("--link {}: {why}", self.name)))
    }

    /// Builds the ring of a case. `seed` decides where the members' memory lies; if `has_solos`,
    /// each member also gets a channel to itself.
    pub(super) fn build(
        &self,
        case: &RingCase,
        seed: u64,
        has_solos: bool,
    ) -> Result<BuiltRing, RingError> {
        (self.build)(case, seed, has_solos).map_err(|error| match error {
            RingError::Call(call) => {
                let why = self.explain(call);
                RingError::Other(format!("--link {} cannot be used here: {why}", self.name))
            }
            other => other,
        })
    }

    /// Describes a call that was refused, and what helps.
    fn explain(&self, (call, errno): CallError) -> String {
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

    /// Checks that the link works on this machine, in a process of its own that passes a token over
    /// it and changes its signals and its namespace for that. The error says why not. The calling
    /// process must be single-threaded.
    pub fn available(&self) -> Result<(), String> {
        ChildProcess::start_ready(|| self.pass_a_token(), |()| ()).map(|_| ())
    }

    /// Passes a token round a ring of one, within [`DEADLINE_S`].
    fn pass_a_token(&self) -> Result<(), String> {
        reset_alarm();
        set_deadline(DEADLINE_S);
        let case = RingCase {
            // The kind that every link supports.
            kind: MemberKind::Thread,
            link: self.name.to_string(),
            ..RingCase::of_processes(1, Placement::Free { cpus: Vec::new() })
        };
        let ring = (self.build)(&case, 0, false).map_err(|error| match error {
            RingError::Call(call) | RingError::Refused { call, .. } => self.explain(call),
            other => other.to_string(),
        })?;
        let mut leader = RingLeader::new(ring.leader, &ring.area);
        let passed = leader.announce(1).and_then(|()| leader.batch(1, &mut || 0));
        passed.map(|_| ()).map_err(|error| error.to_string())
    }
}
