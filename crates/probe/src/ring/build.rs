//! Makes the members of a ring, one channel at a time, in time linear in its size. Of a ring of
//! processes no process ever holds more than three channels, as in Sloan's program.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use model::ring::{Case, Kind, Placement};
use model::state::State;
use rustix::io::Errno;
use rustix::process::getpid;
use rustix::thread::gettid;

use super::error::{CallError, LinkError, RingError};
use super::link::{End, Link, Place};
use super::member::{Member, Seat, follow};
use super::others::{Other, Others, STATUS_LOST, STATUS_ORPHAN, STATUS_PLACE};
use super::work::{NoWork, Work};
use crate::placement;
use crate::sys::{
    self, Array, EndNote, Forked, RegisterKind, Registers, SharedArea, WithRegisters,
    end_with_parent, exit_now, fork, member_lost, unwatch_members,
};

/// Stack of a member that has one of its own: it calls a few functions deep.
pub const STACK_BYTES: usize = 64 * 1024;

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
pub trait Make: 'static {
    /// [`End::POLLS`] of its members.
    const POLLS: bool;

    /// Makes a ring as `case` describes it. `work` is called in each member, so that its memory is
    /// the member's own. Where `alone`, each member also gets a channel of its own, if the link has channels.
    fn make<W: Work>(
        case: &Case,
        work: impl Fn() -> W + Copy + Send + Sync + 'static,
        alone: bool,
    ) -> Result<Ring, RingError>;
}

impl<L: Link> Make for L {
    const POLLS: bool = L::End::POLLS;

    fn make<W: Work>(
        case: &Case,
        work: impl Fn() -> W + Copy + Send + Sync + 'static,
        alone: bool,
    ) -> Result<Ring, RingError> {
        let seater = move |(sender, receiver): Ends<L>, own| -> Box<dyn Member> {
            Box::new(Seat { sender, receiver, work: work(), own })
        };
        build::<L>(case, alone, Arc::new(seater))
    }
}

/// Makes the ring of a case over `M` with the work or the registers that it asks for. `seed` decides where the
/// members' memory lies.
pub fn make<M: Make>(case: &Case, seed: u64, alone: bool) -> Result<Ring, RingError> {
    match (case.work, case.state) {
        (None, None) => M::make(case, || NoWork, alone),
        (Some(work), None) => {
            Array::check(&work).map_err(|limit| {
                RingError::Memory(format!(
                    "a working set of {} bytes cannot be allocated: the limit is {limit} bytes (--work)",
                    work.bytes
                ))
            })?;
            M::make(case, move || Array::new(&work, seed), alone)
        }
        (None, Some(state)) => {
            let make = WithState { case, alone, link: PhantomData::<M> };
            sys::with_registers(state, make).unwrap_or_else(|why| Err(unsuited(state, &why)))
        }
        (Some(_), Some(state)) => {
            Err(unsuited(state, "members have either work or a state of the registers"))
        }
    }
}

struct WithState<'a, M> {
    case: &'a Case,
    alone: bool,
    link: PhantomData<M>,
}

impl<M: Make> WithRegisters for WithState<'_, M> {
    type Output = Result<Ring, RingError>;

    fn with<K: RegisterKind>(self, registers: Registers<K>) -> Self::Output {
        M::make(self.case, move || registers, self.alone)
    }
}

fn unsuited(state: State, why: &str) -> RingError {
    RingError::Unsuited(format!("--state {state}: {why}"))
}

/// Whether this CPU has the registers of `state`; if not, which feature it lacks.
pub fn check_state(state: State) -> Result<(), RingError> {
    sys::has_registers(state).map_err(|why| unsuited(state, &why))
}

/// What the members of a ring share, the caller being the leader.
pub fn shared_area(members: u32) -> Result<Arc<SharedArea>, RingError> {
    let area = SharedArea::new(members as usize).map_err(|errno| {
        RingError::Memory(format!("cannot map memory shared by {members} members: {errno}"))
    })?;
    area.cells()[0].tid.store(gettid().as_raw_pid() as u32, Ordering::Release);
    Ok(Arc::new(area))
}

/// Makes a member of its two ends of the ring and of its own channel: called where the member lives.
type Seater<L> = Arc<dyn Fn(Ends<L>, Option<Ends<L>>) -> Box<dyn Member> + Send + Sync>;

type Ends<L> = (<L as Link>::End, <L as Link>::End);

/// The same for all kinds of work.
fn build<L: Link>(case: &Case, alone: bool, seater: Seater<L>) -> Result<Ring, RingError> {
    L::prepare().map_err(RingError::Call)?;
    let area = shared_area(case.members)?;
    // A list that grows between forks is copied page by page.
    let others = Others(Vec::with_capacity(case.members as usize));
    let mut builder = Builder::<L> { case, seater, alone, area, others };
    let made = builder.ends().and_then(|ends| {
        let own = alone.then(|| builder.channel(0, 0)).transpose()?;
        Ok((builder.seater)(ends, own))
    });
    match made {
        Ok(leader) => Ok(Ring { leader, area: builder.area, others: builder.others }),
        Err(error) => {
            // From here on members end because they are told to.
            unwatch_members();
            Err(builder.others.end_after(error, &builder.area))
        }
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
    fn ends(&mut self) -> Result<Ends<L>, RingError> {
        let last = self.case.members - 1;
        let (back_sender, own_receiver) = self.channel(last, 0)?;
        if last == 0 {
            return Ok((back_sender, own_receiver));
        }
        let (own_sender, mut receiver) = self.channel(0, 1)?;
        let mut held = (own_sender, own_receiver, back_sender);
        for member in 1..last {
            // The first lap, in which a loss would show, is far off while a large ring is made.
            if member_lost() {
                return Err(LinkError::Closed.into());
            }
            let (sender, next_receiver) = self.channel(member, member + 1)?;
            (held, receiver) = self.start(member, (sender, receiver), (held, next_receiver))?;
        }
        let (own_sender, own_receiver, back_sender) = held;
        self.start(last, (back_sender, receiver), (own_sender, own_receiver))
    }

    /// Starts a member. `held` are ends that are not its own: a process drops them, as they would
    /// hide a broken ring. The leader gets them back.
    fn start<H>(&mut self, member: u32, ends: Ends<L>, held: H) -> Result<H, RingError> {
        if self.case.kind == Kind::Thread {
            self.start_thread(member, ends)?;
            return Ok(held);
        }
        let leader = getpid();
        match fork().map_err(|errno| self.refused(member, ("fork", errno)))? {
            Forked::Parent(pid) => self.others.0.push(Other::Process(pid)),
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

    fn channel(&self, from: u32, to: u32) -> Result<Ends<L>, RingError> {
        let place = Place { area: Arc::clone(&self.area), kind: self.case.kind, to };
        // The first channel leads from the last member, but it is made before any member is.
        let made = if to == 0 { 0 } else { from };
        L::channel(&place).map_err(|call| self.refused(made, call))
    }

    fn refused(&self, made: u32, call: CallError) -> RingError {
        RingError::refused(self.case.members, made, call)
    }

    fn start_thread(&mut self, member: u32, ends: Ends<L>) -> Result<(), RingError> {
        let (case, area, alone) = (self.case.clone(), Arc::clone(&self.area), self.alone);
        let seater = Arc::clone(&self.seater);
        let life = move || {
            let note = EndNote;
            let status = live::<L>(&case, &area, member, ends, alone, &seater);
            if status == 0 {
                std::mem::forget(note);
            }
            status
        };
        let builder = thread::Builder::new().stack_size(STACK_BYTES);
        let handle = builder.spawn(life).map_err(|error| {
            let errno = Errno::from_io_error(&error).unwrap_or(Errno::AGAIN);
            self.refused(member, ("thread start", errno))
        })?;
        self.others.0.push(Other::Thread(handle));
        Ok(())
    }
}

/// A member from its start to its end; gives its exit status.
fn live<L: Link>(
    case: &Case,
    area: &Arc<SharedArea>,
    member: u32,
    ends: Ends<L>,
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
    let place = Place { area: Arc::clone(area), kind: case.kind, to: member };
    let own = match alone.then(|| L::channel(&place)).transpose() {
        Ok(own) => own,
        Err((_, errno)) => {
            note(errno);
            return STATUS_LOST;
        }
    };
    match follow(&mut *seater(ends, own), area, cell) {
        Ok(()) => return 0,
        // What a neighbour's end looks like by some links. The neighbour is the one to be named.
        Err(LinkError::Closed)
        | Err(LinkError::Kernel(
            Errno::PIPE | Errno::CONNRESET | Errno::CONNREFUSED | Errno::SRCH | Errno::INTR,
        )) => {}
        Err(LinkError::Kernel(errno)) => note(errno),
    }
    STATUS_LOST
}
