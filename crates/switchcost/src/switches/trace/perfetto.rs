//! Perfetto's trace format: packets of protocol buffers (protos/perfetto/trace of
//! github.com/google/perfetto), of which five messages are needed. They are written field by field:
//! that is less than their definitions for a library would be.
//!
//! Switches are written in full, with who left. The format's compact form leaves that to be
//! inferred from the switch before, which is wrong where events were lost.

use std::collections::{BTreeMap, HashMap};

use switchtrace::{EventKind, ThreadKey, ThreadSnapshot, TraceEvent};

/// A message that is being written.
#[derive(Default)]
struct ProtoMessage(Vec<u8>);

impl ProtoMessage {
    /// Appends a number, seven bits a byte, lowest first.
    fn varint(&mut self, mut value: u64) {
        while value > 127 {
            self.0.push(value as u8 | 128);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn number(mut self, field: u32, value: impl Into<u64>) -> Self {
        self.varint(u64::from(field) << 3);
        self.varint(value.into());
        self
    }

    fn bytes(mut self, field: u32, bytes: &[u8]) -> Self {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    fn message(self, field: u32, inner: ProtoMessage) -> Self {
        self.bytes(field, &inner.0)
    }
}

fn message() -> ProtoMessage {
    ProtoMessage::default()
}

/// The numbers of fields, by their names in Perfetto's definitions.
mod field {
    pub(super) const PACKET: u32 = 1;
    pub(super) const FTRACE_EVENTS: u32 = 1;
    pub(super) const PROCESS_TREE: u32 = 2;
    pub(super) const CLOCK_SNAPSHOT: u32 = 6;
    pub(super) const TIMESTAMP: u32 = 8;
    pub(super) const SEQUENCE: u32 = 10;
    pub(super) const SYSTEM_INFO: u32 = 45;
    pub(super) const SWITCH: u32 = 4;
    pub(super) const WAKING: u32 = 20;
}

/// Clocks of a snapshot (builtin_clock.proto).
const REALTIME: u64 = 1;
const MONOTONIC: u64 = 3;
const BOOTTIME: u64 = 6;

/// States as the tracepoint reports them (include/linux/sched.h, __trace_sched_switch_state).
const PREEMPTED: u64 = 0x100;
const IDLE: u64 = 0x80;
const DEAD: u64 = 0x10;
const REPORTED: u64 = 0x7f;

/// Bits of a state as the tracer has them.
const TASK_DEAD: u32 = 0x80;
const TASK_NOLOAD: u32 = 0x400;

/// The three clocks at one moment, in ns.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClockSnapshot {
    pub(super) monotonic: u64,
    pub(super) boottime: u64,
    pub(super) realtime: u64,
}

/// A trace that is being written.
pub(super) struct PerfettoEncoder {
    /// The trace's clock less that of the events.
    ahead_ns: u64,
    /// The thread that runs on each CPU, as of its last switch.
    running: HashMap<u32, u32>,
    /// Threads whose names are written.
    named: HashMap<ThreadKey, String>,
    /// Events of this batch by CPU.
    bundles: BTreeMap<u32, EventBundle>,
    out: Vec<u8>,
}

/// Events of one CPU.
#[derive(Default)]
struct EventBundle {
    events: ProtoMessage,
    /// Set if events are missing before them.
    has_gap: bool,
}

impl PerfettoEncoder {
    /// Begins a trace of the kernel of this name and release.
    pub(super) fn new(clocks: ClockSnapshot, [system, release]: [&str; 2]) -> Self {
        let ahead_ns = clocks.boottime.wrapping_sub(clocks.monotonic);
        let mut encoder = Self {
            ahead_ns,
            running: HashMap::new(),
            named: HashMap::new(),
            bundles: BTreeMap::new(),
            out: Vec::new(),
        };
        let snapshot = message()
            .message(1, clock_reading(BOOTTIME, clocks.boottime))
            .message(1, clock_reading(MONOTONIC, clocks.monotonic))
            .message(1, clock_reading(REALTIME, clocks.realtime));
        let packet = message().number(field::TIMESTAMP, clocks.boottime);
        encoder.packet(packet.message(field::CLOCK_SNAPSHOT, snapshot));
        let kernel = message().bytes(1, system.as_bytes()).bytes(3, release.as_bytes());
        encoder.packet(message().message(field::SYSTEM_INFO, message().message(1, kernel)));
        encoder
    }

    /// Appends a packet to the trace.
    fn packet(&mut self, packet: ProtoMessage) {
        let trace = ProtoMessage(std::mem::take(&mut self.out));
        self.out = trace.message(field::PACKET, packet.number(field::SEQUENCE, 1_u64)).0;
    }

    /// Adds an event to the batch.
    pub(super) fn event(&mut self, event: &TraceEvent) {
        let bundle = self.bundles.entry(event.cpu).or_default();
        let (kind, actor, details) = match event.kind {
            EventKind::Switch { prev, next, prev_state, preempted } => {
                let ran = self.running.insert(event.cpu, next.tid);
                bundle.has_gap |= ran.is_some_and(|ran| ran != prev.tid);
                let left = message().number(2, prev.tid).number(3, prev.priority);
                let left = left.number(4, state(prev_state, preempted));
                (field::SWITCH, prev.tid, left.number(6, next.tid).number(7, next.priority))
            }
            EventKind::Wakeup { waker, wakee, target_cpu, .. } => {
                let woken = message().number(2, wakee.tid).number(3, wakee.priority);
                (field::WAKING, waker, woken.number(4, 1_u64).number(5, target_cpu))
            }
            // The switches tell where a thread runs.
            _ => return,
        };
        let time_ns = event.time_ns.wrapping_add(self.ahead_ns);
        let event = message().number(1, time_ns).number(2, actor).message(kind, details);
        bundle.events = std::mem::take(&mut bundle.events).message(2, event);
    }

    /// Adds the names of threads that are new or have another name.
    pub(super) fn name<'a>(&mut self, threads: impl Iterator<Item = &'a ThreadSnapshot>) {
        let mut named = HashMap::new();
        let mut tree = message();
        for thread in threads {
            let (tid, tgid, comm) = (thread.key.tid, thread.tgid, thread.comm.as_bytes());
            if self.named.get(&thread.key) != Some(&thread.comm) {
                if tid == tgid {
                    let process = message().number(1, tgid).number(2, thread.parent);
                    tree = tree.message(1, process.bytes(3, comm));
                }
                tree = tree.message(2, message().number(1, tid).bytes(2, comm).number(3, tgid));
            }
            named.insert(thread.key, thread.comm.clone());
        }
        self.named = named;
        if !tree.0.is_empty() {
            self.packet(message().message(field::PROCESS_TREE, tree));
        }
    }

    /// Ends the batch; returns what is to be written.
    pub(super) fn take(&mut self) -> Vec<u8> {
        for (cpu, bundle) in std::mem::take(&mut self.bundles) {
            let mut events = bundle.events.number(1, cpu);
            if bundle.has_gap {
                events = events.number(3, 1_u64);
            }
            self.packet(message().message(field::FTRACE_EVENTS, events));
        }
        std::mem::take(&mut self.out)
    }
}

fn clock_reading(id: u64, ns: u64) -> ProtoMessage {
    message().number(1, id).number(2, ns)
}

/// Returns a state as the tracepoint reports it.
fn state(bits: u32, preempted: bool) -> u64 {
    if preempted {
        PREEMPTED
    } else if bits & TASK_DEAD != 0 {
        DEAD
    } else if bits & TASK_NOLOAD != 0 {
        IDLE
    } else {
        u64::from(bits) & REPORTED
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::live::tests::{name, thread};
    use switchtrace::EventThread;

    const CLOCKS: ClockSnapshot =
        ClockSnapshot { monotonic: 1_000, boottime: 1_500, realtime: 9_000 };

    fn switch(time_ns: u64, prev: u32, next: u32) -> TraceEvent {
        let kind = EventKind::Switch {
            prev: EventThread { tid: prev, priority: 120 },
            next: EventThread { tid: next, priority: 98 },
            prev_state: 1,
            preempted: false,
        };
        TraceEvent { time_ns, cpu: 1, kind }
    }

    /// Field numbers and values of a message, one level deep.
    fn fields(mut bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
        fn varint(bytes: &mut &[u8]) -> u64 {
            let end = bytes.iter().position(|byte| byte & 128 == 0).unwrap() + 1;
            let (own, rest) = bytes.split_at(end);
            *bytes = rest;
            own.iter().rev().fold(0, |value, byte| value << 7 | u64::from(byte & 127))
        }
        let mut found = Vec::new();
        while !bytes.is_empty() {
            let tag = varint(&mut bytes);
            let value = varint(&mut bytes);
            if tag & 7 == 2 {
                let (own, rest) = bytes.split_at(value as usize);
                found.push((tag >> 3, own.to_vec()));
                bytes = rest;
            } else {
                found.push((tag >> 3, value.to_le_bytes().to_vec()));
            }
        }
        found
    }

    fn of(message: &[u8], field: u64) -> Vec<u8> {
        let found = fields(message).into_iter().find(|(number, _)| *number == field);
        found.unwrap_or_else(|| panic!("no field {field} in {message:?}")).1
    }

    fn number(message: &[u8], field: u64) -> u64 {
        u64::from_le_bytes(of(message, field).try_into().unwrap())
    }

    #[test]
    fn a_switch_has_all_that_the_tracer_saw_of_it() {
        let mut encoder = PerfettoEncoder::new(CLOCKS, ["Linux", "6.18.0"]);
        encoder.take();
        encoder.event(&switch(2_000, 10, 300));
        let packet = of(&encoder.take(), 1);
        assert_eq!(number(&packet, 10), 1);
        let bundle = of(&packet, 1);
        assert_eq!(number(&bundle, 1), 1);
        let event = of(&bundle, 2);
        assert_eq!((number(&event, 1), number(&event, 2)), (2_500, 10));
        let switch = of(&event, 4);
        let all = [2, 3, 4, 6, 7].map(|field| number(&switch, field));
        assert_eq!(all, [10, 120, 1, 300, 98]);
    }

    #[test]
    fn a_gap_is_marked_on_its_cpu() {
        let mut encoder = PerfettoEncoder::new(CLOCKS, ["Linux", "6.18.0"]);
        let mut has_gap = |events: &[TraceEvent]| {
            events.iter().for_each(|event| encoder.event(event));
            let packets: Vec<Vec<u8>> =
                fields(&encoder.take()).into_iter().map(|(_, packet)| packet).collect();
            fields(&of(packets.last().unwrap(), 1)).iter().any(|(field, _)| *field == 3)
        };
        assert!(!has_gap(&[switch(1, 10, 11), switch(2, 11, 10)]));
        assert!(has_gap(&[switch(3, 12, 10)]));
        assert!(!has_gap(&[switch(4, 10, 11)]));
    }

    #[test]
    fn names_are_written_once_and_again_when_they_change() {
        let mut encoder = PerfettoEncoder::new(CLOCKS, ["Linux", "6.18.0"]);
        encoder.take();
        let mut threads = [thread(name(7, 1), 7, "sh", 2), thread(name(8, 1), 7, "io", 2)];
        encoder.name(threads.iter());
        let tree = of(&of(&encoder.take(), 1), 2);
        assert_eq!(fields(&tree).len(), 3, "a process and two threads");
        assert_eq!(of(&of(&tree, 1), 3), b"sh");
        encoder.name(threads.iter());
        assert!(encoder.take().is_empty());
        threads[1].comm = "worker".into();
        encoder.name(threads.iter());
        let tree = of(&of(&encoder.take(), 1), 2);
        assert_eq!((fields(&tree).len(), of(&of(&tree, 2), 2)), (1, b"worker".to_vec()));
    }

    #[test]
    fn states_are_those_of_the_tracepoint() {
        for (of, preempted, is) in [
            (0, false, 0),
            (0, true, 0x100),
            (1, false, 1),
            (2, false, 2),
            (0x402, false, 0x80),
            (0x80, false, 0x10),
        ] {
            assert_eq!(state(of, preempted), is, "{of:#x}");
        }
    }
}
