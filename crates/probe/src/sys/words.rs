//! Commands as execve(2) takes them, in a file in memory: their texts are nobody's heap, so that a long
//! one leaves nothing in the launcher that the next command would be charged with.
//!
//! The count of commands; of each the lengths of its tables; the tables, one behind the other; the texts.
//! Tables hold offsets, which the reader turns into addresses.

use std::cell::Cell;
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

/// Mappings of no more than this are left resident.
const FEW_BYTES: usize = 16 << 10;

/// A command's texts, without bytes of zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Texts {
    /// Paths of the program, in the order in which execvp(3) tries them.
    pub candidates: Vec<Vec<u8>>,
    /// The words, the name first.
    pub words: Vec<Vec<u8>>,
}

/// Writes commands to a file in memory, which is closed by exec.
pub fn write_words(commands: &[Texts]) -> Result<OwnedFd, Errno> {
    let mut file: Vec<u64> = vec![commands.len() as u64];
    let lengths = |texts: &Texts| [texts.candidates.len() as u64, texts.words.len() as u64];
    file.extend(commands.iter().flat_map(lengths));
    let tables: usize =
        commands.iter().map(|texts| texts.candidates.len() + texts.words.len() + 3).sum();
    let first_text = (file.len() + tables) * NUMBER;
    let mut bytes: Vec<u8> = Vec::new();
    let mut offset = |text: &Vec<u8>| {
        let offset = first_text + bytes.len();
        bytes.extend(text);
        bytes.push(0);
        offset as u64
    };
    for Texts { candidates, words } in commands {
        file.extend(candidates.iter().map(&mut offset));
        // The end of one table, and room for a shell before the words of the other, if the program turns
        // out to be its script.
        file.extend([0, 0]);
        file.extend(words.iter().map(&mut offset));
        file.push(0);
    }
    let mut out = File::from(memfd_create(c"switchcost", MemfdFlags::CLOEXEC)?);
    let numbers: Vec<u8> = file.iter().flat_map(|number| number.to_ne_bytes()).collect();
    let written = out.write_all(&numbers).and_then(|()| out.write_all(&bytes));
    written.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    Ok(out.into())
}

/// What [`write_words`] wrote, mapped.
pub struct Words {
    base: NonNull<u64>,
    bytes: usize,
    tables: Vec<Tables>,
}

/// Where a command's tables begin, in numbers: that of the words with the room before them.
struct Tables {
    candidates: usize,
    words: usize,
}

impl Words {
    /// Maps the file. EINVAL unless all tables lie behind the counts, none over another, each ends with a
    /// null and holds texts that lie behind all tables and end within the file.
    pub fn map(file: impl AsFd) -> Result<Self, Errno> {
        let bytes = fstat(&file)?.st_size as usize;
        if bytes < NUMBER {
            return Err(Errno::INVAL);
        }
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // Shared: its pages can be released.
        // SAFETY: a new mapping aliases nothing of this process. The program, which alone has the file
        // too, does not touch it any more.
        let base = unsafe {
            mmap(std::ptr::null_mut(), bytes, access, MapFlags::SHARED, file.as_fd(), 0)?
        };
        let base = NonNull::new(base.cast()).ok_or(Errno::NOMEM)?;
        let mut words = Self { base, bytes, tables: Vec::new() };
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

    /// Finds the tables and turns their offsets into addresses. That they cannot overlap follows from
    /// their lengths: each begins where the one before ends.
    fn relocate(&mut self) -> Option<()> {
        let (commands, mut lengths) = (self.at(0)?, 1);
        let mut end = commands.checked_mul(2)?.checked_add(lengths)?;
        let mut filled = Vec::new();
        for _ in 0..commands {
            let candidates = end;
            let words = candidates.checked_add(self.at(lengths)?)?.checked_add(1)?;
            // The name at least.
            let count = self.at(lengths + 1).filter(|count| *count > 0)?;
            end = words.checked_add(count)?.checked_add(2)?;
            self.tables.push(Tables { candidates, words });
            filled.extend([candidates..words - 1, words + 1..end - 1]);
            lengths += 2;
        }
        // The last text ends with the mapping.
        // SAFETY: the last byte of the mapping.
        let last = unsafe { *self.base.cast::<u8>().as_ptr().add(self.bytes - 1) };
        let texts = end.checked_mul(NUMBER)?..self.bytes;
        if last != 0 || texts.is_empty() && commands > 0 {
            return None;
        }
        for table in filled {
            if self.at(table.end)? != 0 {
                return None;
            }
            for place in table {
                let offset = self.at(place)?;
                if !texts.contains(&offset) {
                    return None;
                }
                // SAFETY: the offset is within the mapping, the place is, as it was just read.
                unsafe {
                    let text = self.base.cast::<u8>().as_ptr().add(offset);
                    *self.base.as_ptr().add(place) = text as u64;
                }
            }
        }
        Some(())
    }

    fn at(&self, place: usize) -> Option<usize> {
        // SAFETY: within the mapping, which is aligned to pages.
        (place < self.bytes / NUMBER).then(|| unsafe { *self.base.as_ptr().add(place) } as usize)
    }

    /// How many commands there are.
    pub fn commands(&self) -> usize {
        self.tables.len()
    }

    /// A command; absent beyond the last.
    pub fn command(&self, which: usize) -> Option<Command<'_>> {
        let Tables { candidates, words } = *self.tables.get(which)?;
        // SAFETY: `map` has looked through both tables: they end within the mapping.
        let (candidates, table) = unsafe {
            let at = |place| self.base.as_ptr().add(place).cast::<*const c_char>();
            (at(candidates), at(words))
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
    /// from `found` on, where each place is noted before it is tried. Returns only if none can be executed.
    pub(super) fn exec(&self, found: &Cell<usize>) -> Errno {
        let (mut denied, mut last) = (false, Errno::NOENT);
        let (mut place, mut again) = (found.get(), found.get() > 0);
        loop {
            // SAFETY: `place` is at most the number of paths, behind which there is a null.
            let path = unsafe { *self.candidates.add(place) };
            if path.is_null() {
                if !again {
                    return if denied { Errno::ACCESS } else { last };
                }
                // It is not there any more where it was.
                (place, again) = (0, false);
                continue;
            }
            found.set(place);
            last = self.exec_path(path);
            match last {
                Errno::ACCESS => denied = true,
                Errno::NOENT | Errno::STALE | Errno::NOTDIR | Errno::NODEV | Errno::TIMEDOUT => {}
                errno => return errno,
            }
            place += 1;
        }
    }

    fn exec_path(&self, path: *const c_char) -> Errno {
        // SAFETY: path, words and environment are C strings, their tables end with a null. The table
        // has room for the shell before the words, and at least one word.
        unsafe {
            let words = self.table.add(1);
            let environment = environ.cast_const();
            libc::execve(path, words, environment);
            let mut errno = super::errno::last_errno();
            if errno == Errno::NOEXEC && !(*words).is_null() {
                // No program, and no `#!`: a script for the shell.
                let name = words.replace(path);
                *self.table = SHELL.as_ptr();
                libc::execve(SHELL.as_ptr(), self.table, environment);
                errno = super::errno::last_errno();
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
        let file = write_words(&commands).unwrap();
        let words = Words::map(&file).unwrap();
        let first = words.command(0).unwrap();
        assert_eq!(strings(first.candidates), ["/a/x", "x"]);
        // SAFETY: one place is kept free before the words.
        let own = |command: &Command| strings(unsafe { command.table.add(1) });
        assert_eq!(own(&first), ["x", "", "long one"]);
        assert_eq!(own(&words.command(1).unwrap()), ["y"]);
        assert!(words.command(2).is_none());
    }

    fn refused(bytes: &[u8]) -> bool {
        let descriptor = memfd_create(c"test", MemfdFlags::CLOEXEC).unwrap();
        let mut file = File::from(descriptor);
        file.write_all(bytes).unwrap();
        Words::map(&file).is_err()
    }

    #[test]
    fn anything_else_is_refused() {
        for bytes in [&[0_u8; 7][..], &[255; 64], &[9; 32]] {
            assert!(refused(bytes), "{bytes:?}");
        }
    }

    /// One command of one path and one word: count, lengths, path, null, room, word, null, texts.
    #[test]
    fn texts_are_behind_all_tables_and_tables_end() {
        let sound = [1, 1, 1, 64, 0, 0, 64, 0, u64::from(b'x')];
        let bytes = |numbers: &[u64]| -> Vec<u8> {
            numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
        };
        assert!(!refused(&bytes(&sound)));
        let wrong = [(0, 2), (1, 2), (1, 0), (2, 0), (2, 2), (2, u64::MAX)];
        // Offsets into a table, or behind the file; a table without its null.
        let wrong = wrong.into_iter().chain([(3, 56), (6, 32), (6, 72), (4, 64), (7, 64)]);
        for (place, value) in wrong {
            let mut changed = sound;
            changed[place] = value;
            assert!(refused(&bytes(&changed)), "{place}: {value}");
        }
    }
}
