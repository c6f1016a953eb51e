//! Functions that a user has named, whose arguments are not known: x86-64 (System V ABI).
//!
//! Each has a stub here, whose symbol gets the function's name before the library is preloaded
//! ([`crate::symbols`]). A stub puts its number in r11 and jumps to `switchcost_call`, which does
//! not know what the function takes or returns, and so keeps everything that may be:
//!
//! ```text
//! save the registers of arguments (rdi ... r10, xmm0 to xmm7), copy 128 bytes of the stack
//! begin(number, frame)     finds the next function, starts the stopwatch
//! restore the registers, call frame.next
//! save the registers of results (rax, rdx, xmm0, xmm1)
//! end(frame)               stops the stopwatch, counts the call
//! restore the results, return
//! ```
//!
//! A C++ exception may pass through it.

use core::arch::global_asm;
use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering::*};

use threadclock::Stopwatch;

use super::shared::next_symbol;
use super::thread::TimedThread;
use super::{OVERHEAD_INTERVAL, record_references};
use crate::layout::{EMPTY_FUNCTION, MAX_NAMED, STUB_BYTES, named_cell};

/// The state of a call in progress.
#[repr(C)]
struct CallFrame {
    /// The next function. The first field, as the assembly calls it.
    next: *const c_void,
    number: u32,
    process: libc::pid_t,
    thread: Option<&'static TimedThread>,
    watch: MaybeUninit<Stopwatch<'static>>,
}

const _: () = assert!(size_of::<CallFrame>() <= 64 && core::mem::offset_of!(CallFrame, next) == 0);

// From rbp down: number; rdi rsi rdx rcx r8 r9 rax r10; xmm0 to xmm7; a CallFrame; the arguments on
// the stack.
global_asm!(
    ".pushsection .text.switchcost_call,\"ax\",@progbits",
    ".p2align 4",
    // `symbols` finds the stubs by this text.
    ".ascii \"switchcost stubs\"",
    ".p2align 4",
    ".hidden switchcost_stubs",
    ".globl switchcost_stubs",
    "switchcost_stubs:",
    ".set number, 0",
    ".rept {stubs}",
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
    stubs = const MAX_NAMED + 1,
    begin = sym begin,
    end = sym end,
);

/// Declares a symbol for each stub: [`crate::symbols`] makes it a function at the stub's code, and
/// names it. Its name is `MAX_NAME_BYTES` long, so that any name fits in its place. (A function for
/// each would have to be `#[naked]`: Rust 1.88.)
macro_rules! stub_symbols {
    ($($name:ident)*) => {
        $(
            #[unsafe(export_name = concat!(
                "switchcost_", stringify!($name), "_",
                "____________________________________________________________________________________________________________"
            ))]
            pub static $name: u8 = 0;
        )*
        const _: () = assert!([$(stringify!($name)),*].len() == MAX_NAMED);
    };
}

#[allow(non_upper_case_globals)]
mod symbols {
    use super::MAX_NAMED;

    stub_symbols! {
        stub_00 stub_01 stub_02 stub_03 stub_04 stub_05 stub_06 stub_07
        stub_08 stub_09 stub_10 stub_11 stub_12 stub_13 stub_14 stub_15
        stub_16 stub_17 stub_18 stub_19 stub_20 stub_21 stub_22 stub_23
        stub_24 stub_25 stub_26 stub_27 stub_28 stub_29 stub_30
    }
}

unsafe extern "C" {
    /// The code of stub 0; the next is [`STUB_BYTES`] behind it.
    fn switchcost_stubs();
}

/// Keeps the stubs in the library: only symbols that are set later lead there, so the linker would
/// leave them out.
pub(super) fn keep_stubs() {
    core::hint::black_box(switchcost_stubs as *const u8);
}

/// Returns the code of a stub, also of [`EMPTY_FUNCTION`].
fn stub(number: usize) -> extern "C" fn() {
    let first = switchcost_stubs as *const u8;
    let code = first.wrapping_add(number * STUB_BYTES);
    // SAFETY: the code of a stub, which takes and returns what the function behind it does.
    unsafe { core::mem::transmute::<*const u8, extern "C" fn()>(code) }
}

/// Does nothing: the function of [`EMPTY_FUNCTION`].
extern "C" fn empty_function() {}

/// Addresses of the next functions; null until the first call.
static NEXT_FUNCTIONS: [AtomicPtr<c_void>; MAX_NAMED] =
    [const { AtomicPtr::new(null_mut()) }; MAX_NAMED];

#[inline(always)]
fn next_function(number: usize) -> *mut c_void {
    if number == EMPTY_FUNCTION {
        return empty_function as *mut c_void;
    }
    match NEXT_FUNCTIONS[number].load(Relaxed) {
        function if function.is_null() => find_next(number),
        function => function,
    }
}

/// Finds the next function by the name that the stub's symbol was given. Calls nothing but the dynamic
/// linker: any other function may be one that is being looked for.
#[cold]
fn find_next(number: usize) -> *mut c_void {
    // SAFETY: dladdr fills what it is given; the name lies in this library's own tables.
    let name = unsafe {
        let mut symbol: libc::Dl_info = core::mem::zeroed();
        libc::dladdr(stub(number) as *const c_void, &raw mut symbol);
        symbol.dli_sname
    };
    // SAFETY: null or a C string.
    let function = if name.is_null() { null_mut() } else { unsafe { next_symbol(name) } };
    if function.is_null() {
        // The program looked for a function that may be absent, found ours, and calls it now.
        const TEXT: &[u8] = b"switchcost profile: a function of --calls is in no library of this \
             program, and was called\n";
        // SAFETY: reads the text. Then the program ends, whether it could be written or not.
        unsafe {
            libc::syscall(libc::SYS_write, 2, TEXT.as_ptr(), TEXT.len());
            libc::abort();
        }
    }
    NEXT_FUNCTIONS[number].store(function, Release);
    function
}

/// Begins a call. Functions that it calls are timed as well, so timing stops for a moment only.
extern "C" fn begin(number: usize, frame: &mut MaybeUninit<CallFrame>) {
    let thread = TimedThread::enter();
    let process = thread.map_or(0, TimedThread::process);
    let next = next_function(number);
    let number = number as u32;
    let frame =
        frame.write(CallFrame { next, number, process, thread, watch: MaybeUninit::uninit() });
    if let Some(thread) = thread {
        frame.watch.write(thread.clock().stopwatch_ordered());
        thread.leave();
    }
}

/// Ends a call: counts it, if it returns on the thread and in the process that it began on.
extern "C" fn end(frame: &CallFrame) {
    let thread =
        frame.thread.filter(|thread| thread.is_current() && thread.process() == frame.process);
    let Some(thread) = thread else { return };
    thread.hold();
    // SAFETY: `begin` started it, as there is a thread.
    let elapsed = unsafe { frame.watch.assume_init_ref() }.elapsed_by_both();
    thread.record(named_cell(frame.number as usize), &elapsed);
    if frame.number as usize == EMPTY_FUNCTION {
        return thread.leave();
    }
    let number = thread.next_call();
    if number % OVERHEAD_INTERVAL == 0 {
        let switches_before = thread.clock().resyncs().switched;
        let started = thread.clock().now_ordered();
        thread.leave();
        stub(EMPTY_FUNCTION)();
        thread.hold();
        thread.record_overhead(thread.clock().now_ordered() - started, switches_before);
        record_references(thread, number);
    }
    thread.leave();
}
