//! The cost of switching for one program: its switch rate and working set, priced from the
//! machine's cost profile.
//!
//! The profile holds the cost of a switch in a ring of two processes by the size of the array that
//! each of them walks. Example: a program makes 1,000 switches a second in 0.5 seconds of CPU time
//! a second, and touches 150 to 200 KiB between two switches.
//!
//! - At 128 KiB a switch costs 3.5 to 4.5 us, at 256 KiB 10 to 20 us. The cost at the sizes between
//!   lies between the lowest and the highest end of these: 3.5 to 20 us ([`cost_at`]).
//! - The share of the CPU time is rate * cost / CPU time: 1,000 * 3.5 us / 0.5 s = 0.7 % at least,
//!   1,000 * 20 us / 0.5 s = 4 % at most ([`program_cost`]).
//! - A working set outside of the measured sizes has no cost, and the command is named that would
//!   measure it. Without work (c1) the size is 0, so small sets are inside once c1 was measured.
//! - With sampled accesses the refill of each cache line is priced instead ([`direct_of`] and the
//!   module `refill`).

mod candidate;
mod cost;
mod lookup;
mod price;
mod profile;
mod rate_prices;
mod refill;
#[cfg(test)]
mod tests;
mod window;

pub use candidate::{CandidateWorth, NO_PROFILE, ProfileCandidate, choose, unfinished};
pub use cost::{
    LIMITED, Program, ProgramCost, count, direct_by_kind, program_cost, switches_in_words,
};
pub use lookup::cost_at;
pub use price::{Direct, Price, Range, percents};
pub use profile::{
    AccessPattern, Cost, CostProfile, MissingCost, ProfileGrade, ProfilePoint, WorkingSet,
    clock_of, cost_of, direct, is_clean, is_of_two, is_walk, measure_with, old, points_of,
    rough_points_of, short,
};
pub use rate_prices::RatePrices;
pub use refill::{RefillLimit, RingsBeyond, direct_of};
pub use window::{PageSizes, Window};
