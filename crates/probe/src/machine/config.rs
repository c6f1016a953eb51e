//! The configuration that the kernel was built with.

use super::tree::{ReadError, Result, Tree};

/// A kernel configuration file, or why each of the places for it has none.
pub(super) struct Config {
    found: Option<(String, String)>,
    tried: Vec<ReadError>,
}

impl Config {
    /// Of the kernel that runs.
    pub(super) fn of(tree: &Tree) -> Self {
        Self::read(tree, tree.word("/proc/sys/kernel/osrelease").as_deref().ok())
    }

    fn read(tree: &Tree, release: Option<&str>) -> Self {
        let mut config = Config { found: None, tried: Vec::new() };
        config.attempt("/proc/config.gz", |path| tree.gzip_text(path));
        for path in release.iter().flat_map(|release| {
            [format!("/boot/config-{release}"), format!("/lib/modules/{release}/config")]
        }) {
            config.attempt(&path, |path| tree.text(path));
        }
        config
    }

    fn attempt(&mut self, path: &str, read: impl FnOnce(&str) -> Result<String>) {
        if self.found.is_some() {
            return;
        }
        match read(path) {
            Ok(text) => self.found = Some((path.to_owned(), text)),
            Err(error) => self.tried.push(error),
        }
    }

    /// The value of an option that is set, and the file that says so.
    pub(super) fn value(&self, option: &str) -> Result<(&str, &str)> {
        let Some((path, text)) = &self.found else {
            let tried: Vec<String> = self.tried.iter().map(ToString::to_string).collect();
            return Err(ReadError::Several { all: tried.join("; ") });
        };
        let mut options = text.lines().filter_map(|line| line.split_once('='));
        let value = options.find(|(key, _)| *key == option).map(|(_, value)| value.trim());
        value.map(|value| (path.as_str(), value)).ok_or_else(|| ReadError::no_item(path, option))
    }

    /// The file, if there is one.
    pub(super) fn path(&self) -> Option<&str> {
        self.found.as_ref().map(|(path, _)| path.as_str())
    }

    /// Whether an option is built in.
    pub(super) fn has(&self, option: &str) -> bool {
        self.value(option).is_ok_and(|(_, value)| value == "y")
    }
}
