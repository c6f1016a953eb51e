//! A file below /proc/sys or /sys that holds a setting of the machine, and the forms that such files
//! have:
//!
//! ```text
//! form     content                        written          is set
//! plain    200000                         200000           the content is the value
//! choice   none voluntary (full) lazy     lazy             the word in brackets is the value
//! flags    PLACE_LAG NO_DELAY_DEQUEUE     DELAY_DEQUEUE    the value is one of the words
//! ```

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::io::Errno;
use thiserror::Error;

/// The folders of settings.
const FOLDERS: [&str; 2] = ["/proc/sys", "/sys"];

/// Largest content of a setting in bytes: the features of the scheduler take 700.
const MAX_CONTENT_BYTES: u64 = 8192;

/// Largest value in bytes.
const MAX_VALUE_BYTES: usize = 256;

/// The beginning of a flag that is off.
const OFF: &str = "NO_";

/// The reason why a setting cannot be read or written, in words that follow its path.
#[derive(Debug, Error)]
pub(crate) enum SettingError {
    /// Another kind of file, or one elsewhere.
    #[error("{0}: {1}")]
    Refused(PathBuf, String),
    /// It cannot be opened, or read.
    #[error("{0} cannot be read: {1}")]
    Read(PathBuf, io::Error),
    /// It does not take a value.
    #[error("{path} does not take '{value}': {why}")]
    Write {
        /// The file.
        path: PathBuf,
        /// What was written.
        value: String,
        /// Error of the system, or what the file has instead.
        why: String,
    },
}

/// The file of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SettingFile {
    /// Without symbolic links.
    pub(crate) path: PathBuf,
}

impl SettingFile {
    /// Finds the file of a setting. Symbolic links are followed within the folders of settings only.
    pub(crate) fn find(typed: &Path) -> Result<Self, SettingError> {
        Self::find_below(typed, &FOLDERS.map(Path::new))
    }

    fn find_below(typed: &Path, folders: &[&Path]) -> Result<Self, SettingError> {
        let refused = |why: String| SettingError::Refused(typed.to_path_buf(), why);
        let path = typed.canonicalize().map_err(|error| refused(error.to_string()))?;
        if !folders.iter().any(|folder| path.starts_with(folder)) {
            let mut why = "is no setting of the machine (accepted: files below ".to_string();
            let names: Vec<String> =
                folders.iter().map(|folder| folder.display().to_string()).collect();
            why += &format!("{})", names.join(" or "));
            if path != typed {
                why = format!("leads to {}, which {why}", path.display());
            }
            return Err(refused(why));
        }
        if let Some(why) = one_way_reason(&path) {
            return Err(refused(why.to_string()));
        }
        let is_file = path.metadata().is_ok_and(|found| found.is_file());
        if !is_file {
            return Err(refused("is not a regular file".to_string()));
        }
        Ok(Self { path })
    }

    /// Locks the file until the lock is dropped: only one session changes a setting. Another user's
    /// session is seen, too.
    pub(crate) fn lock(&self) -> Result<File, SettingError> {
        let file = self.open(OFlags::RDONLY)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(file),
            Err(Errno::WOULDBLOCK) => Err(SettingError::Refused(
                self.path.clone(),
                "another session of switchcost is changing it: wait for its end".to_string(),
            )),
            Err(errno) => Err(SettingError::Read(self.path.clone(), errno.into())),
        }
    }

    /// Reads the content, without white space at its ends.
    pub(crate) fn read(&self) -> Result<String, SettingError> {
        let cannot = |error| SettingError::Read(self.path.clone(), error);
        // In one read(2): files of /proc/sys that hold a list give nothing to a second one.
        let mut bytes = Vec::with_capacity(MAX_CONTENT_BYTES as usize + 1);
        let file = self.open(OFlags::RDONLY)?;
        let length =
            file.take(MAX_CONTENT_BYTES + 1).read_to_end(&mut bytes).map_err(cannot)? as u64;
        if length > MAX_CONTENT_BYTES {
            let why = format!("is longer than {MAX_CONTENT_BYTES} bytes: no setting");
            return Err(SettingError::Refused(self.path.clone(), why));
        }
        match String::from_utf8(bytes) {
            Ok(text) => Ok(text.trim().to_string()),
            Err(_) => {
                Err(SettingError::Refused(self.path.clone(), "has no text: no setting".to_string()))
            }
        }
    }

    /// Writes a value, and checks that the file has it then.
    pub(crate) fn set(&self, value: &str) -> Result<(), SettingError> {
        let refused = |why: String| SettingError::Write {
            path: self.path.clone(),
            value: value.to_string(),
            why,
        };
        let mut file = self.open(OFlags::WRONLY)?;
        let advice = |error: io::Error| match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::PERM | Errno::ACCESS) => format!("{error} (it needs root)"),
            Some(Errno::INVAL) => format!("{error}{}", self.offer()),
            _ => error.to_string(),
        };
        let line = format!("{value}\n");
        // One write: the kernel takes each as a value.
        let written = file.write(line.as_bytes()).map_err(|error| refused(advice(error)))?;
        if written != line.len() {
            return Err(refused(format!("it takes {written} of {} bytes", line.len())));
        }
        drop(file);
        let content = self.read()?;
        if has_value(&content, value) {
            Ok(())
        } else {
            Err(refused(format!("it has '{}' instead", joined(&state_for(&content, value)))))
        }
    }

    /// Checks that a file of flags has those that the values turn on or off. A whole list of flags is
    /// no value that it would take back.
    pub(crate) fn check_flags(&self, values: &[String], content: &str) -> Result<(), SettingError> {
        for value in values {
            if is_flag_list(content) && state_for(content, value) == content.trim() {
                let flag = value.strip_prefix(OFF).unwrap_or(value);
                let why =
                    format!("has no flag {flag} (accepted: one of its words, or {OFF} and it)");
                return Err(SettingError::Refused(self.path.clone(), why));
            }
        }
        Ok(())
    }

    /// Returns the words that the file offers, ` (accepted: none, voluntary, full)`; empty where it
    /// offers no choice.
    fn offer(&self) -> String {
        let content = self.read().unwrap_or_default();
        if chosen_word(&content).is_none() {
            return String::new();
        }
        let mut words = Vec::new();
        for word in content.split_whitespace() {
            words.push(word.trim_matches(['[', ']', '(', ')']));
        }
        format!(" (accepted: {})", words.join(", "))
    }

    fn open(&self, access: OFlags) -> Result<File, SettingError> {
        // Neither waits for the other end of a FIFO nor follows a link that came meanwhile.
        let flags = access | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        match open(&self.path, flags, Mode::empty()) {
            Ok(file) => Ok(file.into()),
            Err(errno @ (Errno::PERM | Errno::ACCESS | Errno::ROFS)) => {
                let why = format!("cannot be opened: {} (it needs root)", io::Error::from(errno));
                Err(SettingError::Refused(self.path.clone(), why))
            }
            Err(errno) => Err(SettingError::Read(self.path.clone(), errno.into())),
        }
    }
}

/// Files that take a value and never give it back, or that stop what would put it back.
const ONE_WAY_FILES: [&str; 11] = [
    "cgroup.freeze",
    "cgroup.kill",
    "kexec_load_disabled",
    "kexec_load_limit_panic",
    "kexec_load_limit_reboot",
    "lockdown",
    "modules_disabled",
    "ptrace_scope",
    "sig_enforce",
    "unprivileged_bpf_disabled",
    "user_events_data",
];

/// Returns why a setting is not switched back and forth.
fn one_way_reason(path: &Path) -> Option<&'static str> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_power = path.starts_with("/sys/power");
    if ONE_WAY_FILES.contains(&name) || is_power {
        return Some("is not changed by this program: some of its values cannot be taken back");
    }
    None
}

/// The value of /sys/devices/system/cpu/smt/control that stays until the machine starts anew.
const ONE_WAY_VALUE: &str = "forceoff";

/// Checks a value that was typed; an error says what is wrong with it.
pub(crate) fn check_value(value: &str) -> Result<(), String> {
    if value.trim().is_empty() {
        return Err("an empty value (accepted: what the file takes)".to_string());
    }
    if value.trim() == ONE_WAY_VALUE {
        return Err(format!("'{value}': it cannot be taken back before the machine starts anew"));
    }
    if value.len() > MAX_VALUE_BYTES || value.contains(['\n', '\0']) {
        return Err(format!("'{value}': a value is one line of at most {MAX_VALUE_BYTES} bytes"));
    }
    Ok(())
}

/// Returns whether a setting with this content has the value.
pub(crate) fn has_value(content: &str, value: &str) -> bool {
    joined(&state_for(content, value)) == joined(value)
}

/// Returns what would be written to get the state back that this content is, as far as a value may
/// change it: the whole content, the chosen word, or the flag that the value turns on or off.
pub(crate) fn state_for(content: &str, value: &str) -> String {
    if let Some(chosen) = chosen_word(content) {
        return chosen.to_string();
    }
    let words: Vec<&str> = content.split_whitespace().collect();
    let flag = value.strip_prefix(OFF).unwrap_or(value);
    // A number among several is no flag.
    let is_name = flag.starts_with(|first: char| first.is_ascii_alphabetic());
    if words.len() > 1 && is_name && !flag.contains(char::is_whitespace) {
        let off = format!("{OFF}{flag}");
        if let Some(word) = words.iter().find(|word| **word == flag || **word == off) {
            return (*word).to_string();
        }
    }
    content.trim().to_string()
}

/// Returns whether the content is a list of flags, as the features of the scheduler are: several
/// names in capital letters, at least one of them a flag that is off.
fn is_flag_list(content: &str) -> bool {
    let words: Vec<&str> = content.split_whitespace().collect();
    let has_flag_off = words.iter().any(|word| word.starts_with(OFF));
    words.len() > 1 && has_flag_off && words.iter().all(|word| is_capital_name(word))
}

fn is_capital_name(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

/// Returns a value with one space between its words, as contents are compared.
fn joined(value: &str) -> String {
    let words: Vec<&str> = value.split_whitespace().collect();
    words.join(" ")
}

/// Returns the word in brackets of `always [madvise] never`, or in parentheses. A word alone is no
/// choice: the name of a domain that is not set is `(none)`.
fn chosen_word(content: &str) -> Option<&str> {
    if content.split_whitespace().count() < 2 {
        return None;
    }
    for word in content.split_whitespace() {
        for (open, close) in [('[', ']'), ('(', ')')] {
            let inner = word.strip_prefix(open).and_then(|word| word.strip_suffix(close));
            if inner.is_some() {
                return inner;
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn file_with(content: &str) -> (tempfile::TempDir, SettingFile) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("setting");
        fs::write(&path, content).expect("a file");
        let file = SettingFile::find_below(&path, &[folder.path()]).expect("a setting");
        (folder, file)
    }

    #[test]
    fn values_are_found_in_plain_files_choices_and_flags() {
        assert!(has_value("200000", "200000") && !has_value("200000", "20000"));
        assert!(has_value("4\t4\t1\t7", "4 4 1 7"));
        let choice = "always [madvise] never";
        assert!(has_value(choice, "madvise") && !has_value(choice, "always"));
        assert_eq!(state_for("none voluntary (full) lazy", "lazy"), "full");
        let features = "PLACE_LAG NO_DELAY_DEQUEUE HRTICK";
        assert!(has_value(features, "NO_DELAY_DEQUEUE") && !has_value(features, "DELAY_DEQUEUE"));
        assert_eq!(state_for(features, "DELAY_DEQUEUE"), "NO_DELAY_DEQUEUE");
        assert_eq!(state_for(features, "NO_HRTICK"), "HRTICK");
        assert_eq!(state_for("2", "NO_SUCH"), "2");
        assert!(!has_value("4 4 1 7", "4"));
        assert_eq!(state_for("(none)", "x"), "(none)");
        assert_eq!(state_for("|/a  b", "x"), "|/a  b");
    }

    #[test]
    fn a_flag_that_the_file_does_not_have_is_refused_before_anything_is_written() {
        // As Linux 6.12 has them, with a blank at the end.
        let features = "PLACE_LAG RUN_TO_PARITY NO_NEXT_BUDDY DELAY_DEQUEUE NO_HRTICK \n";
        let (_folder, file) = file_with(features);
        let check = |value: &str, content| file.check_flags(&[value.to_string()], content);
        for known in ["DELAY_DEQUEUE", "NO_DELAY_DEQUEUE", "NEXT_BUDDY", "NO_HRTICK"] {
            check(known, features).expect("a flag of the file");
        }
        for unknown in ["DELAY", "NO_SUCH", "delay_dequeue", "NO_", features] {
            let why = check(unknown, features).expect_err("none of its flags").to_string();
            assert!(why.contains("has no flag "), "{why}");
        }
        // Plain words, numbers and choices are for the kernel to judge.
        for content in ["CORE DUMP", "4 4 1 7", "none voluntary (full)", "1", "NO_SUCH"] {
            check("ANY", content).expect("no list of flags");
        }
    }

    #[test]
    fn the_words_of_a_choice_are_offered() {
        let (_folder, file) = file_with("none voluntary (full) \n");
        assert_eq!(file.offer(), " (accepted: none, voluntary, full)");
        let (_folder, file) = file_with("always [madvise] never");
        assert_eq!(file.offer(), " (accepted: always, madvise, never)");
        let (_folder, file) = file_with("200000\n");
        assert_eq!(file.offer(), "");
    }

    #[test]
    fn a_value_is_written_and_what_the_file_has_instead_is_told() {
        let (_folder, file) = file_with("1\n");
        file.set("0").expect("a value");
        assert_eq!(file.read().expect("text"), "0");
        // A plain file keeps what was longer, as no setting of the kernel does.
        fs::write(&file.path, "12345678\n").expect("a file");
        let why = file.set("9").expect_err("another content").to_string();
        assert!(why.contains("does not take '9': it has '9 345678' instead"), "{why}");
    }

    #[test]
    fn what_is_no_setting_is_refused_with_the_reason() {
        let (folder, file) = file_with("1");
        let elsewhere = tempfile::tempdir().expect("a folder");
        let outside = elsewhere.path().join("x");
        fs::write(&outside, "1").expect("a file");
        let link = folder.path().join("link");
        symlink(&outside, &link).expect("a link");
        let refused = |path: &Path| {
            SettingFile::find_below(path, &[folder.path()]).expect_err("refused").to_string()
        };
        assert!(refused(&link).contains("which is no setting of the machine"));
        assert!(refused(&outside).contains("is no setting of the machine (accepted: files below"));
        assert!(refused(folder.path()).contains("is not a regular file"));
        let one_way = folder.path().join("modules_disabled");
        fs::write(&one_way, "0").expect("a file");
        assert!(refused(&one_way).contains("cannot be taken back"));
        assert!(refused(&folder.path().join("none")).contains("No such file"));
        let within = folder.path().join("within");
        symlink(&file.path, &within).expect("a link");
        assert_eq!(SettingFile::find_below(&within, &[folder.path()]).expect("found"), file);
        let passwd = SettingFile::find(Path::new("/etc/passwd")).expect_err("refused");
        assert!(passwd.to_string().contains("(accepted: files below /proc/sys or /sys)"));
    }

    #[test]
    fn two_sessions_on_one_setting_are_one_too_many() {
        let (_folder, file) = file_with("1");
        let lock = file.lock().expect("the first");
        let second = file.lock().expect_err("the second").to_string();
        assert!(second.contains("another session of switchcost is changing it"), "{second}");
        drop(lock);
        assert!(file.lock().is_ok());
    }

    #[test]
    fn values_are_one_short_line() {
        assert!(check_value("NO_DELAY_DEQUEUE").is_ok() && check_value("4 4 1 7").is_ok());
        for value in ["", " ", "forceoff", "1\n2", "a\0b", &"x".repeat(MAX_VALUE_BYTES + 1)] {
            assert!(check_value(value).is_err(), "{value:?}");
        }
    }
}
