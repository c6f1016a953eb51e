//! Makes the members of a ring, one channel at a time, in time linear in its size. Of a ring of
//! processes no process ever holds more than three channels, as in Sloan's program.

use std::ffi::CString;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use model::placement::Placement;
use model::ring::{Case, Kind, State};
use rustix::io::Errno;
use rustix::process::getpid;
use rustix::thread::gettid;

use super::link::{CallError, ChannelPlace, Link, LinkEnd, LinkError, RingError};
use super::member::{HopWork, NoWork, RingMember, TimedMember, follow};
use super::others::{
    OtherMember, OtherMembers, STATUS_LOST, STATUS_MEMORY, STATUS_ORPHAN, STATUS_PLACE,
};
use crate::placement;
use crate::stack::room_for_thread;
use crate::sys::{
    self, EndNote, ForkSide, RegisterKind, SharedArea, WithRegisters, WorkArray, end_with_parent,
    exit_now, fork, member_lost, set_own_name, unwatch_members,
};

/// Stack of a member that has one of its own: it calls a few functions deep.
pub const STACK_BYTES: usize = 64 * 1024;

/// Most turns on the CPU that the leader gives away for a thread to start.
const MOST_YIELDS_TO_START: u32 = 1000;

/// A ring that is ready for its first lap.
pub struct BuiltRing {
    /// The leader.
    pub leader: Box<dyn TimedMember>,
    /// What it shares with the members.
    pub area: Arc<SharedArea>,
    /// The members besides the leader.
    pub others: OtherMembers,
}

/// Makes a ring. Links are put together channel by channel; what has no channels makes the whole
/// ring.
pub trait RingMaker: 'static {
    /// Makes a ring as `case` describes it. `work` is called in each member, so that its memory is
    /// the member's own; it returns the errno of memory that is refused. Where `alone`, each member
    /// also gets a channel of its own, if the link has channels and waits for them asleep.
    fn make<W: HopWork>(
        case: &Case,
        work: impl Fn() -> Result<W, Errno> + Copy + Send + Sync + 'static,
        alone: bool,
    ) -> Result<BuiltRing, RingError>;
}

impl<L: Link> RingMaker for L {
    fn make<W: HopWork>(
        case: &Case,
        work: impl Fn() -> Result<W, Errno> + Copy + Send + Sync + 'static,
        alone: bool,
    ) -> Result<BuiltRing, RingError> {
        let seater =
            move |(sender, receiver): Ends<L>, own| -> Result<Box<dyn TimedMember>, Errno> {
                Ok(Box::new(RingMember { sender, receiver, work: work()?, own }))
            };
        build::<L>(case, alone && !L::End::POLLS, Box::new(seater))
    }
}

/// Makes the ring of a case over `M` with the work or the registers that it asks for. `seed`
/// decides where the members' memory lies.
pub fn make<M: RingMaker>(case: &Case, seed: u64, alone: bool) -> Result<BuiltRing, RingError> {
    match (case.work, case.state) {
        (None, None) => M::make(case, || Ok(NoWork), alone),
        (Some(work), None) => {
            WorkArray::check(&work).map_err(|limit| {
                RingError::Memory(format!(
                    "a working set of {} bytes cannot be allocated: the limit is {limit} bytes \
                     (--work)",
                    work.bytes
                ))
            })?;
            M::make(case, move || WorkArray::new(&work, seed), alone)
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

impl<M: RingMaker> WithRegisters for WithState<'_, M> {
    type Output = Result<BuiltRing, RingError>;

    fn with<K: RegisterKind>(self, registers: K) -> Self::Output {
        M::make(self.case, move || Ok(registers), self.alone)
    }
}

fn unsuited(state: State, why: &str) -> RingError {
    RingError::Other(format!("--state {state}: {why}"))
}

/// Whether this CPU has the registers of `state`; if not, which feature it lacks.
pub fn check_state(state: State) -> Result<(), RingError> {
    sys::has_registers(state).map_err(|why| unsuited(state, &why))
}

/// What the members of a ring share, the caller being the leader; with room for notes where their
/// walks may be cut.
pub fn shared_area(members: u32, has_notes: bool) -> Result<Arc<SharedArea>, RingError> {
    let area = SharedArea::new(members as usize, has_notes).map_err(|errno| {
        RingError::Memory(format!("cannot map memory shared by {members} members: {errno}"))
    })?;
    area.cells()[0].tid.store(gettid().as_raw_pid() as u32, Ordering::Release);
    Ok(Arc::new(area))
}

/// Makes a member of its two ends of the ring and of its own channel: called where the member
/// lives.
type Seater<L> =
    Box<dyn Fn(Ends<L>, Option<Ends<L>>) -> Result<Box<dyn TimedMember>, Errno> + Send + Sync>;

type Ends<L> = (<L as Link>::End, <L as Link>::End);

/// What all members are made by.
struct MemberPlan<L: Link> {
    case: Case,
    seater: Seater<L>,
    alone: bool,
    area: Arc<SharedArea>,
}

/// Begins a page: what is called while one lies on the stack has its frames in the page below, all
/// in one.
#[repr(align(4096))]
struct PageOfStack<T>(T);

/// The same for all kinds of work.
fn build<L: Link>(case: &Case, alone: bool, seater: Seater<L>) -> Result<BuiltRing, RingError> {
    L::prepare().map_err(RingError::Call)?;
    let area = shared_area(case.members, alone && case.work.is_some())?;
    if case.kind == Kind::Process {
        sys::watch_ring(&area);
    }
    let plan =
        Arc::new(MemberPlan::<L> { case: case.clone(), seater, alone, area: Arc::clone(&area) });
    let mut others = PageOfStack(OtherMembers::default());
    let made = plan.ends(&mut others.0).and_then(|ends| {
        let own = alone.then(|| plan.channel(&plan.place(0), 0)).transpose()?;
        plan.seat(0, ends, own).map_err(|errno| no_memory(case, errno))
    });
    let mut others = others.0;
    if case.kind == Kind::Process {
        others = OtherMembers::of_processes(&area);
    }
    match made {
        Ok(leader) => Ok(BuiltRing { leader, area, others }),
        Err(error) => {
            // From here on members end because they are told to.
            unwatch_members();
            Err(others.end_after(error, &area))
        }
    }
}

/// That the memory of a member's work was refused.
pub(super) fn no_memory(case: &Case, errno: Errno) -> RingError {
    let bytes = case.work.map_or(0, |work| work.bytes);
    RingError::Memory(format!(
        "a working set of {bytes} bytes cannot be allocated: mmap: {errno} (fewer bytes, or see \
         ulimit -v and -d)"
    ))
}

impl<L: Link> MemberPlan<L> {
    /// Makes all channels and members; gives the leader's ends. Channel i leads from member i to
    /// i + 1, the last one back to the leader.
    ///
    /// Between two forks nothing is written to private memory that a member would not write to as
    /// well. Such a page would stay in each member as it was, and to look up who uses it the kernel
    /// goes through all members.
    #[inline(never)]
    fn ends(self: &Arc<Self>, others: &mut OtherMembers) -> Result<Ends<L>, RingError> {
        let last = self.case.members - 1;
        let mut place = self.place(0);
        // Made before any member is.
        let (back_sender, own_receiver) = self.channel(&place, 0)?;
        if last == 0 {
            return Ok((back_sender, own_receiver));
        }
        place.to = 1;
        let (own_sender, mut receiver) = self.channel(&place, 0)?;
        let mut held = (own_sender, own_receiver, back_sender);
        for member in 1..last {
            // The first lap, in which a loss would show, is far off while a large ring is made.
            if member_lost() {
                return Err(LinkError::Closed.into());
            }
            place.to = member + 1;
            let (sender, next_receiver) = self.channel(&place, member)?;
            (held, receiver) =
                self.start(member, (sender, receiver), (held, next_receiver), others)?;
        }
        let (own_sender, own_receiver, back_sender) = held;
        self.start(last, (back_sender, receiver), (own_sender, own_receiver), others)
    }

    /// A channel, when so many members have been made.
    fn channel(&self, place: &ChannelPlace, made: u32) -> Result<Ends<L>, RingError> {
        L::channel(place).map_err(|call| self.refused(made, call))
    }

    /// A member of its ends, made where it lives.
    fn seat(
        &self,
        member: u32,
        ends: Ends<L>,
        own: Option<Ends<L>>,
    ) -> Result<Box<dyn TimedMember>, Errno> {
        let mut seat = (self.seater)(ends, own)?;
        if let Some(notes) = self.area.notes_of(member as usize) {
            seat.work().note_to(notes);
        }
        Ok(seat)
    }

    fn place(&self, to: u32) -> ChannelPlace {
        ChannelPlace { area: Arc::clone(&self.area), kind: self.case.kind, to }
    }

    fn refused(&self, made: u32, call: CallError) -> RingError {
        RingError::refused(self.case.members, made, call)
    }

    /// Starts a member; a thread is added to `others`. `held` are ends that are not its own: a
    /// process drops them, as they would hide a broken ring. The leader gets them back.
    fn start<H>(
        self: &Arc<Self>,
        member: u32,
        ends: Ends<L>,
        held: H,
        others: &mut OtherMembers,
    ) -> Result<H, RingError> {
        let tid = &self.area.cells()[member as usize].tid;
        if self.case.kind == Kind::Thread {
            let plan = Arc::clone(self);
            let life = move || {
                let tid = &plan.area.cells()[member as usize].tid;
                tid.store(gettid().as_raw_pid() as u32, Ordering::Release);
                let note = EndNote;
                let status = plan.live(member, ends);
                if status == 0 {
                    std::mem::forget(note);
                }
                status
            };
            let started = room_for_thread(STACK_BYTES)
                .and_then(|()| thread::Builder::new().stack_size(STACK_BYTES).spawn(life));
            let started = started.map_err(|error| {
                let errno = Errno::from_io_error(&error).unwrap_or(Errno::AGAIN);
                self.refused(member, ("thread start", errno))
            })?;
            others.0.push(OtherMember::Thread(started));
            // A thread maps memory before it runs its function (std). Wait for that, so that the
            // check of room for the next thread counts it.
            for _ in 0..MOST_YIELDS_TO_START {
                if tid.load(Ordering::Acquire) != 0 {
                    break;
                }
                thread::yield_now();
            }
            return Ok(held);
        }
        let leader = getpid();
        match fork().map_err(|errno| self.refused(member, ("fork", errno)))? {
            ForkSide::Parent(pid) => {
                tid.store(pid.as_raw_pid() as u32, Ordering::Release);
                Ok(held)
            }
            ForkSide::Child => {
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
        let fail = |errno: Errno, status| {
            cell.errno.store(errno.raw_os_error() as u32, Ordering::Release);
            status
        };
        // With all members alike the leader's CPUs are inherited.
        if let Placement::Pinned { .. } = self.case.placement {
            if let Err(errno) = placement::pin(&self.case.placement.cpus_of(member)) {
                return fail(errno, STATUS_PLACE);
            }
        }
        name_member(member, self.case.members);
        let own = match self.alone.then(|| L::channel(&self.place(member))).transpose() {
            Ok(own) => own,
            Err((_, errno)) => return fail(errno, STATUS_LOST),
        };
        let mut seat = match self.seat(member, ends, own) {
            Ok(seat) => seat,
            Err(errno) => return fail(errno, STATUS_MEMORY),
        };
        match follow(&mut *seat, &self.area, cell) {
            Ok(()) => 0,
            // What a neighbour's end looks like by some links. The neighbour is the one to be
            // named.
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

/// Most characters of a thread's name (TASK_COMM_LEN).
const LONGEST_NAME: usize = 15;

/// What members are told apart by in top and ps: `switchcost-2/64`, in large rings without the
/// size, from the name that the leader has (`switchcost-ring`); under any other they are what they
/// are called.
fn name_member(member: u32, members: u32) {
    let own = rustix::thread::name().unwrap_or_default();
    let Some(before) = own.to_bytes().strip_suffix(b"ring") else { return };
    let before = String::from_utf8_lossy(before);
    let names = [format!("{before}{}/{members}", member + 1), format!("{before}{}", member + 1)];
    let fits = names.into_iter().find(|name| name.len() <= LONGEST_NAME);
    fits.and_then(|name| CString::new(name).ok()).iter().for_each(|name| set_own_name(name));
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::ring::links::PipeLink;
    use crate::sys::{ChildProcess, UsageScope, usage};

    /// Minor faults of one who does it alone.
    fn faults(act: impl FnOnce()) -> u64 {
        let before = usage(UsageScope::Own).minor_faults();
        act();
        usage(UsageScope::Own).minor_faults() - before
    }

    /// Whatever else a leader writes to between two forks is copied for each member, and stays
    /// there.
    #[test]
    fn between_forks_a_leader_writes_to_no_more_pages_than_who_only_forks() {
        const MEMBERS: u32 = 300;
        let case = Case::of_processes(MEMBERS, Placement::Same { cpu: 0 });
        let is_right = || {
            let leader = ChildProcess::start(|| {
                let mut children = Vec::with_capacity(MEMBERS as usize);
                let bare = faults(|| {
                    children.extend((1..MEMBERS).map(|_| ChildProcess::asleep()));
                });
                let mut ring = None;
                let of_ring = faults(|| ring = make::<PipeLink>(&case, 0, false).ok());
                let is_whole = ring.is_some_and(|ring| ring.others.0.len() == children.len());
                let is_right = is_whole && of_ring < bare + u64::from(MEMBERS) / 2;
                if !is_right {
                    eprintln!("{of_ring} faults, {bare} of bare forks");
                }
                exit_now(i32::from(!is_right));
            });
            leader.unwrap().join()
        };
        // Where memory is short, pages are taken away meanwhile, and touched again.
        assert!((0..10).any(|_| is_right()));
    }
}
