//! The next memory access of an x86-64 thread, found from its registers and the instructions that
//! follow.

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess,
    Register, UsedMemory,
};

use super::NextStep;
use crate::sys::ThreadSample;

/// Bytes of the longest instruction (Intel SDM, volume 2, 2.3.11).
pub(super) const MAX_INSTRUCTION_BYTES: usize = 15;
/// Largest number of instructions that are followed.
const MAX_STEPS: usize = 96;
const RAX: usize = 0;
const RSP: usize = 4;

const READS: [OpAccess; 4] =
    [OpAccess::Read, OpAccess::CondRead, OpAccess::ReadWrite, OpAccess::ReadCondWrite];
const WRITES: [OpAccess; 4] =
    [OpAccess::Write, OpAccess::CondWrite, OpAccess::ReadWrite, OpAccess::ReadCondWrite];

/// Returns the registers in the order of their numbers in instructions.
fn numbered(moment: &ThreadSample) -> [u64; 16] {
    let [ax, bx, cx, dx, si, di, bp, sp, rest @ ..] = moment.registers;
    let mut values = [0; 16];
    values[..8].copy_from_slice(&[ax, cx, dx, bx, sp, bp, si, di]);
    values[8..].copy_from_slice(&rest);
    values
}

/// Returns the number of a register of 64 bits, or of a part of one.
fn number(register: Register) -> Option<usize> {
    let full = register.full_register();
    full.is_gpr64().then(|| full.number())
}

/// Values of the registers, as far as they are known while instructions are followed.
struct RegisterValues {
    values: [u64; 16],
    /// Whether a register was not written since the sample.
    known: [bool; 16],
    /// Whether a register was computed from memory that was read since the sample.
    from_memory: [bool; 16],
}

impl RegisterValues {
    /// Returns the address of an access, if all its registers are known.
    fn address(&self, memory: &UsedMemory) -> Option<u64> {
        let base = self.value(memory.base())?;
        let index = self.value(memory.index())?.wrapping_mul(memory.scale().into());
        Some(memory.displacement().wrapping_add(base).wrapping_add(index))
    }

    /// Returns the value of a register in an address, if it is known. No register counts as 0, and
    /// so does RIP, which the decoder has added already.
    fn value(&self, register: Register) -> Option<u64> {
        if matches!(register, Register::None | Register::RIP) {
            return Some(0);
        }
        let number = number(register)?;
        if self.known[number] { Some(self.values[number]) } else { None }
    }

    /// Notes what an instruction does to the registers.
    fn execute(&mut self, factory: &mut InstructionInfoFactory, instruction: &Instruction) {
        let info = factory.info(instruction);
        let mut from_memory =
            info.used_memory().iter().any(|memory| READS.contains(&memory.access()));
        for used in info.used_registers() {
            if let Some(number) = number(used.register()) {
                from_memory |= READS.contains(&used.access()) && self.from_memory[number];
            }
        }
        for used in info.used_registers() {
            if !WRITES.contains(&used.access()) {
                continue;
            }
            if let Some(number) = number(used.register()) {
                self.known[number] = false;
                // A return or a pop reads memory, but moves the stack by a constant.
                self.from_memory[number] = from_memory && number != RSP;
            }
        }
    }
}

/// Finds the first access from the sampled instruction on. `code` returns the bytes at an address.
/// A branch back is taken and one forward is not, as in loops.
pub(super) fn next(
    moment: &ThreadSample,
    mut code: impl FnMut(u64) -> Option<[u8; MAX_INSTRUCTION_BYTES]>,
) -> NextStep {
    let mut factory = InstructionInfoFactory::new();
    let values = numbered(moment);
    let mut state = RegisterValues { values, known: [true; 16], from_memory: [false; 16] };
    let mut found: Option<(u64, [Option<usize>; 2])> = None;
    let mut ip = moment.ip;
    for _ in 0..MAX_STEPS {
        let Some(bytes) = code(ip) else { break };
        let instruction = Decoder::with_ip(64, &bytes, ip, DecoderOptions::NONE).decode();
        if instruction.is_invalid() {
            break;
        }
        if found.is_none() {
            let info = factory.info(&instruction);
            if let Some(memory) = info.used_memory().iter().find(|memory| is_access(memory)) {
                let Some(address) = state.address(memory) else { return NextStep::Unknown };
                found = Some((address, [memory.base(), memory.index()].map(number)));
            }
        }
        state.execute(&mut factory, &instruction);
        if let Some((address, registers)) = found {
            if registers.into_iter().flatten().any(|number| state.from_memory[number]) {
                return NextStep::Access { address, dependent: true };
            }
        }
        ip = match instruction.flow_control() {
            FlowControl::Next => instruction.next_ip(),
            // Execution continues after a system call, whose result is in RAX.
            FlowControl::Call if instruction.mnemonic() == Mnemonic::Syscall => {
                (state.known[RAX], state.from_memory[RAX]) = (false, false);
                instruction.next_ip()
            }
            FlowControl::UnconditionalBranch => instruction.near_branch_target(),
            FlowControl::ConditionalBranch if instruction.near_branch_target() <= ip => {
                instruction.near_branch_target()
            }
            FlowControl::ConditionalBranch => instruction.next_ip(),
            _ => break,
        };
        if ip == moment.ip {
            return independent_access(found).unwrap_or(NextStep::Compute);
        }
    }
    independent_access(found).unwrap_or(NextStep::Unknown)
}

/// Returns whether an operand is an access to memory other than the thread's own area.
fn is_access(memory: &UsedMemory) -> bool {
    let is_thread_area = matches!(memory.segment(), Register::FS | Register::GS);
    memory.access() != OpAccess::NoMemAccess && !is_thread_area
}

/// Returns the access that was found: no register of its address came from memory.
fn independent_access(found: Option<(u64, [Option<usize>; 2])>) -> Option<NextStep> {
    let (address, _) = found?;
    Some(NextStep::Access { address, dependent: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: u64 = 0x1000;

    /// With RDI 0x5000, RSI 0x100, RSP 0x7000.
    fn next_of(code: &[u8]) -> NextStep {
        let mut registers = [0; 16];
        (registers[5], registers[4], registers[7]) = (0x5000, 0x100, 0x7000);
        let moment = ThreadSample { pid: 1, tid: 1, cpu: 0, ip: AT, registers };
        next(&moment, |ip| {
            let from = usize::try_from(ip.checked_sub(AT)?).ok()?;
            let rest = code.get(from..).filter(|rest| !rest.is_empty())?;
            let mut bytes = [0x90; MAX_INSTRUCTION_BYTES];
            let count = rest.len().min(MAX_INSTRUCTION_BYTES);
            bytes[..count].copy_from_slice(&rest[..count]);
            Some(bytes)
        })
    }

    #[test]
    fn a_list_that_is_followed_is_dependent_and_a_sum_over_an_array_is_not() {
        // mov rax,[rdi+8]; mov rdi,[rdi]; jmp -9
        let list = [0x48, 0x8b, 0x47, 0x08, 0x48, 0x8b, 0x3f, 0xeb, 0xf7];
        assert_eq!(next_of(&list), NextStep::Access { address: 0x5008, dependent: true });
        // add rax,[rdi+rsi*8]; inc rsi; jmp -9
        let sum = [0x48, 0x03, 0x04, 0xf7, 0x48, 0xff, 0xc6, 0xeb, 0xf7];
        assert_eq!(next_of(&sum), NextStep::Access { address: 0x5800, dependent: false });
    }

    #[test]
    fn a_loop_without_memory_computes() {
        // lea rax,[rax+rax*4]; dec rsi; jne -9: an address that is computed is no access.
        assert_eq!(
            next_of(&[0x48, 0x8d, 0x04, 0x80, 0x48, 0xff, 0xce, 0x75, 0xf7]),
            NextStep::Compute
        );
    }

    #[test]
    fn an_access_by_a_register_that_was_written_since_is_not_known() {
        // add rdi,8; mov rax,[rdi]
        assert_eq!(next_of(&[0x48, 0x83, 0xc7, 0x08, 0x48, 0x8b, 0x07]), NextStep::Unknown);
        // ret reads the stack; no instruction; code that cannot be read.
        assert_eq!(next_of(&[0xc3]), NextStep::Access { address: 0x7000, dependent: false });
        assert_eq!(next_of(&[0x06]), NextStep::Unknown);
        assert_eq!(next_of(&[]), NextStep::Unknown);
    }

    #[test]
    fn a_system_call_is_passed_and_changes_what_the_kernel_writes() {
        // syscall; mov rdx,[rdi]
        let kept = [0x0f, 0x05, 0x48, 0x8b, 0x17];
        assert_eq!(next_of(&kept), NextStep::Access { address: 0x5000, dependent: false });
        // syscall; mov rdx,[rax], and by rcx
        assert_eq!(next_of(&[0x0f, 0x05, 0x48, 0x8b, 0x10]), NextStep::Unknown);
        assert_eq!(next_of(&[0x0f, 0x05, 0x48, 0x8b, 0x11]), NextStep::Unknown);
    }

    #[test]
    fn an_access_by_the_instruction_pointer_has_an_absolute_address() {
        // mov rax,[rip+0x10], seven bytes long
        let code = [0x48, 0x8b, 0x05, 0x10, 0, 0, 0];
        assert_eq!(next_of(&code), NextStep::Access { address: AT + 7 + 0x10, dependent: false });
    }
}
