//! Makes the members of a ring, one channel at a time, in time linear in its size. Of a ring of
//! processes no process ever holds more than three channels, as in Sloan's program.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use model::ring::{Case, Kind, Placement};
use rustix::io::Errno;
use rustix::process::getpid;
use rustix::thread::gettid;

use super::error::{LeadError, LinkError, RingError};
use super::link::{Carrier, Link, Place, Receive};
use super::member::{Ends, Member, Seat, follow};
use super::others::{Others, STATUS_LOST, STATUS_ORPHAN, STATUS_PLACE};
use super::work::Work;
use crate::limits::Limits;
use crate::placement;
use crate::sys::{
    EndNote, Forked, SharedArea, end_with_parent, exit_now, fork, member_lost, unwatch_members,
};

/// Stack of a member that is a thread: it calls a few functions deep.
const STACK_BYTES: usize = 64 * 1024;

/// A ring that is ready for its first lap.
pub struct Ring {
    /// The leader.
    pub leader: Box<dyn Member>,
    /// What it shares with the members.
    pub area: Arc<SharedArea>,
    /// The members besides the leader.
    pub others: Others,
}

/// Makes a ring. Links are put together channel by channel; what has no channels makes the whole ring.
pub trait Make: Carrier {
    /// [`Receive::POLLS`] of its members.
    const POLLS: bool;

    /// Makes a ring as `case` describes it. `work` is called in each member, so that its memory is
    /// the member's own. Where `alone`, each member also gets a channel of its own, if the link has channels.
    fn make<W: Work, F: Fn() -> W + Copy + std::marker::Send + Sync + 'static>(
        case: &Case,
        work: F,
        alone: bool,
    ) -> Result<Ring, RingError>;
}

impl<L: Link> Make for L {
    const POLLS: bool = L::Receiver::POLLS;

    fn make<W: Work, F: Fn() -> W + Copy + std::marker::Send + Sync + 'static>(
        case: &Case,
        work: F,
        alone: bool,
    ) -> Result<Ring, RingError> {
        build::<L>(
            case,
            alone,
            Arc::new(move |(sender, receiver), own| {
                Box::new(Seat { sender, receiver, work: work(), own })
            }),
        )
    }
}

/// Makes a member of its two ends of the ring and of its own channel: called where the member lives.
type Seater<L> =
    Arc<dyn Fn(EndsOf<L>, Option<EndsOf<L>>) -> Box<dyn Member> + std::marker::Send + Sync>;

type EndsOf<L> = Ends<<L as Link>::Sender, <L as Link>::Receiver>;

/// The same for all kinds of work.
fn build<L: Link>(case: &Case, alone: bool, seater: Seater<L>) -> Result<Ring, RingError> {
    let members = case.members;
    L::prepare().map_err(|failed| unavailable::<L>(failed.call, failed.errno))?;
    let area =
        SharedArea::new(members as usize).map_err(|errno| RingError::Memory { members, errno })?;
    area.cells()[0].tid.store(gettid().as_raw_pid() as u32, Ordering::Release);
    let others = Others::none(case.kind, members);
    let mut builder = Builder::<L> { case, seater, alone, area: Arc::new(area), others };
    let made = builder.ends().and_then(|ends| {
        let own = alone.then(|| builder.channel(0, 0)).transpose()?;
        Ok((builder.seater)(ends, own))
    });
    match made {
        Ok(leader) => Ok(Ring { leader, area: builder.area, others: builder.others }),
        Err(error) => Err(builder.give_up(error)),
    }
}

struct Builder<'a, L: Link> {
    case: &'a Case,
    seater: Seater<L>,
    alone: bool,
    area: Arc<SharedArea>,
    others: Others,
}

impl<L: Link> Builder<'_, L> {
    /// Makes all channels and members; gives the leader's ends. Channel i leads from member i to
    /// i + 1, the last one back to the leader.
    fn ends(&mut self) -> Result<EndsOf<L>, RingError> {
        let last = self.case.members - 1;
        let (back_sender, own_receiver) = self.channel(last, 0)?;
        if last == 0 {
            return Ok((back_sender, own_receiver));
        }
        let (own_sender, mut receiver) = self.channel(0, 1)?;
        let mut held = (own_sender, own_receiver, back_sender);
        for member in 1..last {
            self.check_whole()?;
            let (sender, next_receiver) = self.channel(member, member + 1)?;
            (held, receiver) = self.start(member, (sender, receiver), (held, next_receiver))?;
        }
        let (own_sender, own_receiver, back_sender) = held;
        self.start(last, (back_sender, receiver), (own_sender, own_receiver))
    }

    /// Starts a member. `held` are ends that are not its own: a process drops them, as they would
    /// hide a broken ring. The leader gets them back.
    fn start<H>(&mut self, member: u32, ends: EndsOf<L>, held: H) -> Result<H, RingError> {
        if self.case.kind == Kind::Thread {
            self.start_thread(member, ends)?;
            return Ok(held);
        }
        let leader = getpid();
        match fork().map_err(|errno| self.refused(member, "fork", errno))? {
            Forked::Parent(pid) => self.others.push_process(pid),
            Forked::Child => {
                drop(held);
                if !end_with_parent(leader) {
                    exit_now(STATUS_ORPHAN);
                }
                exit_now(live::<L>(self.case, &self.area, member, ends, self.alone, &self.seater));
            }
        }
        Ok(held)
    }

    /// The first lap, in which a loss would show, is far off while a large ring is made.
    fn check_whole(&self) -> Result<(), RingError> {
        match member_lost() {
            true => Err(LeadError::Link(LinkError::Closed).into()),
            false => Ok(()),
        }
    }

    /// Why there is no ring, when what was made of it is gone again.
    fn give_up(self, error: RingError) -> RingError {
        // From here on members end because they are told to.
        unwatch_members();
        match error {
            RingError::Lead(_) => self.others.post_mortem(&self.area).unwrap_or(error),
            refused => {
                self.others.kill();
                refused
            }
        }
    }

    fn channel(&self, from: u32, to: u32) -> Result<EndsOf<L>, RingError> {
        let place = Place { area: &self.area, kind: self.case.kind, to };
        // The first channel leads from the last member, but it is made before any member is.
        let made = if to == 0 { 0 } else { from };
        L::channel(&place).map_err(|failed| self.refused(made, failed.call, failed.errno))
    }

    /// The limits are read while all members still live: only then do their counts tell.
    fn refused(&self, made: u32, call: &'static str, errno: Errno) -> RingError {
        let limits = Box::new(Limits::behind(call, errno));
        RingError::Refused { wanted: self.case.members, made, call, errno, limits }
    }

    fn start_thread(&mut self, member: u32, ends: EndsOf<L>) -> Result<(), RingError> {
        let (case, area, alone) = (self.case.clone(), Arc::clone(&self.area), self.alone);
        let seater = Arc::clone(&self.seater);
        let life = move || {
            let note = EndNote::new();
            let status = live::<L>(&case, &area, member, ends, alone, &seater);
            if status == 0 {
                note.done();
            }
            status
        };
        let builder = thread::Builder::new().stack_size(STACK_BYTES);
        let handle = builder.spawn(life).map_err(|error| {
            let errno = Errno::from_io_error(&error).unwrap_or(Errno::AGAIN);
            self.refused(member, "thread start", errno)
        })?;
        self.others.push_thread(handle);
        Ok(())
    }
}

/// A member from its start to its end; gives its exit status.
fn live<L: Link>(
    case: &Case,
    area: &Arc<SharedArea>,
    member: u32,
    ends: EndsOf<L>,
    alone: bool,
    seater: &Seater<L>,
) -> i32 {
    let cell = &area.cells()[member as usize];
    cell.tid.store(gettid().as_raw_pid() as u32, Ordering::Release);
    // With all members alike the leader's CPUs are inherited.
    let placed = match case.placement {
        Placement::Pinned { .. } => placement::pin(&case.placement.cpus_of(member)),
        Placement::Same { .. } | Placement::Free { .. } => Ok(()),
    };
    let note = |errno: Errno| cell.errno.store(errno.raw_os_error() as u32, Ordering::Release);
    if let Err(errno) = placed {
        note(errno);
        return STATUS_PLACE;
    }
    let place = Place { area, kind: case.kind, to: member };
    let own = match alone.then(|| L::channel(&place)).transpose() {
        Ok(own) => own,
        Err(failed) => {
            note(failed.errno);
            return STATUS_LOST;
        }
    };
    match follow(&mut *seater(ends, own), area, cell) {
        Ok(()) => 0,
        // What a neighbour's end looks like by some links. The neighbour is the one to be named.
        Err(LinkError::Closed) => STATUS_LOST,
        Err(LinkError::Kernel(
            Errno::PIPE | Errno::CONNRESET | Errno::CONNREFUSED | Errno::SRCH | Errno::INTR,
        )) => STATUS_LOST,
        Err(LinkError::Kernel(errno)) => {
            note(errno);
            STATUS_LOST
        }
    }
}

/// A call that the link cannot do without was refused, whatever the ring's size.
pub fn unavailable<C: Carrier>(call: &str, errno: Errno) -> RingError {
    let hint = C::hint(errno).or_else(|| match errno {
        Errno::NOSYS => Some("this kernel was built without it".to_string()),
        Errno::PERM => Some("it is forbidden here, as containers do".to_string()),
        _ => None,
    });
    let hint = hint.map_or(String::new(), |hint| format!(": {hint}"));
    RingError::Unavailable { link: C::NAME, why: format!("{call}: {errno}{hint}") }
}
