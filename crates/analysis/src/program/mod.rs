//! What switching costs one program: its own switch rate and working set, looked up on the
//! machine's cost profile.

mod candidate;
mod cost;
mod lookup;
mod price;
mod profile;
mod refill;
#[cfg(test)]
mod tests;
mod window;

pub use candidate::{Candidate, NO_PROFILE, Worth, choose, unfinished};
pub use cost::{
    LIMITED, Program, ProgramCost, count, direct_by_kind, program_cost, switches_in_words,
};
pub use lookup::cost_at;
pub use price::{Direct, Price, Range, percents};
pub use profile::{
    Cost, CostProfile, Lack, ProfileGrade, ProfilePoint, Sampled, WorkingSet, clock_of, cost_of,
    direct, is_clean, is_of_two, is_walk, measure_with, old, points_of, rough_points_of, short,
};
pub use refill::{RingsBeyond, direct_of};
pub use window::{PageSizes, Window};
