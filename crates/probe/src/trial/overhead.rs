//! What a call costs: one at a time between two time stamps, and many one after the other.

use std::convert::Infallible;
use std::hint::black_box;

use model::trial::overhead::{BATCH_CALLS, BATCH_TICKS, CALL_TICKS, EMPTY_TICKS};
use model::trial::{Case, Trial};

use super::batch::{WARM_UP, batch, stamp};
use super::call::{self, Call};
use super::companion::Companion;
use super::slices::{Cut, room, warm_up};
use super::{Outcome, TrialError};

/// A call as the registry knows it.
pub struct Registered {
    /// Its name in tables and files.
    pub name: &'static str,
    /// What it reads, and how.
    pub summary: &'static str,
    time: Time,
    ready: fn(&Companion) -> Option<String>,
}

type Time = fn(u32, &Companion) -> Result<Outcome, TrialError>;

impl Registered {
    /// A call that is timed by `time`.
    pub(super) const fn new<C: Call>(time: Time) -> Self {
        let ready = |other: &Companion| C::ready(other).err();
        Self { name: C::NAME, summary: C::SUMMARY, time, ready }
    }

    /// Times it, so many trials.
    pub(super) fn time(&self, trials: u32, other: &Companion) -> Result<Outcome, TrialError> {
        (self.time)(trials, other)
    }
}

const fn register<C: Call>() -> Registered {
    Registered::new::<C>(time::<C>)
}

/// Every call there is. A new one is an implementation of `Call` and a line here.
pub const CALLS: &[Registered] = &[
    register::<call::Stamp>(),
    register::<call::StampOrdered>(),
    register::<call::ByRseq>(),
    register::<call::ByRseqOrdered>(),
    register::<call::ByPerfPage>(),
    register::<call::ByCounter>(),
    register::<call::BySystemCall>(),
    register::<call::ByKernel>(),
    register::<call::Convenient>(),
    register::<call::InfoSelf>(),
    register::<call::InfoProcess>(),
    register::<call::InfoOther>(),
    register::<call::CallSelf>(),
    register::<call::CallProcess>(),
    register::<call::Monotonic>(),
    register::<call::ThreadCpu>(),
    register::<call::ProcessCpu>(),
    register::<call::OtherCpu>(),
    register::<call::UsageSelf>(),
    register::<call::UsageThread>(),
    register::<call::Times>(),
    register::<call::Schedstat>(),
    register::<call::SchedstatOpen>(),
];

/// Of these calls the ones that this machine has, and for each other one why not. Forks: the calling
/// process must be single-threaded.
pub fn available(
    calls: &'static [Registered],
) -> Result<Vec<(&'static Registered, Option<String>)>, TrialError> {
    let other = Companion::asleep().map_err(TrialError::Fork)?;
    Ok(calls.iter().map(|call| (call, (call.ready)(&other))).collect())
}

pub(super) fn run(case: &Case, trials: u32) -> Result<Outcome, TrialError> {
    let Trial::Call { call: name } = &case.trial else { return Err(TrialError::WrongTrial) };
    let call = CALLS.iter().find(|call| call.name == name);
    let call = call.ok_or_else(|| TrialError::UnknownCall { name: name.clone() })?;
    call.time(trials, &Companion::asleep().map_err(TrialError::Fork)?)
}

fn time<C: Call>(trials: u32, other: &Companion) -> Result<Outcome, TrialError> {
    let unavailable = |why| TrialError::Unavailable { name: C::NAME, why };
    let mut call = C::ready(other).map_err(unavailable)?;
    threadclock::time_stamp_ordered().ok_or(TrialError::NoCounter)?;
    // Room for all before the first: nothing is allocated between two calls, and no page faulted.
    let batches = trials.div_ceil(BATCH_CALLS).max(1);
    let (mut singles, mut empties, mut batched) = (room(trials), room(trials), room(batches));
    let Ok(call_ns) = warm_up(WARM_UP, |calls| {
        (0..calls).for_each(|_| call.make());
        Ok::<(), Infallible>(())
    });
    let Ok(pair_ns) = warm_up(WARM_UP, |pairs| {
        (0..pairs).for_each(|_| {
            black_box((empty(), single(&mut call)));
        });
        Ok::<(), Infallible>(())
    });
    let mut one_by_one = Cut::new(trials, pair_ns);
    let Ok(()) = one_by_one.run(|calls| {
        for _ in 0..calls {
            empties.push(empty());
            singles.push(single(&mut call));
        }
        Ok::<(), Infallible>(())
    });
    let mut in_a_row = Cut::new(batches, f64::from(BATCH_CALLS) * call_ns);
    let Ok(()) = in_a_row.run(|batches| {
        (0..batches).for_each(|_| batched.push(batch(&mut call)));
        Ok::<(), Infallible>(())
    });
    Ok(Outcome::default()
        .with_slices(one_by_one, &[(CALL_TICKS, &singles), (EMPTY_TICKS, &empties)])
        .with_slices(in_a_row, &[(BATCH_TICKS, &batched)]))
}

/// Ticks of one call. Measured code.
#[inline(never)]
fn single<C: Call>(call: &mut C) -> i64 {
    let start = stamp();
    call.make();
    stamp().wrapping_sub(start) as i64
}

/// Ticks of nothing. Measured code.
#[inline(never)]
fn empty() -> i64 {
    let start = stamp();
    stamp().wrapping_sub(start) as i64
}
