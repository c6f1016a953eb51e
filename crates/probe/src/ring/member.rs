//! The timed loops: what every member does, and what the leader does.

use std::mem::take;
use std::sync::atomic::Ordering;

use super::link::{LinkEnd, LinkError, RingError};
use super::meters::SliceMeters;
use super::slices::{WaitBudget, in_slices};
use crate::sys::{
    MemberCell, MemberNotes, RegisterKind, SharedArea, WorkArray, begin_line, member_lost,
    monotonic_raw_ns, own_thread_cpu_ns, reference_quantum, wait_uninterruptible,
};
use model::ring::Slices;
use rustix::io::Errno;

/// Does it again when a signal came between that was not a member's death: some waits end even when
/// the process was stopped and goes on (signal(7)).
#[inline(always)]
fn retry<T>(mut act: impl FnMut() -> Result<T, LinkError>) -> Result<T, LinkError> {
    loop {
        match act() {
            Ok(done) => return Ok(done),
            Err(error) => repeatable(error)?,
        }
    }
}

/// Apart and cold: a token that arrives pays one branch for all of it.
#[cold]
#[inline(never)]
fn repeatable(error: LinkError) -> Result<(), LinkError> {
    match error {
        LinkError::Kernel(Errno::INTR) if !member_lost() => Ok(()),
        lost => Err(lost),
    }
}

/// Work of one hop.
pub trait HopWork: 'static {
    /// Does it once.
    fn touch(&mut self);

    /// Called before each batch, outside of the timed loop.
    fn begin(&mut self) {}

    /// Moves its memory to another of its places, if it has some.
    fn move_to(&mut self, _place: u32) {}

    /// Where it notes the pieces of its walk, if it can be cut.
    fn note_to(&mut self, _notes: MemberNotes) {}

    /// Cuts its walk into so many pieces, 0 for none, and notes those of so many hops from now on.
    fn cut(&mut self, _pieces: u32, _noted_hops: u64) {}
}

/// No work: the bare switch.
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

    /// What a library call left in use is not of this state.
    fn begin(&mut self) {
        self.clear();
        self.write();
    }
}

/// A member's two ends and its work.
pub struct RingMember<E, W> {
    /// Where the token goes.
    pub sender: E,
    /// Where it comes from.
    pub receiver: E,
    /// What is done with it in hand.
    pub work: W,
    /// A channel of its own, to be alone with, where each member has one: what it sends by the
    /// first end comes back by the second.
    pub own: Option<(E, E)>,
}

/// A member as all code around the timed loops sees it, the same for all links and all work: a call
/// by pointer a batch, none a hop.
pub trait TimedMember {
    /// A member's laps.
    fn pass(&mut self, laps: u64) -> Result<(), LinkError>;
    /// The leader's laps: it starts with the token in hand and ends so, and gives the last token.
    fn drive(&mut self, token: u8, laps: u64) -> Result<u8, LinkError>;
    /// Waits for the token.
    fn receive(&mut self) -> Result<u8, LinkError>;
    /// Passes the token on.
    fn send(&mut self, token: u8) -> Result<(), LinkError>;
    /// [`LinkEnd::settle`].
    fn settle(&mut self) -> Result<(), LinkError>;
    /// Its work.
    fn work(&mut self) -> &mut dyn HopWork;
    /// Puts its own channel in the place of the ring's, or the ring's back. False where it has
    /// none.
    fn exchange(&mut self) -> bool;
    /// Whether it has a channel of its own.
    fn has_own(&self) -> bool;
    /// [`LinkEnd::POLLS`].
    fn polls(&self) -> bool;
    /// [`LinkEnd::INTERRUPTIBLE`].
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

    fn receive(&mut self) -> Result<u8, LinkError> {
        retry(|| self.receiver.receive())
    }

    fn send(&mut self, token: u8) -> Result<(), LinkError> {
        retry(|| self.sender.send(token))
    }

    fn settle(&mut self) -> Result<(), LinkError> {
        self.sender.settle()
    }

    fn work(&mut self) -> &mut dyn HopWork {
        &mut self.work
    }

    fn exchange(&mut self) -> bool {
        let Some(own) = &mut self.own else { return false };
        std::mem::swap(&mut self.sender, &mut own.0);
        std::mem::swap(&mut self.receiver, &mut own.1);
        true
    }

    fn has_own(&self) -> bool {
        self.own.is_some()
    }

    fn polls(&self) -> bool {
        E::POLLS
    }

    fn is_interruptible(&self) -> bool {
        E::INTERRUPTIBLE
    }
}

/// The member alone: laps of a ring of one by its own channel, on the memory that it has in the
/// ring. As many laps as are timed come before, up to [`WARM_LAPS`], so that its memory is where it
/// is when nobody else runs. The times go to `cell`. Without a channel of its own it does nothing.
fn alone(member: &mut dyn TimedMember, laps: u64, cell: &MemberCell) -> Result<(), LinkError> {
    if !member.exchange() {
        return Ok(());
    }
    let timed = member.drive(0, laps.min(WARM_LAPS)).and_then(|token| {
        let mut quanta = Slices::with_room_for(1, laps);
        reference_quantum(monotonic_raw_ns(), &mut quanta);
        let used_before_ns = own_thread_cpu_ns();
        let start = monotonic_raw_ns();
        member.drive(token, laps)?;
        let elapsed_ns = monotonic_raw_ns().wrapping_sub(start);
        let used_ns = own_thread_cpu_ns().wrapping_sub(used_before_ns);
        reference_quantum(monotonic_raw_ns(), &mut quanta);
        let quanta = quanta.latency_ns.into_iter().zip(quanta.throughput_ns);
        let quanta = quanta.flat_map(|times| [times.0, times.1].map(u64::from));
        let times = [elapsed_ns, used_ns].into_iter().chain(quanta);
        cell.solo_ns.iter().zip(times).for_each(|(slot, ns)| slot.store(ns, Ordering::Release));
        Ok(())
    });
    member.exchange();
    timed
}

/// A member's life: a control lap announces the laps of the next batch and settles the account of
/// the last one; zero laps announce the end. In a phase of solos each member makes its own when the
/// token comes.
pub fn follow(
    member: &mut dyn TimedMember,
    area: &SharedArea,
    cell: &MemberCell,
) -> Result<(), LinkError> {
    let (mut hops, mut phases) = (0, 0);
    let polls = member.polls();
    let mut rest = || {
        if polls {
            area.wait_at_gate(phases);
            phases = phases.wrapping_add(1);
        }
    };
    loop {
        rest();
        let token = member.receive()?;
        cell.hops.store(hops, Ordering::Release);
        let laps = area.laps.load(Ordering::Acquire);
        member.settle()?;
        member.send(token.wrapping_add(1))?;
        if laps == 0 {
            return Ok(());
        }
        rest();
        member.work().move_to(area.place.load(Ordering::Acquire) as u32);
        cut(member, area);
        member.work().begin();
        match area.solo_laps.load(Ordering::Acquire) {
            solo_laps if solo_laps > 0 && member.has_own() => {
                let token = member.receive()?;
                alone(member, solo_laps, cell)?;
                member.send(token.wrapping_add(1))?;
            }
            _ => member.pass(laps)?,
        }
        hops += laps;
    }
}

/// Cuts the member's walk as the leader wants it from this phase on.
fn cut(member: &mut dyn TimedMember, area: &SharedArea) {
    let pieces = area.pieces.load(Ordering::Acquire) as u32;
    member.work().cut(pieces, area.noted_hops.load(Ordering::Acquire));
}

/// Laps that come before those of a solo, and before those of a ring between two solos.
pub(super) const WARM_LAPS: u64 = 2;

/// The leader: it holds the token whenever the ring stands still.
pub struct RingLeader<'a> {
    member: Box<dyn TimedMember + 'a>,
    pub(super) area: &'a SharedArea,
    token: u8,
    hops: u64,
    meters: SliceMeters,
}

impl<'a> RingLeader<'a> {
    /// The leader of the ring whose members share `area`.
    pub fn new(member: Box<dyn TimedMember + 'a>, area: &'a SharedArea) -> Self {
        Self { member, area, token: 0, hops: 0, meters: SliceMeters::default() }
    }

    /// What is read around each slice, from the next batch on.
    pub fn reads(&mut self, meters: SliceMeters) {
        self.meters = meters;
    }

    /// Whether each member has a channel of its own, so that there are solos.
    pub fn has_solos(&self) -> bool {
        self.member.has_own()
    }

    /// What each member reports, the leader first.
    pub fn cells(&self) -> &'a [MemberCell] {
        self.area.cells()
    }

    /// Runs `laps` laps and checks that each member has changed the token in each.
    fn laps(&mut self, laps: u64) -> Result<(), RingError> {
        let changes = (laps as u8).wrapping_mul(self.area.cells().len() as u8);
        let expected = self.token.wrapping_add(changes);
        let found = match self.member.is_interruptible() {
            true => self.member.drive(self.token, laps)?,
            false => wait_uninterruptible(|| self.member.drive(self.token, laps))
                .unwrap_or(Err(LinkError::Closed))?,
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

    /// A control lap: announces the laps of the next batch (0: the end) and checks that every
    /// member made all hops of those before.
    pub fn announce(&mut self, laps: u64) -> Result<(), RingError> {
        self.area.laps.store(laps, Ordering::Release);
        self.member.settle()?;
        self.begin();
        self.laps(1)?;
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

    /// Solos: one lap of the ring, in which each member makes `laps` laps alone when the token
    /// comes to it, the leader first. What they took is in the cells.
    pub fn solos(&mut self, laps: u64) -> Result<(), RingError> {
        self.area.solo_laps.store(laps, Ordering::Release);
        self.announce(1)?;
        cut(&mut *self.member, self.area);
        alone(&mut *self.member, laps, &self.area.cells()[0])?;
        self.laps(1)?;
        self.hops += 1;
        self.area.solo_laps.store(0, Ordering::Release);
        Ok(())
    }

    /// All members' memory at this of their places, from the control lap on that this announces.
    /// Gives the time of the fastest of so many laps there, after [`WARM_LAPS`], with a quantum
    /// before and behind them.
    pub fn move_to(&mut self, place: u32, laps: u64) -> Result<(u64, Slices), RingError> {
        self.area.place.store(place.into(), Ordering::Release);
        self.announce(WARM_LAPS + laps)?;
        self.member.work().move_to(place);
        self.begin();
        let mut quanta = Slices::with_room_for(1, 1);
        self.laps(WARM_LAPS)?;
        let mut now = reference_quantum(monotonic_raw_ns(), &mut quanta);
        let mut fastest_ns = u64::MAX;
        for _ in 0..laps {
            self.laps(1)?;
            let end = monotonic_raw_ns();
            fastest_ns = fastest_ns.min(end.wrapping_sub(now));
            now = end;
        }
        reference_quantum(now, &mut quanta);
        self.hops += WARM_LAPS + laps;
        Ok((fastest_ns, quanta))
    }

    /// One phase of the ring between two of solos: `count` slices, after [`WARM_LAPS`] laps, all
    /// announced together, with a quantum before, between and behind them.
    pub fn between_solos(&mut self, count: u64, slices: &mut Slices) -> Result<(), RingError> {
        let laps = count * slices.laps;
        self.announce(laps + WARM_LAPS)?;
        cut(&mut *self.member, self.area);
        self.laps(WARM_LAPS)?;
        reference_quantum(monotonic_raw_ns(), slices);
        let mut meters = take(&mut self.meters);
        // Counts are of the samples, and would disturb these for nothing.
        let events = meters.events.take();
        let made = in_slices(laps, slices, &meters, |laps| self.laps(laps), |_| ());
        self.meters = SliceMeters { events, ..meters };
        made?;
        self.hops += laps + WARM_LAPS;
        Ok(())
    }

    /// Wakes members that sleep between the laps because they do not within.
    fn begin(&self) {
        if self.member.polls() {
            self.area.open_gate();
        }
    }

    /// The announced batch in slices of so many laps, with reference quanta around each. The
    /// members wait meanwhile: the leader has the token. `budget` is for slices that wait. Gives
    /// the time of the laps.
    pub fn batch_in_slices(
        &mut self,
        laps: u64,
        slices: &mut Slices,
        budget: &mut WaitBudget,
    ) -> Result<u64, RingError> {
        self.member.work().begin();
        let now = reference_quantum(monotonic_raw_ns(), slices);
        reference_quantum(now, slices);
        budget.wait(slices);
        self.begin();
        // Members that spin while the leader waits would be what it waits for to end.
        let waits = !self.member.polls();
        let pause = |slices: &mut _| {
            if waits {
                budget.wait(slices)
            }
        };
        let meters = take(&mut self.meters);
        let made = in_slices(laps, slices, &meters, |laps| self.laps(laps), pause);
        self.meters = meters;
        let (elapsed_ns, now) = made?;
        reference_quantum(now, slices);
        self.hops += laps;
        Ok(elapsed_ns)
    }

    /// The announced batch, between two readings of `clock` and no more. Gives the time.
    pub fn batch(&mut self, laps: u64, clock: &mut dyn FnMut() -> u64) -> Result<u64, RingError> {
        self.member.work().begin();
        // The counts are taken already: what wakes the members is in the time as it is in them.
        let start = clock();
        self.begin();
        let done = self.laps(laps);
        let end = clock();
        done?;
        self.hops += laps;
        Ok(end.wrapping_sub(start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::link::{ChannelPlace, Link};
    use crate::ring::links::PipeLink;
    use model::ring::Kind;
    use std::os::fd::OwnedFd;
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;
    use std::thread;

    fn channel() -> (OwnedFd, OwnedFd) {
        let area = Arc::new(SharedArea::new(1, false).unwrap());
        PipeLink::channel(&ChannelPlace { area, kind: Kind::Thread, to: 0 }).unwrap()
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
                        let own = Some(channel());
                        let mut seat = RingMember { sender, receiver, work: work(), own };
                        let _ = follow(&mut seat, area, &area.cells()[member]);
                    }
                });
            }
            let sender = senders[0].take().unwrap();
            let receiver = receivers[members - 1].take().unwrap();
            let seat = RingMember { sender, receiver, work: work(), own: Some(channel()) };
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
            leader.solos(50).unwrap();
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
            leader.between_solos(4, &mut slices).unwrap();
            assert!(slices.elapsed_ns.iter().all(|ns| *ns > 0), "{slices:?}");
            let counts = (slices.elapsed_ns.len(), slices.latency_ns.len());
            assert_eq!((counts, times(leader)), ((4, 5), first));
            leader.solos(50).unwrap();
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
                leader.solos(50).unwrap();
                // Two control laps of the leader: this one, and the lap in which the solos are
                // made.
                let alone = 3 * (50 + WARM_LAPS) + 2;
                assert_eq!(touches(), [1, moved + alone, 0]);
                leader.between_solos(4, &mut Slices::with_room_for(4, 5)).unwrap();
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
        let seat = RingMember { sender, receiver, work: NoWork, own: None };
        let mut leader = RingLeader::new(Box::new(seat), &area);
        assert!(matches!(leader.announce(1), Err(RingError::Lost(_))));
    }
}
