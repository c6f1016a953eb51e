//! Makes the members of a ring, one channel at a time, in time linear in its size. Of a ring of
//! processes no process ever holds more than three channels, as in Sloan's program.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use model::ring::State;
use model::ring::{Case, Kind, Placement};
use rustix::io::Errno;
use rustix::process::getpid;
use rustix::thread::gettid;

use super::link::{CallError, End, Link, LinkError, Place, RingError};
use super::member::{Member, NoWork, Seat, Work, follow};
use super::others::{Other, Others, STATUS_LOST, STATUS_ORPHAN, STATUS_PLACE};
use crate::placement;
use crate::sys::{
    self, Array, Child, EndNote, Forked, RegisterKind, SharedArea, WithRegisters, end_with_parent,
    exit_now, fork, member_lost, unwatch_members,
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
    /// Makes a ring as `case` describes it. `work` is called in each member, so that its memory is
    /// the member's own. Where `alone`, each member also gets a channel of its own, if the link has channels and
    /// waits for them asleep.
    fn make<W: Work>(
        case: &Case,
        work: impl Fn() -> W + Copy + Send + Sync + 'static,
        alone: bool,
    ) -> Result<Ring, RingError>;
}

impl<L: Link> Make for L {
    fn make<W: Work>(
        case: &Case,
        work: impl Fn() -> W + Copy + Send + Sync + 'static,
        alone: bool,
    ) -> Result<Ring, RingError> {
        let seater = move |(sender, receiver): Ends<L>, own| -> Box<dyn Member> {
            Box::new(Seat { sender, receiver, work: work(), own })
        };
        build::<L>(case, alone && !L::End::POLLS, Box::new(seater))
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

    fn with<K: RegisterKind>(self, registers: K) -> Self::Output {
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
type Seater<L> = Box<dyn Fn(Ends<L>, Option<Ends<L>>) -> Box<dyn Member> + Send + Sync>;

type Ends<L> = (<L as Link>::End, <L as Link>::End);

/// What all members are made by.
struct Plan<L: Link> {
    case: Case,
    seater: Seater<L>,
    alone: bool,
    area: Arc<SharedArea>,
}

/// The same for all kinds of work.
fn build<L: Link>(case: &Case, alone: bool, seater: Seater<L>) -> Result<Ring, RingError> {
    L::prepare().map_err(RingError::Call)?;
    let area = shared_area(case.members)?;
    let plan = Arc::new(Plan::<L> { case: case.clone(), seater, alone, area: Arc::clone(&area) });
    // A list that grows between forks is copied page by page.
    let mut others = Others(Vec::with_capacity(case.members as usize));
    let made = plan.ends(&mut others).and_then(|ends| {
        let own = alone.then(|| plan.channel(0, 0)).transpose()?;
        Ok((plan.seater)(ends, own))
    });
    match made {
        Ok(leader) => Ok(Ring { leader, area, others }),
        Err(error) => {
            // From here on members end because they are told to.
            unwatch_members();
            Err(others.end_after(error, &area))
        }
    }
}

impl<L: Link> Plan<L> {
    /// Makes all channels and members; gives the leader's ends. Channel i leads from member i to
    /// i + 1, the last one back to the leader.
    fn ends(self: &Arc<Self>, others: &mut Others) -> Result<Ends<L>, RingError> {
        let last = self.case.members - 1;
        // Made before any member is.
        let (back_sender, own_receiver) = self.channel(0, 0)?;
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
            let other;
            (other, (held, receiver)) =
                self.start(member, (sender, receiver), (held, next_receiver))?;
            others.0.push(other);
        }
        let (own_sender, own_receiver, back_sender) = held;
        let (other, ends) =
            self.start(last, (back_sender, receiver), (own_sender, own_receiver))?;
        others.0.push(other);
        Ok(ends)
    }

    /// A channel to a member, when so many have been made.
    fn channel(&self, made: u32, to: u32) -> Result<Ends<L>, RingError> {
        L::channel(&self.place(to)).map_err(|call| self.refused(made, call))
    }

    fn place(&self, to: u32) -> Place {
        Place { area: Arc::clone(&self.area), kind: self.case.kind, to }
    }

    fn refused(&self, made: u32, call: CallError) -> RingError {
        RingError::refused(self.case.members, made, call)
    }

    /// Starts a member. `held` are ends that are not its own: a process drops them, as they would
    /// hide a broken ring. The leader gets them back.
    fn start<H>(
        self: &Arc<Self>,
        member: u32,
        ends: Ends<L>,
        held: H,
    ) -> Result<(Other, H), RingError> {
        if self.case.kind == Kind::Thread {
            let plan = Arc::clone(self);
            let life = move || {
                let note = EndNote;
                let status = plan.live(member, ends);
                if status == 0 {
                    std::mem::forget(note);
                }
                status
            };
            let started = thread::Builder::new().stack_size(STACK_BYTES).spawn(life);
            let started = started.map_err(|error| {
                let errno = Errno::from_io_error(&error).unwrap_or(Errno::AGAIN);
                self.refused(member, ("thread start", errno))
            })?;
            return Ok((Other::Thread(started), held));
        }
        let leader = getpid();
        match fork().map_err(|errno| self.refused(member, ("fork", errno)))? {
            Forked::Parent(pid) => Ok((Other::Process(Child(pid)), held)),
            Forked::Child => {
                drop(held);
                if !end_with_parent(leader) {
                    exit_now(STATUS_ORPHAN);
                }
                exit_now(self.live(member, ends));
            }
        }
    }

    /// A member from its start to its end; gives its exit status.
    fn live(&self, member: u32, ends: Ends<L>) -> i32 {
        let cell = &self.area.cells()[member as usize];
        cell.tid.store(gettid().as_raw_pid() as u32, Ordering::Release);
        let fail = |errno: Errno, status| {
            cell.errno.store(errno.raw_os_error() as u32, Ordering::Release);
            status
        };
        // With all members alike the leader's CPUs are inherited.
        if let Placement::Pinned { .. } = self.case.placement
            && let Err(errno) = placement::pin(&self.case.placement.cpus_of(member))
        {
            return fail(errno, STATUS_PLACE);
        }
        let own = match self.alone.then(|| L::channel(&self.place(member))).transpose() {
            Ok(own) => own,
            Err((_, errno)) => return fail(errno, STATUS_LOST),
        };
        match follow(&mut *(self.seater)(ends, own), &self.area, cell) {
            Ok(()) => 0,
            // What a neighbour's end looks like by some links. The neighbour is the one to be named.
            Err(
                LinkError::Closed
                | LinkError::Kernel(
                    Errno::PIPE | Errno::CONNRESET | Errno::CONNREFUSED | Errno::SRCH | Errno::INTR,
                ),
            ) => STATUS_LOST,
            Err(LinkError::Kernel(errno)) => fail(errno, STATUS_LOST),
        }
    }
}
