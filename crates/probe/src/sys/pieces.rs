//! Walks that are cut into pieces, with a reference quantum before, between and after them.
//!
//! Why: a walk through many megabytes takes some milliseconds. Quanta around such a hop say nothing
//! of what shared the core within it, so the member itself runs a quantum about every 0.2 ms and
//! notes its times in memory that the leader reads (`notes.rs`). A hop in three pieces gives four
//! notes:
//!
//! ```text
//! note 0     piece 0   note 1     piece 1   note 2     piece 2   note 3
//! when it              time of              time of              time of
//! began                piece 0              piece 1              piece 2
//! ```
//!
//! The pieces touch the same elements in the same order as the whole walk, and differ by one touch
//! at most. Nothing is allocated and no page is faulted meanwhile; a walk that is not cut keeps its
//! instructions.

use std::ops::Range;

use rundata::ring::{AccessKind, Walk};

use super::clock::monotonic_raw_ns;
use super::notes::{MemberNotes, WalkCut, WalkPiece};
use super::quanta::run_quantum;
use super::walk::{self, LINE_ELEMENTS, WorkArray, chase, sparse};

impl WorkArray {
    /// Sets where the times of pieces are noted.
    pub fn note_to(&mut self, notes: MemberNotes) {
        self.cut.notes = Some(notes);
    }

    /// Cuts the walk into `pieces` pieces (0: not at all) from now on, and notes the times of the
    /// next `noted_hops` hops, beginning at the first note. Clears the notes that will be taken, so
    /// that noting faults no page.
    pub fn cut(&mut self, pieces: u32, noted_hops: u64) {
        let pieces = pieces as usize;
        if self.cut.pieces.len() != pieces {
            if !self.cut.is_whole() {
                self.lay();
            }
            self.cut.pieces = self.pieces(pieces);
        }
        let notes = self.cut.notes.as_ref().map_or(&[][..], MemberNotes::all);
        let wanted = usize::try_from(noted_hops).unwrap_or(usize::MAX).saturating_mul(pieces + 1);
        self.cut.room = if pieces > 0 { wanted.min(notes.len()) } else { 0 };
        self.cut.next = 0;
        for note in &notes[..self.cut.room] {
            note.clear();
        }
    }

    /// Builds `count` pieces, which differ by one touch at most. A chase is changed: the last line
    /// of each piece leads to index 0, where a walk ends.
    fn pieces(&mut self, count: usize) -> Vec<WalkPiece> {
        let (walk, stride) = (self.walk, self.stride);
        let elements = self.slice();
        let touches = match walk {
            Walk::Whole => elements.len(),
            Walk::Chase => elements.len() / LINE_ELEMENTS,
            Walk::Sparse => elements.len() / stride,
        };
        let mut pieces = Vec::with_capacity(count);
        let mut touched = 0;
        let mut start = WalkPiece { offset: 0, from: 0, touches: 0 };
        for number in 1..=count {
            let end = (touches as u128 * number as u128 / count as u128) as usize;
            let piece = WalkPiece { touches: end - touched, ..start };
            touched = end;
            start = match walk {
                Walk::Whole => after_whole(elements.len(), stride, piece),
                Walk::Chase => after_chase(elements, piece),
                Walk::Sparse => after_sparse(stride, piece),
            };
            pieces.push(piece);
        }
        pieces
    }

    /// Walks piece by piece, with a quantum around each while there is room to note it. Not
    /// inlined: a walk that is not cut keeps its instructions.
    #[inline(never)]
    pub(super) fn walk_in_pieces(&mut self) {
        let mut now_ns = monotonic_raw_ns();
        now_ns = self.note_quantum(now_ns, now_ns);
        for number in 0..self.cut.pieces.len() {
            self.walk_piece(self.cut.pieces[number]);
            let end_ns = if self.cut.room > 0 { monotonic_raw_ns() } else { now_ns };
            now_ns = self.note_quantum(end_ns.wrapping_sub(now_ns), end_ns);
        }
    }

    /// Runs a quantum and notes its times with `since_ns` ([`super::notes::PieceTimes::since_ns`]).
    /// `now_ns` is the current time; returns the time after the quantum. Does nothing without room.
    fn note_quantum(&mut self, since_ns: u64, now_ns: u64) -> u64 {
        let WalkCut { notes: Some(notes), next, room, .. } = &mut self.cut else { return now_ns };
        if *room == 0 {
            return now_ns;
        }
        let (times, end_ns) = run_quantum(now_ns);
        notes.all()[*next].set(since_ns, times);
        (*next, *room) = (*next + 1, *room - 1);
        end_ns
    }

    fn walk_piece(&mut self, piece: WalkPiece) {
        match self.op {
            AccessKind::Read => self.each_of(piece, walk::read),
            AccessKind::Write => self.each_of(piece, walk::write),
            AccessKind::Rmw => self.each_of(piece, walk::read_modify_write),
        }
    }

    /// Touches each element of a piece.
    #[inline(always)]
    fn each_of(&mut self, piece: WalkPiece, touch: impl Fn(&mut f64) + Copy) {
        let (stride, walk) = (self.stride, self.walk);
        let elements = self.slice();
        match walk {
            Walk::Whole => whole_piece(elements, stride, piece, touch),
            Walk::Chase => chase(elements, piece.from, touch),
            Walk::Sparse => {
                let part = piece.from * stride..(piece.from + piece.touches) * stride;
                sparse(&mut elements[part], stride, piece.offset, touch);
            }
        }
    }
}

/// Returns how many elements the pass that begins at `offset` touches.
fn pass_touches(length: usize, stride: usize, offset: usize) -> usize {
    length.saturating_sub(offset).div_ceil(stride)
}

/// Returns the ranges of a piece of a whole walk, one for each pass; in each range every stride-th
/// element is touched.
fn passes(length: usize, stride: usize, piece: WalkPiece) -> impl Iterator<Item = Range<usize>> {
    let (mut left, mut from) = (piece.touches, piece.from);
    (piece.offset..).map_while(move |offset| {
        let to = pass_touches(length, stride, offset).min(from + left);
        let part = (left > 0).then(|| offset + from * stride..(offset + to * stride).min(length));
        left -= to.saturating_sub(from).min(left);
        from = 0;
        part
    })
}

#[inline(always)]
fn whole_piece(
    elements: &mut [f64],
    stride: usize,
    piece: WalkPiece,
    touch: impl Fn(&mut f64) + Copy,
) {
    for part in passes(elements.len(), stride, piece) {
        pass(&mut elements[part], stride, touch);
    }
}

/// Touches every stride-th element. Not inlined: its loop then has the instructions that it has in
/// a walk that is not cut.
#[inline(never)]
fn pass(elements: &mut [f64], stride: usize, touch: impl Fn(&mut f64)) {
    for element in elements.iter_mut().step_by(stride) {
        touch(element);
    }
}

/// Returns where the piece after this one begins, in a whole walk.
fn after_whole(length: usize, stride: usize, piece: WalkPiece) -> WalkPiece {
    let WalkPiece { mut offset, from, touches } = piece;
    let mut next = from + touches;
    while offset < stride && next >= pass_touches(length, stride, offset) {
        next -= pass_touches(length, stride, offset);
        offset += 1;
    }
    WalkPiece { offset, from: next, touches: 0 }
}

/// Returns where the piece after this one begins, in a sparse walk.
fn after_sparse(stride: usize, piece: WalkPiece) -> WalkPiece {
    let lines = stride.div_ceil(LINE_ELEMENTS);
    let line = (piece.offset / LINE_ELEMENTS + piece.touches) % lines;
    WalkPiece { offset: line * LINE_ELEMENTS, from: piece.from + piece.touches, touches: 0 }
}

/// Ends the chase at the last line of this piece, and returns where it would have gone on.
fn after_chase(elements: &mut [f64], piece: WalkPiece) -> WalkPiece {
    let mut from = piece.from;
    for left in (0..piece.touches).rev() {
        let next = elements[from].to_bits() as usize;
        if left == 0 {
            elements[from] = f64::from_bits(0);
        }
        from = next;
    }
    WalkPiece { offset: 0, from, touches: 0 }
}

#[cfg(test)]
mod tests {
    use super::super::notes::{MAX_NOTES, NoteBook, PieceNote, PieceTimes};
    use super::*;
    use rundata::ring::Work;
    use std::cell::RefCell;

    fn array(bytes: u64, stride_bytes: u64, walk: Walk, op: AccessKind) -> WorkArray {
        WorkArray::new(&Work { walk, ..Work::new(bytes, stride_bytes, op).unwrap() }, 0).unwrap()
    }

    /// Which elements the pieces touch, piece by piece.
    fn touched(array: &mut WorkArray, count: u32) -> Vec<Vec<usize>> {
        array.cut(count, 0);
        let start = array.slice().as_ptr() as usize;
        let pieces = array.cut.pieces.clone();
        let of = |piece| {
            let order = RefCell::new(Vec::new());
            array.each_of(piece, |element| {
                order.borrow_mut().push((std::ptr::from_ref(element) as usize - start) / 8);
            });
            order.into_inner()
        };
        pieces.into_iter().map(of).collect()
    }

    const WALKS: [Walk; 3] = [Walk::Whole, Walk::Chase, Walk::Sparse];
    /// Strides that divide the array and strides that do not, some as many passes as a line has
    /// elements and more.
    const SHAPES: [(u64, u64); 7] = [
        (4096, 64),
        (1000, 24),
        (4104, 128),
        (4096, 8),
        (9 * 4096, 4096),
        (10_000, 9_992),
        (8 * 997, 8 * 31),
    ];

    #[test]
    fn pieces_touch_what_the_whole_walk_does_in_its_order() {
        for walk in WALKS {
            for (bytes, stride) in SHAPES {
                let whole = touched(&mut array(bytes, stride, walk, AccessKind::Rmw), 1).concat();
                assert_eq!(
                    whole.len(),
                    match walk {
                        Walk::Whole => bytes / 8,
                        Walk::Chase => bytes / 64,
                        Walk::Sparse => bytes / stride,
                    } as usize
                );
                // That of the walk that is not cut, by what it leaves.
                let mut uncut = array(bytes, stride, walk, AccessKind::Rmw);
                uncut.walk();
                let changed = |at: &usize| match walk {
                    Walk::Chase => at % 8 == 1 && uncut.slice()[*at] == 2.0,
                    _ => uncut.slice()[*at] == 2.0,
                };
                assert!(whole.iter().all(changed), "{walk} of {bytes} by {stride}");
                for count in [2, 3, 7].into_iter().filter(|count| *count as usize <= whole.len()) {
                    let mut array = array(bytes, stride, walk, AccessKind::Rmw);
                    let pieces = touched(&mut array, count);
                    assert_eq!(pieces.concat(), whole, "{walk} of {bytes} by {stride} in {count}");
                    let sizes = || pieces.iter().map(Vec::len);
                    assert!(sizes().max() <= sizes().min().map(|least| least + 1), "{pieces:?}");
                }
            }
        }
    }

    #[test]
    fn a_walk_that_is_cut_touches_all_once_and_one_that_is_whole_again_too() {
        for walk in WALKS {
            let mut array = array(64 * 50, 64, walk, AccessKind::Rmw);
            let touches = |array: &mut WorkArray| {
                let each = if walk == Walk::Chase { 1 } else { 0 };
                let step = if walk == Walk::Whole { 1 } else { 8 };
                array.slice().iter().skip(each).step_by(step).copied().collect::<Vec<f64>>()
            };
            for (pieces, after) in [(4, 2.0), (4, 3.0), (7, 2.0), (0, 2.0), (0, 3.0)] {
                array.cut(pieces, 1);
                array.walk();
                assert!(touches(&mut array).iter().all(|touched| *touched == after), "{walk}");
                // Where the cut changes the array is laid anew.
                if pieces == 7 && after == 2.0 {
                    assert_eq!(array.cut.pieces.len(), 7);
                }
            }
        }
    }

    #[test]
    fn as_many_hops_as_are_told_are_noted_and_no_more() {
        let book = NoteBook::new(2).unwrap();
        let mut array = array(64 * 50, 64, Walk::Chase, AccessKind::Read);
        array.note_to(book.member(1));
        array.cut(3, 2);
        (0..4).for_each(|_| array.walk());
        let noted: Vec<PieceTimes> = book.member(1).all().iter().map(PieceNote::get).collect();
        assert!(noted[..8].iter().all(|one| one.latency_ns > 0 && one.throughput_ns > 0));
        assert!(noted[0].since_ns > 0 && noted[4].since_ns > noted[0].since_ns, "{noted:?}");
        assert!(noted[8..].iter().all(|one| *one == PieceTimes::default()));
        assert!(book.member(0).all().iter().all(|note| note.get() == PieceTimes::default()));
        // A new phase begins anew, one without hops notes none.
        array.cut(3, 1);
        array.walk();
        let first = book.member(1).all()[0].get();
        assert!(first.since_ns > noted[4].since_ns);
        array.cut(3, 0);
        array.walk();
        assert_eq!(book.member(1).all()[0].get(), first);
        // More hops than there is room for are noted as far as it goes.
        array.cut(3, u64::MAX);
        (0..MAX_NOTES / 4 + 1).for_each(|_| array.walk());
        assert!(book.member(1).all().iter().all(|note| note.get().latency_ns > 0));
        assert_eq!(book.member(0).all()[0].get(), PieceTimes::default());
    }

    #[test]
    fn notes_lie_within_a_line_each() {
        assert_eq!(
            (64 % size_of::<PieceNote>(), align_of::<PieceNote>()),
            (0, size_of::<PieceNote>())
        );
    }
}
