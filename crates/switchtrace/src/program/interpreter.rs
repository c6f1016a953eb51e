//! A small kernel for tests: tasks, maps, a clock that goes on by 1 ns an instruction, and an
//! interpreter of the instructions that the programs use. What a program must not do panics.

// A fault of a program is a failed test.
#![allow(clippy::panic)]

use crate::asm::Insn;
use std::collections::{HashMap, VecDeque};

pub(super) const TABLE_MAP: i32 = 3;
pub(super) const FREE_MAP: i32 = 4;
pub(super) const PAIR_MAP: i32 = 5;
pub(super) const EVENT_MAP: i32 = 6;
pub(super) const ENDED_MAP: i32 = 7;

pub(super) const CONTEXT: u64 = 1 << 32;
const STACK: u64 = 2 << 32;
const TABLE: u64 = 3 << 32;
const PAIRS: u64 = 4 << 32;
pub(super) const TASKS: u64 = 5 << 32;
const TASK_BYTES: u64 = 256;
/// The offset of the saved registers in a task.
const REGISTERS_AT: u64 = 128;
const STACK_BYTES: u64 = 512;

#[derive(Default)]
pub(super) struct TestKernel {
    pub(super) now_ns: u64,
    pub(super) record_bytes: usize,
    pub(super) table: Vec<u8>,
    pub(super) free: VecDeque<u32>,
    pub(super) ended: VecDeque<u32>,
    pub(super) pair_room: usize,
    pub(super) pairs: HashMap<[u8; 16], usize>,
    pub(super) pair_values: Vec<u8>,
    pub(super) event_room: usize,
    pub(super) events: Vec<Vec<u8>>,
    pub(super) tasks: Vec<u8>,
    pub(super) context: Vec<u8>,
    pub(super) stack: Vec<u8>,
}

impl TestKernel {
    /// The address of task number `number`.
    pub(super) fn task(&mut self, number: usize) -> u64 {
        let bytes = (number + 1) * TASK_BYTES as usize;
        self.tasks.resize(self.tasks.len().max(bytes), 0);
        TASKS + number as u64 * TASK_BYTES
    }

    fn region(&mut self, address: u64) -> (&mut Vec<u8>, usize) {
        let region = match address >> 32 << 32 {
            CONTEXT => &mut self.context,
            STACK => &mut self.stack,
            TABLE => &mut self.table,
            PAIRS => &mut self.pair_values,
            TASKS => &mut self.tasks,
            _ => panic!("no memory at {address:#x}"),
        };
        (region, (address & u64::from(u32::MAX)) as usize)
    }

    pub(super) fn read(&mut self, address: u64, bytes: usize) -> u64 {
        let (region, at) = self.region(address);
        let mut value = [0; 8];
        value[..bytes].copy_from_slice(&region[at..at + bytes]);
        u64::from_le_bytes(value)
    }

    pub(super) fn write(&mut self, address: u64, bytes: usize, value: u64) {
        assert_ne!(address >> 32, TASKS >> 32, "a program may not write to a task");
        self.set(address, bytes, value);
    }

    pub(super) fn set(&mut self, address: u64, bytes: usize, value: u64) {
        let (region, at) = self.region(address);
        region[at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
    }

    fn copy(&mut self, address: u64, bytes: usize) -> Vec<u8> {
        let (region, at) = self.region(address);
        region[at..at + bytes].to_vec()
    }

    /// Runs a program on a context of so many words; `look` is called before each instruction.
    pub(super) fn run(
        &mut self,
        program: &[Insn],
        context: &[u64],
        look: &mut dyn FnMut(&mut Self),
    ) {
        self.context = context.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.stack = vec![0xaa; STACK_BYTES as usize];
        let mut registers = [0xdead_beef_u64; 11];
        registers[1] = CONTEXT;
        registers[10] = STACK + STACK_BYTES;
        let mut at = 0;
        for _ in 0..10_000 {
            look(self);
            self.now_ns += 1;
            match self.step(program, at, &mut registers) {
                Some(next) => at = next,
                None => return,
            }
        }
        panic!("the program does not end");
    }

    fn step(&mut self, program: &[Insn], at: usize, registers: &mut [u64; 11]) -> Option<usize> {
        let insn = program[at];
        let (to, from) = (usize::from(insn.registers & 15), usize::from(insn.registers >> 4));
        let immediate = i64::from(insn.immediate) as u64;
        let offset = i64::from(insn.offset) as u64;
        let bytes = if insn.code & 0x18 == 0x18 { 8 } else { 4 };
        let operand = if insn.code & 8 == 8 { registers[from] } else { immediate };
        match insn.code & 7 {
            0 => {
                let high = (program[at + 1].immediate as u64) << 32;
                registers[to] = high | u64::from(insn.immediate as u32);
                return Some(at + 2);
            }
            1 => registers[to] = self.read(registers[from].wrapping_add(offset), bytes),
            2 => self.write(registers[to].wrapping_add(offset), bytes, immediate),
            3 if insn.code & 0xe0 == 0xc0 => {
                self.atomic(insn, registers[to].wrapping_add(offset), &mut registers[from])
            }
            3 => self.write(registers[to].wrapping_add(offset), bytes, registers[from]),
            7 => registers[to] = arithmetic(insn.code, registers[to], operand),
            5 if insn.code == 0x95 => return None,
            5 if insn.code == 0x85 => {
                registers[0] = self.call(insn.immediate, *registers);
                // As the calling convention says: nothing in them survives.
                registers[1..6].fill(0xdead_beef);
            }
            5 => {
                if jumps(insn.code, registers[to], operand) {
                    return Some((at as i64 + 1 + i64::from(insn.offset)) as usize);
                }
            }
            _ => panic!("unknown instruction {insn:?}"),
        }
        Some(at + 1)
    }

    fn atomic(&mut self, insn: Insn, address: u64, register: &mut u64) {
        let old = self.read(address, 8);
        match insn.immediate {
            0 => self.write(address, 8, old.wrapping_add(*register)),
            0xe1 => {
                self.write(address, 8, *register);
                *register = old;
            }
            other => panic!("unknown atomic operation {other:#x}"),
        }
    }

    fn call(&mut self, helper: i32, registers: [u64; 11]) -> u64 {
        let [_, first, second, third, ..] = registers;
        match helper {
            1 if first as i32 == TABLE_MAP => {
                let place = self.read(second, 4) as usize * self.record_bytes;
                if place < self.table.len() { TABLE + place as u64 } else { 0 }
            }
            1 if first as i32 == PAIR_MAP => {
                let key: [u8; 16] = self.copy(second, 16).try_into().unwrap();
                self.pairs.get(&key).map_or(0, |at| PAIRS + *at as u64)
            }
            2 if first as i32 == PAIR_MAP => {
                if self.pairs.len() == self.pair_room {
                    return -i64::from(libc::E2BIG) as u64;
                }
                let key: [u8; 16] = self.copy(second, 16).try_into().unwrap();
                let value = self.copy(third, 16);
                self.pairs.insert(key, self.pair_values.len());
                self.pair_values.extend(value);
                0
            }
            5 => self.now_ns,
            8 => 1,
            14 => 77 << 32 | 78,
            87 if first as i32 == FREE_MAP => {
                let element = self.read(second, 4) as u32;
                assert!(!self.free.contains(&element), "{element} is freed twice");
                self.free.push_back(element);
                0
            }
            87 if first as i32 == ENDED_MAP => {
                let element = self.read(second, 4) as u32;
                assert!(!self.ended.contains(&element), "{element} ends twice");
                assert!(!self.free.contains(&element), "{element} ends while it is free");
                self.ended.push_back(element);
                0
            }
            88 if first as i32 == FREE_MAP => match self.free.pop_front() {
                Some(element) => {
                    self.write(second, 4, element.into());
                    0
                }
                None => -i64::from(libc::ENOENT) as u64,
            },
            130 if first as i32 == EVENT_MAP => {
                if self.events.len() == self.event_room {
                    return -i64::from(libc::EAGAIN) as u64;
                }
                let event = self.copy(second, third as usize);
                self.events.push(event);
                0
            }
            175 => first + REGISTERS_AT,
            _ => panic!("unknown call {helper} of map {first}"),
        }
    }
}

fn arithmetic(code: u8, left: u64, right: u64) -> u64 {
    match code & 0xf0 {
        0x00 => left.wrapping_add(right),
        0x10 => left.wrapping_sub(right),
        0x40 => left | right,
        0x50 => left & right,
        0x60 => left << right,
        0x70 => left >> right,
        0xb0 => right,
        other => panic!("unknown operation {other:#x}"),
    }
}

fn jumps(code: u8, left: u64, right: u64) -> bool {
    match code & 0xf0 {
        0x00 => true,
        0x10 => left == right,
        0x20 => left > right,
        0x30 => left >= right,
        0x40 => left & right != 0,
        0x50 => left != right,
        0x70 => left as i64 >= right as i64,
        0xa0 => left < right,
        other => panic!("unknown comparison {other:#x}"),
    }
}
