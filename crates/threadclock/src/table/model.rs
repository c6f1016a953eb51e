//! A model of a record's protocol, run in every order that its barriers allow: one writer, the
//! program of the kernel at each switch, and one reader that no writer waits for.
//!
//! ```text
//! writer (each switch)        reader
//! Busy   mark the word        FirstLook    load the word (Acquire)
//! Field  change each field    Read         load each field
//! Word   store the word       SecondLook   fence (Acquire), load the word again
//! ```
//!
//! The writer's stores are ordered by `store_in_order`: an exchange, or the order that stores have.
//! A record that the reader takes with fields of several switches is torn, which must not happen.

use std::vec::Vec;

#[derive(Clone, Copy, Debug, PartialEq)]
enum ModelEvent {
    /// The writer marks the word busy in the switch of this number.
    Busy(u64),
    /// The writer stores a field in that switch.
    Field(u64, usize),
    /// The writer stores the word of that switch.
    Word(u64),
    FirstLook,
    Read(usize),
    SecondLook,
}
use ModelEvent::{Busy, Field, FirstLook, Read, SecondLook, Word};

const FIELDS: usize = 2;
const SWITCHES: u64 = 2;
const BUSY: u64 = u64::MAX;

/// The barriers and steps that a protocol has.
#[derive(Clone, Copy)]
struct RecordProtocol {
    marks_busy: bool,
    busy_before_fields: bool,
    fields_before_word: bool,
    look_before_reads: bool,
    reads_before_second_look: bool,
    looks_again: bool,
}

const WHOLE_PROTOCOL: RecordProtocol = RecordProtocol {
    marks_busy: true,
    busy_before_fields: true,
    fields_before_word: true,
    look_before_reads: true,
    reads_before_second_look: true,
    looks_again: true,
};

impl RecordProtocol {
    /// Returns whether one event is always seen before the other.
    fn orders(self, first: ModelEvent, second: ModelEvent) -> bool {
        match (first, second) {
            (Busy(one), Field(other, _)) if one == other => self.busy_before_fields,
            (Field(one, _), Word(other)) if one == other => self.fields_before_word,
            (Busy(one), Word(other)) => one <= other,
            // Switch by switch: the kernel has locks between them.
            (Word(one) | Field(one, _), Busy(other) | Field(other, _) | Word(other)) => one < other,
            (FirstLook, Read(_)) => self.look_before_reads,
            (Read(_), SecondLook) => self.reads_before_second_look,
            (FirstLook, SecondLook) => true,
            _ => false,
        }
    }
}

/// The record, and what the reader has loaded of it.
#[derive(Clone, Default)]
struct ModelState {
    word: u64,
    fields: [u64; FIELDS],
    first_word: u64,
    read_fields: [u64; FIELDS],
    second_word: u64,
}

impl ModelState {
    fn apply(&mut self, event: ModelEvent, protocol: RecordProtocol) {
        match event {
            Busy(_) if protocol.marks_busy => self.word = BUSY,
            Busy(_) => {}
            Field(switch, field) => self.fields[field] = switch,
            Word(switch) => self.word = switch,
            FirstLook => self.first_word = self.word,
            Read(field) => self.read_fields[field] = self.fields[field],
            SecondLook => self.second_word = self.word,
        }
    }

    /// Returns whether the reader takes the record as whole, with fields of another switch.
    fn is_torn(&self, protocol: RecordProtocol) -> bool {
        let is_unchanged = !protocol.looks_again || self.second_word == self.first_word;
        let is_taken = self.first_word != BUSY && is_unchanged;
        is_taken && self.read_fields.iter().any(|field| *field != self.first_word)
    }
}

/// Counts of the orders of events.
#[derive(Clone, Copy, Default)]
struct OrderCounts {
    all: u32,
    /// Those in which the reader takes a torn record.
    torn: u32,
}

/// Counts the orders in which the remaining events can follow.
fn count_orders(
    protocol: RecordProtocol,
    remaining: &[ModelEvent],
    state: &ModelState,
) -> OrderCounts {
    if remaining.is_empty() {
        return OrderCounts { all: 1, torn: u32::from(state.is_torn(protocol)) };
    }
    let mut counts = OrderCounts::default();
    for (position, event) in remaining.iter().enumerate() {
        if remaining.iter().any(|earlier| protocol.orders(*earlier, *event)) {
            continue;
        }
        let (mut later, mut next_state) = (remaining.to_vec(), state.clone());
        next_state.apply(later.remove(position), protocol);
        let found = count_orders(protocol, &later, &next_state);
        counts.all += found.all;
        counts.torn += found.torn;
    }
    counts
}

fn count_all_orders(protocol: RecordProtocol) -> OrderCounts {
    let mut events = Vec::new();
    events.extend((0..FIELDS).map(Read));
    events.extend([FirstLook, SecondLook]);
    for switch in 1..=SWITCHES {
        events.extend([Busy(switch), Word(switch)]);
        events.extend((0..FIELDS).map(|field| Field(switch, field)));
    }
    count_orders(protocol, &events, &ModelState::default())
}

#[test]
fn no_order_of_the_protocol_gives_a_torn_record() {
    let counts = count_all_orders(WHOLE_PROTOCOL);
    assert!(counts.all > 1000, "{}", counts.all);
    assert_eq!(counts.torn, 0);
}

#[test]
fn without_any_one_of_its_steps_and_barriers_some_order_does() {
    let without = [
        RecordProtocol { marks_busy: false, ..WHOLE_PROTOCOL },
        RecordProtocol { busy_before_fields: false, ..WHOLE_PROTOCOL },
        RecordProtocol { fields_before_word: false, ..WHOLE_PROTOCOL },
        RecordProtocol { look_before_reads: false, ..WHOLE_PROTOCOL },
        RecordProtocol { reads_before_second_look: false, ..WHOLE_PROTOCOL },
        RecordProtocol { looks_again: false, ..WHOLE_PROTOCOL },
    ];
    for (number, protocol) in without.into_iter().enumerate() {
        assert!(count_all_orders(protocol).torn > 0, "number {number}");
    }
}
