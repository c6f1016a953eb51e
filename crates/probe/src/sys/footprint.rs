//! The memory of a process whose children share it up to their exec: the kernel books its high
//! water on them (fs/exec.c, `setmax_mm_hiwater_rss`), so it is kept low.

use std::ffi::c_void;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::write;
use rustix::mm::{Advice, madvise};
use rustix::param::page_size;

/// The most that was resident of this process (VmHWM).
pub struct MemoryHighWater(OwnedFd);

/// Written to clear_refs: the high water is to be what is resident now (proc_pid_clear_refs(5)).
const RESET_HIGH_WATER: &[u8] = b"5";

/// Of a page in pagemap: present (proc_pid_pagemap(5)).
const PRESENT: u64 = 1 << 63;

impl MemoryHighWater {
    /// Fails where the kernel has no such file (CONFIG_PROC_PAGE_MONITOR), or it may not be used.
    pub fn own() -> io::Result<Self> {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        Ok(Self(open("/proc/self/clear_refs", flags, Mode::empty())?))
    }

    /// The next child is charged with what is resident now, not with the most that ever was.
    pub fn reset(&self) {
        // A failure would leave the most that ever was, which is recorded beside the child's
        // figures.
        let _ = write(&self.0, RESET_HIGH_WATER);
    }

    /// Gives back what is resident of files and not needed for `rehearse`: once all of it; then
    /// each page around what the rehearsal touched becomes a mapping of its own. The kernel maps
    /// what lies around a page too (64 KiB of the file, since Linux 6.18 up to 2 MiB), but no more
    /// than there is of a mapping. The second rehearsal brings back what it needs.
    pub fn reduce(&self, mut rehearse: impl FnMut()) -> io::Result<()> {
        give_back(&files()?)?;
        rehearse();
        self.reset();
        let files = files()?;
        cut(&files)?;
        give_back(&files)?;
        rehearse();
        Ok(())
    }
}

/// Private mappings of files, not writable, of which no page was ever written (relocations are).
fn files() -> io::Result<Vec<FileMapping>> {
    let mut files = Vec::new();
    for line in BufReader::new(File::open("/proc/self/smaps")?).split(b'\n') {
        gather(&mut files, &String::from_utf8_lossy(&line?));
    }
    Ok(files.into_iter().flatten().collect())
}

/// Gives back all pages of files: they come again from the page cache when they are touched.
fn give_back(files: &[FileMapping]) -> io::Result<()> {
    for FileMapping { start, bytes } in files {
        // SAFETY: pages of a file in a mapping that cannot be written to and has no page of its
        // own: what is read there next is the same.
        unsafe { madvise(*start as *mut c_void, *bytes, Advice::LinuxDontNeed)? };
    }
    Ok(())
}

/// Makes a mapping of its own of every page that is resident, or beside one.
fn cut(files: &[FileMapping]) -> io::Result<()> {
    let pages = File::open("/proc/self/pagemap")?;
    for place in files {
        for page in to_cut(&resident(&pages, place)?) {
            let start = (place.start + page * page_size()) as *mut c_void;
            // SAFETY: sets the read-ahead of the file, and changes nothing in the page. Where the
            // advice differs from its neighbours' a mapping is one of its own.
            unsafe { madvise(start, page_size(), Advice::Random)? };
        }
    }
    Ok(())
}

/// Which pages of a mapping are resident.
fn resident(pages: &File, place: &FileMapping) -> io::Result<Vec<bool>> {
    let mut entries = vec![0; place.bytes / page_size() * size_of::<u64>()];
    let first = place.start / page_size() * size_of::<u64>();
    pages.read_exact_at(&mut entries, first as u64)?;
    let entries = entries.chunks_exact(size_of::<u64>());
    let is_present = |entry: &[u8]| {
        let entry = entry.first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
        entry & PRESENT != 0
    };
    Ok(entries.map(is_present).collect())
}

/// Every other page, as far as it or a neighbour is resident.
fn to_cut(resident: &[bool]) -> Vec<usize> {
    let near = |page: &usize| resident[page - 1..resident.len().min(page + 2)].contains(&true);
    (1..resident.len()).step_by(2).filter(near).collect()
}

/// Lines of smaps with the bytes of a mapping that are no longer the file's: in memory and swapped
/// out.
const OWN: [&str; 2] = ["Anonymous:", "Swap:"];

/// Adds a mapping by its first line; a line with bytes of its own excludes it again.
fn gather(files: &mut Vec<Option<FileMapping>>, line: &str) {
    if let Some(mapping) = mapping(line) {
        files.push(mapping);
    } else if OWN.iter().any(|name| line.starts_with(name))
        && line.split_whitespace().nth(1) != Some("0")
    {
        if let Some(last) = files.last_mut() {
            *last = None;
        }
    }
}

/// Where a mapping is, in whole pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileMapping {
    start: usize,
    bytes: usize,
}

/// The first line of a mapping in smaps (proc_pid_maps(5)); the mapping where it is of a file,
/// private and not writable.
fn mapping(line: &str) -> Option<Option<FileMapping>> {
    let mut fields = line.split_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let address = |text| usize::from_str_radix(text, 16).ok();
    let start = address(start)?;
    let bytes = address(end)?.checked_sub(start)?;
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
            to_cut(&(0..6).map(|page| resident.contains(&page)).collect::<Vec<_>>())
        };
        assert_eq!(cut(&[]), [0; 0]);
        assert_eq!(cut(&[0]), [1]);
        assert_eq!(cut(&[1]), [1]);
        assert_eq!(cut(&[2]), [1, 3]);
        assert_eq!(cut(&[5]), [5]);
        assert_eq!(to_cut(&[true]), [0; 0], "nothing beside it");
    }
}
