//! A switch without the kernel: stackful coroutines on one thread. The floor of all links.
//!
//! A coroutine can only hand back to who resumed it, so the leader resumes the others one after the
//! other: a lap of N hops makes 2 (N - 1) switches of stacks, one a hop in a ring of two.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use model::ring::{Case, Kind};
use rustix::io::Errno;
use rustix::thread::gettid;

use crate::limits::Limits;
use crate::ring::build::{Make, Ring};
use crate::ring::error::RingError;
use crate::ring::link::{Carrier, LinkError, Receive, Send, on_one_cpu};
use crate::ring::member::{Seat, follow};
use crate::ring::others::Others;
use crate::ring::work::Work;
use crate::sys::SharedArea;

/// The token is handed over in a register.
pub struct Coroutines;

/// Stack of a member: it calls a few functions deep.
const STACK_BYTES: usize = 64 * 1024;

impl Carrier for Coroutines {
    const NAME: &'static str = "coroutine";
    const SUMMARY: &'static str = "a stackful coroutine: a switch without the kernel, the floor";
    const NEEDS: &'static str = "nothing of the kernel; members in one thread (--kind thread)";
    const SLEEPS: bool = false;

    fn suits(case: &Case) -> Result<(), String> {
        if case.kind != Kind::Thread {
            return Err("coroutines switch within one process: use --kind thread".to_string());
        }
        on_one_cpu(case, "coroutines run in one thread, on one CPU at a time")
    }
}

type Member = Coroutine<u8, u8, (), DefaultStack>;

/// What the leader has sent and not yet handed over.
pub struct LeaderSender(Rc<Cell<u8>>);

/// The leader's turn to resume all others.
pub struct LeaderReceiver {
    sent: Rc<Cell<u8>>,
    others: Vec<Member>,
}

impl Send for LeaderSender {
    #[inline(always)]
    fn send(&mut self, token: u8) -> Result<(), LinkError> {
        self.0.set(token);
        Ok(())
    }
}

impl Receive for LeaderReceiver {
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

/// A member's ends, within its coroutine.
struct MemberSender<'a>(&'a Cell<u8>);

struct MemberReceiver<'a> {
    yielder: &'a Yielder<u8, u8>,
    sent: &'a Cell<u8>,
}

impl Send for MemberSender<'_> {
    #[inline(always)]
    fn send(&mut self, token: u8) -> Result<(), LinkError> {
        self.0.set(token);
        Ok(())
    }
}

impl Receive for MemberReceiver<'_> {
    #[inline(always)]
    fn receive(&mut self) -> Result<u8, LinkError> {
        Ok(self.yielder.suspend(self.sent.get()))
    }
}

impl Make for Coroutines {
    const POLLS: bool = LeaderReceiver::POLLS;

    fn make<W: Work, F: Fn() -> W + Copy + std::marker::Send + Sync + 'static>(
        case: &Case,
        work: F,
        _: bool,
    ) -> Result<Ring, RingError> {
        let members = case.members;
        let area = SharedArea::new(members as usize)
            .map_err(|errno| RingError::Memory { members, errno })?;
        let area = Arc::new(area);
        let mut others = Vec::with_capacity(members as usize - 1);
        for number in 1..members {
            let mut member = member(&area, number, work).map_err(|error| {
                let errno = Errno::from_io_error(&error).unwrap_or(Errno::NOMEM);
                let (wanted, made, call) = (members, number, "mmap");
                let limits = Box::new(Limits::behind(call, errno));
                RingError::Refused { wanted, made, call, errno, limits }
            })?;
            // To its first receive; what it hands back there is no token yet.
            let _ = member.resume(0);
            others.push(member);
        }
        let sent = Rc::new(Cell::new(0));
        let sender = LeaderSender(Rc::clone(&sent));
        let receiver = LeaderReceiver { sent, others };
        let leader = Box::new(Seat { sender, receiver, work: work(), own: None });
        Ok(Ring { leader, area, others: Others::Within })
    }
}

fn member<W: Work, F: Fn() -> W + Copy + 'static>(
    area: &Arc<SharedArea>,
    number: u32,
    work: F,
) -> std::io::Result<Member> {
    let area = Arc::clone(area);
    let stack = DefaultStack::new(STACK_BYTES)?;
    Ok(Coroutine::with_stack(stack, move |yielder: &Yielder<u8, u8>, _| {
        let cell = &area.cells()[number as usize];
        cell.tid.store(gettid().as_raw_pid() as u32, Ordering::Release);
        let sent = Cell::new(0);
        let receiver = MemberReceiver { yielder, sent: &sent };
        let mut seat = Seat { sender: MemberSender(&sent), receiver, work: work(), own: None };
        let followed = follow(&mut seat, &area, cell);
        // The last token is handed over like all others; nobody resumes the member after that.
        if followed.is_ok() {
            yielder.suspend(sent.get());
        }
    }))
}
