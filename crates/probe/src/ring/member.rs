//! The timed loops of members and leader, and the leader's counts.
//!
//! The worker is member 0, the leader. Whenever the ring stands still, the leader holds the token
//! and all others sleep in their receive: only then can their counters be read. A *control lap* of
//! one hop each tells them what comes next; the phase after it is timed. A ring of three and one
//! batch of 40 laps:
//!
//! ```text
//! leader    laps = 40   control lap   40 laps timed    laps = 0    control lap
//! member 1              reports 0     40 hops                      reports 40, ends
//! member 2              reports 0     40 hops                      reports 40, ends
//! ```
//!
//! Nothing is believed that was not counted twice. Every member adds 1 to the token, so after 40
//! laps of three members the leader must find it 120 higher (modulo 256): a member that was left
//! out shows at once. And in each control lap every member reports all hops that it made in its
//! [`MemberCell`], which must be what the leader announced so far. Control laps count on neither
//! side.
//!
//! With several items under way the leader begins a batch, or a slice of it, with so many tokens of
//! ascending values, passes on one for each that comes back, and waits for the last ones at the end:
//! the ring stands still as before. It checks the value of each. In a stream over a full link the
//! leader only sends; the other member checks each item, and answers at the end of a slice.

use std::mem::take;
use std::sync::atomic::Ordering;

use rundata::ring::{Flight, Slices};
use rustix::io::Errno;

use super::link::{LinkEnd, LinkError, RingError};
use super::meters::SliceMeters;
use super::slices::{WaitBudget, in_slices};
use crate::sys::{
    MemberCell, MemberNotes, RegisterKind, SharedArea, SoloTimes, WorkArray, begin_line,
    member_lost, monotonic_raw_ns, own_thread_cpu_ns, reference_quantum, run_quantum,
    wait_uninterruptible,
};

/// Repeats `act` if a signal interrupted it that was not a member's death: some waits end even when
/// the process was stopped and continued (signal(7)).
#[inline(always)]
fn retry<T>(mut act: impl FnMut() -> Result<T, LinkError>) -> Result<T, LinkError> {
    loop {
        match act() {
            Ok(done) => return Ok(done),
            Err(error) => check_repeatable(error)?,
        }
    }
}

/// Returns `Ok` if what failed can be repeated, else the error. Separate and cold: a token that
/// arrives pays one branch for all of it.
#[cold]
#[inline(never)]
fn check_repeatable(error: LinkError) -> Result<(), LinkError> {
    match error {
        LinkError::Kernel(Errno::INTR) if !member_lost() => Ok(()),
        lost => Err(lost),
    }
}

/// Work of a member in each hop.
pub trait HopWork: 'static {
    /// Does the work of one hop.
    fn touch(&mut self);

    /// Prepares the work for a batch. Called outside of the timed loop.
    fn begin(&mut self) {}

    /// Moves the working set to another of its places, if it has several.
    fn move_to(&mut self, _place: u32) {}

    /// Sets where the times of pieces are noted, if the walk can be cut.
    fn note_to(&mut self, _notes: MemberNotes) {}

    /// Cuts the walk into `_pieces` pieces (0: not at all) and notes the times of the next
    /// `_noted_hops` hops.
    fn cut(&mut self, _pieces: u32, _noted_hops: u64) {}
}

/// No work: only the switch is measured.
pub struct NoWork;

impl HopWork for NoWork {
    #[inline(always)]
    fn touch(&mut self) {}
}

impl HopWork for WorkArray {
    #[inline]
    fn touch(&mut self) {
        self.walk();
    }

    fn move_to(&mut self, place: u32) {
        WorkArray::move_to(self, place);
    }

    fn note_to(&mut self, notes: MemberNotes) {
        WorkArray::note_to(self, notes);
    }

    fn cut(&mut self, pieces: u32, noted_hops: u64) {
        WorkArray::cut(self, pieces, noted_hops);
    }
}

impl<K: RegisterKind> HopWork for K {
    #[inline(always)]
    fn touch(&mut self) {
        self.write();
    }

    /// Clears registers that library calls have left in use: they are not part of this state.
    fn begin(&mut self) {
        self.clear();
        self.write();
    }
}

/// A member of the ring: its two ends and its work.
pub struct RingMember<E, W> {
    /// End by which the token leaves.
    pub sender: E,
    /// End by which the token arrives.
    pub receiver: E,
    /// Work done while the member has the token.
    pub work: W,
    /// Both ends of a channel to itself, for solos: what the member sends by the first end arrives
    /// at the second.
    pub solo_ends: Option<(E, E)>,
}

/// A member without its types of link and work, for the code around the timed loops: one call by
/// pointer for each batch, none for each hop.
pub trait TimedMember {
    /// Makes the hops of `laps` laps: receives, works and sends.
    fn pass(&mut self, laps: u64) -> Result<(), LinkError>;
    /// Makes the leader's hops of `laps` laps. The leader has `token` at the start; returns the
    /// token that it has at the end.
    fn drive(&mut self, token: u8, laps: u64) -> Result<u8, LinkError>;
    /// Makes the leader's hops of `laps` laps with up to `under_way` tokens in circulation. The
    /// first has the value `token`, each that follows one more; all come back with `changes` added.
    /// Returns the number of tokens that did not.
    fn circulate(
        &mut self,
        token: u8,
        laps: u64,
        under_way: u64,
        changes: u8,
    ) -> Result<u64, LinkError>;
    /// Sends `items` tokens, each one more than the one before, the first one more than `token`;
    /// then waits for the answer, which it returns.
    fn stream(&mut self, token: u8, items: u64) -> Result<u8, LinkError>;
    /// Receives `items` tokens of a stream, the first one more than `token`, and answers after each
    /// `answer_items` of them, with one more than the last if all were as expected.
    fn consume(&mut self, token: u8, items: u64, answer_items: u64) -> Result<(), LinkError>;
    /// Waits for the token.
    fn receive(&mut self) -> Result<u8, LinkError>;
    /// Passes the token on.
    fn send(&mut self, token: u8) -> Result<(), LinkError>;
    /// Calls [`LinkEnd::settle`] of the sending end.
    fn settle(&mut self) -> Result<(), LinkError>;
    /// Returns the member's work.
    fn work(&mut self) -> &mut dyn HopWork;
    /// Exchanges the ends of the ring and those of the solo channel. Returns false if there is no
    /// solo channel.
    fn exchange_ends(&mut self) -> bool;
    /// Returns whether the member has a channel for solos.
    fn has_solo_ends(&self) -> bool;
    /// Returns [`LinkEnd::POLLS`].
    fn polls(&self) -> bool;
    /// Returns [`LinkEnd::INTERRUPTIBLE`].
    fn is_interruptible(&self) -> bool;
}

impl<E: LinkEnd, W: HopWork> TimedMember for RingMember<E, W> {
    /// Measured code: every instruction here is paid in every hop.
    fn pass(&mut self, laps: u64) -> Result<(), LinkError> {
        begin_line();
        for _ in 0..laps {
            let token = retry(|| self.receiver.receive())?;
            self.work.touch();
            retry(|| self.sender.send(token.wrapping_add(1)))?;
        }
        Ok(())
    }

    /// Measured code.
    fn drive(&mut self, token: u8, laps: u64) -> Result<u8, LinkError> {
        begin_line();
        let mut token = token;
        for _ in 0..laps {
            retry(|| self.sender.send(token.wrapping_add(1)))?;
            token = retry(|| self.receiver.receive())?;
            self.work.touch();
        }
        Ok(token)
    }

    /// Measured code.
    fn circulate(
        &mut self,
        token: u8,
        laps: u64,
        under_way: u64,
        changes: u8,
    ) -> Result<u64, LinkError> {
        let under_way = under_way.min(laps);
        let mut next_sent = token;
        let mut next_received = token.wrapping_add(changes);
        let mut wrong = 0;
        begin_line();
        for _ in 0..under_way {
            retry(|| self.sender.send(next_sent))?;
            next_sent = next_sent.wrapping_add(1);
        }
        for _ in under_way..laps {
            let token = retry(|| self.receiver.receive())?;
            self.work.touch();
            wrong += u64::from(token != next_received);
            next_received = next_received.wrapping_add(1);
            retry(|| self.sender.send(next_sent))?;
            next_sent = next_sent.wrapping_add(1);
        }
        for _ in 0..under_way {
            let token = retry(|| self.receiver.receive())?;
            self.work.touch();
            wrong += u64::from(token != next_received);
            next_received = next_received.wrapping_add(1);
        }
        Ok(wrong)
    }

    /// Measured code.
    fn stream(&mut self, token: u8, items: u64) -> Result<u8, LinkError> {
        begin_line();
        let mut token = token;
        for _ in 0..items {
            token = token.wrapping_add(1);
            retry(|| self.sender.send(token))?;
        }
        retry(|| self.receiver.receive())
    }

    /// Measured code.
    fn consume(&mut self, token: u8, items: u64, answer_items: u64) -> Result<(), LinkError> {
        begin_line();
        let (mut next, mut left) = (token.wrapping_add(1), items);
        while left > 0 {
            let count = left.min(answer_items.max(1));
            left -= count;
            let mut wrong = 0;
            for _ in 0..count {
                let token = retry(|| self.receiver.receive())?;
                self.work.touch();
                wrong |= token ^ next;
                next = next.wrapping_add(1);
            }
            let answer = next.wrapping_add(u8::from(wrong != 0));
            retry(|| self.sender.send(answer))?;
            next = answer.wrapping_add(1);
        }
        Ok(())
    }

    fn receive(&mut self) -> Result<u8, LinkError> {
        retry(|| self.receiver.receive())
    }

    fn send(&mut self, token: u8) -> Result<(), LinkError> {
        retry(|| self.sender.send(token))?;
        self.receiver.flush()
    }

    fn settle(&mut self) -> Result<(), LinkError> {
        self.sender.settle()
    }

    fn work(&mut self) -> &mut dyn HopWork {
        &mut self.work
    }

    fn exchange_ends(&mut self) -> bool {
        let Some((sender, receiver)) = &mut self.solo_ends else { return false };
        std::mem::swap(&mut self.sender, sender);
        std::mem::swap(&mut self.receiver, receiver);
        true
    }

    fn has_solo_ends(&self) -> bool {
        self.solo_ends.is_some()
    }

    fn polls(&self) -> bool {
        E::POLLS
    }

    fn is_interruptible(&self) -> bool {
        E::INTERRUPTIBLE
    }
}

/// Makes a solo: laps of a ring of one over the member's own channel, on the memory that it uses in
/// the ring. Up to [`WARM_LAPS`] untimed laps come before, so that the caches hold its memory as
/// they do when nobody else runs. Stores the times in `cell`. Does nothing if the member has no
/// channel for solos.
fn run_solo(member: &mut dyn TimedMember, laps: u64, cell: &MemberCell) -> Result<(), LinkError> {
    if !member.exchange_ends() {
        return Ok(());
    }
    let timed = time_solo(member, laps, cell);
    member.exchange_ends();
    timed
}

/// Times the solo of a member whose ends are those of its own channel.
fn time_solo(member: &mut dyn TimedMember, laps: u64, cell: &MemberCell) -> Result<(), LinkError> {
    let token = member.drive(0, laps.min(WARM_LAPS))?;
    let (quantum_before, _) = run_quantum(monotonic_raw_ns());
    let cpu_before_ns = own_thread_cpu_ns();
    let start_ns = monotonic_raw_ns();
    member.drive(token, laps)?;
    let elapsed_ns = monotonic_raw_ns().wrapping_sub(start_ns);
    let cpu_ns = own_thread_cpu_ns().wrapping_sub(cpu_before_ns);
    let (quantum_after, _) = run_quantum(monotonic_raw_ns());
    cell.set_solo(&SoloTimes { elapsed_ns, cpu_ns, quantum_before, quantum_after });
    Ok(())
}

/// Waits at the gate for the next phase, if members of this link wait for the token awake.
fn wait_for_phase(polls: bool, area: &SharedArea, passed_phases: &mut u32) {
    if polls {
        area.wait_at_gate(*passed_phases);
        *passed_phases = passed_phases.wrapping_add(1);
    }
}

/// Runs a member until the leader announces the end. Each round is a control lap, which announces
/// the laps of the next phase (0: the end) and reports the hops made so far, and then that phase:
/// laps of the ring, or one solo of each member when the token comes to it.
pub fn follow(
    member: &mut dyn TimedMember,
    area: &SharedArea,
    cell: &MemberCell,
) -> Result<(), LinkError> {
    let mut hops = 0;
    let mut passed_phases = 0;
    let polls = member.polls();
    loop {
        wait_for_phase(polls, area, &mut passed_phases);
        let token = member.receive()?;
        cell.hops.store(hops, Ordering::Release);
        let laps = area.laps.load(Ordering::Acquire);
        member.settle()?;
        member.send(token.wrapping_add(1))?;
        if laps == 0 {
            return Ok(());
        }
        wait_for_phase(polls, area, &mut passed_phases);
        member.work().move_to(area.place.load(Ordering::Acquire) as u32);
        cut_walk(member, area);
        member.work().begin();
        let solo_laps = area.solo_laps.load(Ordering::Acquire);
        let answer_laps = area.answer_laps.load(Ordering::Acquire);
        if solo_laps > 0 && member.has_solo_ends() {
            let token = member.receive()?;
            run_solo(member, solo_laps, cell)?;
            member.send(token.wrapping_add(1))?;
        } else if answer_laps > 0 {
            member.consume(token.wrapping_add(1), laps, answer_laps)?;
        } else {
            member.pass(laps)?;
        }
        hops += laps;
    }
}

/// Cuts the member's walk as the leader has announced it for this phase.
fn cut_walk(member: &mut dyn TimedMember, area: &SharedArea) {
    let pieces = area.pieces.load(Ordering::Acquire) as u32;
    member.work().cut(pieces, area.noted_hops.load(Ordering::Acquire));
}

/// Untimed laps before those of a solo, and before those of the ring between two solos.
pub(super) const WARM_LAPS: u64 = 2;

/// The leader of a ring. It has the token whenever the ring stands still.
pub struct RingLeader<'a> {
    member: Box<dyn TimedMember + 'a>,
    pub(super) area: &'a SharedArea,
    token: u8,
    /// Hops that each member must have made so far, without control laps.
    hops: u64,
    /// Items under way in timed laps; `None` for one.
    flight: Option<Flight>,
    meters: SliceMeters,
}

impl<'a> RingLeader<'a> {
    /// Builds the leader of the ring whose members share `area`.
    pub fn new(member: Box<dyn TimedMember + 'a>, area: &'a SharedArea) -> Self {
        Self { member, area, token: 0, hops: 0, flight: None, meters: SliceMeters::default() }
    }

    /// Sets how many items are under way in timed laps.
    pub fn set_flight(&mut self, flight: Option<Flight>) {
        self.flight = flight;
    }

    /// Sets what is read around each slice from the next batch on.
    pub fn set_meters(&mut self, meters: SliceMeters) {
        self.meters = meters;
    }

    /// Returns whether members can make solos.
    pub fn has_solos(&self) -> bool {
        self.member.has_solo_ends()
    }

    /// Returns what each member reports, the leader first.
    pub fn cells(&self) -> &'a [MemberCell] {
        self.area.cells()
    }

    /// Runs timed laps with as many items under way as the ring has.
    fn run_laps(&mut self, laps: u64) -> Result<(), RingError> {
        match self.flight {
            None => self.run_one_token(laps),
            Some(Flight::Items(count)) => self.run_several_tokens(laps, count.into()),
            Some(Flight::Full) => self.run_stream(laps),
        }
    }

    /// Runs `laps` laps with several tokens and checks that each member has changed each once.
    fn run_several_tokens(&mut self, laps: u64, under_way: u64) -> Result<(), RingError> {
        let first = self.token.wrapping_add(1);
        let changes = (self.area.cells().len() as u8).wrapping_sub(1);
        let wrong = if self.member.is_interruptible() {
            self.member.circulate(first, laps, under_way, changes)?
        } else {
            wait_uninterruptible(|| self.member.circulate(first, laps, under_way, changes))
                .unwrap_or(Err(LinkError::Closed))?
        };
        if wrong > 0 {
            return Err(RingError::Other(format!(
                "{wrong} of {laps} tokens came back in another order, or not changed by each member"
            )));
        }
        // The last one that came back.
        self.token = self.token.wrapping_add(laps as u8).wrapping_add(changes);
        Ok(())
    }

    /// Sends `items` items and checks that the reader answers that it had all of them, in order.
    fn run_stream(&mut self, items: u64) -> Result<(), RingError> {
        let expected = self.token.wrapping_add(items as u8).wrapping_add(1);
        let found = if self.member.is_interruptible() {
            self.member.stream(self.token, items)?
        } else {
            wait_uninterruptible(|| self.member.stream(self.token, items))
                .unwrap_or(Err(LinkError::Closed))?
        };
        if found != expected {
            return Err(RingError::Other(format!(
                "the reader of {items} items answered {found} instead of {expected}: one was lost \
                 or changed"
            )));
        }
        self.token = found;
        Ok(())
    }

    /// Runs `laps` laps and checks that each member has changed the token in each.
    fn run_one_token(&mut self, laps: u64) -> Result<(), RingError> {
        let changes = (laps as u8).wrapping_mul(self.area.cells().len() as u8);
        let expected = self.token.wrapping_add(changes);
        let found = if self.member.is_interruptible() {
            self.member.drive(self.token, laps)?
        } else {
            wait_uninterruptible(|| self.member.drive(self.token, laps))
                .unwrap_or(Err(LinkError::Closed))?
        };
        if found != expected {
            return Err(RingError::Other(format!(
                "the token came back as {found} instead of {expected}: not every member passed \
                 it on"
            )));
        }
        self.token = found;
        Ok(())
    }

    /// Makes a control lap: announces the laps of the next phase (0: the end) and checks that every
    /// member made all hops of the phases before.
    pub fn announce(&mut self, laps: u64) -> Result<(), RingError> {
        self.announce_in_slices(laps, laps)
    }

    /// Like [`Self::announce`], for a batch that is cut into slices of so many laps.
    pub fn announce_in_slices(&mut self, laps: u64, slice_laps: u64) -> Result<(), RingError> {
        let answer_laps = if self.flight == Some(Flight::Full) { slice_laps.max(1) } else { 0 };
        self.area.answer_laps.store(answer_laps, Ordering::Release);
        self.area.laps.store(laps, Ordering::Release);
        self.member.settle()?;
        self.begin_phase();
        self.run_one_token(1)?;
        for (member, cell) in self.area.cells().iter().enumerate().skip(1) {
            let found = cell.hops.load(Ordering::Acquire);
            if found != self.hops {
                let expected = self.hops;
                return Err(RingError::Other(format!(
                    "member {member} made {found} hops instead of {expected}"
                )));
            }
        }
        Ok(())
    }

    /// Runs a phase of solos: one lap of the ring, in which each member makes a solo of `laps` laps
    /// when the token comes to it, the leader first. Their times are in the cells.
    pub fn run_solos(&mut self, laps: u64) -> Result<(), RingError> {
        self.area.solo_laps.store(laps, Ordering::Release);
        self.announce(1)?;
        cut_walk(&mut *self.member, self.area);
        run_solo(&mut *self.member, laps, &self.area.cells()[0])?;
        self.run_laps(1)?;
        self.hops += 1;
        self.area.solo_laps.store(0, Ordering::Release);
        Ok(())
    }

    /// Moves the working sets of all members to this of their places. Returns the time of the
    /// fastest of `laps` laps there in nanoseconds, after [`WARM_LAPS`], and a quantum before and
    /// after them.
    pub fn move_to(&mut self, place: u32, laps: u64) -> Result<(u64, Slices), RingError> {
        self.area.place.store(place.into(), Ordering::Release);
        self.announce(WARM_LAPS + laps)?;
        self.member.work().move_to(place);
        self.begin_phase();
        let mut quanta = Slices::with_room_for(1, 1);
        self.run_laps(WARM_LAPS)?;
        let mut now_ns = reference_quantum(monotonic_raw_ns(), &mut quanta);
        let mut fastest_ns = u64::MAX;
        for _ in 0..laps {
            self.run_laps(1)?;
            let end_ns = monotonic_raw_ns();
            fastest_ns = fastest_ns.min(end_ns.wrapping_sub(now_ns));
            now_ns = end_ns;
        }
        reference_quantum(now_ns, &mut quanta);
        self.hops += WARM_LAPS + laps;
        Ok((fastest_ns, quanta))
    }

    /// Runs the phase of the ring between two phases of solos: `count` slices after [`WARM_LAPS`]
    /// laps, all announced together, with a quantum before, between and after them.
    pub fn run_between_solos(&mut self, count: u64, slices: &mut Slices) -> Result<(), RingError> {
        let laps = count * slices.laps;
        self.announce(laps + WARM_LAPS)?;
        cut_walk(&mut *self.member, self.area);
        self.run_laps(WARM_LAPS)?;
        reference_quantum(monotonic_raw_ns(), slices);
        let mut meters = take(&mut self.meters);
        // Events are counted in samples only; here they would disturb without use.
        let events = meters.events.take();
        let result = in_slices(laps, slices, &meters, |laps| self.run_laps(laps), |_| ());
        self.meters = SliceMeters { events, ..meters };
        result?;
        self.hops += laps + WARM_LAPS;
        Ok(())
    }

    /// Opens the gate for members that wait for the token awake and sleep at the gate.
    fn begin_phase(&self) {
        if self.member.polls() {
            self.area.open_gate();
        }
    }

    /// Runs the announced batch in slices with reference quanta around each, during which the other
    /// members sleep. `budget` limits how long slices wait for an unshared core. Returns the time
    /// of the laps in nanoseconds.
    pub fn batch_in_slices(
        &mut self,
        laps: u64,
        slices: &mut Slices,
        budget: &mut WaitBudget,
    ) -> Result<u64, RingError> {
        self.member.work().begin();
        let now_ns = reference_quantum(monotonic_raw_ns(), slices);
        reference_quantum(now_ns, slices);
        budget.wait(slices);
        self.begin_phase();
        // Members that poll share the core themselves: the leader would wait for them to stop.
        let can_wait = !self.member.polls();
        let meters = take(&mut self.meters);
        let result = in_slices(
            laps,
            slices,
            &meters,
            |laps| self.run_laps(laps),
            |slices| {
                if can_wait {
                    budget.wait(slices)
                }
            },
        );
        self.meters = meters;
        let (elapsed_ns, now_ns) = result?;
        reference_quantum(now_ns, slices);
        self.hops += laps;
        Ok(elapsed_ns)
    }

    /// Runs the announced batch between two readings of `clock`. Returns the time between them.
    pub fn batch(&mut self, laps: u64, clock: &mut dyn FnMut() -> u64) -> Result<u64, RingError> {
        self.member.work().begin();
        // The counts were read before: waking the members is part of them, and so of the time.
        let start_ns = clock();
        self.begin_phase();
        let result = self.run_laps(laps);
        let end_ns = clock();
        result?;
        self.hops += laps;
        Ok(end_ns.wrapping_sub(start_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::link::{ChannelPlace, Link};
    use crate::ring::links::PipeLink;
    use rundata::ring::MemberKind;
    use std::os::fd::OwnedFd;
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;
    use std::thread;

    fn channel() -> (OwnedFd, OwnedFd) {
        let area = Arc::new(SharedArea::new(1, false).unwrap());
        PipeLink::channel(&ChannelPlace { area, kind: MemberKind::Thread, to: 0, room: 1 }).unwrap()
    }

    /// A ring of threads over pipes; member `skip` passes the token on unchanged, as a
    /// short-circuited one would look.
    fn with_ring<T>(
        members: usize,
        skip: Option<usize>,
        lead: impl FnOnce(&mut RingLeader) -> T,
    ) -> T {
        with_ring_of(members, skip, || NoWork, lead)
    }

    /// The same with work.
    fn with_ring_of<W: HopWork, T>(
        members: usize,
        skip: Option<usize>,
        work: impl Fn() -> W + Sync,
        lead: impl FnOnce(&mut RingLeader) -> T,
    ) -> T {
        let area = SharedArea::new(members, false).unwrap();
        let channels: Vec<_> = (0..members).map(|_| channel()).collect();
        let (mut senders, mut receivers): (Vec<_>, Vec<_>) =
            channels.into_iter().map(|(s, r)| (Some(s), Some(r))).unzip();
        thread::scope(|scope| {
            for member in 1..members {
                let mut sender = senders[member].take().unwrap();
                let mut receiver = receivers[member - 1].take().unwrap();
                let (area, work) = (&area, &work);
                scope.spawn(move || {
                    if skip == Some(member) {
                        while let Ok(token) = receiver.receive() {
                            if sender.send(token).is_err() {
                                break;
                            }
                        }
                    } else {
                        let solo_ends = Some(channel());
                        let mut seat = RingMember { sender, receiver, work: work(), solo_ends };
                        let _ = follow(&mut seat, area, &area.cells()[member]);
                    }
                });
            }
            let sender = senders[0].take().unwrap();
            let receiver = receivers[members - 1].take().unwrap();
            let seat = RingMember { sender, receiver, work: work(), solo_ends: Some(channel()) };
            let mut leader = RingLeader::new(Box::new(seat), &area);
            lead(&mut leader)
        })
    }

    #[test]
    fn every_member_makes_every_hop() {
        for members in [1, 2, 3, 256, 257] {
            with_ring(members, None, |leader| {
                for laps in [1, 3, 300] {
                    leader.announce(laps).unwrap();
                    leader.batch(laps, &mut || 0).unwrap();
                }
                leader.announce(0).unwrap();
                let hops = |cell: &MemberCell| cell.hops.load(Ordering::Relaxed);
                assert!(leader.area.cells().iter().skip(1).all(|cell| hops(cell) == 304));
            });
        }
    }

    #[test]
    fn each_member_is_alone_once_a_phase_and_its_times_are_its_own() {
        with_ring(3, None, |leader| {
            leader.run_solos(50).unwrap();
            let times = |leader: &RingLeader| -> Vec<[u64; 6]> {
                leader
                    .cells()
                    .iter()
                    .map(|cell| cell.solo_ns.each_ref().map(|ns| ns.load(Ordering::Acquire)))
                    .collect()
            };
            let first = times(leader);
            assert!(first.iter().all(|times| times.iter().all(|ns| *ns > 0)), "{first:?}");
            // A batch of the ring between two phases leaves the solos alone.
            let mut slices = Slices::with_room_for(4, 5);
            leader.run_between_solos(4, &mut slices).unwrap();
            assert!(slices.elapsed_ns.iter().all(|ns| *ns > 0), "{slices:?}");
            let counts = (slices.elapsed_ns.len(), slices.latency_ns.len());
            assert_eq!((counts, times(leader)), ((4, 5), first));
            leader.run_solos(50).unwrap();
            leader.announce(7).unwrap();
            leader.batch(7, &mut || 0).unwrap();
            leader.announce(0).unwrap();
            // Each member's account: a lap for each phase of solos, the warm laps, the batches.
            let hops = |cell: &MemberCell| cell.hops.load(Ordering::Relaxed);
            let all = 1 + (20 + WARM_LAPS) + 1 + 7;
            assert!(leader.area.cells().iter().skip(1).all(|cell| hops(cell) == all));
        });
    }

    /// Counts touches by the place that its memory was told to lie at.
    struct Moved<'a> {
        place: u32,
        touches: &'a [AtomicU64; 3],
    }

    impl HopWork for Moved<'static> {
        fn touch(&mut self) {
            self.touches[self.place as usize].fetch_add(1, Ordering::Relaxed);
        }

        fn move_to(&mut self, place: u32) {
            self.place = place;
        }
    }

    #[test]
    fn all_members_move_their_memory_and_stay_there() {
        static TOUCHES: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];
        let touches = || TOUCHES.each_ref().map(|count| count.load(Ordering::Relaxed));
        with_ring_of(
            3,
            None,
            || Moved { place: 0, touches: &TOUCHES },
            |leader| {
                // A control lap is the leader's touch alone.
                for place in [1, 2] {
                    let (lap_ns, quanta) = leader.move_to(place, 5).unwrap();
                    assert!(lap_ns > 0 && quanta.latency_ns.len() == 2, "{lap_ns} ns, {quanta:?}");
                }
                let moves = 3 * (5 + WARM_LAPS);
                assert_eq!(touches(), [1, moves + 1, moves]);
                leader.announce(4).unwrap();
                leader.batch(4, &mut || 0).unwrap();
                leader.announce(0).unwrap();
                assert_eq!(touches(), [1, moves + 1, moves + 3 * 4 + 2]);
            },
        );
    }

    #[test]
    fn solos_and_ring_touch_the_same_memory() {
        static TOUCHES: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];
        let touches = || TOUCHES.each_ref().map(|count| count.load(Ordering::Relaxed));
        with_ring_of(
            3,
            None,
            || Moved { place: 0, touches: &TOUCHES },
            |leader| {
                leader.move_to(1, 5).unwrap();
                let moved = touches()[1];
                leader.run_solos(50).unwrap();
                // Two control laps of the leader: this one, and the lap in which the solos are
                // made.
                let alone = 3 * (50 + WARM_LAPS) + 2;
                assert_eq!(touches(), [1, moved + alone, 0]);
                leader.run_between_solos(4, &mut Slices::with_room_for(4, 5)).unwrap();
                leader.announce(0).unwrap();
                let ring = 3 * (4 * 5 + WARM_LAPS) + 2;
                assert_eq!(touches(), [1, moved + alone + ring, 0]);
            },
        );
    }

    /// No core has this ratio: what waits for it waits until its time is over.
    const NEVER: f64 = 1e-6;

    fn in_slices(mut slices: Slices, mut budget: WaitBudget) -> (Slices, WaitBudget) {
        with_ring(2, None, |leader| {
            leader.announce(95).unwrap();
            assert!(leader.batch_in_slices(95, &mut slices, &mut budget).unwrap() > 0);
            leader.announce(0).unwrap();
        });
        assert_eq!(slices.elapsed_ns.len(), 10);
        assert!(slices.are_whole(), "{slices:?}");
        (slices, budget)
    }

    #[test]
    fn a_batch_that_waits_says_how_long_and_makes_all_its_laps() {
        let budget = WaitBudget { unshared_ratio: Some(NEVER), left_ns: 300_000 };
        let (waited, left) = in_slices(Slices::that_wait(10, 10), budget);
        let waits = waited.waits.unwrap();
        assert_eq!((waits[0].slice, left.left_ns), (0, 0));
        assert!(waits.iter().map(|wait| wait.elapsed_ns).sum::<u64>() >= 300_000, "{waits:?}");
        // A batch that is timed as the machine is found does not wait, nor one on a CPU of unknown
        // k0.
        let (as_found, left) = in_slices(Slices::with_room_for(10, 10), budget);
        assert_eq!((as_found.waits, left), (None, budget));
        let budget = WaitBudget { unshared_ratio: None, ..budget };
        let (unknown, left) = in_slices(Slices::that_wait(10, 10), budget);
        assert_eq!((unknown.waits, left), (Some(Vec::new()), budget));
    }

    #[test]
    fn a_member_that_is_left_out_is_an_error() {
        let error = with_ring(4, Some(2), |leader| leader.announce(5)).unwrap_err();
        assert!(error.to_string().starts_with("the token came back as 3 instead of 4"), "{error}");
    }

    #[test]
    fn a_member_that_makes_fewer_hops_is_an_error() {
        with_ring(3, None, |leader| {
            leader.announce(5).unwrap();
            leader.batch(5, &mut || 0).unwrap();
            leader.hops += 1;
            let error = leader.announce(0).unwrap_err();
            assert_eq!(error.to_string(), "member 1 made 5 hops instead of 6");
        });
    }

    #[test]
    fn the_clock_is_read_twice_a_batch_whatever_its_laps() {
        for laps in [1, 10, 1000] {
            let mut readings = 0;
            let elapsed = with_ring(2, None, |leader| {
                leader.announce(laps).unwrap();
                let elapsed = leader.batch(laps, &mut || {
                    readings += 1;
                    readings * 1000
                });
                leader.announce(0).unwrap();
                elapsed.unwrap()
            });
            assert_eq!((elapsed, readings), (1000, 2), "{laps} laps");
        }
    }

    #[test]
    fn a_ring_whose_member_is_gone_is_closed() {
        let area = SharedArea::new(2, false).unwrap();
        let (sender, _) = channel();
        let (_, receiver) = channel();
        let seat = RingMember { sender, receiver, work: NoWork, solo_ends: None };
        let mut leader = RingLeader::new(Box::new(seat), &area);
        assert!(matches!(leader.announce(1), Err(RingError::Lost(_))));
    }
}
