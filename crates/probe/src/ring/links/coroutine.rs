//! A switch without the kernel: stackful coroutines on one thread, the cheapest of all links.
//!
//! A coroutine can only hand control back to the one that resumed it. The leader therefore resumes
//! the others one after the other: a lap of N hops makes 2 (N - 1) switches of stacks, which is one
//! per hop in a ring of two.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use rundata::ring::RingCase;
use rustix::io::Errno;
use rustix::thread::gettid;

use crate::ring::build::{BuiltRing, RingMaker, STACK_BYTES, no_memory, shared_area};
use crate::ring::link::{LinkEnd, LinkError, RingError};
use crate::ring::member::{HopWork, RingMember, follow};
use crate::ring::others::OtherMembers;
use crate::sys::SharedArea;

/// Coroutines that hand the token over in a register.
pub struct CoroutineLink;

type MemberCoroutine = Coroutine<u8, u8, (), DefaultStack>;

/// Either end of the leader: the token that it has sent and not yet handed over, and in the
/// receiving end the other members, which it resumes in turn.
struct LeaderEnd {
    sent: Rc<Cell<u8>>,
    others: Vec<MemberCoroutine>,
}

impl LinkEnd for LeaderEnd {
    #[inline(always)]
    fn send(&mut self, token: u8) -> Result<(), LinkError> {
        self.sent.set(token);
        Ok(())
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<u8, LinkError> {
        let mut token = self.sent.get();
        for member in &mut self.others {
            match member.resume(token) {
                CoroutineResult::Yield(passed) => token = passed,
                CoroutineResult::Return(()) => return Err(LinkError::Closed),
            }
        }
        Ok(token)
    }
}

/// Either end of another member, used within its coroutine.
#[derive(Clone, Copy)]
struct MemberEnd<'a> {
    yielder: &'a Yielder<u8, u8>,
    sent: &'a Cell<u8>,
}

impl LinkEnd for MemberEnd<'_> {
    #[inline(always)]
    fn receive(&mut self) -> Result<u8, LinkError> {
        Ok(self.yielder.suspend(self.sent.get()))
    }

    #[inline(always)]
    fn send(&mut self, token: u8) -> Result<(), LinkError> {
        self.sent.set(token);
        Ok(())
    }
}

impl RingMaker for CoroutineLink {
    fn build<W: HopWork>(
        case: &RingCase,
        work: impl Fn() -> Result<W, Errno> + Copy + Send + Sync + 'static,
        _has_solos: bool,
    ) -> Result<BuiltRing, RingError> {
        let area = shared_area(case.members, false)?;
        let mut others = Vec::with_capacity(case.members as usize - 1);
        for number in 1..case.members {
            let member_work = work().map_err(|errno| no_memory(case, errno))?;
            let mut member = new_member(&area, number, member_work).map_err(|error| {
                let errno = Errno::from_io_error(&error).unwrap_or(Errno::NOMEM);
                RingError::refused(case.members, number, ("mmap", errno))
            })?;
            // Runs it up to its first receive, where it hands back no token yet.
            let _ = member.resume(0);
            others.push(member);
        }
        let sent = Rc::new(Cell::new(0));
        let sender = LeaderEnd { sent: Rc::clone(&sent), others: Vec::new() };
        let receiver = LeaderEnd { sent, others };
        let work = work().map_err(|errno| no_memory(case, errno))?;
        let leader = Box::new(RingMember { sender, receiver, work, solo_ends: None });
        Ok(BuiltRing { leader, area, others: OtherMembers::default() })
    }
}

/// Creates a coroutine that follows the leader as a member.
fn new_member<W: HopWork>(
    area: &Arc<SharedArea>,
    number: u32,
    work: W,
) -> std::io::Result<MemberCoroutine> {
    let area = Arc::clone(area);
    let stack = DefaultStack::new(STACK_BYTES)?;
    Ok(Coroutine::with_stack(stack, move |yielder: &Yielder<u8, u8>, _| {
        let cell = &area.cells()[number as usize];
        cell.tid.store(gettid().as_raw_pid() as u32, Ordering::Release);
        let sent = Cell::new(0);
        let end = MemberEnd { yielder, sent: &sent };
        let mut seat = RingMember { sender: end, receiver: end, work, solo_ends: None };
        let followed = follow(&mut seat, &area, cell);
        // Hands over the last token like all others; the member is not resumed after that.
        if followed.is_ok() {
            yielder.suspend(sent.get());
        }
    }))
}
