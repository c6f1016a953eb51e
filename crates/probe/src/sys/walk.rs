//! Working sets of members, and the walks over them that each hop makes.

use std::ptr::NonNull;

use rundata::ring::{AccessKind, ELEMENT_BYTES, LINE_BYTES, Walk, Work};
use rustix::io::Errno;
use rustix::mm::{Advice, madvise};
use rustix::process::{Resource, getrlimit};

use super::mapping::{BASE_PAGE_BYTES, HUGE_PAGE_BYTES, MemoryMapping};
use super::notes::WalkCut;
use crate::random::RandomSource;

/// Size of a process's address space on every architecture in use: 47 bits on x86-64.
const ADDRESS_SPACE_BYTES: u64 = 1 << 47;
/// Elements in a cache line.
pub(super) const LINE_ELEMENTS: usize = (LINE_BYTES / ELEMENT_BYTES) as usize;

/// The working set of one member: doubles, private to it and touched once before any timing.
pub struct WorkArray {
    /// First byte of its huge pages.
    start: NonNull<f64>,
    /// First element: it lies at one of the array's places within the huge pages.
    elements: NonNull<f64>,
    length: usize,
    _mapping: MemoryMapping,
    /// Base pages of its huge pages that the array leaves free.
    spare_pages: usize,
    seed: u64,
    place: u32,
    pub(super) stride: usize,
    pub(super) op: AccessKind,
    pub(super) walk: Walk,
    pub(super) cut: WalkCut,
}

// SAFETY: the mapping belongs to the array alone, and its addresses may be used from any thread.
unsafe impl Send for WorkArray {}

impl WorkArray {
    /// Checks that an address space holds the array that `work` describes. Returns the largest
    /// possible number of bytes as the error.
    pub fn check(work: &Work) -> Result<(), u64> {
        let limit = getrlimit(Resource::As).current.unwrap_or(u64::MAX);
        let max_bytes = limit.min(ADDRESS_SPACE_BYTES).saturating_sub(2 * HUGE_PAGE_BYTES as u64);
        if work.bytes <= max_bytes { Ok(()) } else { Err(max_bytes) }
    }

    /// Maps and touches the array that `work` describes, at its first place ([`Self::move_to`]).
    /// `work` must have passed [`Self::check`]. Returns the errno of memory that is refused.
    pub fn new(work: &Work, seed: u64) -> Result<Self, Errno> {
        let length = (work.bytes / ELEMENT_BYTES) as usize;
        let needed = needed_bytes(work);
        let (mapping, start) = MemoryMapping::at_huge_page(needed)?;
        let advice = if work.huge_pages { Advice::LinuxHugepage } else { Advice::LinuxNoHugepage };
        // SAFETY: advice on pages changes no content, and these are in the mapping. A kernel
        // without huge pages refuses it: then there are none, and the plan has said so.
        let _ = unsafe { madvise(start, needed, advice) };
        let start = NonNull::new(start.cast::<f64>()).ok_or(Errno::FAULT)?;
        let stride = (work.stride_bytes / ELEMENT_BYTES).max(1) as usize;
        let mut array = Self {
            start,
            elements: start,
            length,
            _mapping: mapping,
            spare_pages: spare_pages(work),
            // Each member, thread or process, gets another seed.
            seed: seed ^ ((rustix::thread::gettid().as_raw_nonzero().get() as u64) << 40),
            place: 0,
            stride,
            op: work.op,
            walk: work.walk,
            cut: WalkCut::default(),
        };
        array.place_at(0);
        Ok(array)
    }

    /// Returns the bytes of the array's huge pages, if there is more than one place for it in them.
    pub fn bytes_with_places(work: &Work) -> Option<u64> {
        (spare_pages(work) > 0).then(|| needed_bytes(work) as u64)
    }

    /// Moves the array to another of its places, unless it is there. A place is a
    /// base page of its huge pages, chosen by the seed, the thread and the number: what is one huge
    /// page to a guest may be many pages of its host, so that each place meets other cache sets.
    pub fn move_to(&mut self, place: u32) {
        if place != self.place {
            self.place_at(place);
        }
    }

    /// Puts the array at a place and fills it.
    fn place_at(&mut self, place: u32) {
        let mut random = RandomSource::new(self.seed ^ RandomSource::new(place.into()).next());
        let page = random.below(self.spare_pages as u64 + 1) as usize;
        // SAFETY: `page` is at most `spare_pages`, so that the array ends within its huge pages
        // (`needed_bytes`), which are in the mapping.
        self.elements = unsafe { self.start.byte_add(page * BASE_PAGE_BYTES) };
        self.place = place;
        self.lay();
    }

    /// Fills the array for a walk that is not cut.
    pub(super) fn lay(&mut self) {
        self.cut.clear();
        // Ones, not zeros: untouched memory is the kernel's shared zero page.
        self.slice().fill(1.0);
        if self.walk == Walk::Chase {
            lay_chase(self.slice());
        }
    }

    /// Returns the elements.
    pub(super) fn slice(&mut self) -> &mut [f64] {
        // SAFETY: aligned to a page, mapped for at least `length` doubles as long as self lives,
        // borrowed as self is; all bit patterns are doubles.
        unsafe { std::slice::from_raw_parts_mut(self.elements.as_ptr(), self.length) }
    }

    /// Walks over the array. A whole walk touches every element once: each `stride`-th from the
    /// first on, then each `stride`-th from the second on, and so forth (Li, Ding and Shen 2007,
    /// section 3.2). A sparse one touches one element in every stride. A chase touches one element
    /// of every line; each line holds the index of the next.
    pub fn walk(&mut self) {
        if !self.cut.is_whole() {
            return self.walk_in_pieces();
        }
        match self.op {
            AccessKind::Read => self.each(read),
            AccessKind::Write => self.each(write),
            AccessKind::Rmw => self.each(read_modify_write),
        }
    }

    #[inline(always)]
    fn each(&mut self, touch: impl Fn(&mut f64)) {
        let (stride, walk) = (self.stride, self.walk);
        let elements = self.slice();
        match walk {
            Walk::Whole => whole(elements, stride, touch),
            Walk::Chase => chase(elements, 0, touch),
            Walk::Sparse => sparse(elements, stride, 0, touch),
        }
    }
}

/// Returns the bytes of the huge pages that an array needs.
fn needed_bytes(work: &Work) -> usize {
    (work.bytes as usize).next_multiple_of(HUGE_PAGE_BYTES)
}

/// Returns how many base pages of its huge pages an array leaves free. Without huge pages there is
/// one place only: at another one each base page would fault again.
fn spare_pages(work: &Work) -> usize {
    let spare_bytes = needed_bytes(work) - work.bytes as usize;
    if work.huge_pages { spare_bytes / BASE_PAGE_BYTES } else { 0 }
}

// Volatile: each access must happen, alone and in this order, although its value is not used.

#[inline(always)]
pub(super) fn read(element: &mut f64) {
    // SAFETY: a valid, aligned reference.
    unsafe { std::ptr::read_volatile(element) };
}

#[inline(always)]
pub(super) fn write(element: &mut f64) {
    // SAFETY: as above.
    unsafe { std::ptr::write_volatile(element, 2.0) };
}

#[inline(always)]
pub(super) fn read_modify_write(element: &mut f64) {
    // SAFETY: as above.
    unsafe { std::ptr::write_volatile(element, std::ptr::read_volatile(element) + 1.0) };
}

#[inline(always)]
fn whole(elements: &mut [f64], stride: usize, touch: impl Fn(&mut f64)) {
    for offset in 0..stride.min(elements.len()) {
        for element in elements[offset..].iter_mut().step_by(stride) {
            touch(element);
        }
    }
}

/// Follows the lines from the one that begins at element `from` until one leads to element 0. In
/// each, touches the element after the signpost, which is in the same line.
#[inline(always)]
pub(super) fn chase(elements: &mut [f64], from: usize, touch: impl Fn(&mut f64)) {
    let mut line = from;
    loop {
        let Some([signpost, element, ..]) = elements.get_mut(line..) else { return };
        // SAFETY: a valid, aligned reference. Volatile: the compiler must not assume its value.
        let next = unsafe { std::ptr::read_volatile(signpost) };
        touch(element);
        line = next.to_bits() as usize;
        if line == 0 {
            return;
        }
    }
}

/// Writes into the first element of every line the index of the next line's first element, as bits.
/// The lines form one cycle (Sattolo 1986), always the same for an array of this size.
fn lay_chase(elements: &mut [f64]) {
    let lines = elements.len() / LINE_ELEMENTS;
    let mut order: Vec<usize> = (0..lines).collect();
    let mut random = RandomSource::new(lines as u64);
    for last in (1..lines).rev() {
        order.swap(last, random.below(last as u64) as usize);
    }
    // Line i is followed by line order[i].
    for (line, next) in order.into_iter().enumerate() {
        elements[line * LINE_ELEMENTS] = f64::from_bits((next * LINE_ELEMENTS) as u64);
    }
}

#[inline(always)]
pub(super) fn sparse(elements: &mut [f64], stride: usize, first: usize, touch: impl Fn(&mut f64)) {
    let mut within = if first < stride { first } else { 0 };
    for part in elements.chunks_exact_mut(stride) {
        touch(&mut part[within]);
        within += LINE_ELEMENTS;
        if within >= stride {
            within = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    /// Strides that divide the array, strides that do not, one as long as the array, one element.
    const SHAPES: [(u64, u64); 12] = [
        (8, 8),
        (64, 8),
        (1024, 64),
        (1000, 24),
        (1000, 128),
        (4096, 4096),
        (800, 504),
        (4104, 4096),
        (40, 24),
        (36 * 1024 + 8, 256),
        (10_000, 9_992),
        (8 * 997, 8 * 31),
    ];

    /// Which elements a walk touches, in its order, by counting calls: also what a read does.
    fn touched(bytes: u64, stride_bytes: u64, walk: Walk) -> Vec<usize> {
        let mut elements = vec![0.0; (bytes / ELEMENT_BYTES) as usize];
        let (start, order) = (elements.as_ptr() as usize, RefCell::new(Vec::new()));
        let stride = (stride_bytes / ELEMENT_BYTES) as usize;
        let note = |element: &mut f64| {
            let byte = std::ptr::from_ref(element) as usize - start;
            order.borrow_mut().push(byte / ELEMENT_BYTES as usize);
        };
        match walk {
            Walk::Whole => whole(&mut elements, stride, note),
            Walk::Chase => {
                lay_chase(&mut elements);
                chase(&mut elements, 0, note);
            }
            Walk::Sparse => sparse(&mut elements, stride, 0, note),
        }
        order.into_inner()
    }

    #[test]
    fn a_whole_walk_touches_every_element_once_offset_by_offset() {
        for (bytes, stride_bytes) in SHAPES {
            let order = touched(bytes, stride_bytes, Walk::Whole);
            let (length, stride) = (bytes as usize / 8, stride_bytes as usize / 8);
            let wanted: Vec<usize> =
                (0..stride).flat_map(|offset| (offset..length).step_by(stride)).collect();
            assert_eq!(order, wanted, "{bytes} bytes by {stride_bytes}");
            let mut sorted = order;
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(0..length), "{bytes} bytes by {stride_bytes}");
        }
    }

    #[test]
    fn a_chase_touches_every_line_once_in_an_order_that_cannot_be_foreseen() {
        for (bytes, _) in SHAPES.into_iter().filter(|of| of.0 >= 64).chain([(1 << 20, 64)]) {
            let order = touched(bytes, LINE_BYTES, Walk::Chase);
            let lines = bytes as usize / 64;
            let mut sorted = order.clone();
            sorted.sort_unstable();
            let wanted = (0..lines).map(|line| 8 * line + 1);
            assert!(sorted.into_iter().eq(wanted), "{bytes} bytes");
            let near = order.windows(2).filter(|two| two[0].abs_diff(two[1]) <= 16).count();
            assert!(
                lines < 512 || near < lines / 8,
                "{bytes} bytes: {near} of {lines} steps are near"
            );
        }
    }

    #[test]
    fn a_chase_goes_round_again_after_each_operation() {
        for (op, after) in
            [(AccessKind::Read, 1.0), (AccessKind::Write, 2.0), (AccessKind::Rmw, 3.0)]
        {
            let work = Work { walk: Walk::Chase, ..Work::new(64 * 50, 64, op).unwrap() };
            let mut array = WorkArray::new(&work, 0).unwrap();
            array.walk();
            array.walk();
            let touched = array.slice().iter().skip(1).step_by(8);
            assert!(touched.copied().eq(std::iter::repeat_n(after, 50)), "{op}");
            assert!(array.slice().iter().skip(2).step_by(8).all(|rest| *rest == 1.0), "{op}");
        }
    }

    #[test]
    fn a_sparse_walk_touches_one_line_in_each_stride_and_not_always_the_same() {
        assert_eq!(touched(4 * 64, 64, Walk::Sparse), [0, 8, 16, 24]);
        assert_eq!(touched(4 * 4096 + 8, 4096, Walk::Sparse), [0, 520, 1040, 1560]);
        let pages = touched(200 * 4096, 4096, Walk::Sparse);
        assert!(pages.iter().enumerate().all(|(page, element)| element / 512 == page));
        assert_eq!(pages[64], 64 * 512, "the 64th line of a page is followed by its first");
        for (bytes, stride_bytes) in SHAPES {
            let work = Work {
                walk: Walk::Sparse,
                ..Work::new(bytes, stride_bytes, AccessKind::Read).unwrap()
            };
            let order = touched(bytes, stride_bytes, Walk::Sparse);
            assert_eq!(order.len() as u64, work.touches(), "{bytes} bytes by {stride_bytes}");
        }
    }

    #[test]
    fn each_operation_does_to_each_element_what_it_says() {
        for huge_pages in [false, true] {
            for (bytes, stride_bytes) in SHAPES {
                for (op, after) in
                    [(AccessKind::Read, 1.0), (AccessKind::Write, 2.0), (AccessKind::Rmw, 3.0)]
                {
                    let work = Work::new(bytes, stride_bytes, op).unwrap();
                    let mut array = WorkArray::new(&Work { huge_pages, ..work }, 0).unwrap();
                    array.walk();
                    array.walk();
                    assert_eq!(array.slice().len() as u64, bytes / 8);
                    assert!(array.slice().iter().all(|e| *e == after), "{work:?}");
                }
            }
        }
    }

    #[test]
    fn a_sparse_operation_leaves_the_rest_alone() {
        let work =
            Work { walk: Walk::Sparse, ..Work::new(8 * 4096, 4096, AccessKind::Rmw).unwrap() };
        let mut array = WorkArray::new(&work, 0).unwrap();
        array.walk();
        assert_eq!(array.slice().iter().filter(|e| **e == 2.0).count(), 8);
        assert_eq!(array.slice().iter().filter(|e| **e == 1.0).count(), 8 * 512 - 8);
    }

    #[test]
    fn an_array_that_no_address_space_holds_is_refused_with_the_limit() {
        let of = |bytes| WorkArray::check(&Work::new(bytes, 8, AccessKind::Rmw).unwrap());
        assert_eq!(of(64), Ok(()));
        for bytes in [1 << 47, 1 << 63, u64::MAX - 7] {
            assert!(of(bytes).is_err_and(|limit| limit > 0 && limit < 1 << 47), "{bytes}");
        }
    }

    #[test]
    fn the_array_can_consist_of_huge_pages() {
        let mut array = WorkArray::new(&Work::new(64, 8, AccessKind::Rmw).unwrap(), 0).unwrap();
        assert!((array.slice().as_ptr() as usize) % HUGE_PAGE_BYTES == 0);
    }

    #[test]
    fn an_array_is_moved_within_its_huge_pages_and_works_at_each_place() {
        let work = Work { walk: Walk::Chase, ..Work::new(3 << 19, 64, AccessKind::Write).unwrap() };
        let mut array = WorkArray::new(&Work { huge_pages: true, ..work }, 3).unwrap();
        let first = array.start.as_ptr() as usize;
        assert!(first % HUGE_PAGE_BYTES == 0);
        let places: Vec<usize> = (0..8)
            .map(|place| {
                array.move_to(place);
                array.walk();
                assert!(array.slice().iter().skip(1).step_by(8).all(|touched| *touched == 2.0));
                array.elements.as_ptr() as usize
            })
            .collect();
        for place in &places {
            assert!(place % BASE_PAGE_BYTES == 0);
            assert!((first..=first + (1 << 19)).contains(place), "{place:x}");
        }
        assert!(places.iter().any(|place| *place != places[0]), "{places:x?}");
        array.move_to(0);
        assert_eq!(array.elements.as_ptr() as usize, places[0]);

        let bytes = |work: Work| WorkArray::bytes_with_places(&work);
        assert_eq!(bytes(Work { huge_pages: true, ..work }), Some(HUGE_PAGE_BYTES as u64));
        let whole_page = Work::new(HUGE_PAGE_BYTES as u64, 64, AccessKind::Write).unwrap();
        assert_eq!(bytes(Work { huge_pages: true, ..whole_page }), None);
        assert_eq!(bytes(work), None);
        let mut base_pages = WorkArray::new(&work, 3).unwrap();
        let place = base_pages.elements;
        base_pages.move_to(7);
        assert_eq!(base_pages.elements, place);
    }
}
