//! Several items under way: which links carry them, how many, and why others do not.
//!
//! The leader's own link decides whether a ring can come to a standstill. The leader never waits to
//! send as long as that link holds all items that are under way; it then waits to receive only, and
//! so does, behind it, each member in turn. So the room of one link is counted, before a ring is
//! timed. A stream over a full link has no circle: its reader always reads.

use std::fs;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rundata::ring::{Flight, MAX_FLIGHT, MemberKind};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;

use super::build::shared_area;
use super::link::{CallContext, CallError, ChannelPlace, Link};
use super::links::{LINKS, RegisteredLink, posix_queue};
use crate::sys::{ChildProcess, SharedValue, SysvItemSemaphore};

/// Messages of a POSIX queue that is to become full: the kernel's default (fs.mqueue.msg_default).
const FULL_QUEUE: u32 = 10;

/// Room of a channel of a ring: items that it has to hold at once.
pub(super) fn channel_room(flight: Option<Flight>) -> u32 {
    match flight {
        None => 1,
        Some(Flight::Items(count)) => count,
        Some(Flight::Full) => FULL_QUEUE,
    }
}

/// Counts the items that a link holds: up to the number of a flight, or to [`MAX_FLIGHT`].
pub(super) type CountRoom = fn(Flight) -> Result<u32, CallError>;

/// Returns the most items that are counted for a flight.
fn most_items(flight: Flight) -> u32 {
    match flight {
        Flight::Items(count) => count,
        Flight::Full => MAX_FLIGHT,
    }
}

/// Ability of a link to carry several items at once.
#[derive(Clone, Copy)]
pub enum FlightAbility {
    /// It holds several.
    Holds {
        /// Counts the items that it holds here.
        room: CountRoom,
        /// Reason why its sender is never made to wait; `None` where a full link does so.
        never_full: Option<FlightRefusal>,
        /// Description of how it carries several items, where that is not how it carries one.
        several: Option<&'static str>,
    },
    /// It holds one.
    HoldsOne(FlightRefusal),
}

/// Reason why a link does not carry so many items at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlightRefusal {
    /// A second token would overwrite the first.
    #[error("its token lies in one shared word, which a second would overwrite")]
    OneSlot,
    /// A condition variable has no count.
    #[error("a condition variable counts nothing, and one token lies under its mutex")]
    UnderMutex,
    /// A member that sends again before it waits would overwrite its message.
    #[error("a member keeps one message, which its next wait submits")]
    OneMessage,
    /// A signal that is pending is not queued again.
    #[error("a signal that is pending is not queued a second time")]
    SignalsMerge,
    /// Nothing holds the token between two members.
    #[error("its token is handed over in a register")]
    HandedOver,
    /// A full queue is an error for its sender.
    #[error("a sender to a full queue of signals is refused, not made to wait")]
    SenderRefused,
    /// A full socket that does not block is an error for its sender.
    #[error("a sender to a full socket that does not block is refused (EAGAIN), not made to wait")]
    SenderNeverBlocks,
    /// A semaphore at its largest value is an error for its sender.
    #[error(
        "a sender to a semaphore at its maximum of {} is refused (ERANGE), not made to wait",
        SysvItemSemaphore::MAX_ITEMS
    )]
    CounterEnds,
    /// It never fills.
    #[error("its counter of 64 bits never fills, so that no writer waits")]
    NeverFull,
    /// It holds fewer.
    #[error("it holds {held} items here")]
    HoldsFewer {
        /// Items that it holds.
        held: u32,
    },
    /// Its room cannot be counted.
    #[error("its room cannot be counted: {}: {}", .0.0, .0.1)]
    Uncounted(CallError),
}

impl FlightAbility {
    /// Builds the ability of a link that holds several items and then makes its sender wait.
    pub(super) const fn queue(room: CountRoom) -> Self {
        Self::Holds { room, never_full: None, several: None }
    }

    /// Checks whether links of this kind carry so many items, without trying it.
    fn check_kind(self, flight: Flight) -> Result<(), FlightRefusal> {
        match (self, flight) {
            (Self::HoldsOne(why), _) => Err(why),
            (Self::Holds { never_full: Some(why), .. }, Flight::Full) => Err(why),
            (Self::Holds { .. }, _) => Ok(()),
        }
    }

    /// Checks that the link holds so many items here; returns how many are under way. Creates a
    /// channel and fills it.
    fn count_items(self, flight: Flight) -> Result<u32, FlightRefusal> {
        self.check_kind(flight)?;
        let room = match self {
            Self::Holds { room, .. } => room,
            Self::HoldsOne(why) => return Err(why),
        };
        let held = room(flight).map_err(FlightRefusal::Uncounted)?;
        match flight {
            Flight::Items(count) if held < count => Err(FlightRefusal::HoldsFewer { held }),
            _ => Ok(held),
        }
    }
}

impl RegisteredLink {
    /// Checks that the link carries so many items at once on this machine, in a process of its own.
    /// Returns how many are under way. The error says why not, and which links do. The calling process
    /// must be single-threaded.
    pub fn check_flight(&self, flight: Flight) -> Result<u32, String> {
        let counted = SharedValue::<AtomicU32>::new().map_err(|errno| {
            self.refuse_flight(flight, FlightRefusal::Uncounted(("mmap", errno)))
        })?;
        ChildProcess::start_ready(
            || self.count_items(flight).map(|items| counted.store(items, Ordering::Release)),
            |()| (),
        )?;
        Ok(counted.load(Ordering::Acquire))
    }

    /// Describes how the link carries several items, where that is not how it carries one: then rings
    /// with one and with several items differ in more than their number.
    pub fn several_items_in_words(&self) -> Option<&'static str> {
        match self.flight {
            FlightAbility::Holds { several, .. } => several,
            FlightAbility::HoldsOne(_) => None,
        }
    }

    /// Like [`Self::check_flight`], in the calling process. Returns how many items are under way.
    pub(super) fn count_items(&self, flight: Flight) -> Result<u32, String> {
        self.flight.count_items(flight).map_err(|why| self.refuse_flight(flight, why))
    }

    /// Checks whether links of this kind carry so many items, without trying it.
    pub(super) fn check_kind_of_flight(&self, flight: Flight) -> Result<(), String> {
        self.flight.check_kind(flight).map_err(|why| self.refuse_flight(flight, why))
    }

    fn refuse_flight(&self, flight: Flight, why: FlightRefusal) -> String {
        let mut able = Vec::new();
        for link in LINKS {
            if link.flight.check_kind(flight).is_ok() {
                able.push(link.name);
            }
        }
        let able = able.join(", ");
        format!("--flight {flight} with --link {}: {why} (links that can: {able})", self.name)
    }
}

/// Counts the items of one byte that a link of descriptors holds.
pub(super) fn room_of_descriptors<L: Link<End = OwnedFd>>(
    flight: Flight,
) -> Result<u32, CallError> {
    let area = shared_area(1, false).map_err(|_| ("mmap", Errno::NOMEM))?;
    let place = ChannelPlace { area: Arc::clone(&area), kind: MemberKind::Thread, to: 0, room: 1 };
    // The receiving end is kept: without a reader nobody could write.
    let (sender, _receiver) = L::channel(&place)?;
    let flags = fcntl_getfl(&sender).in_call("fcntl")?;
    fcntl_setfl(&sender, flags | OFlags::NONBLOCK).in_call("fcntl")?;
    let most = most_items(flight);
    for held in 0..most {
        match rustix::io::write(&sender, &[0]) {
            Ok(_) => {}
            Err(Errno::AGAIN) => return Ok(held),
            Err(errno) => return Err(("write", errno)),
        }
    }
    Ok(most)
}

/// Returns the messages that a POSIX queue is made for, or fs.mqueue.msg_max, by which users without
/// CAP_SYS_RESOURCE are bound (mq_overview(7)).
pub(super) fn room_of_posix_queue(flight: Flight) -> Result<u32, CallError> {
    let messages = channel_room(Some(flight));
    match posix_queue(messages) {
        Ok(_) => Ok(messages),
        Err(("mq_open", Errno::INVAL)) => {
            Ok(read_number("/proc/sys/fs/mqueue/msg_max").unwrap_or(1))
        }
        Err(call) => Err(call),
    }
}

/// Bytes of a System V queue in a new IPC namespace (MSGMNB).
const NEW_QUEUE_BYTES: u32 = 16_384;

/// Returns the room of a System V queue for messages of one byte (msgget(2)).
#[allow(clippy::unnecessary_wraps)]
pub(super) fn room_of_sysv_queue(flight: Flight) -> Result<u32, CallError> {
    Ok(most_items(flight).min(NEW_QUEUE_BYTES))
}

/// Returns how many more signals of this user may be pending (RLIMIT_SIGPENDING).
pub(super) fn room_of_signals(flight: Flight) -> Result<u32, CallError> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigQ:"));
    let Some((queued, most)) = line.and_then(|line| line.trim().split_once('/')) else {
        return Err(("read /proc/self/status", Errno::INVAL));
    };
    let queued: u64 = queued.parse().map_err(|_| ("read SigQ", Errno::INVAL))?;
    let most: u64 = most.parse().map_err(|_| ("read SigQ", Errno::INVAL))?;
    let free = u32::try_from(most.saturating_sub(queued)).unwrap_or(u32::MAX);
    Ok(free.min(most_items(flight)))
}

/// Returns the largest value of a System V semaphore.
#[allow(clippy::unnecessary_wraps)]
pub(super) fn room_of_sysv_semaphore(flight: Flight) -> Result<u32, CallError> {
    Ok(most_items(flight).min(SysvItemSemaphore::MAX_ITEMS))
}

/// Returns the room of the shared slots beside an eventfd.
#[allow(clippy::unnecessary_wraps)]
pub(super) fn room_of_slots(flight: Flight) -> Result<u32, CallError> {
    Ok(most_items(flight).min(MAX_FLIGHT))
}

fn read_number(path: &str) -> Option<u32> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::find_link;
    use crate::ring::links::PipeLink;

    #[test]
    fn a_pipe_holds_what_it_is_said_to() {
        assert_eq!(room_of_descriptors::<PipeLink>(Flight::Items(100)), Ok(100));
        // 64 KiB, or a page where the user has many pipes (pipe(7)).
        let room = room_of_descriptors::<PipeLink>(Flight::Full).unwrap();
        assert!([4096, 8192, 65_536].contains(&room), "{room}");
    }

    #[test]
    fn a_link_that_cannot_says_why_and_which_can() {
        let refused =
            |name: &str, flight| find_link(name).unwrap().count_items(flight).unwrap_err();
        let why = refused("futex", Flight::Items(16));
        assert!(
            why.starts_with("--flight 16 with --link futex: its token lies in one shared word")
        );
        assert!(why.contains("(links that can: pipe, ") && why.contains("eventfd"), "{why}");
        let why = refused("eventfd", Flight::Full);
        assert!(why.contains("never fills") && !why.contains("eventfd,"), "{why}");
        let why = refused("sysv-msg", Flight::Items(20_000));
        assert!(why.contains("it holds 16384 items here"), "{why}");
        let why = refused("sysv-sem", Flight::Items(32_768));
        assert!(why.contains("it holds 32767 items here"), "{why}");
    }

    #[test]
    fn a_link_with_two_mechanisms_says_so() {
        let several = |name: &str| find_link(name).unwrap().several_items_in_words();
        assert!(several("eventfd").unwrap().contains("EFD_SEMAPHORE"));
        assert!(several("epoll-socket").unwrap().contains("before a wait"));
        assert_eq!([several("pipe"), several("sysv-sem"), several("futex")], [None; 3]);
    }
}
