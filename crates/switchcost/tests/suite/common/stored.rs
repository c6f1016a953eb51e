//! A run file of another time, and copies of it with other figures; and the run of one `measure`,
//! which takes a while.

use std::path::Path;
use std::sync::OnceLock;
use std::{fs, io};

use flate2::read::GzDecoder;
use serde_json::Value;

use super::speed::{Known, cpu};
use super::{Home, Said, lines_of};

/// A run of two rings and their solo, 6 rounds of 3 samples of 200 laps.
pub const RUN: &str = include_str!("../../../../rundata/tests/fixtures/run-v1.jsonl");

/// What `switchcost measure --quiet` left, of a CPU that nobody had measured.
pub struct Measured {
    pub said: Said,
    /// Names and contents of its run files.
    pub runs: Vec<(String, String)>,
    /// Empty where there is none.
    pub report: String,
}

/// As little as `measure` does: the first round of all cases, which is finished whatever the
/// budget. Measured once for all tests that read it.
pub fn measured() -> &'static Measured {
    static MEASURED: OnceLock<Measured> = OnceLock::new();
    MEASURED.get_or_init(|| {
        let home = Home::new();
        if let Some(cpu) = cpu() {
            home.know(&cpu, Known::Never);
        }
        let report = home.path().join("report.html");
        let to = report.to_str().expect("a path in UTF-8");
        let said = home.run(&["measure", "--budget", "1ms", "--quiet", "--report", to]);
        let name = |path: &std::path::Path| {
            path.file_name().expect("a name").to_string_lossy().into_owned()
        };
        let text = |path: &std::path::Path| fs::read_to_string(path).expect("a run file");
        let runs = home.run_files().iter().map(|file| (name(file), text(file))).collect();
        Measured { said, runs, report: fs::read_to_string(report).unwrap_or_default() }
    })
}

/// That run in a file of the home, with `change` made to each line; gives its path.
pub fn stored_run(home: &Home, name: &str, change: impl Fn(&mut Value)) -> String {
    let lines = RUN.lines().map(|text| serde_json::from_str(text).expect("a line of JSON"));
    store(home, name, lines, change)
}

/// A run that `tests/captured` has, in a file of the home; gives its path.
pub fn captured_run(home: &Home, name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captured");
    let packed = fs::File::open(folder.join(format!("{name}.jsonl.gz"))).expect("a captured run");
    let path = home.path().join(format!("{name}.jsonl"));
    let mut file = fs::File::create(&path).expect("a file");
    io::copy(&mut GzDecoder::new(packed), &mut file).expect("a run");
    path.display().to_string()
}

/// Captured runs as if all were of the machine that the first is of; gives their paths.
pub fn captured_on_one_machine(home: &Home, names: &[&str]) -> Vec<String> {
    let header = |path: &str| -> (Value, String) {
        let text = fs::read_to_string(path).expect("a run");
        let (first, others) = text.split_once('\n').expect("lines");
        (serde_json::from_str(first).expect("a header"), others.to_string())
    };
    let paths: Vec<String> = names.iter().map(|name| captured_run(home, name)).collect();
    let (first, _) = header(&paths[0]);
    for path in &paths[1..] {
        let (mut own, others) = header(path);
        for fact in ["machine", "host"] {
            own["header"][fact] = first["header"][fact].clone();
        }
        fs::write(path, format!("{own}\n{others}")).expect("a run");
    }
    paths
}

fn store(
    home: &Home,
    name: &str,
    lines: impl Iterator<Item = Value>,
    change: impl Fn(&mut Value),
) -> String {
    // Of each file a run of its own: two with one name are the same run.
    let stem = name.strip_suffix(".jsonl").unwrap_or(name);
    let line = |mut line: Value| {
        if let Some(run) = line.pointer_mut("/header/run") {
            *run = stem.into();
        }
        change(&mut line);
        format!("{line}\n")
    };
    let path = home.path().join(name);
    fs::write(&path, lines.map(line).collect::<String>()).expect("a file");
    path.display().to_string()
}

/// That run as one of today's would be on a core that nobody shared: twice the rounds, every sample
/// in ten slices with reference quanta around them.
pub fn full_speed_run(home: &Home, name: &str, change: impl Fn(&mut Value)) -> String {
    let lines =
        RUN.lines().map(|text| serde_json::from_str::<Value>(text).expect("a line of JSON"));
    let twice = lines.flat_map(|line| {
        let Some(sample) = line.get("sample") else { return vec![line] };
        let later = sample["round"].as_u64().expect("a round") + 6;
        let mut again = line.clone();
        again["sample"]["round"] = later.into();
        vec![in_slices(line), in_slices(again)]
    });
    store(home, name, twice, change)
}

fn in_slices(mut line: Value) -> Value {
    const SLICES: u64 = 10;
    let number = |name: &str| line["sample"][name].as_u64().expect("a number");
    let (laps, elapsed_ns) = (number("laps"), number("elapsed_ns"));
    assert_eq!(laps % SLICES, 0, "whole slices");
    let slices = serde_json::json!({
        "laps": laps / SLICES,
        "elapsed_ns": vec![elapsed_ns / SLICES; SLICES as usize],
        "latency_ns": vec![5860; SLICES as usize + 3],
        "throughput_ns": vec![5920; SLICES as usize + 3],
    });
    line["sample"]["slices"] = slices;
    // Steal came in one of the samples; none of that here.
    line["sample"]["steal_ns"] = 0.into();
    line
}

/// Makes a sample's times so many hundredths of what they were.
pub fn lengthen(line: &mut Value, percent: u64) {
    let scaled = |ns: &Value| Value::from(ns.as_u64().expect("a time") * percent / 100);
    if let Some(elapsed) = line.pointer_mut("/sample/elapsed_ns") {
        *elapsed = scaled(elapsed);
    }
    let slices = line.pointer_mut("/sample/slices/elapsed_ns").and_then(Value::as_array_mut);
    slices.into_iter().flatten().for_each(|ns| *ns = scaled(ns));
}

/// A run that is measured once for several tests, and what is read of it afterwards.
pub struct Kept {
    pub said: Said,
    pub csv: String,
    pub lines: Vec<Value>,
    pub record: Value,
    pub shown: String,
    pub shown_briefly: String,
    pub list: String,
}

impl Kept {
    /// `measure` is given a home, and where its CSV belongs.
    pub fn of(measure: impl FnOnce(&Home, &str) -> Said) -> Self {
        let home = Home::new();
        let csv = home.path().join("rows.csv");
        let said = measure(&home, csv.to_str().expect("a path in UTF-8"));
        home.wait_until_alone();
        let printed = |args: &[&str]| home.run(args).out;
        Self {
            said,
            csv: fs::read_to_string(csv).expect("rows"),
            lines: lines_of(&home.run_file()),
            record: home.run(&["runs", "export", "last"]).json(),
            shown: printed(&["runs", "show", "last", "--verbose", "--history"]),
            shown_briefly: printed(&["runs", "show", "last"]),
            list: printed(&["runs", "list"]),
        }
    }
}
