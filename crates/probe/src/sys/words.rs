//! Commands as execve(2) takes them, in a file in memory: their texts are nobody's heap, so that a long
//! one leaves nothing in the launcher that the next command would be charged with.
//!
//! The writer leaves offsets, which the reader turns into addresses once it has mapped the file.

use std::ffi::{CStr, c_char, c_void};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;

use rustix::fs::{MemfdFlags, fstat, memfd_create};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

/// Bytes of a number, and of an address.
const NUMBER: usize = size_of::<u64>();

/// So few nobody's figures show.
const FEW_BYTES: usize = 16 << 10;

/// A command's texts, without bytes of zero: where its program may be, in the order in which execvp(3)
/// tries; and its words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Texts {
    /// Paths.
    pub candidates: Vec<Vec<u8>>,
    /// The words, the name first.
    pub words: Vec<Vec<u8>>,
}

/// Writes numbers and commands to a file that only lives as long as somebody has it open. It is closed
/// by exec.
pub fn write_words(numbers: &[u64], commands: &[Texts]) -> Result<OwnedFd, Errno> {
    // Numbers; of each command the places of its two tables; the tables; the texts.
    let tables = |texts: &Texts| [texts.candidates.len() + 1, texts.words.len() + 2];
    let head = numbers.len() + 2 + 2 * commands.len();
    let all_tables: usize = commands.iter().flat_map(tables).sum();
    let mut file: Vec<u64> = vec![numbers.len() as u64, commands.len() as u64];
    file.extend(numbers);
    let mut place = head;
    for length in commands.iter().flat_map(tables) {
        file.push((place * NUMBER) as u64);
        place += length;
    }
    let mut bytes: Vec<u8> = Vec::new();
    let mut text = |file: &mut Vec<u64>, text: &[u8]| {
        file.push(((head + all_tables) * NUMBER + bytes.len()) as u64);
        bytes.extend(text);
        bytes.push(0);
    };
    for Texts { candidates, words } in commands {
        candidates.iter().for_each(|path| text(&mut file, path));
        file.push(0);
        // Room for a shell before the words, if the program turns out to be its script.
        file.push(0);
        words.iter().for_each(|word| text(&mut file, word));
        file.push(0);
    }
    let descriptor = memfd_create(c"switchcost", MemfdFlags::CLOEXEC)?;
    let mut out = File::from(descriptor);
    let numbers: Vec<u8> = file.iter().flat_map(|number| number.to_ne_bytes()).collect();
    let written = out.write_all(&numbers).and_then(|()| out.write_all(&bytes));
    written.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    Ok(out.into())
}

/// What [`write_words`] wrote, mapped.
pub struct Words {
    base: NonNull<u64>,
    bytes: usize,
}

impl Words {
    /// Maps the file and looks through it: one that was not written so is refused.
    pub fn map(file: impl AsFd) -> Result<Self, Errno> {
        let bytes = fstat(&file)?.st_size as usize;
        if bytes < 2 * NUMBER {
            return Err(Errno::INVAL);
        }
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // Shared: its pages can be let go of.
        // SAFETY: a new mapping aliases nothing of this process. The program, which alone has the file
        // too, does not touch it any more.
        let base = unsafe {
            mmap(std::ptr::null_mut(), bytes, access, MapFlags::SHARED, file.as_fd(), 0)?
        };
        let base = NonNull::new(base.cast()).ok_or(Errno::NOMEM)?;
        let words = Self { base, bytes };
        words.relocate().ok_or(Errno::INVAL)?;
        Ok(words)
    }

    /// Lets go of what is resident of long ones; it comes again when it is touched.
    pub fn let_go(&self) {
        if self.bytes > FEW_BYTES {
            // SAFETY: the mapping is ours and shared: its pages stay the file's, with all that was
            // written. A failure leaves them resident.
            let _ = unsafe {
                madvise(self.base.as_ptr().cast::<c_void>(), self.bytes, Advice::LinuxDontNeed)
            };
        }
    }

    /// Turns offsets into addresses.
    fn relocate(&self) -> Option<()> {
        for command in 0..self.commands()? {
            let (paths, words) = self.places(command)?;
            self.relocate_table(paths)?;
            self.relocate_table(words + 1)?;
        }
        // Every text ends within the mapping.
        // SAFETY: the last byte of the mapping.
        let last = unsafe { *self.base.cast::<u8>().as_ptr().add(self.bytes - 1) };
        (last == 0).then_some(())
    }

    /// From place `first` on up to a zero; gives nothing unless there is one and all before are valid.
    fn relocate_table(&self, first: usize) -> Option<()> {
        for place in first.. {
            match self.number_at(place)? {
                0 => break,
                offset if (offset as usize) < self.bytes => {
                    // SAFETY: the offset is within the mapping, the place is, as it was just read.
                    unsafe {
                        let text = self.base.cast::<u8>().as_ptr().add(offset as usize);
                        *self.base.as_ptr().add(place) = text as u64;
                    }
                }
                _ => return None,
            }
        }
        Some(())
    }

    fn number_at(&self, place: usize) -> Option<u64> {
        // SAFETY: within the mapping, which is aligned to pages.
        (place < self.bytes / NUMBER).then(|| unsafe { *self.base.as_ptr().add(place) })
    }

    /// Where the tables of a command begin, in numbers.
    fn places(&self, command: usize) -> Option<(usize, usize)> {
        if command >= self.commands()? {
            return None;
        }
        let place = command.checked_mul(2)?.checked_add(2)?;
        let place = place.checked_add(self.number_at(0)? as usize)?;
        let of = |place| Some(self.number_at(place)? as usize / NUMBER);
        Some((of(place)?, of(place.checked_add(1)?)?))
    }

    fn commands(&self) -> Option<usize> {
        self.number_at(1).map(|count| count as usize)
    }

    /// One of the numbers.
    pub fn number(&self, which: usize) -> Option<u64> {
        (which < self.number_at(0)? as usize).then(|| self.number_at(which + 2))?
    }

    /// A command; absent beyond the last.
    pub fn command(&self, which: usize) -> Option<Command<'_>> {
        let (paths, words) = self.places(which)?;
        // SAFETY: `map` has looked through both tables: they end within the mapping.
        let (candidates, table) = unsafe {
            let at = |place| self.base.as_ptr().add(place).cast::<*const c_char>();
            (at(paths), at(words))
        };
        Some(Command { candidates, table, _words: self })
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and commands borrow it. A failure leaves it to the end of the
        // process.
        let _ = unsafe { munmap(self.base.as_ptr().cast::<c_void>(), self.bytes) };
    }
}

/// A command of [`Words`].
#[derive(Clone, Copy)]
pub struct Command<'a> {
    /// Addresses of paths, ended by a null.
    candidates: *const *const c_char,
    /// Room for one address, then those of the words, ended by a null.
    table: *mut *const c_char,
    _words: &'a Words,
}

impl Command<'_> {
    /// Becomes the command as execvp(3) does, which looks for the program from the first path on: here
    /// `found` is where to begin, and is told each path before it is tried. Returns only if none can be
    /// executed.
    pub(super) fn exec(&self, found: usize, mut trying: impl FnMut(usize)) -> Errno {
        let mut denied = false;
        let mut last = Errno::NOENT;
        let (mut place, mut again) = (found, found > 0);
        loop {
            // SAFETY: `place` is at most the number of paths, behind which there is a null.
            let path = unsafe { *self.candidates.add(place) };
            if path.is_null() {
                if !again {
                    break;
                }
                // It is not there any more where it was.
                (place, again) = (0, false);
                continue;
            }
            trying(place);
            last = self.exec_path(path);
            match last {
                Errno::ACCESS => denied = true,
                Errno::NOENT | Errno::STALE | Errno::NOTDIR | Errno::NODEV | Errno::TIMEDOUT => {}
                errno => return errno,
            }
            place += 1;
        }
        if denied { Errno::ACCESS } else { last }
    }

    fn exec_path(&self, path: *const c_char) -> Errno {
        // SAFETY: path, words and environment are C strings, their tables end with a null. The table
        // has room for the shell before the words, and at least one word.
        unsafe {
            let words = self.table.add(1);
            let environment = environ.cast_const();
            libc::execve(path, words, environment);
            let mut errno = super::process::last_errno();
            if errno == Errno::NOEXEC && !(*words).is_null() {
                // No program, and no `#!`: a script for the shell.
                let name = words.replace(path);
                *self.table = SHELL.as_ptr();
                libc::execve(SHELL.as_ptr(), self.table, environment);
                errno = super::process::last_errno();
                *words = name;
            }
            errno
        }
    }

    /// As it was before a script's path took the place of its name, for the next who becomes it.
    pub(super) fn name(&self) -> *const c_char {
        // SAFETY: the table has room before the words, and a null behind them.
        unsafe { *self.table.add(1) }
    }

    /// Puts the name back.
    pub(super) fn rename(&self, name: *const c_char) {
        // SAFETY: as above; the pointer was read there.
        unsafe { *self.table.add(1) = name };
    }
}

/// Of the C library's execvp(3) (_PATH_BSHELL).
const SHELL: &CStr = c"/bin/sh";

unsafe extern "C" {
    static environ: *mut *const c_char;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(candidates: &[&str], words: &[&str]) -> Texts {
        let all = |texts: &[&str]| texts.iter().map(|text| text.as_bytes().to_vec()).collect();
        Texts { candidates: all(candidates), words: all(words) }
    }

    fn strings(mut table: *const *const c_char) -> Vec<String> {
        let mut all = Vec::new();
        // SAFETY: the tables of a command end with a null and hold C strings.
        unsafe {
            while !(*table).is_null() {
                all.push(CStr::from_ptr(*table).to_str().unwrap().to_owned());
                table = table.add(1);
            }
        }
        all
    }

    #[test]
    fn what_is_written_is_read() {
        let commands = [texts(&["/a/x", "x"], &["x", "", "long one"]), texts(&["/y"], &["y"])];
        let file = write_words(&[7, u64::MAX], &commands).unwrap();
        let words = Words::map(&file).unwrap();
        assert_eq!(
            (words.number(0), words.number(1), words.number(2)),
            (Some(7), Some(u64::MAX), None)
        );
        let first = words.command(0).unwrap();
        assert_eq!(strings(first.candidates), ["/a/x", "x"]);
        // SAFETY: one place is kept free before the words.
        let own = |command: &Command| strings(unsafe { command.table.add(1) });
        assert_eq!(own(&first), ["x", "", "long one"]);
        assert_eq!(own(&words.command(1).unwrap()), ["y"]);
        assert!(words.command(2).is_none());
    }

    #[test]
    fn anything_else_is_refused() {
        for bytes in [&[0_u8; 8][..], &[255; 64], &[9; 32]] {
            let descriptor = memfd_create(c"test", MemfdFlags::CLOEXEC).unwrap();
            let mut file = File::from(descriptor);
            file.write_all(bytes).unwrap();
            assert!(Words::map(&file).is_err(), "{bytes:?}");
        }
    }
}
