//! Lowering the resident memory of a process whose children share it up to their exec. The kernel
//! charges its high-water mark to each child (fs/exec.c, `setmax_mm_hiwater_rss`).

use std::ffi::c_void;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::write;
use rustix::mm::{Advice, madvise};
use rustix::param::page_size;

/// High-water mark of this process's resident memory (VmHWM).
pub struct MemoryHighWater(OwnedFd);

/// Text for clear_refs that sets the high-water mark to what is resident now
/// (proc_pid_clear_refs(5)).
const RESET_HIGH_WATER: &[u8] = b"5";

/// Bit of a resident page in pagemap (proc_pid_pagemap(5)).
const PRESENT: u64 = 1 << 63;

impl MemoryHighWater {
    /// Opens that of this process. Fails if the kernel lacks the file (CONFIG_PROC_PAGE_MONITOR) or
    /// it may not be written.
    pub fn own() -> io::Result<Self> {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        Ok(Self(open("/proc/self/clear_refs", flags, Mode::empty())?))
    }

    /// Resets the mark: the next child is charged with what is resident now, not with the maximum
    /// so far.
    pub fn reset(&self) {
        // After a failure the maximum stays, which is recorded beside the child's figures.
        let _ = write(&self.0, RESET_HIGH_WATER);
    }

    /// Releases resident pages of files that `rehearse` does not need. First it releases all. Then
    /// each page beside those that the rehearsal touched becomes a mapping of its own: with a page
    /// the kernel maps its surroundings (64 KiB of the file, since Linux 6.18 up to 2 MiB), but
    /// only within a mapping. The second rehearsal brings back what it needs.
    pub fn reduce(&self, mut rehearse: impl FnMut()) -> io::Result<()> {
        release(&file_mappings()?)?;
        rehearse();
        self.reset();
        let files = file_mappings()?;
        split_around_resident(&files)?;
        release(&files)?;
        rehearse();
        Ok(())
    }
}

/// Finds the private mappings of files that are not writable and of which no page was ever written
/// (relocations are).
fn file_mappings() -> io::Result<Vec<FileMapping>> {
    let mut files = Vec::new();
    for line in BufReader::new(File::open("/proc/self/smaps")?).split(b'\n') {
        gather(&mut files, &String::from_utf8_lossy(&line?));
    }
    Ok(files.into_iter().flatten().collect())
}

/// Releases all pages of these mappings: the page cache has them when they are touched again.
fn release(files: &[FileMapping]) -> io::Result<()> {
    for FileMapping { start, bytes } in files {
        // SAFETY: pages of a file in a mapping that cannot be written to and has no page of its
        // own: what is read there next is the same.
        unsafe { madvise(*start as *mut c_void, *bytes, Advice::LinuxDontNeed)? };
    }
    Ok(())
}

/// Makes every other page that is resident or beside a resident one a mapping of its own.
fn split_around_resident(files: &[FileMapping]) -> io::Result<()> {
    let pages = File::open("/proc/self/pagemap")?;
    for place in files {
        for page in pages_to_split(&resident(&pages, place)?) {
            let start = (place.start + page * page_size()) as *mut c_void;
            // SAFETY: sets the read-ahead of the file, and changes nothing in the page. Where the
            // advice differs from its neighbours' a mapping is one of its own.
            unsafe { madvise(start, page_size(), Advice::Random)? };
        }
    }
    Ok(())
}

/// Reads which pages of a mapping are resident.
fn resident(pages: &File, place: &FileMapping) -> io::Result<Vec<bool>> {
    let mut entries = vec![0; place.bytes / page_size() * size_of::<u64>()];
    let first = place.start / page_size() * size_of::<u64>();
    pages.read_exact_at(&mut entries, first as u64)?;
    let mut resident = Vec::new();
    for entry in entries.chunks_exact(size_of::<u64>()) {
        let entry = entry.first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
        resident.push(entry & PRESENT != 0);
    }
    Ok(resident)
}

/// Returns every other page, if it or a neighbour is resident.
fn pages_to_split(resident: &[bool]) -> Vec<usize> {
    let mut pages = Vec::new();
    for page in (1..resident.len()).step_by(2) {
        let end = resident.len().min(page + 2);
        if resident[page - 1..end].contains(&true) {
            pages.push(page);
        }
    }
    pages
}

/// Lines of smaps with the bytes of a mapping that were written: in memory and swapped out.
const WRITTEN: [&str; 2] = ["Anonymous:", "Swap:"];

/// Adds a mapping at its first line; a line with written bytes excludes it again.
fn gather(files: &mut Vec<Option<FileMapping>>, line: &str) {
    if let Some(mapping) = mapping(line) {
        files.push(mapping);
    } else if WRITTEN.iter().any(|name| line.starts_with(name))
        && line.split_whitespace().nth(1) != Some("0")
    {
        if let Some(last) = files.last_mut() {
            *last = None;
        }
    }
}

/// Address and size of a mapping, in whole pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileMapping {
    start: usize,
    bytes: usize,
}

/// Parses the first line of a mapping in smaps (proc_pid_maps(5)). Returns `Some(None)` if it is
/// not of a file, private and not writable.
fn mapping(line: &str) -> Option<Option<FileMapping>> {
    let mut fields = line.split_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let start = usize::from_str_radix(start, 16).ok()?;
    let bytes = usize::from_str_radix(end, 16).ok()?.checked_sub(start)?;
    let is_private = matches!(fields.next()?.as_bytes(), [_, b'-', _, b'p']);
    let is_file = fields.nth(3).is_some_and(|name| name.starts_with('/'));
    Some((is_private && is_file).then_some(FileMapping { start, bytes }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_no_one_has_written_to() {
        let text = "\
55d7fe5cd000-55d7fe7b6000 r--p 00000000 fe:00 5448403  /x/switchcost
Anonymous:             0 kB
55d7fe900000-55d7fe90d000 r--p 00b31000 fe:00 5448403  /x/with a space
Anonymous:             0 kB
Swap:                  8 kB
55d7ff100000-55d7ff11d000 r--p 00b31000 fe:00 5448403  /x/switchcost
Anonymous:           116 kB
55d7ff11d000-55d7ff11f000 rw-p 00b4d000 fe:00 5448403  /x/switchcost
Anonymous:             0 kB
7f0aa734b000-7f0aa734c000 r--s 00000000 00:01 119477   /memfd:switchcost (deleted)
Anonymous:             0 kB
7f0aa7357000-7f0aa7359000 r-xp 00000000 00:00 0        [vdso]
Anonymous:             0 kB
7f0aa708a000-7f0aa71e0000 r-xp 00026000 fe:00 326269   /usr/lib/libc.so.6
Anonymous:             0 kB";
        let mut files = Vec::new();
        text.lines().for_each(|line| gather(&mut files, line));
        let expected = [(0x55d7_fe5c_d000, 0x1e_9000), (0x7f0a_a708_a000, 0x15_6000)]
            .map(|(start, bytes)| FileMapping { start, bytes });
        assert!(files.into_iter().flatten().eq(expected));
    }

    #[test]
    fn pages_around_what_is_resident_are_cut() {
        let cut = |resident: &[usize]| {
            pages_to_split(&(0..6).map(|page| resident.contains(&page)).collect::<Vec<_>>())
        };
        assert_eq!(cut(&[]), [0; 0]);
        assert_eq!(cut(&[0]), [1]);
        assert_eq!(cut(&[1]), [1]);
        assert_eq!(cut(&[2]), [1, 3]);
        assert_eq!(cut(&[5]), [5]);
        assert_eq!(pages_to_split(&[true]), [0; 0], "nothing beside it");
    }
}
