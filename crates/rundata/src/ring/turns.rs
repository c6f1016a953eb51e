//! Turns of other tasks on the CPU, and what lies near one.
//!
//! A task that had a turn may wait for its next. While it does, the kernel has more to choose from
//! in each switch, which then costs more, also in slices that no other task shares. X is a turn of
//! another task; the slices that begin or end within 10 ms of it are beside other tasks (b):
//!
//! ```text
//! time (ms)   0    2    4    6    8   10   12   14   16   18   20   22
//! slices      |----|bbbb|bbbb|bbbb|bbbb|bbbb|XXXX|bbbb|bbbb|bbbb|bbbb|bbbb|----|
//! ```

use super::sample::quanta_ns;
use super::{Slices, Triple, Triples, is_alone};
use crate::bounds::saturating_sum;

/// Shortest time at once that is the turn of a task, in nanoseconds: interrupts and the kernel's
/// own threads take less.
const TURN_NS: u64 = 500_000;

/// Longest time between two turns of a task that waits all the time, in nanoseconds: the kernel's
/// slices are 3 to 4 ms (sched(7), `base_slice_ns`), and of two scheduling groups one may have
/// several in a row.
const NEAR_NS: u64 = 10_000_000;

/// Time that passed on the CPU, and the turns that other tasks had in it.
#[derive(Debug, Default)]
pub struct CpuTimeline {
    now_ns: u64,
    /// Start and end of each turn, in nanoseconds, in the order of time.
    turns: Vec<(u64, u64)>,
}

impl CpuTimeline {
    /// Adds a time span in which other tasks had a turn or not. Returns its start and end.
    pub fn pass(&mut self, elapsed_ns: u64, has_turn: bool) -> (u64, u64) {
        let span = (self.now_ns, self.now_ns.saturating_add(elapsed_ns));
        if has_turn {
            self.turns.push(span);
        }
        self.now_ns = span.1;
        span
    }

    /// Adds a reference quantum, where there is one. It takes long only where it was interrupted.
    fn pass_quantum(&mut self, ns: Option<u64>) {
        if let Some(ns) = ns {
            self.pass(ns, ns >= TURN_NS);
        }
    }

    /// Returns whether other tasks had a turn in this span, shortly before or shortly after.
    pub fn is_near_a_turn(&self, span: (u64, u64)) -> bool {
        let (from, to) = span;
        // They are in the order of time: the first that is not over long before is the only one to
        // ask.
        let over = self.turns.partition_point(|turn| turn.1.saturating_add(NEAR_NS) < from);
        self.turns.get(over).is_some_and(|turn| turn.0 <= to.saturating_add(NEAR_NS))
    }
}

/// Returns whether other tasks had a turn in a time span: they used at least [`TURN_NS`] of it, and
/// more than interrupts take of a long time.
fn is_turn(elapsed_ns: u64, cpu_ns: u64) -> bool {
    elapsed_ns.saturating_sub(cpu_ns) >= TURN_NS && !is_alone(elapsed_ns, cpu_ns)
}

/// Returns whether other tasks had a turn in one of several time spans.
fn any_is_turn(elapsed_ns: &[u64], cpu_ns: &[u64]) -> bool {
    elapsed_ns.iter().zip(cpu_ns).any(|(elapsed, cpu)| is_turn(*elapsed, *cpu))
}

impl Slices {
    /// Returns for each slice whether other tasks ran in it or had a turn near it; an empty list
    /// where CPU times were not taken.
    pub fn beside_others(&self) -> Vec<bool> {
        let mut timeline = CpuTimeline::default();
        let mut spans = Vec::with_capacity(self.cpu_ns.len());
        let mut waits = self.waits.as_deref().unwrap_or_default();
        timeline.pass_quantum(self.quantum_ns(0));
        let mut passed = 1;
        for (number, (elapsed_ns, cpu_ns)) in self.elapsed_ns.iter().zip(&self.cpu_ns).enumerate() {
            timeline.pass_quantum(self.quantum_ns(passed));
            passed += 1;
            while let [wait, later @ ..] = waits {
                if wait.slice as usize > number {
                    break;
                }
                timeline.pass(wait.elapsed_ns, is_turn(wait.elapsed_ns, wait.cpu_ns));
                waits = later;
            }
            spans.push(timeline.pass(*elapsed_ns, is_turn(*elapsed_ns, *cpu_ns)));
        }
        timeline.pass_quantum(self.quantum_ns(passed));
        timeline.pass_quantum(self.quantum_ns(passed + 1));
        let mut beside = Vec::with_capacity(spans.len());
        for (number, span) in spans.iter().enumerate() {
            let is_shared = self.was_alone(number) == Some(false);
            beside.push(is_shared || timeline.is_near_a_turn(*span));
        }
        beside
    }

    /// Returns the time of both loops of a quantum, in nanoseconds; `None` where it is missing.
    fn quantum_ns(&self, number: usize) -> Option<u64> {
        let latency_ns = u64::from(*self.latency_ns.get(number)?);
        Some(latency_ns + u64::from(*self.throughput_ns.get(number)?))
    }
}

impl Triples {
    /// Returns the triples in and near which no other task had a turn: those that were timed as the
    /// machine was found, and those that waited.
    pub fn alone(&self) -> [Vec<&Triple>; 2] {
        let mut timeline = CpuTimeline::default();
        let mut spans = Vec::with_capacity(self.all.len());
        for triple in &self.all {
            spans.push(timeline.pass(triple.elapsed_ns(), triple.has_turn()));
        }
        let (found_before, _) = self.as_found_and_waited();
        let (mut as_found, mut waited) = (Vec::new(), Vec::new());
        for (number, (triple, span)) in self.all.iter().zip(spans).enumerate() {
            if timeline.is_near_a_turn(span) {
                continue;
            }
            if number < found_before.len() {
                as_found.push(triple);
            } else {
                waited.push(triple);
            }
        }
        [as_found, waited]
    }
}

impl Triple {
    /// Returns the time of all that was timed and of the quanta, in nanoseconds.
    fn elapsed_ns(&self) -> u64 {
        let timed_ns =
            [&self.ring_ns, &self.solos_ns].map(|times| saturating_sum(times.iter().copied()));
        let loops_ns = [&self.latency_ns, &self.throughput_ns].map(|times| quanta_ns(times));
        saturating_sum([timed_ns, loops_ns].concat().into_iter())
    }

    fn has_turn(&self) -> bool {
        let is_long_quantum = self
            .quanta()
            .any(|(latency, throughput)| u64::from(latency) + u64::from(throughput) >= TURN_NS);
        let elapsed_ns = self.elapsed_ns();
        let own_ns = elapsed_ns.saturating_sub(self.others_ns.unwrap_or(0));
        is_long_quantum
            || is_turn(elapsed_ns, own_ns)
            || any_is_turn(&self.ring_ns, &self.ring_cpu_ns)
            || any_is_turn(&self.solos_ns, &self.solos_cpu_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::CoreWait;

    const QUANTUM: (u64, u64) = (6000, 6060);

    /// Slices of 1 ms, which others had so much of; the quanta of these numbers were interrupted.
    fn slices(others_ns: &[u64], interrupted: &[usize]) -> Slices {
        let mut all = Slices::with_room_for(others_ns.len(), 1);
        for number in 0..others_ns.len() + 3 {
            let more = if interrupted.contains(&number) { TURN_NS } else { 0 };
            all.push_quantum(QUANTUM.0 + more, QUANTUM.1);
        }
        all.elapsed_ns = vec![1_000_000; others_ns.len()];
        all.cpu_ns = others_ns.iter().map(|ns| 1_000_000 - ns).collect();
        all
    }

    fn beside(slices: &Slices) -> Vec<usize> {
        let all = slices.beside_others().into_iter().enumerate();
        all.filter(|(_, beside)| *beside).map(|(number, _)| number).collect()
    }

    #[test]
    fn what_lies_within_ten_milliseconds_of_a_turn_is_beside_others() {
        let with = |ns: u64| {
            let mut others = [0; 40];
            others[20] = ns;
            beside(&slices(&others, &[]))
        };
        // A slice and its quantum take 1.012 ms: those of the ten before and behind it begin or end
        // within 10 ms.
        assert_eq!(with(TURN_NS), (10..=30).collect::<Vec<_>>());
        // What is no turn is in its slice only, and what is next to nothing nowhere.
        assert_eq!(with(TURN_NS - 1), [20]);
        assert_eq!(with(20_001), [20]);
        assert_eq!(with(20_000), [0; 0]);
    }

    #[test]
    fn a_turn_may_fall_into_a_quantum_and_into_a_wait() {
        assert_eq!(beside(&slices(&[0; 30], &[0])), (0..10).collect::<Vec<_>>());
        assert_eq!(beside(&slices(&[0; 30], &[32])), (20..30).collect::<Vec<_>>());
        let waited = |cpu_ns| {
            let wait = CoreWait { slice: 15, elapsed_ns: 5_000_000, cpu_ns, ..CoreWait::default() };
            let all = Slices { waits: Some(vec![wait]), ..slices(&[0; 30], &[]) };
            beside(&all)
        };
        assert_eq!(waited(4_500_001), [0; 0]);
        assert_eq!(waited(4_500_000), (5..25).collect::<Vec<_>>());
    }

    #[test]
    fn slices_that_nobody_was_asked_after_and_damaged_ones_say_nothing() {
        let unknown = Slices { cpu_ns: Vec::new(), ..slices(&[0; 5], &[1]) };
        assert_eq!(unknown.beside_others(), [false; 0]);
        let short = Slices { latency_ns: Vec::new(), ..slices(&[0, TURN_NS], &[]) };
        assert_eq!(beside(&short), [0, 1]);
        let far = Slices { elapsed_ns: vec![u64::MAX; 2], ..slices(&[0, 0], &[]) };
        assert_eq!(beside(&far), [0, 1]);
    }

    /// Triples of 4 ms, of which others had so much.
    fn triples(others_ns: &[u64], as_found: Option<u32>) -> Triples {
        let one = |others_ns: &u64| Triple {
            ring_ns: vec![4_000_000],
            others_ns: Some(*others_ns),
            ..Triple::default()
        };
        Triples { all: others_ns.iter().map(one).collect(), as_found, ..Triples::default() }
    }

    #[test]
    fn triples_near_a_turn_are_not_alone_whether_they_waited_or_not() {
        let alone = |of: &Triples| of.alone().map(|all| all.len());
        let mut others = [0; 12];
        assert_eq!(alone(&triples(&others, Some(4))), [4, 8]);
        others[4] = TURN_NS;
        // Three on each side end or begin within 10 ms.
        assert_eq!(alone(&triples(&others, Some(4))), [1, 4]);
        assert_eq!(triples(&others, None).ring_slices_beside_others(), 7);
        // Less is no turn, however short the triple, and neither is 0.5 % of a long one.
        others[4] = TURN_NS - 1;
        assert_eq!(alone(&triples(&others, None)), [12, 0]);
        let mut long = triples(&[TURN_NS], None);
        long.all[0].ring_ns = vec![100_000_000];
        assert_eq!(alone(&long), [1, 0]);
    }

    #[test]
    fn a_turn_shows_in_each_part_of_a_triple() {
        let whole = Triple {
            ring_ns: vec![1_000_000; 2],
            ring_cpu_ns: vec![1_000_000; 2],
            solos_ns: vec![600_000; 4],
            solos_cpu_ns: vec![600_000; 4],
            latency_ns: vec![6000; 10],
            throughput_ns: vec![6060; 10],
            others_ns: None,
        };
        assert!(!whole.has_turn());
        let hits: [fn(&mut Triple); 4] = [
            |one| one.ring_cpu_ns[1] = 500_000,
            |one| one.solos_cpu_ns[3] = 100_000,
            |one| one.latency_ns[9] = 500_000,
            |one| one.throughput_ns[0] = 500_000,
        ];
        for hit in hits {
            let mut one = whole.clone();
            hit(&mut one);
            assert!(one.has_turn(), "{one:?}");
        }
    }
}
