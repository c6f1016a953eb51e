//! The strided walk over a member's working set, as the machine executes it.

use model::case::{ELEMENT_BYTES, Op, Work};

/// The working set of one member: doubles, private to it and touched once before any timing.
pub struct Array {
    elements: Vec<f64>,
    stride: usize,
    op: Op,
}

impl Array {
    /// Allocates and touches the array that `work` describes.
    pub fn new(work: &Work) -> Self {
        let length = (work.bytes / ELEMENT_BYTES) as usize;
        // Ones, not zeros: zeroed memory may still be the kernel's shared zero page.
        let elements = vec![1.0; length];
        let stride = (work.stride_bytes / ELEMENT_BYTES).max(1) as usize;
        Self { elements: std::hint::black_box(elements), stride, op: work.op }
    }

    /// Touches every element once: each `stride`-th from the first, then each `stride`-th from the
    /// second, and so on (Li, Ding and Shen 2007, section 3.2).
    pub fn walk(&mut self) {
        match self.op {
            Op::Read => self.each(|element| {
                // SAFETY: a valid, aligned reference. Volatile: the load must happen though nobody
                // wants its value.
                unsafe { std::ptr::read_volatile(element) };
            }),
            Op::Write => self.each(|element| {
                // SAFETY: as above, for the store.
                unsafe { std::ptr::write_volatile(element, 2.0) };
            }),
            Op::Rmw => self.each(|element| {
                // SAFETY: as above.
                unsafe {
                    std::ptr::write_volatile(element, std::ptr::read_volatile(element) + 1.0)
                };
            }),
        }
    }

    #[inline(always)]
    fn each(&mut self, mut touch: impl FnMut(&mut f64)) {
        for offset in 0..self.stride.min(self.elements.len()) {
            for element in self.elements[offset..].iter_mut().step_by(self.stride) {
                touch(element);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_is_touched_exactly_once() {
        // Strides that divide the array and strides that do not.
        for (bytes, stride_bytes) in
            [(8, 8), (64, 8), (1024, 64), (1000, 24), (4096, 4096), (800, 504)]
        {
            let work = Work::new(bytes, stride_bytes, Op::Rmw).unwrap();
            let mut array = Array::new(&work);
            array.walk();
            array.walk();
            assert_eq!(array.elements.len() as u64, bytes / 8);
            assert!(array.elements.iter().all(|e| *e == 3.0), "{bytes} bytes by {stride_bytes}");
        }
    }

    #[test]
    fn reads_leave_and_writes_set_the_elements() {
        let mut read = Array::new(&Work::new(512, 16, Op::Read).unwrap());
        read.walk();
        assert!(read.elements.iter().all(|e| *e == 1.0));
        let mut write = Array::new(&Work::new(512, 16, Op::Write).unwrap());
        write.walk();
        assert!(write.elements.iter().all(|e| *e == 2.0));
    }
}
