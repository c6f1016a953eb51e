//! All of switchcost that touches the kernel. A case comes in, samples go out.

pub mod machine;
