//! An assembler of the eBPF instructions that the programs use (RFC 9669). It replaces clang: the
//! programs are a few hundred instructions, and what they read (offsets, map descriptors) is known
//! only once the kernel that they run on is.
//!
//! An instruction has eight bytes. `asm.load(Double, R7, R1, 16)` appends the one that clang would
//! write for `r7 = *(u64 *)(r1 + 16)`:
//!
//! ```text
//! byte       0       1            2, 3     4 to 7
//!            code    source, to   offset   immediate
//!            0x79    1       7    16       0
//! ```
//!
//! r1 to r5 are the arguments of a helper function of the kernel, which returns r0 and loses r1 to
//! r5; r6 to r9 survive a call; r10 is the frame pointer of a stack of 512 bytes. Jumps name a
//! [`Label`]; [`Asm::finish`] turns it into a distance in instructions.

use std::io;

/// A register, r0 to r10.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reg(u8);

pub(crate) const R0: Reg = Reg(0);
pub(crate) const R1: Reg = Reg(1);
pub(crate) const R2: Reg = Reg(2);
pub(crate) const R3: Reg = Reg(3);
pub(crate) const R4: Reg = Reg(4);
pub(crate) const R5: Reg = Reg(5);
pub(crate) const R6: Reg = Reg(6);
pub(crate) const R7: Reg = Reg(7);
pub(crate) const R8: Reg = Reg(8);
pub(crate) const R9: Reg = Reg(9);
/// The frame pointer: the stack lies below it.
pub(crate) const FP: Reg = Reg(10);

/// Width of a load or store: 4 or 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessWidth {
    Word = 0x00,
    Double = 0x18,
}
pub(crate) use AccessWidth::{Double, Word};

/// An operation on a 64-bit register; its code for an immediate operand.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AluOp {
    Add = 0x07,
    Sub = 0x17,
    Or = 0x47,
    And = 0x57,
    Shl = 0x67,
    Shr = 0x77,
    Mov = 0xb7,
}

/// The condition of a jump, unsigned unless its name says otherwise; its code for an immediate
/// operand.
#[derive(Clone, Copy, Debug)]
pub(crate) enum JumpIf {
    Equal = 0x15,
    Greater = 0x25,
    AtLeast = 0x35,
    AnyBit = 0x45,
    NotEqual = 0x55,
    SignedAtLeast = 0x75,
    Less = 0xa5,
}

/// Turns the code for an immediate operand into that for a register.
const BY_REGISTER: u8 = 0x08;

/// Helper functions of the kernel, by their numbers (include/uapi/linux/bpf.h).
#[derive(Clone, Copy, Debug)]
pub(crate) enum KernelHelper {
    MapLookup = 1,
    MapUpdate = 2,
    KtimeGetNs = 5,
    SmpProcessorId = 8,
    CurrentPidTgid = 14,
    MapPush = 87,
    MapPop = 88,
    RingbufOutput = 130,
    TaskPtRegs = 175,
}

/// An instruction, `struct bpf_insn`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Insn {
    pub(crate) code: u8,
    pub(crate) registers: u8,
    pub(crate) offset: i16,
    pub(crate) immediate: i32,
}

/// A position in a program, known once it is [placed](Asm::place).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Label(usize);

/// A program that is being written: each method appends instructions.
#[derive(Debug, Default)]
pub(crate) struct Asm {
    insns: Vec<Insn>,
    /// The instruction that each label stands before, once it is placed.
    labels: Vec<Option<usize>>,
    /// Each jump's instruction, and the label it goes to.
    jumps: Vec<(usize, Label)>,
}

/// Second byte of a 64-bit load whose immediate is a map's descriptor (`BPF_PSEUDO_MAP_FD`).
const MAP_DESCRIPTOR: Reg = Reg(1);
/// `BPF_XCHG` of the atomic instructions.
const EXCHANGE: i32 = 0xe1;

impl Asm {
    fn push(&mut self, code: u8, to: Reg, from: Reg, offset: i16, immediate: i32) {
        self.insns.push(Insn { code, registers: to.0 | from.0 << 4, offset, immediate });
    }

    /// Returns a label that is still to be placed.
    pub(crate) fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// Returns as many labels as the pattern has that takes them.
    pub(crate) fn labels<const N: usize>(&mut self) -> [Label; N] {
        std::array::from_fn(|_| self.label())
    }

    /// Places a label before the next instruction.
    pub(crate) fn place(&mut self, label: Label) {
        self.labels[label.0] = Some(self.insns.len());
    }

    pub(crate) fn mov(&mut self, to: Reg, from: Reg) {
        self.op(AluOp::Mov, to, from);
    }

    pub(crate) fn set(&mut self, to: Reg, value: i32) {
        self.op_imm(AluOp::Mov, to, value);
    }

    pub(crate) fn set64(&mut self, to: Reg, value: u64) {
        self.push(0x18, to, R0, 0, value as i32);
        self.push(0, R0, R0, 0, (value >> 32) as i32);
    }

    /// Loads the address of a map, the first argument of the helpers for maps.
    pub(crate) fn map(&mut self, to: Reg, descriptor: i32) {
        self.push(0x18, to, MAP_DESCRIPTOR, 0, descriptor);
        self.push(0, R0, R0, 0, 0);
    }

    pub(crate) fn op(&mut self, op: AluOp, to: Reg, from: Reg) {
        self.push(op as u8 | BY_REGISTER, to, from, 0, 0);
    }

    pub(crate) fn op_imm(&mut self, op: AluOp, to: Reg, value: i32) {
        self.push(op as u8, to, R0, 0, value);
    }

    /// Loads the address of a place in the stack, `offset` bytes from its upper end.
    pub(crate) fn stack_address(&mut self, to: Reg, offset: i16) {
        self.mov(to, FP);
        self.op_imm(AluOp::Add, to, i32::from(offset));
    }

    pub(crate) fn load(&mut self, width: AccessWidth, to: Reg, base: Reg, offset: i16) {
        self.push(0x61 | width as u8, to, base, offset, 0);
    }

    pub(crate) fn store(&mut self, width: AccessWidth, base: Reg, offset: i16, from: Reg) {
        self.push(0x63 | width as u8, base, from, offset, 0);
    }

    pub(crate) fn store_imm(&mut self, width: AccessWidth, base: Reg, offset: i16, value: i32) {
        self.push(0x62 | width as u8, base, R0, offset, value);
    }

    /// Copies from memory to memory, each a base and an offset, through `scratch`.
    pub(crate) fn copy(
        &mut self,
        width: AccessWidth,
        to: (Reg, i16),
        from: (Reg, i16),
        scratch: Reg,
    ) {
        self.load(width, scratch, from.0, from.1);
        self.store(width, to.0, to.1, scratch);
    }

    /// Adds one to memory that no other CPU writes meanwhile, through `scratch`.
    pub(crate) fn increment(&mut self, width: AccessWidth, base: Reg, offset: i16, scratch: Reg) {
        self.load(width, scratch, base, offset);
        self.op_imm(AluOp::Add, scratch, 1);
        self.store(width, base, offset, scratch);
    }

    /// Adds to memory that other CPUs write too.
    pub(crate) fn atomic_add(&mut self, base: Reg, offset: i16, value: Reg) {
        self.push(0xc3 | Double as u8, base, value, offset, 0);
    }

    /// Stores so that readers see it neither after later stores nor before earlier ones; `from` is
    /// lost. Plain stores of x86-64 are in order; elsewhere an atomic exchange is.
    pub(crate) fn store_in_order(&mut self, base: Reg, offset: i16, from: Reg) {
        if cfg!(target_arch = "x86_64") {
            self.store(Double, base, offset, from);
        } else {
            self.push(0xc3 | Double as u8, base, from, offset, EXCHANGE);
        }
    }

    pub(crate) fn call(&mut self, helper: KernelHelper) {
        self.push(0x85, R0, R0, 0, helper as i32);
    }

    /// Ends the program with 0, the only value that programs on tracepoints may return.
    pub(crate) fn exit(&mut self) {
        self.set(R0, 0);
        self.push(0x95, R0, R0, 0, 0);
    }

    pub(crate) fn jump(&mut self, to: Label) {
        self.jumps.push((self.insns.len(), to));
        self.push(0x05, R0, R0, 0, 0);
    }

    pub(crate) fn jump_if(&mut self, condition: JumpIf, left: Reg, right: Reg, to: Label) {
        self.jumps.push((self.insns.len(), to));
        self.push(condition as u8 | BY_REGISTER, left, right, 0, 0);
    }

    pub(crate) fn jump_if_imm(&mut self, condition: JumpIf, left: Reg, right: i32, to: Label) {
        self.jumps.push((self.insns.len(), to));
        self.push(condition as u8, left, R0, 0, right);
    }

    /// Returns the instructions, with the distances of their jumps.
    ///
    /// # Errors
    /// A label that was not placed or is too far: a fault of this crate.
    pub(crate) fn finish(mut self) -> io::Result<Vec<Insn>> {
        for (number, label) in self.jumps {
            let target =
                self.labels[label.0].ok_or_else(|| io::Error::other("a label without a place"))?;
            let distance = target as i64 - number as i64 - 1;
            self.insns[number].offset =
                i16::try_from(distance).map_err(|_| io::Error::other("a jump that is too far"))?;
        }
        Ok(self.insns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(write: impl FnOnce(&mut Asm)) -> Vec<[u8; 8]> {
        let mut asm = Asm::default();
        write(&mut asm);
        asm.finish().unwrap().into_iter().map(encode).collect()
    }

    fn encode(insn: Insn) -> [u8; 8] {
        let mut bytes = [insn.code, insn.registers, 0, 0, 0, 0, 0, 0];
        bytes[2..4].copy_from_slice(&insn.offset.to_le_bytes());
        bytes[4..].copy_from_slice(&insn.immediate.to_le_bytes());
        bytes
    }

    /// The expected bytes are those of clang 19 and llvm-objdump.
    #[test]
    fn known_encodings() {
        assert_eq!(bytes(|asm| asm.mov(R6, R1)), [[0xbf, 0x16, 0, 0, 0, 0, 0, 0]]);
        assert_eq!(bytes(|asm| asm.set(R0, -1)), [[0xb7, 0, 0, 0, 255, 255, 255, 255]]);
        assert_eq!(bytes(|asm| asm.load(Double, R7, R1, 16)), [[0x79, 0x17, 16, 0, 0, 0, 0, 0]]);
        assert_eq!(bytes(|asm| asm.load(Word, R2, R6, 8)), [[0x61, 0x62, 8, 0, 0, 0, 0, 0]]);
        assert_eq!(
            bytes(|asm| asm.store(Double, FP, -8, R1)),
            [[0x7b, 0x1a, 248, 255, 0, 0, 0, 0]]
        );
        assert_eq!(
            bytes(|asm| asm.store_imm(Word, FP, -4, 7)),
            [[0x62, 0x0a, 252, 255, 7, 0, 0, 0]]
        );
        assert_eq!(bytes(|asm| asm.op(AluOp::Add, R2, R3)), [[0x0f, 0x32, 0, 0, 0, 0, 0, 0]]);
        assert_eq!(bytes(|asm| asm.op_imm(AluOp::Shr, R2, 32)), [[0x77, 0x02, 0, 0, 32, 0, 0, 0]]);
        assert_eq!(bytes(|asm| asm.call(KernelHelper::KtimeGetNs)), [[0x85, 0, 0, 0, 5, 0, 0, 0]]);
        assert_eq!(bytes(|asm| asm.map(R1, 5)), [[0x18, 0x11, 0, 0, 5, 0, 0, 0], [0; 8]]);
        assert_eq!(
            bytes(|asm| asm.set64(R3, 1 << 62)),
            [[0x18, 0x03, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 0x40]]
        );
        assert_eq!(bytes(|asm| asm.atomic_add(R0, 32, R1)), [[0xdb, 0x10, 32, 0, 0, 0, 0, 0]]);
        assert_eq!(bytes(Asm::exit)[1], [0x95, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn jumps_go_both_ways() {
        let code = bytes(|asm| {
            let [back, on] = asm.labels();
            asm.place(back);
            asm.jump_if_imm(JumpIf::Equal, R1, 0, on);
            asm.jump(back);
            asm.place(on);
            asm.exit();
        });
        assert_eq!(code[0], [0x15, 0x01, 1, 0, 0, 0, 0, 0]);
        assert_eq!(code[1], [0x05, 0x00, 0xfe, 0xff, 0, 0, 0, 0]);
    }

    #[test]
    fn a_label_without_a_place_is_an_error() {
        let mut asm = Asm::default();
        let nowhere = asm.label();
        asm.jump(nowhere);
        assert!(asm.finish().is_err());
    }
}
