//! Unpacks a captured machine into a temporary folder.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use tempfile::TempDir;

/// The paths and contents of a bundle.
pub(crate) fn files(name: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/machines");
    let text = fs::read_to_string(folder.join(name)).unwrap();
    let mut files: Vec<(String, String)> = Vec::new();
    for line in text.split_inclusive('\n') {
        let header = line.strip_prefix("==> ").and_then(|line| line.strip_suffix(" <==\n"));
        match (header, files.last_mut()) {
            (Some(path), _) => files.push((path.to_owned(), String::new())),
            (None, Some((_, content))) => content.push_str(line),
            (None, None) => panic!("{name} does not begin with a path"),
        }
    }
    files
}

/// A folder that holds the bundle's files.
pub(crate) fn unpack(name: &str) -> TempDir {
    // In memory where there is such a folder: on a slow disk the many small files take half a minute.
    let root = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    for (path, content) in files(name) {
        put(root.path(), &path, content.as_bytes());
    }
    root
}

/// Writes one file below the root, compressed if its name says so.
pub(crate) fn put(root: &Path, path: &str, content: &[u8]) {
    let place = below(root, path);
    if path.ends_with('/') {
        fs::create_dir_all(place).unwrap();
        return;
    }
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    let file = fs::File::create(place).unwrap();
    if path.ends_with(".gz") {
        GzEncoder::new(file, Compression::fast()).write_all(content).unwrap();
    } else {
        (&file).write_all(content).unwrap();
    }
}

/// Where a path of the machine is.
pub(crate) fn below(root: &Path, path: &str) -> PathBuf {
    root.join(path.trim_start_matches('/'))
}
