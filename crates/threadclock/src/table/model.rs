//! The protocol of a record, in every order that its barriers leave: one writer, a program of the
//! kernel's at each switch, and a reader that nobody waits for.
//!
//! The writer marks the word busy, changes the fields, and gives the word anew (`store_in_order`: an
//! exchange, or the order that stores have). The reader loads the word (`Acquire`), the fields, and
//! after a fence (`Acquire`) the word again.

use std::vec::Vec;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Event {
    /// Of so many a switch: the word is busy.
    Busy(u64),
    /// A field of that switch.
    Field(u64, usize),
    /// The word of that switch.
    Word(u64),
    Look,
    Read(usize),
    LookAgain,
}
use Event::{Busy, Field, Look, LookAgain, Read, Word};

const FIELDS: usize = 2;
const SWITCHES: u64 = 2;
const BUSY: u64 = u64::MAX;

/// Which barriers and steps there are.
#[derive(Clone, Copy)]
struct Protocol {
    marks_busy: bool,
    busy_before_fields: bool,
    fields_before_word: bool,
    look_before_reads: bool,
    reads_before_second_look: bool,
    looks_again: bool,
}

const WHOLE: Protocol = Protocol {
    marks_busy: true,
    busy_before_fields: true,
    fields_before_word: true,
    look_before_reads: true,
    reads_before_second_look: true,
    looks_again: true,
};

impl Protocol {
    /// Whether one event is always seen before the other.
    fn orders(self, first: Event, then: Event) -> bool {
        match (first, then) {
            (Busy(one), Field(other, _)) if one == other => self.busy_before_fields,
            (Field(one, _), Word(other)) if one == other => self.fields_before_word,
            (Busy(one), Word(other)) => one <= other,
            // Switch by switch: the kernel has locks between them.
            (Word(one) | Field(one, _), Busy(other) | Field(other, _) | Word(other)) => one < other,
            (Look, Read(_)) => self.look_before_reads,
            (Read(_), LookAgain) => self.reads_before_second_look,
            (Look, LookAgain) => true,
            _ => false,
        }
    }
}

/// The record, and what the reader has of it.
#[derive(Clone, Default)]
struct State {
    word: u64,
    fields: [u64; FIELDS],
    looked: u64,
    read: [u64; FIELDS],
    looked_again: u64,
}

impl State {
    fn does(&mut self, event: Event, of: Protocol) {
        match event {
            Busy(_) if of.marks_busy => self.word = BUSY,
            Busy(_) => {}
            Field(switch, field) => self.fields[field] = switch,
            Word(switch) => self.word = switch,
            Look => self.looked = self.word,
            Read(field) => self.read[field] = self.fields[field],
            LookAgain => self.looked_again = self.word,
        }
    }

    /// Taken for whole by the reader, and of several switches.
    fn is_torn(&self, of: Protocol) -> bool {
        let is_taken = self.looked != BUSY && (!of.looks_again || self.looked_again == self.looked);
        is_taken && self.read.iter().any(|field| *field != self.looked)
    }
}

/// How many orders there are of what is left, and in how many of these a torn record is taken.
fn orders(of: Protocol, left: &[Event], state: &State) -> (u32, u32) {
    if left.is_empty() {
        return (1, u32::from(state.is_torn(of)));
    }
    let mut found = (0, 0);
    for (place, event) in left.iter().enumerate() {
        if left.iter().any(|earlier| of.orders(*earlier, *event)) {
            continue;
        }
        let (mut rest, mut next) = (left.to_vec(), state.clone());
        next.does(rest.remove(place), of);
        let (all, torn) = orders(of, &rest, &next);
        found = (found.0 + all, found.1 + torn);
    }
    found
}

fn all(of: Protocol) -> (u32, u32) {
    let mut events: Vec<Event> = (0..FIELDS).map(Read).chain([Look, LookAgain]).collect();
    for switch in 1..=SWITCHES {
        events.extend([Busy(switch), Word(switch)]);
        events.extend((0..FIELDS).map(|field| Field(switch, field)));
    }
    orders(of, &events, &State::default())
}

#[test]
fn no_order_of_the_protocol_gives_a_torn_record() {
    let (orders, torn) = all(WHOLE);
    assert!(orders > 1000, "{orders}");
    assert_eq!(torn, 0);
}

#[test]
fn without_any_one_of_its_steps_and_barriers_some_order_does() {
    let without = [
        Protocol { marks_busy: false, ..WHOLE },
        Protocol { busy_before_fields: false, ..WHOLE },
        Protocol { fields_before_word: false, ..WHOLE },
        Protocol { look_before_reads: false, ..WHOLE },
        Protocol { reads_before_second_look: false, ..WHOLE },
        Protocol { looks_again: false, ..WHOLE },
    ];
    for (number, protocol) in without.into_iter().enumerate() {
        assert!(all(protocol).1 > 0, "number {number}");
    }
}
