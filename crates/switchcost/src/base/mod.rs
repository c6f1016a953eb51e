//! Ground that all rooms stand on: errors that a person can act on, lines that fit a terminal, values
//! as they are typed, secrets in a command line, products that a build may lack.

pub(crate) mod failure;
pub(crate) mod lines;
pub(crate) mod products;
pub(crate) mod secrets;
pub(crate) mod values;
