//! What the targets share: captured trees as bytes, and changes to lines of JSON.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use libfuzzer_sys::fuzzer_mutate;
use rand::seq::IteratorRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Number, Value};
use tempfile::TempDir;

/// Most files of a tree: more would only make it slower.
const MOST_FILES: usize = 400;

/// What is before and behind the first of these.
fn split<'a>(data: &'a [u8], at: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let place = data.windows(at.len()).position(|window| window == at)?;
    Some((&data[..place], &data[place + at.len()..]))
}

/// A folder that holds a tree for as long as one input is looked at.
pub struct Tree(TempDir);

impl Tree {
    /// Of text in the form of `crates/probe/tests/fixtures/machines`: `==> /path <==`, then what is
    /// in that file.
    pub fn of(data: &[u8]) -> Option<Self> {
        let tree = Self(tempfile::tempdir().ok()?);
        let (_, mut rest) = split(data, b"==> ")?;
        for _ in 0..MOST_FILES {
            let (file, others) = split(rest, b"==> ").unwrap_or((rest, &[]));
            let (path, content) = split(file, b" <==\n")?;
            // A name that is a file and a folder cannot be written, and is passed over.
            if let Some(path) = std::str::from_utf8(path).ok().and_then(|path| tree.inside(path)) {
                let _ = path.parent().map(fs::create_dir_all);
                let _ = write(&path, content);
            }
            if others.is_empty() {
                break;
            }
            rest = others;
        }
        Some(tree)
    }

    /// Nothing is written elsewhere, whatever the path says.
    fn inside(&self, path: &str) -> Option<PathBuf> {
        let path = Path::new(path.trim_start_matches('/'));
        let is_plain = path.components().all(|part| matches!(part, Component::Normal(_)));
        let is_short = path.as_os_str().len() < 200 && !path.as_os_str().is_empty();
        (is_plain && is_short && !path.to_string_lossy().contains('\0'))
            .then(|| self.0.path().join(path))
    }

    pub fn root(&self) -> &Path {
        self.0.path()
    }
}

/// The kernel's configuration is compressed, and told by its name.
fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    if path.extension().is_none_or(|end| end != "gz") {
        return fs::write(path, content);
    }
    let mut packed = GzEncoder::new(File::create(path)?, Compression::fast());
    packed.write_all(content)
}

/// Numbers at which readers go wrong.
fn odd(random: &mut ChaCha8Rng) -> Value {
    const WHOLE: [u64; 8] = [0, 1, 2, 255, 1 << 31, 1 << 32, 1 << 53, u64::MAX];
    const OTHERS: [f64; 6] = [-1.0, 0.5, -0.5, 1e308, -1e308, 5e-324];
    match random.random_range(0..8) {
        0 => Value::Null,
        1 => Value::Bool(random.random()),
        2 => Value::String(["", "0", "\u{202e}", "last"][random.random_range(0..4)].to_string()),
        3 => Value::Array(Vec::new()),
        4 | 5 => OTHERS[random.random_range(0..OTHERS.len())].into(),
        _ => Value::Number(Number::from(WHOLE[random.random_range(0..WHOLE.len())])),
    }
}

/// A place within a value, one of all of them.
fn any<'a>(value: &'a mut Value, random: &mut ChaCha8Rng) -> &'a mut Value {
    let children = match &*value {
        Value::Array(all) => all.len(),
        Value::Object(all) => all.len(),
        _ => 0,
    };
    if children == 0 || random.random_range(0..5) == 0 {
        return value;
    }
    let at = random.random_range(0..children);
    let child = match value {
        Value::Array(all) => &mut all[at],
        Value::Object(all) => all.values_mut().nth(at).expect("one of them"),
        leaf => return leaf,
    };
    any(child, random)
}

fn change(value: &mut Value, random: &mut ChaCha8Rng) {
    match any(value, random) {
        Value::Array(all) if !all.is_empty() && random.random() => {
            let at = random.random_range(0..all.len());
            if random.random() {
                all.remove(at);
            } else {
                let again = all[at].clone();
                all.insert(at, again);
            }
        }
        Value::Object(all) if !all.is_empty() && random.random() => {
            let name = all.keys().choose(random).expect("one of them").clone();
            all.remove(&name);
        }
        Value::Number(of) if random.random() => {
            let near = of.as_i64().unwrap_or(1).saturating_add(random.random_range(-3..4));
            *of = Number::from(near);
        }
        other => *other = odd(random),
    }
}

/// Changes lines of JSON so that most of them still are that; now and then bytes, as libFuzzer does.
pub fn changed_lines(data: &mut [u8], size: usize, most: usize, seed: u32) -> usize {
    let mut random = ChaCha8Rng::seed_from_u64(seed.into());
    let text = std::str::from_utf8(&data[..size]).ok();
    let Some(text) = text.filter(|_| random.random_range(0..8) > 0) else {
        return fuzzer_mutate(data, size, most);
    };
    let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
    if lines.is_empty() {
        return fuzzer_mutate(data, size, most);
    }
    for _ in 0..random.random_range(1..4) {
        let at = random.random_range(0..lines.len());
        match random.random_range(0..10) {
            0 if lines.len() > 1 => drop(lines.remove(at)),
            1 => lines.insert(at, lines[at].clone()),
            _ => {
                let Ok(mut value) = serde_json::from_str::<Value>(&lines[at]) else { continue };
                change(&mut value, &mut random);
                lines[at] = value.to_string();
            }
        }
        if lines.is_empty() {
            break;
        }
    }
    let text = lines.join("\n") + "\n";
    if text.len() > most {
        return fuzzer_mutate(data, size, most);
    }
    data[..text.len()].copy_from_slice(text.as_bytes());
    text.len()
}
