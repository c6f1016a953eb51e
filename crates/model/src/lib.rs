//! The nouns of switchcost and all its arithmetic. No unsafe code, no input or output, and no
//! randomness without a seed: the same samples always give the same record.
#![forbid(unsafe_code)]

pub mod machine;
pub mod reading;
pub mod scaling;
