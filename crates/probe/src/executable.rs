//! The file that a program runs: its path, and the build id that its linker gave it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use object::read::{Object, ReadCache};
use rundata::trial::command::Executable;

/// Reads the path of the file that a process or thread runs.
pub fn read_path(id: i32) -> Option<String> {
    Some(fs::read_link(format!("/proc/{id}/exe")).ok()?.to_string_lossy().into_owned())
}

/// Reads the words that a process was started with, if all of them are UTF-8.
pub fn read_words(pid: i32) -> Option<Vec<String>> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words = line.strip_suffix(&[0])?.split(|byte| *byte == 0);
    words.map(|word| String::from_utf8(word.to_vec()).ok()).collect()
}

/// Finds the executable of a running process.
pub fn find_for_process(pid: i32) -> Option<Executable> {
    let link = PathBuf::from(format!("/proc/{pid}/exe"));
    let path = fs::read_link(&link).ok()?;
    // The link leads to the file itself, whatever is at its path by now.
    Some(executable(&path, &link))
}

/// Finds the executable of a command's first word: a path, or a name that is searched in `path`,
/// which is a list like PATH.
pub fn find_for_command(program: &str, path: &str) -> Option<Executable> {
    let found = if program.contains('/') { PathBuf::from(program) } else { search(program, path)? };
    let absolute = found.canonicalize().ok()?;
    Some(executable(&absolute, &absolute))
}

/// Searches a program in a list of folders.
fn search(program: &str, path: &str) -> Option<PathBuf> {
    path.split(':').map(|folder| Path::new(folder).join(program)).find(|file| file.is_file())
}

/// Builds the executable at `path`, whose file can be opened at `readable`.
fn executable(path: &Path, readable: &Path) -> Executable {
    Executable { path: path.to_string_lossy().into_owned(), build_id: build_id(readable) }
}

fn build_id(path: &Path) -> Option<String> {
    let cache = ReadCache::new(File::open(path).ok()?);
    let file = object::File::parse(&cache).ok()?;
    let id = file.build_id().ok()??;
    Some(id.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_and_its_process_have_the_same_executable() {
        let own = find_for_process(std::process::id() as i32).expect("own process");
        assert_eq!(find_for_command(&own.path, ""), Some(own.clone()));
        let (folder, name) = own.path.rsplit_once('/').expect("a whole path");
        assert_eq!(find_for_command(name, &format!("/nowhere:{folder}")), Some(own));
    }

    #[test]
    fn what_is_no_program_has_no_identity() {
        assert_eq!(find_for_command("no-such-program", "/bin:/usr/bin"), None);
        let script = find_for_command("/proc/self/status", "").expect("a file");
        assert_eq!(script.build_id, None);
    }
}
