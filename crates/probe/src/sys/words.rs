//! Commands in the form of execve(2), in a file in memory. Their texts are not on the heap: a long
//! text leaves no resident memory in the launcher that the next command would be charged with.
//!
//! Format of the file: the number of commands; for each its numbers of paths and of words; all
//! texts, each ended by a zero. Two commands, the second with one path and one word:
//!
//! ```text
//! 2 | 2 3 | 1 1 | "/a/x" "x" "x" "-v" "long" "/y" "y"
//! ```

use std::cell::Cell;
use std::ffi::{CStr, CString, c_char};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, memfd_create};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, madvise};

use super::mapping::MemoryMapping;

/// Bytes of a number, and of an address.
const NUMBER_BYTES: usize = size_of::<usize>();

/// Seals of the file: it cannot change any more, as the launcher passes addresses in it to the
/// kernel.
const SEALS: SealFlags = SealFlags::GROW.union(SealFlags::SHRINK).union(SealFlags::WRITE);

/// Size up to which a mapping stays resident.
const RESIDENT_BYTES: usize = 16 << 10;

/// Texts of a command, which have no zero bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandTexts {
    /// Paths of the program, in the order in which execvp(3) tries them.
    pub candidates: Vec<Vec<u8>>,
    /// Words of the command, its name first.
    pub words: Vec<Vec<u8>>,
}

/// Writes commands to a file in memory, which is closed by exec and can no longer be changed.
pub fn write_commands(commands: &[CommandTexts]) -> Result<OwnedFd, Errno> {
    let mut bytes = Vec::new();
    bytes.extend(commands.len().to_ne_bytes());
    for command in commands {
        bytes.extend(command.candidates.len().to_ne_bytes());
        bytes.extend(command.words.len().to_ne_bytes());
    }
    for command in commands {
        for text in command.candidates.iter().chain(&command.words) {
            bytes.extend(text);
            bytes.push(0);
        }
    }
    sealed(&bytes).map(Into::into)
}

/// Writes bytes to a file in memory that can no longer be changed.
fn sealed(bytes: &[u8]) -> Result<File, Errno> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let mut file = File::from(memfd_create(c"switchcost", flags)?);
    let written = file.write_all(bytes);
    written.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    fcntl_add_seals(&file, SEALS)?;
    Ok(file)
}

/// A mapped file of [`write_commands`].
pub struct CommandFile {
    mapping: MemoryMapping,
    commands: Vec<TextPlace>,
}

/// Offset of a command's texts, and their numbers.
#[derive(Clone, Copy)]
struct TextPlace {
    text: usize,
    candidates: usize,
    words: usize,
}

impl CommandFile {
    /// Maps the file. EINVAL unless it is sealed, every command has a word, and all texts end
    /// within the file.
    pub fn map(file: impl AsFd) -> Result<Self, Errno> {
        if !fcntl_get_seals(&file)?.contains(SEALS) {
            return Err(Errno::INVAL);
        }
        let bytes = fstat(&file)?.st_size as usize;
        // It is sealed, so that no process changes it. Kernels before 6.7 do not map such a file
        // shared.
        let mapping = MemoryMapping::of_file(file, bytes, false)?;
        let mut words = Self { mapping, commands: Vec::new() };
        words.commands = words.find().ok_or(Errno::INVAL)?;
        Ok(words)
    }

    /// Finds the texts of all commands; `None` if the file is not valid.
    fn find(&self) -> Option<Vec<TextPlace>> {
        let commands = self.number(0)?;
        let mut offset = commands.checked_mul(2)?.checked_add(1)?.checked_mul(NUMBER_BYTES)?;
        let mut places = Vec::new();
        for command in 0..commands {
            let candidates = self.number(2 * command + 1)?;
            let words = self.number(2 * command + 2)?;
            places.push(TextPlace { text: offset, candidates, words });
            for _ in 0..candidates.checked_add(words)? {
                offset += self.bytes().get(offset..)?.iter().position(|byte| *byte == 0)? + 1;
            }
            if words == 0 {
                // The command has no name.
                return None;
            }
        }
        Some(places)
    }

    /// Reads one of the numbers at the beginning of the file.
    fn number(&self, index: usize) -> Option<usize> {
        let offset = index.checked_mul(NUMBER_BYTES)?;
        Some(usize::from_ne_bytes(*self.bytes().get(offset..)?.first_chunk()?))
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: mapped and readable as long as self; the file is sealed: nobody changes or
        // shortens it.
        unsafe { std::slice::from_raw_parts(self.mapping.base.cast(), self.mapping.bytes) }
    }

    /// Releases the resident pages of a long file; they come back when they are touched.
    pub fn let_go(&self) {
        let (base, bytes) = (self.mapping.base, self.mapping.bytes);
        if bytes > RESIDENT_BYTES {
            // SAFETY: nothing was written to the mapping: its pages are the file's. A failure
            // leaves them resident.
            let _ = unsafe { madvise(base, bytes, Advice::LinuxDontNeed) };
        }
    }

    /// Returns the number of commands.
    pub fn commands(&self) -> usize {
        self.commands.len()
    }

    /// Returns the words of a command, without its paths. EINVAL if there is no such command.
    pub fn texts(&self, which: usize) -> Result<Vec<CString>, Errno> {
        let TextPlace { text, candidates, words } =
            *self.commands.get(which).ok_or(Errno::INVAL)?;
        let texts = self.bytes()[text..].split(|byte| *byte == 0).skip(candidates).take(words);
        texts.map(|text| CString::new(text).map_err(|_| Errno::INVAL)).collect()
    }

    /// Returns a command, whose tables are another mapping. EINVAL if there is no such command.
    pub fn command(&self, which: usize) -> Result<MappedCommand<'_>, Errno> {
        let TextPlace { text, candidates, words } =
            *self.commands.get(which).ok_or(Errno::INVAL)?;
        // The paths and a null, room for a shell, the words and a null.
        let bytes = (candidates + 2 + words + 1) * NUMBER_BYTES;
        let table = MemoryMapping::new(bytes, MapFlags::PRIVATE)?;
        let places = (0..candidates).chain(candidates + 2..candidates + 2 + words);
        for (place, text) in places.zip(self.bytes()[text..].split(|byte| *byte == 0)) {
            // SAFETY: the place is within the table, which is aligned to pages.
            unsafe { table.base.cast::<*const u8>().add(place).write(text.as_ptr()) };
        }
        Ok(MappedCommand { table, shell: candidates + 1, _texts: self })
    }
}

/// A command of a [`CommandFile`].
pub struct MappedCommand<'a> {
    /// Addresses of paths, ended by a null; room for one address, then those of the words, ended by
    /// a null.
    table: MemoryMapping,
    /// Index of the room for the shell.
    shell: usize,
    _texts: &'a CommandFile,
}

impl MappedCommand<'_> {
    fn table(&self) -> *mut *const c_char {
        self.table.base.cast()
    }

    /// Executes the command like execvp(3), but tries the paths from number `found` on, where it
    /// notes each path before it is tried. Returns only if none can be executed.
    pub(super) fn exec(&self, found: &Cell<usize>) -> Errno {
        let (mut denied, mut last) = (false, Errno::NOENT);
        let candidates = self.shell - 1;
        let first = found.get().min(candidates);
        // Then those before: the program may have moved.
        for place in (first..candidates).chain(0..first) {
            found.set(place);
            // SAFETY: `place` is below the number of paths.
            last = self.exec_path(unsafe { *self.table().add(place) });
            match last {
                Errno::ACCESS => denied = true,
                Errno::NOENT | Errno::STALE | Errno::NOTDIR | Errno::NODEV | Errno::TIMEDOUT => {}
                errno => return errno,
            }
        }
        if denied { Errno::ACCESS } else { last }
    }

    /// Executes one path; returns the errno if that fails.
    fn exec_path(&self, path: *const c_char) -> Errno {
        // SAFETY: path, words and environment are C strings, their tables end with a null. The
        // table has room for the shell before the words, and at least one word.
        unsafe {
            let shell = self.table().add(self.shell);
            let words = shell.add(1);
            let environment = environ.cast_const();
            libc::execve(path, words, environment);
            let mut errno = super::last_errno();
            if errno == Errno::NOEXEC {
                // Neither a program nor a script with `#!`: the shell executes it.
                let name = words.replace(path);
                shell.write(SHELL.as_ptr());
                libc::execve(SHELL.as_ptr(), shell, environment);
                errno = super::last_errno();
                words.write(name);
            }
            errno
        }
    }
}

/// Shell of the C library's execvp(3) (_PATH_BSHELL).
const SHELL: &CStr = c"/bin/sh";

unsafe extern "C" {
    static environ: *mut *const c_char;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomSource;

    fn texts(candidates: &[&str], words: &[&str]) -> CommandTexts {
        let all = |texts: &[&str]| texts.iter().map(|text| text.as_bytes().to_vec()).collect();
        CommandTexts { candidates: all(candidates), words: all(words) }
    }

    /// The addresses of a table from a place on.
    fn strings_at(command: &MappedCommand, place: usize) -> Vec<*const c_char> {
        let address = |at| {
            // SAFETY: the tables of a command end with a null, before which this stops.
            unsafe { *command.table().add(at) }
        };
        (place..).map(address).take_while(|address| !address.is_null()).collect()
    }

    fn strings(command: &MappedCommand, place: usize) -> Vec<String> {
        let text = |address: &*const c_char| {
            // SAFETY: the tables of a command hold C strings.
            unsafe { CStr::from_ptr(*address) }.to_str().unwrap().to_owned()
        };
        strings_at(command, place).iter().map(text).collect()
    }

    #[test]
    fn what_is_written_is_read() {
        let commands = [texts(&["/a/x", "x"], &["x", "", "long one"]), texts(&["/y"], &["y"])];
        let file = write_commands(&commands).unwrap();
        let words = CommandFile::map(&file).unwrap();
        let first = words.command(0).unwrap();
        assert_eq!(strings(&first, 0), ["/a/x", "x"]);
        let own = |command: &MappedCommand| strings(command, command.shell + 1);
        assert_eq!(own(&first), ["x", "", "long one"]);
        assert_eq!(own(&words.command(1).unwrap()), ["y"]);
        assert!(words.command(2).is_err());
        assert_eq!(words.texts(0).unwrap(), [c"x", c"", c"long one"].map(CStr::to_owned));
        assert!(words.texts(2).is_err());
    }

    fn refused(bytes: &[u8]) -> bool {
        CommandFile::map(sealed(bytes).unwrap()).is_err()
    }

    /// What is shortened once it is mapped is a SIGBUS.
    #[test]
    fn a_file_that_could_still_change_is_refused() {
        let bytes: Vec<u8> = [1_usize, 0, 1, 0].iter().flat_map(|n| n.to_ne_bytes()).collect();
        assert!(!refused(&bytes));
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let mut file = File::from(memfd_create(c"test", flags).unwrap());
        file.write_all(&bytes).unwrap();
        for seals in [SealFlags::empty(), SealFlags::GROW | SealFlags::WRITE] {
            fcntl_add_seals(&file, seals).unwrap();
            assert_eq!(CommandFile::map(&file).err(), Some(Errno::INVAL));
        }
    }

    /// Every address of every table that is accepted is a text's within the file, whatever the file
    /// says.
    #[test]
    fn tables_of_changed_files_point_to_their_texts() {
        let mut random = RandomSource::new(19);
        let mut accepted = 0;
        let files = testing::repeats(2_000, 20_000);
        for _ in 0..files {
            let mut head: Vec<usize> = vec![2, 1, 2, 2, 1];
            let mut texts = b"/a\0x\0y\0/b\0/c\0z\0".to_vec();
            match random.below(4) {
                0 => head[random.below(5) as usize] = random.next() as usize >> random.below(64),
                1 => texts.truncate(random.below(15) as usize),
                2 => texts[random.below(15) as usize] = 0,
                _ => head[random.below(5) as usize] = random.below(5) as usize,
            }
            let bytes = head.iter().flat_map(|n| n.to_ne_bytes()).chain(texts);
            let Ok(words) = CommandFile::map(sealed(&bytes.collect::<Vec<u8>>()).unwrap()) else {
                continue;
            };
            let ends = words.bytes().as_ptr_range();
            for number in 0..words.commands() {
                let command = words.command(number).unwrap();
                let all = [strings_at(&command, 0), strings_at(&command, command.shell + 1)];
                assert!(!all[1].is_empty(), "{head:?}");
                assert!(all.concat().iter().all(|text| ends.contains(&text.cast())), "{head:?}");
            }
            accepted += 1;
        }
        assert!((files / 20..files - files / 20).contains(&accepted), "{accepted}");
    }

    #[test]
    fn anything_else_is_refused() {
        for bytes in [&[0_u8; 7][..], &[255; 64], &[9; 32]] {
            assert!(refused(bytes), "{bytes:?}");
        }
    }

    /// One command of one path and one word: count, lengths, both texts.
    #[test]
    fn texts_are_as_many_as_said_and_end_within_the_file() {
        let sound = [1_usize, 1, 1, usize::from_ne_bytes(*b"/x\0x\0\0\0\0")];
        let bytes =
            |numbers: &[usize]| numbers.iter().flat_map(|n| n.to_ne_bytes()).collect::<Vec<u8>>();
        assert!(!refused(&bytes(&sound)));
        let unended = usize::from_ne_bytes(*b"/x\0xxxxx");
        // More commands or texts than there are, no word, a text without its end.
        let wrong =
            [(0, 2), (1, 6), (1, usize::MAX), (2, 0), (2, 6), (2, usize::MAX), (3, unended)];
        for (place, value) in wrong {
            let mut changed = sound;
            changed[place] = value;
            assert!(refused(&bytes(&changed)), "{place}: {value}");
        }
    }
}
