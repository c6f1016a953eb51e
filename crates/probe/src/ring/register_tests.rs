//! What is in the registers of members that work with a state.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread;

use rundata::ring::{MemberKind, RegisterState};
use testing::Need;

use crate::placement;
use crate::ring::link::{ChannelPlace, Link};
use crate::ring::links::PipeLink;
use crate::ring::member::{HopWork, RingLeader, RingMember, follow};
use crate::sys::{RegisterKind, SharedArea, WithRegisters, in_use, last_register, with_registers};

const SSE: u32 = 1 << 1;
const AVX: u32 = 1 << 2;
const AVX512: u32 = 1 << 5 | 1 << 6 | 1 << 7;

/// What was found in the registers when the token had come, in every hop and in any. Atomic and
/// made beforehand: keeping it must not use the registers that it is about.
#[derive(Default)]
struct Found {
    hops: AtomicU32,
    components_always: AtomicU32,
    components_ever: AtomicU32,
    register_always: AtomicU64,
    register_ever: AtomicU64,
}

impl Found {
    fn forget(&self) {
        self.hops.store(0, Ordering::Relaxed);
        self.components_always.store(u32::MAX, Ordering::Relaxed);
        self.components_ever.store(0, Ordering::Relaxed);
        self.register_always.store(u64::MAX, Ordering::Relaxed);
        self.register_ever.store(0, Ordering::Relaxed);
    }

    fn add(&self, components: u32, register: u64) {
        self.hops.fetch_add(1, Ordering::Relaxed);
        self.components_always.fetch_and(components, Ordering::Relaxed);
        self.components_ever.fetch_or(components, Ordering::Relaxed);
        self.register_always.fetch_and(register, Ordering::Relaxed);
        self.register_ever.fetch_or(register, Ordering::Relaxed);
    }
}

/// Registers that are looked at before they are written.
struct Watched<K> {
    registers: K,
    found: Arc<Found>,
}

impl<K: RegisterKind> HopWork for Watched<K> {
    fn touch(&mut self) {
        let (components, register) = (in_use().unwrap_or(0), last_register());
        self.registers.touch();
        self.found.add(components, register);
    }

    fn begin(&mut self) {
        // What the control lap found does not count.
        self.found.forget();
        self.registers.begin();
    }
}

/// A ring of two threads on one CPU: between a send and the next token the other has run, with
/// registers of the other kind.
struct Between<'a> {
    other: RegisterState,
    found: &'a Arc<Found>,
}

impl WithRegisters for Between<'_> {
    type Output = ();

    fn with<K: RegisterKind>(self, registers: K) {
        let found = Arc::clone(self.found);
        let leader = Watched { registers, found };
        with_registers(self.other, Lead(leader)).expect("every CPU has them");
    }
}

struct Lead<K>(Watched<K>);

impl<L: RegisterKind> WithRegisters for Lead<L> {
    type Output = ();

    fn with<K: RegisterKind>(self, registers: K) {
        const LAPS: u64 = 200;
        let area = Arc::new(SharedArea::new(2, false).expect("memory"));
        let channel = |to| {
            PipeLink::channel(&ChannelPlace {
                area: Arc::clone(&area),
                kind: MemberKind::Thread,
                to,
                room: 1,
            })
        };
        let (to_follower, from_leader) = channel(1).expect("a pipe");
        let (to_leader, from_follower) = channel(0).expect("a pipe");
        let follower = RingMember {
            sender: to_leader,
            receiver: from_leader,
            work: registers,
            solo_ends: None,
        };
        let cpus = placement::allowed_cpus().expect("an affinity mask");
        thread::scope(|scope| {
            // Threads inherit it.
            placement::pin(&cpus[..1]).expect("a CPU of our own");
            let shared = &area;
            scope.spawn(move || {
                let mut follower = follower;
                follow(&mut follower, shared, &shared.cells()[1])
            });
            let work = self.0;
            let seat =
                RingMember { sender: to_follower, receiver: from_follower, work, solo_ends: None };
            let mut leader = RingLeader::new(Box::new(seat), shared);
            leader.announce(LAPS).expect("a lap");
            // As a library call may leave them: none of it may be in the batch.
            registers.write();
            leader.batch(LAPS, &mut || 0).expect("all laps");
            leader.announce(0).expect("the end");
        });
    }
}

fn lacks(state: RegisterState, why: &str) {
    testing::skip(Need::Hardware(&format!("registers of {state}")), why);
}

/// None where the CPU lacks them.
fn found(state: RegisterState, other: RegisterState) -> Option<Found> {
    let found = Arc::new(Found::default());
    if let Err(why) = with_registers(state, Between { other, found: &found }) {
        lacks(state, &why);
        return None;
    }
    // The batch and the last control lap.
    assert_eq!(found.hops.load(Ordering::Relaxed), 201, "{state}");
    Arc::into_inner(found)
}

#[test]
fn what_a_member_wrote_is_in_use_when_it_has_been_switched_from_and_back_to() {
    let of = [
        (RegisterState::Sse, SSE),
        (RegisterState::Avx, SSE | AVX),
        (RegisterState::Vzeroupper, SSE),
        (RegisterState::Avx512, SSE | AVX | AVX512),
        (RegisterState::Neon, 0),
    ];
    for (state, components) in of {
        let Some(mut found) = found(state, RegisterState::None) else { continue };
        assert_eq!(*found.register_always.get_mut(), u64::MAX, "{state}");
        let (always, ever) = (*found.components_always.get_mut(), *found.components_ever.get_mut());
        match in_use() {
            Some(_) => assert_eq!((always, ever), (components, components), "{state}"),
            None => testing::skip(
                Need::Hardware("the CPU's word on which registers are in use"),
                format_args!("{state}"),
            ),
        }
    }
}

#[test]
fn without_a_state_no_register_that_compiled_code_does_not_need_is_in_use() {
    // The other member writes all that it can.
    for other in
        [RegisterState::Sse, RegisterState::Avx, RegisterState::Avx512, RegisterState::Neon]
    {
        if let Err(why) = crate::sys::has_registers(other) {
            lacks(other, &why);
            continue;
        }
        let Some(mut found) = found(RegisterState::None, other) else { continue };
        if cfg!(target_arch = "x86_64") {
            assert_eq!(*found.register_ever.get_mut(), 0, "{other}");
        }
        // An unoptimised build copies by XMM registers.
        assert_eq!(*found.components_ever.get_mut() & !SSE, 0, "{other}");
    }
}
