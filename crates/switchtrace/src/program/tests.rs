//! The programs, run by the interpreter against a model of what the kernel does.

use super::interpreter::{
    CONTEXT, ENDED_MAP, EVENT_MAP, FREE_MAP, PAIR_MAP, TABLE_MAP, TestKernel,
};
use super::{
    MapDescriptors, ProgramTarget, exec, fork, free, migrate, refresh, seed, switch, take_over,
    wakeup,
};
use crate::asm::Insn;
use crate::cause::{SwitchCause, histogram};
use crate::kernel::{AttachIds, KernelLayout, SwitchArguments, TaskOffsets, YieldSign};
use crate::layout::{
    ACTIVITY_BYTES, BUCKETS, LOOK_SHIFT, RECORD_BYTES, RawEvent, ThreadActivity, WAIT_BUCKETS,
};
use crate::{DurationHistogram, WaitHistogram};
use proptest::prelude::*;
use std::collections::HashMap;
use std::mem::offset_of;
use threadclock::table::layout::{BUSY, ENDED, ON, SEEDED, TIME, TableHeader, ThreadRecord};

const TIDS: u32 = 1_000;
const RECORDS: u32 = 8;
const YIELD: i32 = 24;
const RUNNABLE: u64 = 0;
const SLEEP: u64 = 1;
const DISK: u64 = 2;
const IDLE: u64 = 0x402;
const STOPPED: u64 = 4;
const DEAD: u64 = 0x80;
/// Number of a counter's looks.
const LOOK: u64 = 41;

/// A task of the tests.
#[derive(Clone, Copy, Default)]
struct TestTask {
    pid: u32,
    tgid: u32,
    start: u64,
    sum: u64,
    voluntary: u64,
    involuntary: u64,
    migrations: u64,
    delay: u64,
    cpu: u32,
    call: u64,
    /// 0: it was never renamed.
    comm: u64,
    /// The number of the task that is its parent.
    parent: usize,
    /// 0x10: the kernel's lists have it no longer.
    exit_state: u32,
}

struct ProgramBench {
    world: TestKernel,
    target: ProgramTarget,
    tasks: Vec<TestTask>,
    switch: Vec<Insn>,
    /// The task that runs, and since when, for the kernel's own sum if the test does not set that.
    running: (usize, u64),
    sets_sums: bool,
}

fn test_target(activity: bool, recording: bool) -> ProgramTarget {
    let task = TaskOffsets {
        pid: 0,
        tgid: 4,
        start_time: 8,
        sum_exec_runtime: 16,
        nvcsw: 24,
        nivcsw: 32,
        migrations: 40,
        run_delay: Some(48),
        cpu: 56,
        state: 60,
        exit_state: 88,
        prio: 64,
        comm: 72,
        parent: 80,
    };
    let ids = AttachIds {
        switch: 0,
        migrate: 0,
        exec: 0,
        fork: 0,
        free: 0,
        wakeup: 0,
        wakeup_new: 0,
        task_iterator: 0,
    };
    let kernel = KernelLayout {
        task,
        switch: SwitchArguments { preempt: 0, prev: 8, next: 16, state: Some(24) },
        yields: Some(YieldSign { offset: 8, is_64_bit: true, number: YIELD }),
        ids,
    };
    let maps = MapDescriptors {
        table: TABLE_MAP,
        free: FREE_MAP,
        ended: None,
        pairs: activity.then_some(PAIR_MAP),
        events: recording.then_some(EVENT_MAP),
    };
    let record_bytes = if activity { ACTIVITY_BYTES } else { RECORD_BYTES };
    ProgramTarget { kernel, maps, tids: TIDS, record_bytes, index_at: 1 }
}

impl ProgramBench {
    fn new(activity: bool) -> Self {
        Self::with(test_target(activity, false))
    }

    fn with(target: ProgramTarget) -> Self {
        let size = target.record_bytes as usize;
        let records_at = 1 + (TIDS as usize * 4).div_ceil(size);
        let world = TestKernel {
            now_ns: 1_000_000,
            record_bytes: size,
            table: vec![0; (records_at + RECORDS as usize) * size],
            free: (0..RECORDS).map(|number| records_at as u32 + number).collect(),
            pair_room: 1_000,
            event_room: 1_000,
            ..TestKernel::default()
        };
        let switch = switch(&target).unwrap();
        Self {
            world,
            target,
            tasks: Vec::new(),
            switch,
            running: (usize::MAX, 0),
            sets_sums: false,
        }
    }

    /// A new task, born now.
    fn task(&mut self, pid: u32) -> usize {
        self.world.now_ns += 10_000;
        let start = if pid == 0 { 0 } else { self.world.now_ns };
        self.tasks.push(TestTask { pid, tgid: pid, start, ..TestTask::default() });
        self.tasks.len() - 1
    }

    fn address(&mut self, number: usize) -> u64 {
        let at = self.world.task(number);
        let task = self.tasks[number];
        let words = [
            (0, 4, u64::from(task.pid)),
            (4, 4, u64::from(task.tgid)),
            (8, 8, task.start),
            (16, 8, task.sum),
            (24, 8, task.voluntary),
            (32, 8, task.involuntary),
            (40, 8, task.migrations),
            (48, 8, task.delay),
            (56, 4, u64::from(task.cpu)),
            (64, 4, 120),
            (72, 8, if task.comm == 0 { u64::from_le_bytes(*b"worker\0\0") } else { task.comm }),
            (80, 8, self.world.task(task.parent)),
            (88, 4, task.exit_state.into()),
            (136, 8, task.call),
        ];
        words
            .into_iter()
            .for_each(|(offset, bytes, value)| self.world.set(at + offset, bytes, value));
        at
    }

    fn switch_looking(
        &mut self,
        (prev, next): (usize, usize),
        (preempt, state): (bool, u64),
        look: &mut dyn FnMut(&mut TestKernel),
    ) {
        // As __schedule(): the count first, then the tracepoint.
        let task = &mut self.tasks[prev];
        let is_voluntary = !preempt && state != RUNNABLE;
        if is_voluntary {
            task.voluntary += 1
        } else {
            task.involuntary += 1
        }
        let now = self.world.now_ns;
        let (running, since) = std::mem::replace(&mut self.running, (next, now));
        if running == prev && !self.sets_sums {
            task.sum += now - since;
        }
        let context = [preempt.into(), self.address(prev), self.address(next), state];
        self.world.run(&self.switch.clone(), &context, look);
    }

    fn switch(&mut self, prev: usize, next: usize, state: u64) {
        self.switch_looking((prev, next), (false, state), &mut |_| {});
    }

    fn run(&mut self, program: std::io::Result<Vec<Insn>>, context: &[u64]) {
        self.world.run(&program.unwrap(), context, &mut |_| {});
    }

    fn pass(&mut self, ns: u64) {
        self.world.now_ns += ns;
    }

    /// Where in the table the record of a thread id is.
    fn at(&self, pid: u32) -> Option<usize> {
        let entry = self.world.record_bytes + pid as usize * 4;
        let element = u32::from_le_bytes(self.world.table[entry..entry + 4].try_into().unwrap());
        (element != 0).then(|| element as usize * self.world.record_bytes)
    }

    fn u64(&self, pid: u32, offset: usize) -> u64 {
        let at = self.at(pid).unwrap() + offset;
        u64::from_le_bytes(self.world.table[at..at + 8].try_into().unwrap())
    }

    fn u32(&self, pid: u32, offset: usize) -> u32 {
        self.u64(pid, offset & !7).to_le_bytes()[offset & 7..][..4]
            .try_into()
            .map(u32::from_le_bytes)
            .unwrap()
    }

    fn word(&self, pid: u32) -> u64 {
        self.u64(pid, offset_of!(ThreadRecord, word))
    }

    fn flags(&self, pid: u32) -> u32 {
        self.u32(pid, offset_of!(ThreadRecord, flags))
    }

    /// CPU time as a reader has it.
    fn cpu_ns(&self, pid: u32) -> u64 {
        let word = self.word(pid);
        assert_eq!(word & BUSY, 0);
        if word & ON == 0 { word } else { word.wrapping_add(self.world.now_ns) & TIME }
    }

    fn counts(&self, pid: u32, number: usize) -> [u32; BUCKETS] {
        let at = |bucket| offset_of!(ThreadActivity, histograms) + number * 128 + bucket * 4;
        std::array::from_fn(|bucket| self.u32(pid, at(bucket)))
    }

    /// A bench for the programs of a counter.
    fn of_counter() -> Self {
        let mut target = test_target(false, false);
        target.maps.ended = Some(ENDED_MAP);
        Self::with(target)
    }

    /// A thread of a counter as it was born: its id, and its start.
    fn born_as(&self, pid: u32) -> (u32, u64) {
        let tid = self.u32(pid, offset_of!(ThreadRecord, migrations));
        (tid, self.u64(pid, offset_of!(ThreadRecord, waited_ns)))
    }

    /// The kernel frees a task.
    fn end(&mut self, task: usize) {
        let context = [self.address(task)];
        self.run(free(&self.target), &context);
    }

    /// Thread `other` calls execve(2): de_thread() exchanges the ids, and gives it the start of the
    /// first one.
    fn exec_by_thread(&mut self, first: usize, other: usize) {
        let old_id = self.tasks[other].pid;
        self.tasks[other].start = self.tasks[first].start;
        self.tasks[other].pid = self.tasks[first].pid;
        self.tasks[first].pid = old_id;
        let context = [self.address(other), old_id.into()];
        self.run(take_over(&self.target), &context);
    }

    /// A counter's look at a task.
    fn look(&mut self, task: usize) {
        let (seq, session) = (0, LOOK);
        let context = [CONTEXT + 16, self.address(task), seq, session];
        self.run(refresh(&self.target), &context);
    }

    /// Voluntary and involuntary switches of a thread id, and its CPU time.
    fn kernel_counts(&self, pid: u32) -> ([u64; 2], u64) {
        let fields = [offset_of!(ThreadRecord, voluntary), offset_of!(ThreadRecord, involuntary)];
        (fields.map(|field| self.u64(pid, field)), self.cpu_ns(pid))
    }

    fn waits(&self, pid: u32) -> [u32; WAIT_BUCKETS] {
        let at = |bucket| offset_of!(ThreadActivity, waits) + bucket * 4;
        std::array::from_fn(|bucket| self.u32(pid, at(bucket)))
    }

    fn total(&self, pid: u32, number: usize) -> u32 {
        self.counts(pid, number).iter().sum()
    }

    fn lost(&self, counter: usize) -> u64 {
        u64::from_le_bytes(self.world.table[counter..counter + 8].try_into().unwrap())
    }

    /// Voluntary and involuntary switches of pairs of thread ids, those in records included.
    fn pairs(&self) -> HashMap<(u32, u32), [u64; 2]> {
        let mut sums: HashMap<(u32, u32), [u64; 2]> = HashMap::new();
        let mut add = |key, counts: [u64; 2]| {
            if counts != [0, 0] {
                let sum = sums.entry(key).or_default();
                *sum = [sum[0] + counts[0], sum[1] + counts[1]];
            }
        };
        for (key, at) in &self.world.pairs {
            let tid = |from: usize| u32::from_le_bytes(key[from..from + 4].try_into().unwrap());
            let count = |from: usize| {
                u64::from_le_bytes(
                    self.world.pair_values[at + from..at + from + 8].try_into().unwrap(),
                )
            };
            add((tid(0), tid(8)), [count(0), count(8)]);
        }
        for pid in (1..TIDS).filter(|pid| self.at(*pid).is_some()) {
            let next = self.u32(pid, offset_of!(ThreadActivity, pair_next));
            let counts = [
                offset_of!(ThreadActivity, pair_voluntary),
                offset_of!(ThreadActivity, pair_involuntary),
            ];
            add((pid, next), counts.map(|offset| self.u32(pid, offset).into()));
        }
        sums
    }
}

#[test]
fn a_thread_has_the_time_between_its_switches() {
    for activity in [false, true] {
        let mut bench = ProgramBench::new(activity);
        let (idle, a, b) = (bench.task(0), bench.task(10), bench.task(11));
        bench.switch(idle, a, RUNNABLE);
        let begun = bench.cpu_ns(10);
        assert_eq!(bench.word(10) & ON, ON);
        bench.pass(5_000);
        assert_eq!(bench.cpu_ns(10), begun + 5_000);
        bench.switch(a, b, SLEEP);
        let first = bench.cpu_ns(10);
        // The programs take a nanosecond an instruction.
        assert!((5_000..5_500).contains(&first), "{first}");
        bench.pass(70_000);
        assert_eq!(bench.cpu_ns(10), first);
        bench.switch(b, a, SLEEP);
        bench.pass(1_000);
        bench.switch(a, idle, RUNNABLE);
        assert!((first + 1_000..first + 1_500).contains(&bench.cpu_ns(10)));
        assert_eq!(bench.u64(10, offset_of!(ThreadRecord, voluntary)), 1);
        assert_eq!(bench.u64(10, offset_of!(ThreadRecord, involuntary)), 1);
    }
}

/// The first time a thread is seen leaving a CPU, the kernel's own figure counts.
#[test]
fn a_thread_that_ran_before_has_the_kernels_time() {
    let mut bench = ProgramBench::new(false);
    let (a, b) = (bench.task(10), bench.task(11));
    bench.tasks[a].sum = 123_456;
    bench.tasks[b].sum = 1_000;
    bench.switch(a, b, SLEEP);
    assert_eq!(bench.cpu_ns(10), 123_456);
    assert_eq!(bench.u64(10, offset_of!(ThreadRecord, kernel_ns)), 123_456);
    assert!((1_000..1_500).contains(&bench.cpu_ns(11)));
}

/// Whoever looks twice, at any two instructions, and sees the same word, has a time that is between
/// those of the switches: the one-word protocol.
#[test]
fn a_reading_is_right_at_every_instruction() {
    for activity in [false, true] {
        let mut bench = ProgramBench::new(activity);
        let (idle, a, b) = (bench.task(0), bench.task(10), bench.task(11));
        bench.switch(idle, a, RUNNABLE);
        bench.pass(10_000);
        bench.switch(a, b, SLEEP);
        let out = bench.cpu_ns(10);
        bench.pass(10_000);
        bench.switch(b, a, RUNNABLE);
        bench.pass(10_000);
        let at = bench.at(10).unwrap();
        let mut looks: Vec<(u64, u64)> = Vec::new();
        bench.switch_looking((a, b), (false, SLEEP), &mut |world| {
            let word = u64::from_le_bytes(world.table[at..at + 8].try_into().unwrap());
            looks.push((word, world.now_ns));
        });
        let last = bench.cpu_ns(10);
        assert!(looks.iter().any(|(word, _)| word & BUSY != 0));
        for (number, (word, _)) in
            looks.iter().enumerate().filter(|(_, (word, _))| word & BUSY == 0)
        {
            for (later, (again, _)) in looks.iter().enumerate().skip(number) {
                if again == word {
                    for (_, now) in &looks[number..=later] {
                        let read =
                            if word & ON == 0 { *word } else { word.wrapping_add(*now) & TIME };
                        assert!((out..=last).contains(&read), "{read} after {out}, before {last}");
                    }
                }
            }
        }
    }
}

#[test]
fn an_id_given_anew_is_another_thread() {
    let mut bench = ProgramBench::new(true);
    let (idle, old) = (bench.task(0), bench.task(10));
    bench.switch(idle, old, RUNNABLE);
    bench.pass(50_000);
    bench.switch(old, idle, DEAD);
    assert_eq!(bench.flags(10), ENDED);
    assert!(bench.cpu_ns(10) >= 50_000);
    let young = bench.task(10);
    bench.switch(idle, young, RUNNABLE);
    assert_eq!(bench.flags(10), 0);
    assert!(bench.cpu_ns(10) < 1_000, "{}", bench.cpu_ns(10));
    assert_eq!(bench.total(10, histogram::BURST), 0);
}

/// The id of a thread that ends is free before its last switch (release_task() in kernel/exit.c).
#[test]
fn the_end_of_an_older_thread_does_not_touch_the_younger_one_of_its_id() {
    let mut bench = ProgramBench::new(true);
    let (idle, old) = (bench.task(0), bench.task(10));
    bench.switch(idle, old, RUNNABLE);
    bench.pass(50_000);
    let young = bench.task(10);
    bench.switch(idle, young, RUNNABLE);
    bench.pass(100);
    bench.switch(old, idle, DEAD);
    assert_eq!(bench.u64(10, offset_of!(ThreadRecord, start_ns)), bench.tasks[young].start);
    assert_eq!((bench.word(10) & ON, bench.flags(10)), (ON, 0));
    assert!(bench.cpu_ns(10) < 5_000);
}

#[test]
fn ends_give_records_back_and_the_oldest_is_taken_first() {
    let mut bench = ProgramBench::new(true);
    let idle = bench.task(0);
    // More threads than records, one after the other.
    for pid in 1..=40 {
        let task = bench.task(pid);
        bench.switch(idle, task, RUNNABLE);
        bench.pass(1_000);
        bench.switch(task, idle, DEAD);
    }
    assert_eq!(bench.lost(offset_of!(TableHeader, threads_lost)), 0);
    assert_eq!(bench.world.free.len(), RECORDS as usize);
    // The last ones can still be read; those before are others' now.
    for pid in 33..=40 {
        assert_eq!(bench.u32(pid, offset_of!(ThreadRecord, tid)), pid);
        assert!(bench.cpu_ns(pid) >= 1_000);
    }
    assert_ne!(bench.u32(32, offset_of!(ThreadRecord, tid)), 32);
    // The pair of each is in the map, as it ended.
    assert_eq!(bench.world.pairs.len(), 40);
}

/// The index still leads to a record that has long been a younger thread's, of another id.
#[test]
fn a_thread_whose_id_led_to_anothers_record_gets_its_own() {
    let mut bench = ProgramBench::new(true);
    let (idle, old) = (bench.task(0), bench.task(10));
    bench.switch(idle, old, RUNNABLE);
    bench.switch(old, idle, DEAD);
    // Born before those that take the record, and seen after them.
    let young = bench.task(10);
    for pid in 20..20 + RECORDS {
        let task = bench.task(pid);
        bench.switch(idle, task, RUNNABLE);
        bench.switch(task, idle, if pid == 20 { DEAD } else { SLEEP });
    }
    bench.switch(idle, young, RUNNABLE);
    assert_eq!(bench.u32(10, offset_of!(ThreadRecord, tid)), 10);
    assert_eq!(bench.word(10) & ON, ON);
}

#[test]
fn a_thread_has_its_parents_process() {
    let mut bench = ProgramBench::new(true);
    let (idle, parent, child) = (bench.task(0), bench.task(10), bench.task(11));
    bench.tasks[child].parent = parent;
    bench.address(parent);
    bench.switch(idle, child, RUNNABLE);
    assert_eq!(bench.u32(11, offset_of!(ThreadActivity, parent)), 10);
}

#[test]
fn threads_without_a_record_are_counted_and_disturb_nobody() {
    let mut bench = ProgramBench::new(true);
    let idle = bench.task(0);
    let tasks: Vec<usize> = (1..=RECORDS + 2).map(|pid| bench.task(pid)).collect();
    for task in tasks {
        bench.switch(idle, task, RUNNABLE);
        bench.pass(1_000);
        bench.switch(task, idle, SLEEP);
    }
    assert_eq!(bench.lost(offset_of!(TableHeader, threads_lost)), 4);
    assert_eq!(bench.at(RECORDS + 1), None);
    // An id above those that the table was made for.
    let far = bench.task(TIDS);
    bench.switch(idle, far, RUNNABLE);
    assert_eq!(bench.lost(offset_of!(TableHeader, threads_lost)), 5);
    assert!(bench.cpu_ns(1) >= 1_000);
}

#[test]
fn seeded_threads_have_their_time_until_they_are_seen() {
    let mut bench = ProgramBench::new(true);
    let (idle, sleeper, runner) = (bench.task(0), bench.task(10), bench.task(11));
    for task in [sleeper, runner] {
        bench.tasks[task].sum = 5_000_000;
        let context = [0, bench.address(task)];
        bench.run(seed(&bench.target), &context);
    }
    bench.run(seed(&bench.target), &[0, 0]);
    assert_eq!((bench.flags(10), bench.cpu_ns(10)), (SEEDED, 5_000_000));
    // It ran once more before switches were traced.
    bench.tasks[sleeper].sum = 6_000_000;
    bench.tasks[sleeper].delay = 777_777;
    bench.switch(idle, sleeper, RUNNABLE);
    assert!((6_000_000..6_000_500).contains(&bench.cpu_ns(10)));
    assert_eq!(bench.flags(10), 0);
    // And this one ran all the time.
    bench.tasks[runner].sum = 7_000_000;
    bench.switch(runner, sleeper, SLEEP);
    assert_eq!((bench.cpu_ns(11), bench.flags(11)), (7_000_000, 0));
    assert_eq!(bench.total(11, histogram::BURST), 0);
    bench.switch(sleeper, idle, SLEEP);
    // What it waited before it was seen is in no histogram.
    assert_eq!(bench.waits(10)[0], 1);
}

/// A switch for which the kernel ran no program: the kernel's time counts, and it is said.
#[test]
fn missed_switches_are_counted_and_leave_no_error() {
    let mut bench = ProgramBench::new(true);
    bench.sets_sums = true;
    let (idle, a, b) = (bench.task(0), bench.task(10), bench.task(11));
    bench.switch(idle, a, RUNNABLE);
    bench.switch(a, b, SLEEP);
    bench.pass(1_000_000);
    // Unseen: b left, a came and ran for 50 us.
    (bench.tasks[a].sum, bench.tasks[b].sum) = (50_000, 1_000_000);
    bench.switch(a, idle, SLEEP);
    assert_eq!(bench.cpu_ns(10), 50_000);
    assert_eq!(bench.lost(offset_of!(TableHeader, switches_missed)), 1);
    assert_eq!(bench.total(10, histogram::BURST), 1);
    bench.pass(1_000_000);
    bench.switch(idle, b, RUNNABLE);
    assert!((1_000_000..1_001_000).contains(&bench.cpu_ns(11)));
    assert_eq!(bench.lost(offset_of!(TableHeader, switches_missed)), 2);
}

/// The kernel takes out what the host has stolen.
#[test]
fn a_thread_is_never_far_from_the_kernels_time() {
    let mut bench = ProgramBench::new(false);
    bench.sets_sums = true;
    let (idle, a) = (bench.task(0), bench.task(10));
    for (ours, kernels, expected) in
        [(100_000, 100_000, 0..1_000), (100_000, 40_000, 20_000..20_001), (1_000, 300_000, 0..1)]
    {
        bench.switch(idle, a, RUNNABLE);
        bench.pass(ours);
        bench.tasks[a].sum += kernels;
        bench.switch(a, idle, RUNNABLE);
        let ahead = bench.cpu_ns(10) - bench.tasks[a].sum;
        assert!(expected.contains(&ahead), "{ahead}");
    }
}

#[test]
fn a_migration_counts_once_and_only_to_another_cpu() {
    let mut bench = ProgramBench::new(true);
    let (idle, a) = (bench.task(0), bench.task(10));
    bench.switch(idle, a, RUNNABLE);
    bench.switch(a, idle, SLEEP);
    let counted = |bench: &ProgramBench| bench.u32(10, offset_of!(ThreadRecord, migrations));
    for (cpu, expected) in [(0, 0), (1, 1), (1, 1), (0, 2)] {
        let context = [bench.address(a), cpu];
        bench.run(migrate(&bench.target), &context);
        // As set_task_cpu(): the tracepoint first, then the count, if it moves.
        if bench.tasks[a].cpu != cpu as u32 {
            bench.tasks[a].migrations += 1;
            bench.tasks[a].cpu = cpu as u32;
        }
        assert_eq!(counted(&bench), expected);
        bench.switch(idle, a, RUNNABLE);
        bench.switch(a, idle, SLEEP);
        assert_eq!(counted(&bench), expected);
    }
    let unknown = bench.task(12);
    let context = [bench.address(unknown), 1];
    bench.run(migrate(&bench.target), &context);
    assert_eq!(bench.at(12), None);
}

/// Thread 11 of process 10 calls execve(2): it is 10 then, and the first thread has ended.
#[test]
fn a_thread_that_takes_its_first_ones_id_over() {
    let mut bench = ProgramBench::new(true);
    bench.sets_sums = true;
    let (idle, first, other) = (bench.task(0), bench.task(10), bench.task(11));
    bench.switch(idle, first, RUNNABLE);
    bench.pass(1_000_000);
    bench.switch(first, other, DEAD);
    bench.pass(30_000);
    // de_thread() gives it the id and the birth of the first one.
    (bench.tasks[other].pid, bench.tasks[other].start) = (10, bench.tasks[first].start);
    bench.tasks[other].sum = 30_000;
    let context = [bench.address(other), 11];
    bench.run(exec(&bench.target), &context);
    assert_eq!((bench.flags(11), bench.word(11) & ON), (ENDED, 0));
    bench.switch(other, idle, SLEEP);
    assert_eq!((bench.flags(10), bench.cpu_ns(10)), (0, 30_000));
    bench.run(exec(&bench.target), &[context[0], 10]);
    assert_eq!(bench.flags(10), 0);
}

/// Most programs name their threads once they run.
#[test]
fn a_thread_is_called_as_when_it_last_left_a_cpu() {
    let mut bench = ProgramBench::new(true);
    let (idle, a) = (bench.task(0), bench.task(10));
    let name = |bench: &ProgramBench| bench.u64(10, offset_of!(ThreadActivity, comm)).to_le_bytes();
    bench.switch(idle, a, RUNNABLE);
    assert_eq!(&name(&bench), b"worker\0\0");
    bench.tasks[a].comm = u64::from_le_bytes(*b"renamed\0");
    bench.switch(a, idle, DEAD);
    assert_eq!(&name(&bench), b"renamed\0");
}

#[test]
fn causes() {
    let mut bench = ProgramBench::new(true);
    let (idle, a) = (bench.task(0), bench.task(10));
    let cause = |bench: &mut ProgramBench, preempt, state, call| {
        bench.switch(idle, a, RUNNABLE);
        bench.tasks[a].call = call;
        bench.switch_looking((a, idle), (preempt, state), &mut |_| {});
        bench.u32(10, offset_of!(ThreadActivity, cause))
    };
    for (preempt, state, call, expected) in [
        (true, RUNNABLE, 24, SwitchCause::Preempted),
        (true, SLEEP, 24, SwitchCause::Preempted),
        (false, RUNNABLE, u64::MAX, SwitchCause::Preempted),
        (false, RUNNABLE, 24, SwitchCause::Yielded),
        (false, SLEEP, 24, SwitchCause::Sleep),
        (false, DISK, 0, SwitchCause::Uninterruptible),
        (false, 0x100 | DISK, 0, SwitchCause::Uninterruptible),
        (false, IDLE, 0, SwitchCause::Sleep),
        (false, STOPPED, 0, SwitchCause::Other),
    ] {
        assert_eq!(cause(&mut bench, preempt, state, call), expected as u32, "{state:#x}");
    }
    assert_eq!(bench.u64(10, offset_of!(ThreadActivity, yields)), 1);
    // It was to sleep and a signal was there: the kernel has counted it as voluntary.
    bench.switch(idle, a, RUNNABLE);
    bench.tasks[a].voluntary += 1;
    bench.tasks[a].involuntary -= 1;
    bench.switch(a, idle, RUNNABLE);
    assert_eq!(bench.u32(10, offset_of!(ThreadActivity, cause)), SwitchCause::Sleep as u32);
}

#[test]
fn waits_are_what_the_kernel_adds() {
    let mut bench = ProgramBench::new(true);
    let (idle, a) = (bench.task(0), bench.task(10));
    for delay in [0, 1_000, 1_000_000] {
        bench.switch(idle, a, RUNNABLE);
        bench.tasks[a].delay += delay;
        bench.switch(a, idle, SLEEP);
    }
    let waits = bench.waits(10);
    // 960 to 1,023 ns, and 983 to 1,048 us.
    assert_eq!((waits[0], waits[31], waits[111]), (1, 1, 1));
    assert_eq!(waits.iter().sum::<u32>(), 3);
}

#[test]
fn pairs_that_have_no_room_are_counted() {
    let mut bench = ProgramBench::new(true);
    bench.world.pair_room = 1;
    let tasks: Vec<usize> = (10..13).map(|pid| bench.task(pid)).collect();
    for next in [1, 1, 1, 2, 1, 2] {
        bench.switch(tasks[0], tasks[next], SLEEP);
    }
    let known: u64 = bench.pairs().values().flatten().sum();
    assert_eq!(known + bench.lost(offset_of!(TableHeader, pairs_lost)), 6);
    assert_eq!(bench.lost(offset_of!(TableHeader, pairs_lost)), 1);
}

/// Process 10 forks 11, which forks 12 and ends before 12 runs: then init is the parent of 12.
#[test]
fn a_child_belongs_to_the_process_that_forked_it() {
    let mut bench = ProgramBench::new(true);
    let [idle, init, a, b, c, thread] = [0, 1, 10, 11, 12, 13].map(|pid| bench.task(pid));
    bench.tasks[thread].tgid = 12;
    let forks = |bench: &mut ProgramBench, parent: usize, child: usize, reaper: usize| {
        bench.tasks[child].parent = reaper;
        bench.address(reaper);
        let context = [bench.address(parent), bench.address(child)];
        bench.run(fork(&bench.target), &context);
    };
    bench.switch(idle, a, RUNNABLE);
    forks(&mut bench, a, b, a);
    assert_eq!((bench.word(11), bench.flags(11)), (0, SEEDED));
    bench.switch(a, b, RUNNABLE);
    forks(&mut bench, b, c, b);
    bench.tasks[c].parent = init;
    bench.switch(b, c, DEAD);
    assert_eq!(bench.flags(11), ENDED);
    let parent = |bench: &ProgramBench, pid| bench.u32(pid, offset_of!(ThreadActivity, parent));
    assert_eq!((parent(&bench, 11), parent(&bench, 12)), (10, 11));
    // As CLONE_PARENT has it the child is its parent's sibling; it was still forked by 12.
    let sibling = bench.task(14);
    forks(&mut bench, c, sibling, init);
    assert_eq!(parent(&bench, 14), 12);
    // A thread has its process's parent.
    forks(&mut bench, c, thread, init);
    assert_eq!(parent(&bench, 13), 1);
    bench.pass(5_000);
    bench.switch(c, idle, SLEEP);
    // 10,000 ns passed as its sibling was made.
    assert!((15_000..16_000).contains(&bench.cpu_ns(12)), "{}", bench.cpu_ns(12));
    assert_eq!(bench.u64(12, offset_of!(ThreadRecord, voluntary)), 1);
    assert_eq!(bench.lost(offset_of!(TableHeader, switches_missed)), 0);
}

#[test]
fn a_child_without_a_record_is_counted() {
    let mut bench = ProgramBench::new(true);
    let parent = bench.task(10);
    for pid in 11..=11 + RECORDS {
        let child = bench.task(pid);
        let context = [bench.address(parent), bench.address(child)];
        bench.run(fork(&bench.target), &context);
    }
    assert_eq!(bench.lost(offset_of!(TableHeader, threads_lost)), 1);
    assert_eq!(bench.at(11 + RECORDS), None);
}

#[test]
fn events_are_recorded_and_lost_ones_counted() {
    let mut bench = ProgramBench::with(test_target(true, true));
    bench.world.event_room = 3;
    let (a, b) = (bench.task(10), bench.task(11));
    bench.switch_looking((a, b), (true, SLEEP), &mut |_| {});
    let context = [bench.address(b)];
    bench.run(wakeup(&bench.target, false), &context);
    bench.run(migrate(&bench.target), &[context[0], 1]);
    bench.switch(b, a, SLEEP);
    bench.switch(a, b, SLEEP);
    assert_eq!(bench.lost(offset_of!(TableHeader, events_lost)), 2);
    let word = |event: usize, offset: usize| {
        u32::from_le_bytes(bench.world.events[event][offset..offset + 4].try_into().unwrap())
    };
    assert_eq!(bench.world.events[0].len(), size_of::<RawEvent>());
    let fields = [8, 12, 16, 20, 24, 28];
    assert_eq!(fields.map(|at| word(0, at)), [1 << 16, 1 << 31 | 1, 10, 11, 120, 120]);
    assert_eq!(fields.map(|at| word(1, at)), [1 << 16 | 1, 0, 78, 11, 0, 120]);
    assert_eq!(fields.map(|at| word(2, at)), [1 << 16 | 3, 1, 78, 11, 0, 120]);
}

/// What happens next, in a random life of a few threads on one CPU.
#[derive(Clone, Debug)]
struct Step {
    next: usize,
    preempt: bool,
    state: usize,
    ns: u64,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (0usize..5, any::<bool>(), 0usize..3, 0u64..40)
        .prop_map(|(next, preempt, state, bits)| Step { next, preempt, state, ns: 1 << bits });
    prop::collection::vec(step, 1..60)
}

proptest! {
    /// Times, counts, histograms and pairs against a plain account of the same life.
    #[test]
    fn any_life_is_accounted_for(steps in steps()) {
        let mut bench = ProgramBench::new(true);
        let tasks: Vec<usize> = (0..5).map(|pid| bench.task(pid)).collect();
        let mut current = 0;
        let (mut pairs, mut bursts) = (HashMap::<(u32, u32), [u64; 2]>::new(), [0u32; 5]);
        let mut least_ns = [0u64; 5];
        let mut seen = [false; 5];
        for step in steps {
            bench.pass(step.ns);
            if step.next == current {
                continue;
            }
            let state = [RUNNABLE, SLEEP, DISK][step.state];
            bench.switch_looking((tasks[current], tasks[step.next]), (step.preempt, state), &mut |_| {});
            if current != 0 {
                let voluntary = !step.preempt && state != RUNNABLE;
                pairs.entry((current as u32, step.next as u32)).or_default()[usize::from(!voluntary)] += 1;
                bursts[current] += 1;
                if seen[current] {
                    least_ns[current] += step.ns;
                }
            }
            seen[step.next] = true;
            current = step.next;
        }
        prop_assert_eq!(bench.pairs(), pairs);
        for pid in 1..5u32 {
            if bench.at(pid).is_none() {
                prop_assert_eq!(bursts[pid as usize], 0);
                continue;
            }
            let task = bench.tasks[tasks[pid as usize]];
            prop_assert_eq!(bench.total(pid, histogram::BURST), bursts[pid as usize]);
            if current != pid as usize {
                prop_assert_eq!(bench.u64(pid, offset_of!(ThreadRecord, voluntary)), task.voluntary);
                prop_assert_eq!(bench.u64(pid, offset_of!(ThreadRecord, involuntary)), task.involuntary);
            }
            prop_assert!(bench.cpu_ns(pid) >= least_ns[pid as usize]);
        }
    }

    /// A burst's bucket is the logarithm of its length, a wait's the eighth of an octave that it lies
    /// in.
    #[test]
    fn buckets(bits in 0u32..50, low: u64) {
        let ns = 1u64 << bits | low & ((1 << bits) - 1);
        let mut bench = ProgramBench::new(true);
        let (idle, a) = (bench.task(0), bench.task(10));
        bench.switch(idle, a, RUNNABLE);
        bench.tasks[a].delay = ns;
        bench.switch(a, idle, SLEEP);
        let waits = bench.waits(10);
        prop_assert_eq!(waits.iter().sum::<u32>(), 1);
        let bucket = waits.iter().take_while(|count| **count == 0).count();
        prop_assert!(WaitHistogram::lower_ns(bucket) <= ns);
        prop_assert!(bucket == WAIT_BUCKETS - 1 || ns < WaitHistogram::lower_ns(bucket + 1));
        let before = DurationHistogram::from(bench.counts(10, histogram::BURST));
        bench.switch(idle, a, RUNNABLE);
        bench.pass(ns);
        bench.switch(a, idle, SLEEP);
        let burst = DurationHistogram::from(bench.counts(10, histogram::BURST)) - before;
        prop_assert_eq!(burst.total(), 1);
        let octave = burst.counts().iter().take_while(|count| **count == 0).count();
        // The programs take some time of the test's clock, too.
        prop_assert!(<DurationHistogram>::lower_ns(octave) <= ns + 10_000);
        prop_assert!(octave == BUCKETS - 1 || ns < <DurationHistogram>::lower_ns(octave + 1));
    }

    /// Wherever the fields are, they are found there: the same life with others between them.
    #[test]
    fn offsets_come_from_the_kernel(shift in 0i16..15) {
        let mut target = test_target(true, false);
        let task = &mut target.kernel.task;
        for offset in [&mut task.sum_exec_runtime, &mut task.nvcsw, &mut task.nivcsw] {
            *offset += 8 * shift;
        }
        let bytes = format!("{:?}", switch(&target).unwrap());
        let sums = format!("offset: {}, immediate: 0", 16 + 8 * shift);
        prop_assert!(bytes.contains(&sums));
    }
}

/// A counter runs no program at switches: a look copies the kernel's counts, and the end of a thread
/// its last ones, which nothing overwrites until they are read.
#[test]
fn counts_without_a_program_at_switches_are_the_kernels() {
    let mut bench = ProgramBench::of_counter();
    let (seen, unseen) = (bench.task(10), bench.task(11));
    (bench.tasks[seen].voluntary, bench.tasks[seen].sum) = (5, 1_000);
    bench.look(seen);
    assert_eq!(bench.kernel_counts(10), ([5, 0], 1_000));
    assert_eq!(bench.flags(10), SEEDED | (LOOK as u32) << LOOK_SHIFT);
    (bench.tasks[seen].involuntary, bench.tasks[seen].sum) = (7, 2_000);
    bench.look(seen);
    assert_eq!(bench.kernel_counts(10), ([5, 7], 2_000));
    assert_eq!(bench.born_as(10), (10, bench.tasks[seen].start));
    // One that no look has seen, which came and went in between.
    (bench.tasks[seen].voluntary, bench.tasks[unseen].voluntary) = (6, 3);
    bench.end(seen);
    bench.end(unseen);
    assert_eq!(bench.kernel_counts(10), ([6, 7], 2_000));
    assert_eq!(bench.kernel_counts(11).0, [3, 0]);
    assert_eq!((bench.flags(10), bench.flags(11)), (ENDED, ENDED));
    assert_eq!((bench.world.free.len(), bench.world.ended.len()), (RECORDS as usize - 2, 2));
    // The iterator may come to one that was freed meanwhile.
    bench.tasks[seen].exit_state = 0x10;
    bench.look(seen);
    assert_eq!(bench.flags(10), ENDED);
    assert_eq!(bench.world.free.len(), RECORDS as usize - 2, "it has no second record");
}

/// More threads end between two looks than there is room for.
#[test]
fn what_was_not_read_is_kept_and_the_rest_counted_as_lost() {
    let mut bench = ProgramBench::of_counter();
    for pid in 10..10 + RECORDS + 3 {
        let task = bench.task(pid);
        bench.tasks[task].voluntary = pid.into();
        bench.end(task);
    }
    assert_eq!(bench.lost(offset_of!(TableHeader, threads_lost)), 3);
    for pid in 10..10 + RECORDS {
        assert_eq!(bench.kernel_counts(pid).0, [pid.into(), 0]);
    }
    // What was read is free again.
    let read = bench.world.ended.pop_front().unwrap();
    bench.world.free.push_back(read);
    let late = bench.task(99);
    bench.end(late);
    assert_eq!(bench.lost(offset_of!(TableHeader, threads_lost)), 3);
    assert_eq!(bench.flags(99), ENDED);
}

/// Thread 11 of process 10 calls execve(2), after a look and before the next one.
#[test]
fn counts_of_a_thread_go_on_when_it_takes_its_first_ones_id_over() {
    let mut bench = ProgramBench::of_counter();
    let (first, other) = (bench.task(10), bench.task(11));
    bench.tasks[other].tgid = 10;
    let born = bench.tasks[other].start;
    (bench.tasks[first].voluntary, bench.tasks[other].voluntary) = (900, 5);
    bench.look(first);
    bench.look(other);
    let element = bench.at(10);
    (bench.tasks[first].voluntary, bench.tasks[other].voluntary) = (901, 7);
    bench.exec_by_thread(first, other);
    assert_eq!((bench.kernel_counts(10).0, bench.born_as(10)), ([7, 0], (11, born)));
    assert_ne!(bench.at(10), element);
    assert_eq!(bench.world.ended.len(), 1);
    bench.tasks[other].voluntary = 8;
    bench.look(other);
    assert_eq!((bench.kernel_counts(10).0, bench.born_as(10)), ([8, 0], (11, born)));
    // The first one has the other's id when it is freed.
    bench.end(first);
    assert_eq!(bench.kernel_counts(11).0, [901, 0]);
    assert_eq!(bench.born_as(11), (11, bench.tasks[first].start));
    bench.end(other);
    assert_eq!((bench.flags(10), bench.world.ended.len()), (ENDED, 3));
    assert_eq!(bench.world.free.len(), RECORDS as usize - 3);
}

/// The thread that calls execve(2) was born since the last look: it is not taken for its first one.
#[test]
fn a_thread_that_no_look_has_seen_takes_over_as_one_born_since() {
    let mut bench = ProgramBench::of_counter();
    let first = bench.task(10);
    bench.tasks[first].voluntary = 900;
    bench.look(first);
    let looked_ns = bench.world.now_ns;
    let other = bench.task(11);
    (bench.tasks[other].tgid, bench.tasks[other].voluntary) = (10, 5);
    bench.exec_by_thread(first, other);
    let (tid, born_ns) = bench.born_as(10);
    assert_eq!((tid, bench.kernel_counts(10).0), (11, [5, 0]));
    assert!(born_ns > looked_ns);
    assert_eq!(bench.world.ended.len(), 1);
    // An execve(2) by the first thread changes nothing, nor does one of two that are not known.
    let context = [bench.address(other), 10];
    bench.run(take_over(&bench.target), &context);
    let (unknown, thread) = (bench.task(20), bench.task(21));
    bench.exec_by_thread(unknown, thread);
    assert_eq!((bench.at(20), bench.at(21), bench.world.ended.len()), (None, None, 1));
}

/// The kernel counts a CPU that is taken from an idle thread as an involuntary switch of that thread.
#[test]
fn idle_threads_have_no_counts() {
    let mut bench = ProgramBench::of_counter();
    let idle = bench.task(0);
    bench.tasks[idle].involuntary = 50_000;
    bench.look(idle);
    bench.end(idle);
    assert_eq!(bench.at(0), None);
    assert_eq!(bench.world.free.len(), RECORDS as usize);
}
