//! Functions that a user has named, whose arguments are not known: x86-64 (System V ABI).
//!
//! Each has a symbol here, which the program gives the function's name before it preloads this
//! library ([`crate::symbols`]). What is behind it saves all registers that may hold arguments,
//! copies 128 bytes of arguments on the stack, takes the time, makes the call, and saves what
//! registers may return. A C++ exception may pass it.

use core::arch::global_asm;
use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering::*};

use threadclock::Stopwatch;

use super::shared::next_symbol;
use super::thread::Thread;
use super::{SAMPLED, note_known};
use crate::layout::{EMPTY_FUNCTION, MAX_NAMED, STUB_BYTES, named_cell};

/// What a call in progress keeps.
#[repr(C)]
struct Frame {
    /// First: the assembly calls it.
    next: *const c_void,
    number: u32,
    process: libc::pid_t,
    thread: Option<&'static Thread>,
    watch: MaybeUninit<Stopwatch<'static>>,
}

const _: () = assert!(size_of::<Frame>() <= 64 && core::mem::offset_of!(Frame, next) == 0);

// From rbp down: number; rdi rsi rdx rcx r8 r9 rax r10; xmm0 to xmm7; a Frame; the arguments on the
// stack.
global_asm!(
    ".pushsection .text.switchcost_call,\"ax\",@progbits",
    ".p2align 4",
    // What the symbols' code is found by.
    ".ascii \"switchcost places\"",
    ".p2align 4",
    ".hidden switchcost_places",
    ".globl switchcost_places",
    "switchcost_places:",
    ".set number, 0",
    ".rept {places}",
    "mov r11d, number",
    "jmp switchcost_call",
    ".p2align 4",
    ".set number, number + 1",
    ".endr",
    ".hidden switchcost_call",
    ".globl switchcost_call",
    ".type switchcost_call,@function",
    "switchcost_call:",
    ".cfi_startproc",
    "push rbp",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset rbp, -16",
    "mov rbp, rsp",
    ".cfi_def_cfa_register rbp",
    "sub rsp, 400",
    "mov [rbp - 16], rdi",
    "mov [rbp - 24], rsi",
    "mov [rbp - 32], rdx",
    "mov [rbp - 40], rcx",
    "mov [rbp - 48], r8",
    "mov [rbp - 56], r9",
    "mov [rbp - 64], rax",
    "mov [rbp - 72], r10",
    "movups [rbp - 208], xmm0",
    "movups [rbp - 192], xmm1",
    "movups [rbp - 176], xmm2",
    "movups [rbp - 160], xmm3",
    "movups [rbp - 144], xmm4",
    "movups [rbp - 128], xmm5",
    "movups [rbp - 112], xmm6",
    "movups [rbp - 96], xmm7",
    // The arguments on the stack.
    "movups xmm0, [rbp + 16]",
    "movups xmm1, [rbp + 32]",
    "movups xmm2, [rbp + 48]",
    "movups xmm3, [rbp + 64]",
    "movups xmm4, [rbp + 80]",
    "movups xmm5, [rbp + 96]",
    "movups xmm6, [rbp + 112]",
    "movups xmm7, [rbp + 128]",
    "movups [rsp], xmm0",
    "movups [rsp + 16], xmm1",
    "movups [rsp + 32], xmm2",
    "movups [rsp + 48], xmm3",
    "movups [rsp + 64], xmm4",
    "movups [rsp + 80], xmm5",
    "movups [rsp + 96], xmm6",
    "movups [rsp + 112], xmm7",
    "mov edi, r11d",
    "lea rsi, [rbp - 272]",
    "call {begin}",
    "mov rdi, [rbp - 16]",
    "mov rsi, [rbp - 24]",
    "mov rdx, [rbp - 32]",
    "mov rcx, [rbp - 40]",
    "mov r8, [rbp - 48]",
    "mov r9, [rbp - 56]",
    "mov rax, [rbp - 64]",
    "mov r10, [rbp - 72]",
    "movups xmm0, [rbp - 208]",
    "movups xmm1, [rbp - 192]",
    "movups xmm2, [rbp - 176]",
    "movups xmm3, [rbp - 160]",
    "movups xmm4, [rbp - 144]",
    "movups xmm5, [rbp - 128]",
    "movups xmm6, [rbp - 112]",
    "movups xmm7, [rbp - 96]",
    "call [rbp - 272]",
    "mov [rbp - 16], rax",
    "mov [rbp - 24], rdx",
    "movups [rbp - 208], xmm0",
    "movups [rbp - 192], xmm1",
    "lea rdi, [rbp - 272]",
    "call {end}",
    "mov rax, [rbp - 16]",
    "mov rdx, [rbp - 24]",
    "movups xmm0, [rbp - 208]",
    "movups xmm1, [rbp - 192]",
    "leave",
    ".cfi_def_cfa rsp, 8",
    "ret",
    ".cfi_endproc",
    ".size switchcost_call, . - switchcost_call",
    ".popsection",
    places = const MAX_NAMED + 1,
    begin = sym begin,
    end = sym end,
);

/// A symbol for each place: [`crate::symbols`] makes it that of the code above, and names it. Its
/// name is `MAX_NAME_BYTES` long, so that any name fits in its place. (A function of its own for each
/// would be `#[naked]`: Rust 1.88.)
macro_rules! places {
    ($($name:ident)*) => {
        $(
            #[unsafe(export_name = concat!(
                "switchcost_", stringify!($name), "_",
                "___________________________________________________________________________________________________________"
            ))]
            pub static $name: u8 = 0;
        )*
        const _: () = assert!([$(stringify!($name)),*].len() == MAX_NAMED);
    };
}

#[allow(non_upper_case_globals)]
mod symbols {
    use super::MAX_NAMED;

    places! {
        place_00 place_01 place_02 place_03 place_04 place_05 place_06 place_07
        place_08 place_09 place_10 place_11 place_12 place_13 place_14 place_15
        place_16 place_17 place_18 place_19 place_20 place_21 place_22 place_23
        place_24 place_25 place_26 place_27 place_28 place_29 place_30
    }
}

unsafe extern "C" {
    /// The code of place 0; the next is [`STUB_BYTES`] behind it.
    fn switchcost_places();
}

/// Only symbols that are set later lead there: without this the linker would leave it out.
pub(super) fn keep() {
    core::hint::black_box(switchcost_places as *const u8);
}

/// The code of a place, also of [`EMPTY_FUNCTION`].
fn place(number: usize) -> extern "C" fn() {
    let first = switchcost_places as *const u8;
    let code = first.wrapping_add(number * STUB_BYTES);
    // SAFETY: the code of each place, which takes and gives what the function behind it does.
    unsafe { core::mem::transmute::<*const u8, extern "C" fn()>(code) }
}

/// Does nothing, as [`EMPTY_FUNCTION`].
extern "C" fn nothing() {}

static FOUND: [AtomicPtr<c_void>; MAX_NAMED] = [const { AtomicPtr::new(null_mut()) }; MAX_NAMED];

#[inline(always)]
fn next(number: usize) -> *mut c_void {
    if number == EMPTY_FUNCTION {
        return nothing as *mut c_void;
    }
    match FOUND[number].load(Relaxed) {
        found if found.is_null() => find(number),
        found => found,
    }
}

/// The function behind ours. Its name is that which our symbol was given. Calls nothing but the
/// dynamic linker: any other function may be one that is being looked for.
#[cold]
fn find(number: usize) -> *mut c_void {
    // SAFETY: dladdr fills what it is given; the name lies in this library's own tables.
    let name = unsafe {
        let mut symbol: libc::Dl_info = core::mem::zeroed();
        libc::dladdr(place(number) as *const c_void, &raw mut symbol);
        symbol.dli_sname
    };
    // SAFETY: null or a C string.
    let found = if name.is_null() { null_mut() } else { unsafe { next_symbol(name) } };
    if found.is_null() {
        // The program asked for it where it may be absent, and calls it now, as it saw ours.
        const TEXT: &[u8] = b"switchcost profile: a function of --calls is in no library of this \
             program, and was called\n";
        // SAFETY: reads the text; what cannot be written is lost. Then the program ends.
        unsafe {
            libc::syscall(libc::SYS_write, 2, TEXT.as_ptr(), TEXT.len());
            libc::abort();
        }
    }
    FOUND[number].store(found, Release);
    found
}

/// Before a call. Other functions that it calls are timed as well, so the thread is held for a
/// moment only.
extern "C" fn begin(number: usize, frame: &mut MaybeUninit<Frame>) {
    let thread = Thread::enter();
    let process = thread.map_or(0, Thread::process);
    let next = next(number);
    let number = number as u32;
    let frame = frame.write(Frame { next, number, process, thread, watch: MaybeUninit::uninit() });
    if let Some(thread) = thread {
        frame.watch.write(thread.clock().stopwatch_ordered());
        thread.leave();
    }
}

/// After it.
extern "C" fn end(frame: &Frame) {
    let is_same = |thread: &&Thread| thread.is_current() && thread.process() == frame.process;
    let Some(thread) = frame.thread.filter(is_same) else { return };
    thread.hold();
    // SAFETY: `begin` started it, as there is a thread.
    let elapsed = unsafe { frame.watch.assume_init_ref() }.elapsed_by_both();
    thread.record(named_cell(frame.number as usize), &elapsed);
    if frame.number as usize == EMPTY_FUNCTION {
        return thread.leave();
    }
    let number = thread.next_call();
    if number % SAMPLED == 0 {
        let (before, started) = (thread.clock().resyncs().switched, thread.clock().now_ordered());
        thread.leave();
        place(EMPTY_FUNCTION)();
        thread.hold();
        thread.note_own(thread.clock().now_ordered() - started, before);
        note_known(thread, number);
    }
    thread.leave();
}
