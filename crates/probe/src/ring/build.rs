//! Building a ring, one channel at a time, in time linear in its size. In a ring of processes no
//! process ever holds more than three channels, as in Sloan's program.

use std::ffi::CString;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use rundata::placement::Placement;
use rundata::ring::{MemberKind, RegisterState, RingCase};
use rustix::io::Errno;
use rustix::process::getpid;
use rustix::thread::gettid;

use super::flight::channel_room;
use super::link::{CallError, ChannelPlace, Link, LinkEnd, LinkError, RingError};
use super::member::{HopWork, NoWork, RingMember, TimedMember, follow};
use super::others::{
    OtherMember, OtherMembers, STATUS_LOST, STATUS_MEMORY, STATUS_ORPHAN, STATUS_PLACE,
};
use crate::placement;
use crate::stack::room_for_thread;
use crate::sys::{
    self, EndNote, ForkSide, MemberCell, RegisterKind, SharedArea, WithRegisters, WorkArray,
    end_with_parent, exit_now, fork, member_lost, set_own_name, unwatch_members,
};

/// Stack of a member that is a thread or a coroutine: its calls are a few functions deep.
pub const STACK_BYTES: usize = 64 * 1024;

/// Largest number of times that the leader yields its CPU for a thread to start.
const MAX_YIELDS_TO_START: u32 = 1000;

/// A ring that is ready for its first lap.
pub struct BuiltRing {
    /// The leader.
    pub leader: Box<dyn TimedMember>,
    /// Memory that the members share.
    pub area: Arc<SharedArea>,
    /// The members besides the leader.
    pub others: OtherMembers,
}

/// Builds rings. Every [`Link`] does, channel by channel; coroutines have no channels and do it by
/// themselves.
pub trait RingMaker: 'static {
    /// Builds the ring that `case` describes. `work` is called in each member, which then owns the
    /// memory; it returns the errno of memory that is refused. If `has_solos`, each member also
    /// gets a channel to itself, unless members of the link poll.
    fn build<W: HopWork>(
        case: &RingCase,
        work: impl Fn() -> Result<W, Errno> + Copy + Send + Sync + 'static,
        has_solos: bool,
    ) -> Result<BuiltRing, RingError>;
}

impl<L: Link> RingMaker for L {
    fn build<W: HopWork>(
        case: &RingCase,
        work: impl Fn() -> Result<W, Errno> + Copy + Send + Sync + 'static,
        has_solos: bool,
    ) -> Result<BuiltRing, RingError> {
        let new_member: NewMember<L> = Box::new(move |ends, solo_ends| {
            let (sender, receiver) = ends;
            Ok(Box::new(RingMember { sender, receiver, work: work()?, solo_ends }))
        });
        build_over_link::<L>(case, has_solos && !L::End::POLLS, new_member)
    }
}

/// Builds the ring of a case by `M`, with the work or the registers of the case. `seed` decides
/// where the members' memory lies.
pub fn build_ring<M: RingMaker>(
    case: &RingCase,
    seed: u64,
    has_solos: bool,
) -> Result<BuiltRing, RingError> {
    match (case.work, case.state) {
        (None, None) => M::build(case, || Ok(NoWork), has_solos),
        (Some(work), None) => {
            WorkArray::check(&work).map_err(|limit| {
                RingError::Memory(format!(
                    "a working set of {} bytes cannot be allocated: the limit is {limit} bytes \
                     (--work)",
                    work.bytes
                ))
            })?;
            M::build(case, move || WorkArray::new(&work, seed), has_solos)
        }
        (None, Some(state)) => {
            let builder = WithState { case, has_solos, link: PhantomData::<M> };
            sys::with_registers(state, builder).unwrap_or_else(|why| Err(unsuited(state, &why)))
        }
        (Some(_), Some(state)) => {
            Err(unsuited(state, "members have either work or a state of the registers"))
        }
    }
}

/// Builds a ring whose members keep registers in use.
struct WithState<'a, M> {
    case: &'a RingCase,
    has_solos: bool,
    link: PhantomData<M>,
}

impl<M: RingMaker> WithRegisters for WithState<'_, M> {
    type Output = Result<BuiltRing, RingError>;

    fn with<K: RegisterKind>(self, registers: K) -> Self::Output {
        M::build(self.case, move || Ok(registers), self.has_solos)
    }
}

/// Builds the error that members cannot have this state.
fn unsuited(state: RegisterState, why: &str) -> RingError {
    RingError::Other(format!("--state {state}: {why}"))
}

/// Checks that this CPU has the registers of `state`. The error names the feature that it lacks.
pub fn check_state(state: RegisterState) -> Result<(), RingError> {
    sys::has_registers(state).map_err(|why| unsuited(state, &why))
}

/// Creates the area that the members of a ring share, in its leader. If `has_notes`, it has room
/// for notes of walks that are cut.
pub fn shared_area(members: u32, has_notes: bool) -> Result<Arc<SharedArea>, RingError> {
    let area = SharedArea::new(members as usize, has_notes).map_err(|errno| {
        RingError::Memory(format!("cannot map memory shared by {members} members: {errno}"))
    })?;
    area.cells()[0].tid.store(gettid().as_raw_pid() as u32, Ordering::Release);
    Ok(Arc::new(area))
}

/// Builds a member from its ends of the ring and those of its channel to itself. Called in the
/// member's process or thread.
type NewMember<L> =
    Box<dyn Fn(Ends<L>, Option<Ends<L>>) -> Result<Box<dyn TimedMember>, Errno> + Send + Sync>;

/// Both ends of a channel, or of a member: the sending and the receiving one.
type Ends<L> = (<L as Link>::End, <L as Link>::End);

/// Everything that is needed to create each member.
struct MemberPlan<L: Link> {
    case: RingCase,
    new_member: NewMember<L>,
    has_solos: bool,
    area: Arc<SharedArea>,
}

/// Aligns a value on the stack to a page: functions that are called meanwhile have their frames in
/// the page below.
#[repr(align(4096))]
struct PageOfStack<T>(T);

/// Builds a ring over a link. Compiled once for all kinds of work.
fn build_over_link<L: Link>(
    case: &RingCase,
    has_solos: bool,
    new_member: NewMember<L>,
) -> Result<BuiltRing, RingError> {
    L::prepare().map_err(RingError::Call)?;
    let area = shared_area(case.members, has_solos && case.work.is_some())?;
    if case.kind == MemberKind::Process {
        sys::watch_ring(&area);
    }
    let plan = Arc::new(MemberPlan::<L> {
        case: case.clone(),
        new_member,
        has_solos,
        area: Arc::clone(&area),
    });
    let mut others = PageOfStack(OtherMembers::default());
    let leader = plan.start_members(&mut others.0).and_then(|ends| plan.build_leader(ends));
    let mut others = others.0;
    if case.kind == MemberKind::Process {
        others = OtherMembers::of_processes(&area);
    }
    match leader {
        Ok(leader) => Ok(BuiltRing { leader, area, others }),
        Err(error) => {
            // From here on members end because they are told to.
            unwatch_members();
            Err(others.end_after(error, &area))
        }
    }
}

/// Builds the error that the memory of a member's work was refused.
pub(super) fn no_memory(case: &RingCase, errno: Errno) -> RingError {
    let bytes = case.work.map_or(0, |work| work.bytes);
    RingError::Memory(format!(
        "a working set of {bytes} bytes cannot be allocated: mmap: {errno} (fewer bytes, or see \
         ulimit -v and -d)"
    ))
}

impl<L: Link> MemberPlan<L> {
    /// Creates all channels and all other members; returns the leader's ends. Channel i leads from
    /// member i to member i + 1, the last one back to the leader.
    ///
    /// Between two forks the leader writes to no private page that a member would not write to as
    /// well. Each member would keep an old copy of such a page, and to find the users of a page the
    /// kernel goes through all members.
    #[inline(never)]
    fn start_members(self: &Arc<Self>, others: &mut OtherMembers) -> Result<Ends<L>, RingError> {
        let last = self.case.members - 1;
        let mut place = self.place(0);
        // Created before any member.
        let (back_sender, own_receiver) = self.channel(&place, 0)?;
        if last == 0 {
            return Ok((back_sender, own_receiver));
        }
        place.to = 1;
        let (own_sender, mut receiver) = self.channel(&place, 0)?;
        let mut held = (own_sender, own_receiver, back_sender);
        for member in 1..last {
            // While a large ring is built, the first lap, which would show a loss, is far off.
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

    /// Creates a channel when `made` members exist.
    fn channel(&self, place: &ChannelPlace, made: u32) -> Result<Ends<L>, RingError> {
        L::channel(place).map_err(|call| self.refused(made, call))
    }

    /// Builds a member from its ends, in its own process or thread.
    fn build_member(
        &self,
        member: u32,
        ends: Ends<L>,
        solo_ends: Option<Ends<L>>,
    ) -> Result<Box<dyn TimedMember>, Errno> {
        let mut timed_member = (self.new_member)(ends, solo_ends)?;
        if let Some(notes) = self.area.notes_of(member as usize) {
            timed_member.work().note_to(notes);
        }
        Ok(timed_member)
    }

    /// Creates the member's channel to itself, if it needs one, and joins its ends.
    fn complete_ends(&self, member: u32, ends: &mut Ends<L>) -> Result<Option<Ends<L>>, CallError> {
        L::join(&mut ends.0, &mut ends.1)?;
        if !self.has_solos {
            return Ok(None);
        }
        let (mut sender, mut receiver) = L::channel(&self.place(member))?;
        L::join(&mut sender, &mut receiver)?;
        Ok(Some((sender, receiver)))
    }

    /// Builds the leader from its ends.
    fn build_leader(&self, mut ends: Ends<L>) -> Result<Box<dyn TimedMember>, RingError> {
        let solo_ends = self.complete_ends(0, &mut ends).map_err(|call| self.refused(0, call))?;
        self.build_member(0, ends, solo_ends).map_err(|errno| no_memory(&self.case, errno))
    }

    /// Returns the place of the channel to a member.
    fn place(&self, to: u32) -> ChannelPlace {
        let room = channel_room(self.case.flight);
        ChannelPlace { area: Arc::clone(&self.area), kind: self.case.kind, to, room }
    }

    /// Describes a call that failed when `made` members existed.
    fn refused(&self, made: u32, call: CallError) -> RingError {
        RingError::refused(self.case.members, made, call)
    }

    /// Starts a member; a thread is added to `others`. `held` are ends of other members: the new
    /// process drops them, as they would hide a broken ring, and the leader gets them back.
    fn start<H>(
        self: &Arc<Self>,
        member: u32,
        ends: Ends<L>,
        held: H,
        others: &mut OtherMembers,
    ) -> Result<H, RingError> {
        let tid = &self.area.cells()[member as usize].tid;
        if self.case.kind == MemberKind::Thread {
            let plan = Arc::clone(self);
            let run = move || {
                let tid = &plan.area.cells()[member as usize].tid;
                tid.store(gettid().as_raw_pid() as u32, Ordering::Release);
                let note = EndNote;
                let status = plan.run_member(member, ends);
                if status == 0 {
                    std::mem::forget(note);
                }
                status
            };
            let started = room_for_thread(STACK_BYTES)
                .and_then(|()| thread::Builder::new().stack_size(STACK_BYTES).spawn(run));
            let started = started.map_err(|error| {
                let errno = Errno::from_io_error(&error).unwrap_or(Errno::AGAIN);
                self.refused(member, ("thread start", errno))
            })?;
            others.0.push(OtherMember::Thread(started));
            // A thread maps memory before it runs its function (std). Waits for that, so that the
            // check of room for the next thread counts it.
            for _ in 0..MAX_YIELDS_TO_START {
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
                exit_now(self.run_member(member, ends));
            }
        }
    }

    /// Runs a member from its start to its end; returns its exit status.
    fn run_member(&self, member: u32, mut ends: Ends<L>) -> i32 {
        let cell = &self.area.cells()[member as usize];
        // Other placements are the same for all members, which inherit the leader's CPUs.
        if let Placement::Pinned { .. } = self.case.placement {
            if let Err(errno) = placement::pin(&self.case.placement.cpus_of(member)) {
                return fail(cell, errno, STATUS_PLACE);
            }
        }
        name_member(member, self.case.members);
        let solo_ends = match self.complete_ends(member, &mut ends) {
            Ok(solo_ends) => solo_ends,
            Err((_, errno)) => return fail(cell, errno, STATUS_LOST),
        };
        let mut timed_member = match self.build_member(member, ends, solo_ends) {
            Ok(timed_member) => timed_member,
            Err(errno) => return fail(cell, errno, STATUS_MEMORY),
        };
        match follow(&mut *timed_member, &self.area, cell) {
            Ok(()) => 0,
            // By some links a neighbour's end looks like this. Not this member but the neighbour is
            // to be named.
            Err(
                LinkError::Closed
                | LinkError::Kernel(
                    Errno::PIPE | Errno::CONNRESET | Errno::CONNREFUSED | Errno::SRCH | Errno::INTR,
                ),
            ) => STATUS_LOST,
            Err(LinkError::Kernel(errno)) => fail(cell, errno, STATUS_LOST),
        }
    }
}

/// Stores in the member's cell why it ends; returns `status`.
fn fail(cell: &MemberCell, errno: Errno, status: i32) -> i32 {
    cell.errno.store(errno.raw_os_error() as u32, Ordering::Release);
    status
}

/// Longest name of a thread in bytes (TASK_COMM_LEN).
const MAX_NAME_BYTES: usize = 15;

/// Names the calling member for top and ps: `switchcost-2/64`, in large rings without the size, if
/// the leader is called `switchcost-ring`. Under any other name of the leader it changes nothing.
fn name_member(member: u32, members: u32) {
    let leader_name = rustix::thread::name().unwrap_or_default();
    let Some(prefix) = leader_name.to_bytes().strip_suffix(b"ring") else { return };
    let prefix = String::from_utf8_lossy(prefix);
    let number = member + 1;
    let mut name = format!("{prefix}{number}/{members}");
    if name.len() > MAX_NAME_BYTES {
        name = format!("{prefix}{number}");
    }
    if name.len() > MAX_NAME_BYTES {
        return;
    }
    if let Ok(name) = CString::new(name) {
        set_own_name(&name);
    }
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
        let case = RingCase::of_processes(MEMBERS, Placement::Same { cpu: 0 });
        let is_right = || {
            let leader = ChildProcess::start(|| {
                let mut children = Vec::with_capacity(MEMBERS as usize);
                let bare = faults(|| {
                    children.extend((1..MEMBERS).map(|_| ChildProcess::asleep()));
                });
                let mut ring = None;
                let of_ring = faults(|| ring = build_ring::<PipeLink>(&case, 0, false).ok());
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
