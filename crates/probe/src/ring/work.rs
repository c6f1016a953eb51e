//! What a member does while it has the token.

use crate::sys::Array;

/// Work of one hop.
pub trait Work: 'static {
    /// Does it once.
    fn touch(&mut self);
}

/// No work: the bare switch.
pub struct NoWork;

impl Work for NoWork {
    #[inline(always)]
    fn touch(&mut self) {}
}

impl Work for Array {
    #[inline]
    fn touch(&mut self) {
        self.walk();
    }
}
