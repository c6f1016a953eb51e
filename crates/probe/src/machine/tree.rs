//! Files below a root folder, and the errors of reading them.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use flate2::read::GzDecoder;
use rundata::machine::CpuList;
use rundata::reading::Reading;
use thiserror::Error;

use crate::procfs;

/// Upper bound of the size of a file: /proc/cpuinfo of 1,024 CPUs has 1.5 MiB.
const MAX_BYTES: u64 = 16 << 20;

/// Longest part of a file's content that an error repeats.
const MAX_ITEM_CHARS: usize = 40;

/// Reason why a file gave no value: its path as seen from the root, and what is wrong with it.
#[derive(Clone, Debug, Error)]
#[error("{text}")]
pub(super) struct ReadError {
    text: String,
    /// Whether the file does not exist.
    pub(super) is_missing: bool,
}

impl ReadError {
    fn new(path: &str, why: impl Display) -> Self {
        Self { text: format!("{path}: {why}"), is_missing: false }
    }

    fn io(path: &str) -> impl Fn(io::Error) -> Self {
        move |error| {
            let is_missing = error.kind() == io::ErrorKind::NotFound;
            Self { is_missing, ..Self::new(path, error) }
        }
    }

    /// Builds the error of an item that is not what it should be.
    pub(super) fn invalid(path: &str, item: &str, wanted: impl Display) -> Self {
        let item: String = item.chars().take(MAX_ITEM_CHARS).collect();
        Self::new(path, format_args!("{item:?} is not {wanted}"))
    }

    /// Builds the error of an item that the file should have.
    pub(super) fn no_item(path: &str, item: &str) -> Self {
        Self::new(path, format_args!("has no '{item}'"))
    }

    /// Builds the error that none of several files could be used.
    pub(super) fn all_of(errors: &[Self]) -> Self {
        let texts: Vec<&str> = errors.iter().map(|error| error.text.as_str()).collect();
        Self { text: texts.join("; "), is_missing: false }
    }
}

pub(super) type Result<T> = std::result::Result<T, ReadError>;

/// The file system below a root folder, as the readers see it.
pub(super) struct MachineTree {
    root: PathBuf,
}

impl MachineTree {
    pub(super) fn new(root: &Path) -> Self {
        // A root that does not exist fails again with each file.
        MachineTree { root: fs::canonicalize(root).unwrap_or_else(|_| root.to_owned()) }
    }

    /// Returns whether the root is that of the running machine.
    pub(super) fn is_host(&self) -> bool {
        self.root == Path::new("/")
    }

    /// Reads a file without white space (and the NUL of device trees) at its ends. It may be empty.
    pub(super) fn text(&self, path: &str) -> Result<String> {
        text_of(path, self.open(path)?)
    }

    /// Reads a compressed file like [`Self::text`].
    pub(super) fn gzip_text(&self, path: &str) -> Result<String> {
        text_of(path, GzDecoder::new(self.open(path)?))
    }

    /// Reads a file like [`Self::text`]; an empty one is an error.
    pub(super) fn word(&self, path: &str) -> Result<String> {
        match self.text(path)? {
            empty if empty.is_empty() => Err(ReadError::new(path, "is empty")),
            text => Ok(text),
        }
    }

    /// Reads a file that has one number.
    pub(super) fn number<T: FromStr>(&self, path: &str) -> Result<T> {
        parse(path, &self.word(path)?)
    }

    /// Reads a file that has a CPU list.
    pub(super) fn cpu_list(&self, path: &str) -> Result<CpuList> {
        let text = self.text(path)?;
        // The kernel prints this for nohz_full if the parameter was not given.
        cpu_list(path, if text == "(null)" { "" } else { &text })
    }

    /// Reads the word in brackets of a file like `always [madvise] never`, or in parentheses.
    pub(super) fn chosen(&self, path: &str) -> Result<String> {
        let text = self.word(path)?;
        for word in text.split_whitespace() {
            if word.starts_with(['[', '(']) && word.ends_with([']', ')']) {
                return Ok(word[1..word.len() - 1].to_owned());
            }
        }
        Err(ReadError::invalid(path, &text, "a choice with one in brackets"))
    }

    /// Lists the names in a folder, sorted, without names that are not UTF-8.
    pub(super) fn folder(&self, path: &str) -> Result<Vec<String>> {
        let entries = fs::read_dir(self.resolve(path)?).map_err(ReadError::io(path))?;
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(ReadError::io(path))?;
            if let Ok(name) = entry.file_name().into_string() {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    /// Lists the numbers N of all `prefixN` in a folder, rising. None at all is an error.
    pub(super) fn numbered(&self, path: &str, prefix: &str) -> Result<Vec<u32>> {
        // `cpu1` and `cpu01` are two names of one number in a damaged tree.
        let mut numbers = BTreeSet::new();
        for name in self.folder(path)? {
            let number: Option<u32> =
                name.strip_prefix(prefix).and_then(|number| number.parse().ok());
            numbers.extend(number);
        }
        if numbers.is_empty() {
            return Err(ReadError::no_item(path, &format!("{prefix}0")));
        }
        Ok(numbers.into_iter().collect())
    }

    fn open(&self, path: &str) -> Result<File> {
        let found = self.resolve(path)?;
        // Opening a FIFO would wait for its writer.
        if !fs::metadata(&found).map_err(ReadError::io(path))?.is_file() {
            return Err(ReadError::new(path, "is not a regular file"));
        }
        File::open(found).map_err(ReadError::io(path))
    }

    fn resolve(&self, path: &str) -> Result<PathBuf> {
        let found = self.root.join(path.trim_start_matches('/'));
        let found = fs::canonicalize(found).map_err(ReadError::io(path))?;
        if !found.starts_with(&self.root) {
            return Err(ReadError::new(path, "leads out of the root folder"));
        }
        Ok(found)
    }
}

/// Parses an item of a file.
pub(super) fn parse<T: FromStr>(path: &str, item: &str) -> Result<T> {
    item.parse().map_err(|_| ReadError::invalid(path, item, "a number in range"))
}

/// Parses a CPU list of a file.
pub(super) fn cpu_list(path: &str, text: &str) -> Result<CpuList> {
    text.parse().map_err(|error| ReadError::invalid(path, text, format!("a CPU list: {error}")))
}

/// The value after `key` and a colon, of lines like `MemTotal:  1 kB`.
pub(super) fn value_of<'a>(path: &str, text: &'a str, key: &str) -> Result<&'a str> {
    procfs::value(text, key).ok_or_else(|| ReadError::no_item(path, key))
}

/// Bytes of such a value in kB.
pub(super) fn bytes_of(path: &str, text: &str, key: &str) -> Result<u64> {
    let value = value_of(path, text, key)?;
    procfs::kilobytes(value).ok_or_else(|| ReadError::invalid(path, value, "a number of kB"))
}

/// A value that is known only if its file says so.
pub(super) fn reading<T>(result: Result<T>) -> Reading<T> {
    result.into()
}

fn text_of(path: &str, file: impl Read) -> Result<String> {
    let mut bytes = Vec::new();
    let read = file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(ReadError::io(path))?;
    if read as u64 > MAX_BYTES {
        return Err(ReadError::new(path, format_args!("is larger than {MAX_BYTES} bytes")));
    }
    let text = String::from_utf8(bytes).map_err(|_| ReadError::new(path, "is not UTF-8 text"))?;
    Ok(text.trim_matches(|c: char| c.is_whitespace() || c == '\0').to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn tree_with(path: &str, content: &[u8]) -> (tempfile::TempDir, MachineTree) {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(path), content).unwrap();
        let tree = MachineTree::new(folder.path());
        (folder, tree)
    }

    #[test]
    fn a_link_out_of_the_root_is_refused_and_one_within_is_followed() {
        let (folder, tree) = tree_with("inside", b"1\n");
        symlink("/proc/version", folder.path().join("absolute")).unwrap();
        symlink("../../../../../../proc/version", folder.path().join("climbing")).unwrap();
        symlink("inside", folder.path().join("relative")).unwrap();
        for path in ["/absolute", "/climbing", "/../../../../../../../proc/version"] {
            let why = tree.text(path).unwrap_err().to_string();
            assert_eq!(why, format!("{path}: leads out of the root folder"));
        }
        assert_eq!(tree.number::<u32>("/relative").unwrap(), 1);
    }

    #[test]
    fn errors_carry_the_path_the_item_and_errno() {
        let (_folder, tree) = tree_with("x", b" 12three \n");
        let why = |result: Result<u32>| result.unwrap_err().to_string();
        assert_eq!(why(tree.number("/y")), "/y: No such file or directory (os error 2)");
        assert_eq!(why(tree.number("/x/y")), "/x/y: Not a directory (os error 20)");
        assert_eq!(why(tree.number("/")), "/: is not a regular file");
        assert_eq!(why(tree.number("/x")), r#"/x: "12three" is not a number in range"#);
        let nowhere = MachineTree::new(Path::new("/no/such/root"));
        assert_eq!(why(nowhere.number("/x")), "/x: No such file or directory (os error 2)");
    }

    #[test]
    fn content_that_is_no_text_empty_or_huge_says_so() {
        let (folder, tree) = tree_with("x", b"\xff\xfe");
        let why = |result: Result<String>| result.unwrap_err().to_string();
        assert_eq!(why(tree.word("/x")), "/x: is not UTF-8 text");
        fs::write(folder.path().join("x"), b"\0 \n").unwrap();
        assert_eq!(why(tree.word("/x")), "/x: is empty");
        assert_eq!(why(tree.gzip_text("/x")), "/x: unexpected end of file");
        let huge = File::create(folder.path().join("x")).unwrap();
        huge.set_len(MAX_BYTES + 1).unwrap();
        assert_eq!(why(tree.word("/x")), "/x: is larger than 16777216 bytes");
    }

    #[test]
    fn the_choice_in_brackets_or_parentheses_is_taken() {
        let (folder, tree) = tree_with("x", b"none voluntary (full) lazy");
        assert_eq!(tree.chosen("/x").unwrap(), "full");
        fs::write(folder.path().join("x"), b"always [madvise] never").unwrap();
        assert_eq!(tree.chosen("/x").unwrap(), "madvise");
        fs::write(folder.path().join("x"), b"always").unwrap();
        assert!(tree.chosen("/x").is_err());
    }
}
