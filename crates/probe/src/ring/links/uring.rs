//! Links by io_uring(7). By `io-uring` both ends make their calls on a pipe by a ring of their own.
//! By the others each member has one ring, as an event loop has: what it sends is queued, and
//! submitted by the call that waits for the next token.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use rundata::ring::MemberKind;
use rustix::event::EventfdFlags;
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::thread::futex::WaitFlags;

use super::descriptors::{EventfdLink, PipeLink, SemaphoreEventfd};
use super::shared_memory::word_flags;
use crate::ring::link::{CallContext, CallError, ChannelPlace, Link, LinkEnd, LinkError};
use crate::sys::{SharedValue, TaskUring, TokenSlot, UringLink, UringOperation, member_lost};

/// The token is a byte in a pipe, written by one io_uring_enter(2) and read by another.
impl Link for UringLink {
    type End = Self;

    fn channel(place: &ChannelPlace) -> Result<(Self, Self), CallError> {
        let (sender, receiver) = PipeLink::channel(place)?;
        let sender = Self::new(sender).in_call("io_uring_setup")?;
        let receiver = Self::new(receiver).in_call("io_uring_setup")?;
        Ok((sender, receiver))
    }
}

/// The token is the result of a message that one ring posts to another (IORING_OP_MSG_RING).
pub struct UringMessageLink {
    /// Ring of the member that receives, in the receiving end.
    uring: Option<TaskUring>,
    outbox: MessageOutbox,
    /// 1 once the receiver's ring takes messages.
    is_ready: SharedValue<AtomicU32>,
}

/// A member's message to the next one. The sending end fills it, the receiving end queues it.
struct MessageOutbox {
    /// Ring of the next member. `None` in a sending end that is joined with a receiving one, and in
    /// a receiving end before that.
    target: Option<OwnedFd>,
    token: Arc<TokenSlot>,
}

impl MessageOutbox {
    fn new(target: Option<OwnedFd>) -> Self {
        Self { target, token: Arc::default() }
    }

    /// Queues the message, if there is one.
    #[inline(always)]
    fn queue(&self, uring: &mut TaskUring) -> Result<(), LinkError> {
        if let Some(token) = self.token.take() {
            let target = self.target.as_ref().ok_or(LinkError::Closed)?;
            uring.queue_message(target.as_fd(), token)?;
        }
        Ok(())
    }
}

impl Link for UringMessageLink {
    type End = Self;

    fn prepare() -> Result<(), CallError> {
        TaskUring::check(UringOperation::Message)
    }

    fn channel(_: &ChannelPlace) -> Result<(Self, Self), CallError> {
        let uring = TaskUring::new().in_call("io_uring_setup")?;
        let target = fcntl_dupfd_cloexec(uring.as_fd(), 0).in_call("fcntl")?;
        let is_ready = SharedValue::<AtomicU32>::new().in_call("mmap")?;
        let outbox = MessageOutbox::new(Some(target));
        let sender = Self { uring: None, outbox, is_ready: is_ready.clone() };
        let receiver = Self { uring: Some(uring), outbox: MessageOutbox::new(None), is_ready };
        Ok((sender, receiver))
    }

    fn join(sender: &mut Self, receiver: &mut Self) -> Result<(), CallError> {
        let token = Arc::clone(&sender.outbox.token);
        receiver.outbox = MessageOutbox { target: sender.outbox.target.take(), token };
        enable(receiver.uring.as_ref())?;
        receiver.is_ready.store(1, Ordering::Release);
        Ok(())
    }
}

impl LinkEnd for UringMessageLink {
    #[inline(always)]
    fn send(&mut self, token: u8) -> Result<(), LinkError> {
        self.outbox.token.put(token);
        Ok(())
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<u8, LinkError> {
        let uring = self.uring.as_mut().ok_or(LinkError::Closed)?;
        self.outbox.queue(uring)?;
        match uring.wait()?.value() {
            Ok(token) => Ok(token as u8),
            // This member's own message failed: the task of the next one has ended.
            Err(Errno::OWNERDEAD) => Err(LinkError::Closed),
            Err(errno) => Err(errno.into()),
        }
    }

    fn flush(&mut self) -> Result<(), LinkError> {
        let uring = self.uring.as_mut().ok_or(LinkError::Closed)?;
        self.outbox.queue(uring)?;
        Ok(uring.submit()?)
    }

    /// Waits until the next member's ring takes messages.
    fn settle(&mut self) -> Result<(), LinkError> {
        while self.is_ready.load(Ordering::Acquire) == 0 {
            if member_lost() {
                return Err(LinkError::Closed);
            }
            thread::sleep(Duration::from_micros(50));
        }
        Ok(())
    }
}

/// Makes the calling task the user of a receiving end's ring.
fn enable(uring: Option<&TaskUring>) -> Result<(), CallError> {
    let enabled = uring.ok_or(Errno::BADF).and_then(TaskUring::enable);
    enabled.in_call("io_uring_register")
}

/// The token lies in a word that the receiver waits for by IORING_OP_FUTEX_WAIT. The sender wakes
/// it by IORING_OP_FUTEX_WAKE.
pub struct UringFutexLink {
    /// Ring of the member that receives, in the receiving end.
    uring: Option<TaskUring>,
    /// Word of the channel.
    slot: SharedValue<TokenSlot>,
    wake: QueuedWake,
    flags: WaitFlags,
}

/// A member's wake of the next one. The sending end asks for it, the receiving end queues it.
struct QueuedWake {
    /// Word of the next member.
    slot: SharedValue<TokenSlot>,
    /// Full while the wake is to be queued.
    request: Arc<TokenSlot>,
}

impl QueuedWake {
    /// Queues the wake, if it was asked for.
    #[inline(always)]
    fn queue(&self, uring: &mut TaskUring, flags: WaitFlags) -> Result<(), LinkError> {
        if self.request.take().is_some() {
            uring.queue_wake(&self.slot, flags)?;
        }
        Ok(())
    }
}

impl Link for UringFutexLink {
    type End = Self;

    fn prepare() -> Result<(), CallError> {
        TaskUring::check(UringOperation::FutexWait)
    }

    fn channel(place: &ChannelPlace) -> Result<(Self, Self), CallError> {
        let uring = TaskUring::new().in_call("io_uring_setup")?;
        let slot = SharedValue::<TokenSlot>::new().in_call("mmap")?;
        let sender = Self::end(None, &slot, place.kind);
        Ok((sender, Self::end(Some(uring), &slot, place.kind)))
    }

    fn join(sender: &mut Self, receiver: &mut Self) -> Result<(), CallError> {
        let request = Arc::clone(&sender.wake.request);
        receiver.wake = QueuedWake { slot: sender.slot.clone(), request };
        enable(receiver.uring.as_ref())
    }
}

impl UringFutexLink {
    /// Builds an end of the channel of a word.
    fn end(uring: Option<TaskUring>, slot: &SharedValue<TokenSlot>, kind: MemberKind) -> Self {
        let wake = QueuedWake { slot: slot.clone(), request: Arc::default() };
        Self { uring, slot: slot.clone(), wake, flags: word_flags(kind) }
    }
}

impl LinkEnd for UringFutexLink {
    #[inline(always)]
    fn send(&mut self, token: u8) -> Result<(), LinkError> {
        self.slot.put(token);
        self.wake.request.put(0);
        Ok(())
    }

    /// Waits without looking at the word before: one call a hop in a ring of any size.
    #[inline(always)]
    fn receive(&mut self) -> Result<u8, LinkError> {
        let uring = self.uring.as_mut().ok_or(LinkError::Closed)?;
        self.wake.queue(uring, self.flags)?;
        loop {
            uring.queue_wait(&self.slot, self.flags)?;
            match uring.wait()?.value() {
                // The token came before the wait.
                Ok(_) | Err(Errno::AGAIN) => {}
                Err(errno) => return Err(errno.into()),
            }
            // There is none if the wake was that of a token found by the wait before.
            if let Some(token) = self.slot.take() {
                return Ok(token);
            }
        }
    }

    fn flush(&mut self) -> Result<(), LinkError> {
        let uring = self.uring.as_mut().ok_or(LinkError::Closed)?;
        self.wake.queue(uring, self.flags)?;
        Ok(uring.submit()?)
    }
}

/// One end of an eventfd. The receiver's ring polls it all the time (IORING_POLL_ADD_MULTI); the
/// sender writes to it.
pub struct UringPollEnd<C> {
    counter: C,
    /// Ring of the member that receives, in the receiving end.
    uring: Option<TaskUring>,
}

impl<C: AsFd> UringPollEnd<C> {
    /// Builds both ends from those of an eventfd that does not block.
    fn pair(sender: C, receiver: C) -> Result<(Self, Self), CallError> {
        let uring = TaskUring::new().in_call("io_uring_setup")?;
        Ok((Self { counter: sender, uring: None }, Self { counter: receiver, uring: Some(uring) }))
    }

    /// Makes the calling task the user of the receiving end's ring, and queues its poll.
    fn enable(&mut self) -> Result<(), CallError> {
        enable(self.uring.as_ref())?;
        // Submitted by the first wait.
        let uring = self.uring.as_mut().ok_or(("io_uring_register", Errno::BADF))?;
        uring.queue_poll(self.counter.as_fd()).in_call("io_uring_enter")
    }
}

/// Waits until the poll of an eventfd has reported an arrival.
#[inline(always)]
fn wait_for_poll(uring: &mut TaskUring, counter: BorrowedFd<'_>) -> Result<(), LinkError> {
    let completion = uring.wait()?;
    completion.value()?;
    if !completion.goes_on() {
        uring.queue_poll(counter)?;
    }
    Ok(())
}

/// The token is the count of an eventfd.
pub struct UringPollLink;

impl Link for UringPollLink {
    type End = UringPollEnd<EventfdLink>;

    fn prepare() -> Result<(), CallError> {
        TaskUring::check(UringOperation::Poll)
    }

    fn channel(_: &ChannelPlace) -> Result<(Self::End, Self::End), CallError> {
        let (sender, receiver) = EventfdLink::pair(EventfdFlags::NONBLOCK)?;
        UringPollEnd::pair(sender, receiver)
    }

    fn join(_: &mut Self::End, receiver: &mut Self::End) -> Result<(), CallError> {
        receiver.enable()
    }
}

impl LinkEnd for UringPollEnd<EventfdLink> {
    #[inline(always)]
    fn send(&mut self, token: u8) -> Result<(), LinkError> {
        self.counter.send(token)
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<u8, LinkError> {
        let uring = self.uring.as_mut().ok_or(LinkError::Closed)?;
        loop {
            wait_for_poll(uring, self.counter.as_fd())?;
            match self.counter.receive() {
                Err(LinkError::Kernel(Errno::AGAIN)) => {}
                received => return received,
            }
        }
    }
}

/// Tokens are counted by an eventfd in semaphore mode. Its receiver waits only if there is none.
pub struct UringPollItems;

impl Link for UringPollItems {
    type End = UringPollEnd<SemaphoreEventfd>;

    fn prepare() -> Result<(), CallError> {
        TaskUring::check(UringOperation::Poll)
    }

    fn channel(place: &ChannelPlace) -> Result<(Self::End, Self::End), CallError> {
        let (sender, receiver) = SemaphoreEventfd::pair(EventfdFlags::NONBLOCK, place.room)?;
        UringPollEnd::pair(sender, receiver)
    }

    fn join(_: &mut Self::End, receiver: &mut Self::End) -> Result<(), CallError> {
        receiver.enable()
    }
}

impl LinkEnd for UringPollEnd<SemaphoreEventfd> {
    #[inline(always)]
    fn send(&mut self, token: u8) -> Result<(), LinkError> {
        self.counter.send(token)
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<u8, LinkError> {
        let uring = self.uring.as_mut().ok_or(LinkError::Closed)?;
        loop {
            match self.counter.receive() {
                Err(LinkError::Kernel(Errno::AGAIN)) => {}
                received => return received,
            }
            wait_for_poll(uring, self.counter.as_fd())?;
        }
    }
}

/// Explains an errno that means that io_uring is forbidden.
pub fn io_uring_hint(errno: Errno) -> Option<String> {
    if !matches!(errno, Errno::PERM | Errno::ACCESS) {
        return None;
    }
    let switch = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled");
    Some(match switch.unwrap_or_default().trim() {
        switch @ ("1" | "2") => {
            format!("kernel.io_uring_disabled is {switch}: root may set it to 0 (sysctl)")
        }
        _ => "a filter of system calls forbids it here, as containers do by default".to_string(),
    })
}

/// Explains an errno of a link that takes an io_uring of Linux `version`.
pub fn newer_uring_hint(errno: Errno, version: &str) -> Option<String> {
    match errno {
        Errno::INVAL => {
            Some(format!("this kernel's io_uring is older than that of Linux {version}"))
        }
        _ => io_uring_hint(errno),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::build::shared_area;

    /// Ends of the two members of a ring of threads, all used by this thread.
    struct RingOfTwo<E> {
        senders: [E; 2],
        receivers: [E; 2],
    }

    impl<E: LinkEnd> RingOfTwo<E> {
        /// Returns `None` if this machine lacks the link.
        fn new<L: Link<End = E>>() -> Option<Self> {
            if let Err((call, errno)) = L::prepare() {
                let need = testing::Need::Hardware("io_uring");
                testing::skip(need, format_args!("{call}: {errno}"));
                return None;
            }
            let area = shared_area(2, false).unwrap();
            let place = ChannelPlace { area, kind: MemberKind::Thread, to: 1, room: 8 };
            let (mut sender, mut next_receiver) = L::channel(&place).unwrap();
            let (mut next_sender, mut receiver) = L::channel(&place).unwrap();
            L::join(&mut sender, &mut receiver).unwrap();
            L::join(&mut next_sender, &mut next_receiver).unwrap();
            let (senders, receivers) = ([sender, next_sender], [receiver, next_receiver]);
            Some(Self { senders, receivers })
        }

        /// Sends a token from a member to the other one.
        fn send(&mut self, member: usize, token: u8) {
            self.senders[member].settle().unwrap();
            self.senders[member].send(token).unwrap();
            self.receivers[member].flush().unwrap();
        }

        fn passes_every_token(&mut self) {
            for token in [0, 1, 254, 255] {
                for member in [0, 1] {
                    self.send(member, token);
                    assert_eq!(self.receivers[1 - member].receive(), Ok(token));
                }
            }
        }
    }

    #[test]
    fn each_link_passes_every_token() {
        if let Some(mut ring) = RingOfTwo::new::<UringMessageLink>() {
            ring.passes_every_token();
        }
        if let Some(mut ring) = RingOfTwo::new::<UringPollLink>() {
            ring.passes_every_token();
        }
        if let Some(mut ring) = RingOfTwo::new::<UringFutexLink>() {
            ring.passes_every_token();
        }
        if let Some(mut ring) = RingOfTwo::new::<UringPollItems>() {
            ring.passes_every_token();
        }
    }

    /// A poll may report several arrivals once, or one that was read before.
    #[test]
    fn several_polled_tokens_arrive_in_order() {
        let Some(mut ring) = RingOfTwo::new::<UringPollItems>() else { return };
        for first in (0..90).step_by(3) {
            for token in first..first + 3 {
                ring.send(0, token);
            }
            for token in first..first + 3 {
                assert_eq!(ring.receivers[1].receive(), Ok(token));
            }
        }
    }

    /// A wait of its own submits what a member has sent.
    #[test]
    fn a_member_sends_in_the_call_that_waits() {
        let Some(mut ring) = RingOfTwo::new::<UringMessageLink>() else { return };
        ring.send(1, 7);
        ring.senders[0].send(8).unwrap();
        assert_eq!(ring.receivers[0].receive(), Ok(7));
        assert_eq!(ring.receivers[1].receive(), Ok(8));
    }

    #[test]
    fn a_ring_that_is_not_enabled_takes_no_message() {
        if TaskUring::check(UringOperation::Message).is_err() {
            return;
        }
        let (user, target) = (TaskUring::new().unwrap(), TaskUring::new().unwrap());
        user.enable().unwrap();
        let mut user = user;
        user.queue_message(target.as_fd(), 1).unwrap();
        assert_eq!(user.wait().unwrap().value(), Err(Errno::BADFD));
    }

    /// Of a token that was found before the wait, the wake comes later and finds another wait.
    #[test]
    fn a_wake_without_a_token_and_a_token_before_the_wait_both_end_it() {
        if TaskUring::check(UringOperation::FutexWait).is_err() {
            return;
        }
        let flags = word_flags(MemberKind::Thread);
        let slot = SharedValue::<TokenSlot>::new().unwrap();
        let mut uring = TaskUring::new().unwrap();
        uring.enable().unwrap();
        uring.queue_wait(&slot, flags).unwrap();
        uring.submit().unwrap();
        uring.queue_wake(&slot, flags).unwrap();
        assert_eq!(uring.wait().unwrap().value(), Ok(0));
        slot.put(5);
        uring.queue_wait(&slot, flags).unwrap();
        assert_eq!(uring.wait().unwrap().value(), Err(Errno::AGAIN));
        assert_eq!(slot.take(), Some(5));
    }

    #[test]
    fn why_io_uring_is_refused_is_explained() {
        assert!(newer_uring_hint(Errno::INVAL, "6.7").unwrap().contains("Linux 6.7"));
        assert_eq!(newer_uring_hint(Errno::NOMEM, "6.7"), None);
        assert!(newer_uring_hint(Errno::PERM, "6.7").is_some());
    }
}
