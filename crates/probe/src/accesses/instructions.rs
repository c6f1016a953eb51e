//! Which memory an x86-64 thread accesses next, by its registers and the instructions that follow.

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess,
    Register, UsedMemory,
};

use super::NextStep;
use crate::sys::ThreadSample;

/// Longest instruction (Intel SDM, volume 2, 2.3.11).
pub(super) const LONGEST_BYTES: usize = 15;
/// Instructions that are followed, at most.
const MOST_STEPS: usize = 96;
const RAX: usize = 0;
const RSP: usize = 4;

const READS: [OpAccess; 4] =
    [OpAccess::Read, OpAccess::CondRead, OpAccess::ReadWrite, OpAccess::ReadCondWrite];
const WRITES: [OpAccess; 4] =
    [OpAccess::Write, OpAccess::CondWrite, OpAccess::ReadWrite, OpAccess::ReadCondWrite];

/// The registers as they are numbered in instructions.
fn numbered(moment: &ThreadSample) -> [u64; 16] {
    let [ax, bx, cx, dx, si, di, bp, sp, rest @ ..] = moment.registers;
    let mut all = [0; 16];
    all[..8].copy_from_slice(&[ax, cx, dx, bx, sp, bp, si, di]);
    all[8..].copy_from_slice(&rest);
    all
}

/// The number of a register of 64 bits or of a part of it.
fn number(register: Register) -> Option<usize> {
    let full = register.full_register();
    full.is_gpr64().then(|| full.number())
}

/// What is known of the registers while instructions are followed.
struct RegisterValues {
    values: [u64; 16],
    /// Not written since the sample.
    known: [bool; 16],
    /// Computed from memory that was read since the sample.
    from_memory: [bool; 16],
}

impl RegisterValues {
    /// The address of an access, or none where a register of it is not known.
    fn address(&self, memory: &UsedMemory) -> Option<u64> {
        let part = |register: Register| match register {
            Register::None | Register::RIP => Some(0),
            _ => number(register).filter(|at| self.known[*at]).map(|at| self.values[at]),
        };
        let index = part(memory.index())?.wrapping_mul(memory.scale().into());
        Some(memory.displacement().wrapping_add(part(memory.base())?).wrapping_add(index))
    }

    fn execute(&mut self, factory: &mut InstructionInfoFactory, instruction: &Instruction) {
        let info = factory.info(instruction);
        let used = info.used_registers();
        let mut sources = used.iter().filter(|of| READS.contains(&of.access()));
        let from_memory = info.used_memory().iter().any(|of| READS.contains(&of.access()))
            || sources.any(|of| number(of.register()).is_some_and(|at| self.from_memory[at]));
        for written in used.iter().filter(|of| WRITES.contains(&of.access())) {
            if let Some(at) = number(written.register()) {
                self.known[at] = false;
                // What returns from a call or is taken from the stack moves the stack by a
                // constant.
                self.from_memory[at] = from_memory && at != RSP;
            }
        }
    }
}

/// The first access from the sampled instruction on. `code` gives the bytes at an address, as many
/// as there are. A branch back is taken, one forward is not: that is how loops go.
pub(super) fn next(
    moment: &ThreadSample,
    mut code: impl FnMut(u64) -> Option<[u8; LONGEST_BYTES]>,
) -> NextStep {
    let mut factory = InstructionInfoFactory::new();
    let values = numbered(moment);
    let mut state = RegisterValues { values, known: [true; 16], from_memory: [false; 16] };
    let mut found: Option<(u64, [Option<usize>; 2])> = None;
    let independent = |(address, _)| NextStep::Access { address, dependent: false };
    let mut ip = moment.ip;
    for _ in 0..MOST_STEPS {
        let Some(bytes) = code(ip) else { break };
        let instruction = Decoder::with_ip(64, &bytes, ip, DecoderOptions::NONE).decode();
        if instruction.is_invalid() {
            break;
        }
        if found.is_none() {
            let is_access = |of: &&UsedMemory| {
                let of_thread = matches!(of.segment(), Register::FS | Register::GS);
                of.access() != OpAccess::NoMemAccess && !of_thread
            };
            if let Some(memory) = factory.info(&instruction).used_memory().iter().find(is_access) {
                let Some(address) = state.address(memory) else { return NextStep::Unknown };
                found = Some((address, [memory.base(), memory.index()].map(number)));
            }
        }
        state.execute(&mut factory, &instruction);
        if let Some((address, parts)) = found {
            if parts.into_iter().flatten().any(|at| state.from_memory[at]) {
                return NextStep::Access { address, dependent: true };
            }
        }
        ip = match instruction.flow_control() {
            FlowControl::Next => instruction.next_ip(),
            // It goes on behind a system call, whose result is in RAX.
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
            return found.map_or(NextStep::Compute, independent);
        }
    }
    found.map_or(NextStep::Unknown, independent)
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
            let mut bytes = [0x90; LONGEST_BYTES];
            let count = rest.len().min(LONGEST_BYTES);
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
