//! What `switchcost response` says: what a kernel's response time is made of. Its cases are rings and trials,
//! interleaved by one schedule, so that every figure that needs several is paired within rounds.

mod budget;
mod links;
mod loops;
pub mod memorandum;
mod record;
mod signals;

pub use budget::{Against, Budget};
pub use links::LinkCost;
pub use loops::LoopCost;
pub(crate) use record::noise_of;
pub use record::{Record, Summary};
pub use signals::{Account, Signals};

#[cfg(test)]
mod tests;
