use std::fs;

use proptest::prelude::*;
use rundata::competing::InterruptSource;
use rundata::machine::LogicalCpu;
use rundata::reading::Reading;
use tempfile::TempDir;

use super::*;

/// The process that measures.
const OWN: i32 = 500;

const MS: u64 = 1_000_000;

/// Flags of a kernel thread, as captured from kdamond.0.
const KERNEL: u32 = 0x0020_8040;
/// Of a process, as captured from a shell.
const USER: u32 = 0x0040_0000;

/// /proc of a machine with CPUs 0 to 3, where 1 and 3 are one core. Lines are as captured on the
/// test machine (Linux 6.18), with other numbers in them.
struct Made(TempDir);

impl Made {
    /// The measuring process, its worker, and kthreadd.
    fn new() -> Self {
        let made = Self(tempfile::tempdir().unwrap());
        made.task(2, 2, "kthreadd", KERNEL, 0, 0, 5 * MS);
        made.task(OWN, OWN, "switchcost", USER, 400, 0, 40 * MS);
        made.cpus([[100, 0, 0], [200, 0, 0]]);
        let interrupts = "            CPU0       CPU1\n 36:     0   777745 \
             PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0\nLOC:  13736366    3601589   Local \
             timer interrupts\nERR:          0\n";
        made.put("interrupts", interrupts);
        made
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.0.path().join("proc").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A thread with its CPU time; also the process, where it is its first.
    #[allow(clippy::too_many_arguments)]
    fn task(&self, pid: i32, tid: i32, name: &str, flags: u32, parent: i32, cpu: u32, ns: u64) {
        let ticks = ns / (10 * MS);
        let stat = format!(
            "{tid} ({name}) S {parent} 0 0 0 -1 {flags} 0 0 0 0 0 {ticks} 0 0 20 0 1 0 203 0 0 \
             18446744073709551615 0 0 0 0 0 0 0 2147483647 0 1 0 0 17 {cpu} 0 0 0 0 0 0 0 0 0 0 0 \
             0 0\n"
        );
        self.put(&format!("{pid}/task/{tid}/stat"), &stat);
        self.put(&format!("{pid}/task/{tid}/schedstat"), &format!("{ns} 7025319 355\n"));
        if pid == tid {
            self.put(&format!("{pid}/stat"), &stat);
            self.put(&format!("{pid}/comm"), &format!("{name}\n"));
        }
    }

    /// user, system, steal of two CPUs; 2 and 7 ticks of interrupts and soft interrupts on each.
    fn cpus(&self, of: [[u64; 3]; 2]) {
        let line = |cpu: usize, [user, system, steal]: [u64; 3]| {
            format!("cpu{cpu} {user} 0 {system} 28815 44 2 7 {steal} 0 0\n")
        };
        let lines: String = of.into_iter().enumerate().map(|(cpu, of)| line(cpu, of)).collect();
        self.put("stat", &format!("cpu  1 1 1 1 1 1 1 1 0 0\n{lines}intr 1\n"));
    }

    fn gone(&self, pid: i32) {
        fs::remove_dir_all(self.0.path().join(format!("proc/{pid}"))).unwrap();
    }

    /// A watcher of CPU 1, which shares its core with CPU 3.
    fn watch(&self) -> CompetitionWatcher {
        let place = |cpu| LogicalCpu {
            cpu,
            smt_siblings: Reading::Known("1,3".parse().unwrap()),
            ..LogicalCpu::default()
        };
        let mut machine = Machine::default();
        machine.cpu.topology = Reading::Known(vec![place(1), place(3)]);
        CompetitionWatcher::begin(self.0.path(), OWN as u32, &[1], &machine)
    }
}

/// Name, first process, number of processes, kernel, CPU, milliseconds.
fn told(seen: &CompetingTasks) -> Vec<(&str, i32, u32, bool, u32, u64)> {
    let one =
        |task: &CompetingTask| (task.pid, task.processes, task.kernel, task.cpu, task.cpu_ns / MS);
    let all = seen.tasks.iter().map(|task| (task.name.as_str(), one(task)));
    all.map(|(name, (pid, processes, kernel, cpu, ms))| (name, pid, processes, kernel, cpu, ms))
        .collect()
}

#[test]
fn a_kernel_thread_and_a_process_with_threads_are_named_with_what_they_had_since_the_first_look() {
    let made = Made::new();
    made.task(77, 77, "kdamond.0", KERNEL, 2, 1, 9000 * MS);
    for (tid, ms) in [(900, 10), (901, 20), (902, 30)] {
        made.task(900, tid, "java", USER, 1, 1, ms * MS);
    }
    made.task(3000, 3000, "elsewhere", USER, 1, 0, MS);
    let mut watcher = made.watch();
    made.task(77, 77, "kdamond.0", KERNEL, 2, 1, 9330 * MS);
    // Threads with names of their own; one of them sleeps, one is on the sibling.
    made.task(900, 901, "GC Thread#0", USER, 1, 1, 100 * MS);
    made.task(900, 900, "java", USER, 1, 1, 50 * MS);
    made.task(900, 903, "C2 (Compiler)", USER, 1, 3, 7 * MS);
    made.task(3000, 3000, "elsewhere", USER, 1, 0, 1000 * MS);
    let seen = watcher.end();
    let expected = [
        ("kdamond.0", 77, 1, true, 1, 330),
        ("java", 900, 1, false, 1, 120),
        ("java", 900, 1, false, 3, 7),
    ];
    assert_eq!(told(&seen), expected);
    let on: Vec<CpuRole> = seen.tasks.iter().map(|task| task.on).collect();
    assert_eq!(on, [CpuRole::Measured, CpuRole::Measured, CpuRole::Sibling]);
    assert_eq!((&seen.cpus[..], &seen.siblings[..], seen.looks), (&[1][..], &[3][..], 2));
    assert_eq!(seen.hidden, None);
    assert!(seen.elapsed_ns >= seen.looking_ns && seen.looking_ns > 0);
}

/// A backend (812) of a server (810) is measured: neither its threads nor its children nor the
/// server's other backends compete; others that the server's shell started do.
#[test]
fn a_running_program_that_is_measured_competes_with_nothing_of_its_own() {
    for (file, siblings) in [("/usr/bin/postgres", false), ("/bin/bash", true)] {
        let made = Made::new();
        let tasks = [
            (800, 800, "zsh", 1),
            (810, 810, "server", 800),
            (812, 812, "backend", 810),
            (812, 813, "its thread", 810),
            (814, 814, "its child", 812),
            (816, 816, "sibling", 810),
            (820, 820, "build", 800),
        ];
        let all = |ms: u64| {
            for (pid, tid, name, parent) in tasks {
                made.task(pid, tid, name, USER, parent, 1, ms * MS);
            }
        };
        all(10);
        for pid in [810, 812, 816] {
            let link = made.0.path().join(format!("proc/{pid}/exe"));
            std::os::unix::fs::symlink(file, link).unwrap();
        }
        let mut watcher = made.watch().leave_out(&[812]);
        all(30);
        let seen = watcher.end();
        let names: Vec<&str> = seen.tasks.iter().map(|task| &*task.name).collect();
        assert!(names.contains(&"build") && names.contains(&"zsh"), "{names:?}");
        assert!(!names.contains(&"backend") && !names.contains(&"its child"), "{names:?}");
        assert_eq!(names.contains(&"sibling"), siblings, "{file}: {names:?}");
    }
}

#[test]
fn a_task_that_ended_between_looks_keeps_what_it_was_seen_with() {
    let made = Made::new();
    made.task(700, 700, "cc1", USER, 1, 1, 10 * MS);
    let mut watcher = made.watch();
    // Started since: all of its time is of this run.
    made.task(701, 701, "cc1", USER, 1, 1, 25 * MS);
    made.task(700, 700, "cc1", USER, 1, 1, 40 * MS);
    watcher.look();
    made.gone(700);
    made.gone(701);
    // The number is given to another task, which has had less.
    made.task(700, 700, "as", USER, 1, 1, 4 * MS);
    let seen = watcher.end();
    let (cc1, other) = (("cc1", 55), ("as", 4));
    let found: Vec<_> = told(&seen).into_iter().map(|t| (t.0, t.5)).collect();
    assert_eq!(found, [cc1, other]);
    assert_eq!(seen.tasks[0].processes, 2);
}

#[test]
fn a_task_that_moved_counts_where_it_was_seen_last() {
    let made = Made::new();
    made.task(700, 700, "rover", USER, 1, 0, 10 * MS);
    let mut watcher = made.watch();
    made.task(700, 700, "rover", USER, 1, 1, 110 * MS);
    watcher.look();
    made.task(700, 700, "rover", USER, 1, 3, 140 * MS);
    watcher.look();
    made.task(700, 700, "rover", USER, 1, 0, 640 * MS);
    let seen = watcher.end();
    let found: Vec<_> = told(&seen).into_iter().map(|t| (t.4, t.5)).collect();
    assert_eq!(found, [(1, 100), (3, 30)]);
}

#[test]
fn the_own_program_its_workers_and_their_members_do_not_compete() {
    let made = Made::new();
    let mut watcher = made.watch();
    made.task(OWN, OWN, "switchcost", USER, 400, 1, 90 * MS);
    made.task(OWN, 503, "deadline", USER, 400, 1, 90 * MS);
    made.task(600, 600, "switchcost", USER, OWN, 1, 90 * MS);
    made.task(601, 601, "switchcost", USER, 600, 1, 90 * MS);
    // Another program of the same name, and the shell that started this one.
    made.task(650, 650, "switchcost", USER, 400, 1, 3 * MS);
    made.task(400, 400, "bash", USER, 1, 1, 2 * MS);
    let seen = watcher.end();
    let found: Vec<_> = told(&seen).into_iter().map(|t| (t.0, t.1, t.5)).collect();
    assert_eq!(found, [("switchcost", 650, 3), ("bash", 400, 2)]);
}

#[test]
fn time_of_the_cpu_that_nobody_was_seen_to_have_is_told() {
    let made = Made::new();
    let mut watcher = made.watch();
    // 10 s of CPU 1 in ticks, of which 3 s were a task's, 5 s those of workers that have ended.
    made.cpus([[100, 0, 0], [900, 300, 40]]);
    made.task(700, 700, "seen", USER, 1, 1, 3000 * MS);
    let stat = fs::read_to_string(made.0.path().join(format!("proc/{OWN}/stat"))).unwrap();
    made.put(&format!("{OWN}/stat"), &stat.replace(" 0 0 20 0 1 ", " 300 200 20 0 1 "));
    let interrupts = "            CPU0       CPU1\n 36:     9   777755 PCI-MSIX-0000:00:02.0   \
         1-edge      virtio1-req.0\nLOC:  13736366    3601589   Local timer interrupts\n\
         ERR:          0\n";
    made.put("interrupts", interrupts);
    let seen = watcher.end();
    assert_eq!(seen.unseen_ns, Some(2000 * MS));
    assert_eq!(seen.steal_ns, Some(400 * MS));
    assert_eq!((seen.irq_ns, seen.softirq_ns), (Some(0), Some(0)));
    let (source, name) = ("36".to_string(), "virtio1-req.0".to_string());
    assert_eq!(seen.interrupts, Some(vec![InterruptSource { source, name, count: 10 }]));
}

#[test]
fn what_is_not_visible_is_said_and_is_no_error() {
    // hidepid=2, or a container: of processes only the own ones are there.
    let made = Made::new();
    made.gone(2);
    let hidden = made.watch().end();
    assert_eq!(hidden.hidden.as_deref(), Some("no kernel threads: a container, or hidepid"));
    assert_eq!((hidden.tasks.len(), hidden.unseen_ns), (0, Some(0)));
    // A container whose process 2 is its own.
    made.task(2, 2, "sh", USER, 1, 0, MS);
    let container = made.watch().end();
    assert_eq!(container.hidden.as_deref(), Some("no kernel threads: a container"));
    // No /proc at all.
    let empty = tempfile::tempdir().unwrap();
    let nothing = CompetitionWatcher::begin(empty.path(), 1, &[1], &Machine::default()).end();
    let why = nothing.hidden.unwrap();
    assert!(why.starts_with("/proc: No such file"), "{why}");
    assert_eq!((nothing.unseen_ns, nothing.steal_ns, nothing.interrupts), (None, None, None));
}

#[test]
fn without_precise_sums_ticks_are_taken() {
    let made = Made::new();
    let no_sums = |pid: i32, ns| {
        made.task(pid, pid, "busy", USER, 1, 1, ns);
        made.put(&format!("{pid}/task/{pid}/schedstat"), "0 0 0\n");
    };
    no_sums(700, 50 * MS);
    no_sums(701, 50 * MS);
    let mut watcher = made.watch();
    no_sums(700, 90 * MS);
    no_sums(701, 90 * MS);
    fs::remove_file(made.0.path().join("proc/701/task/701/schedstat")).unwrap();
    assert_eq!(told(&watcher.end()), [("busy", 700, 2, false, 1, 80)]);
}

#[test]
fn kernel_threads_are_told_by_what_they_do() {
    for (name, told) in [
        ("ksoftirqd/1", "ksoftirqd"),
        ("kworker/u8:0-events_unbound", "kworker-events_unbound"),
        ("kworker/1:2+events", "kworker-events"),
        ("kworker/1:1H-kblockd", "kworker-kblockd"),
        ("kworker/0:0", "kworker"),
        ("jbd2/vda1-8", "jbd2/vda1-8"),
        ("irq/24-nvme0q1", "irq/24-nvme0q1"),
        ("odd/", "odd/"),
    ] {
        assert_eq!(without_number(name), told, "{name}");
    }
}

#[test]
fn looks_that_take_long_are_far_apart() {
    let ms = Duration::from_millis;
    assert!(!is_due(ms(249), ms(0)) && is_due(ms(250), ms(0)) && is_due(ms(250), ms(5)));
    assert!(!is_due(ms(4899), ms(100)) && is_due(ms(4900), ms(100)));
    assert!(!is_due(Duration::MAX / 2, Duration::MAX));
    // 2 % at most.
    assert!(f64::from(PAUSE_FACTOR) >= 0.98 / 0.02);
}

#[test]
fn a_look_too_soon_is_not_taken() {
    let mut watcher = Made::new().watch();
    watcher.look_if_due();
    assert_eq!(watcher.found.looks, 1);
}

#[test]
fn this_machine_is_looked_at_without_failing() {
    let machine = crate::machine::read(Path::new("/"));
    let mut watcher = CompetitionWatcher::begin(Path::new("/"), std::process::id(), &[0], &machine);
    watcher.look();
    let seen = watcher.end();
    assert_eq!(seen.looks, 3);
    let text = serde_json::to_string(&seen).unwrap();
    assert_eq!(serde_json::from_str::<CompetingTasks>(&text).unwrap(), seen);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(testing::repeats(8, 64)))]
    #[test]
    fn no_content_makes_it_panic(
        texts in prop::collection::vec("[0-9 ()a-z/\\-]{0,80}|.{0,40}", 14),
        numbers in prop::collection::vec(any::<u64>(), 12),
    ) {
        let made = Made::new();
        made.task(700, 700, "x", USER, 701, 1, numbers[0]);
        made.task(701, 701, "x", USER, 700, 1, numbers[1]);
        let mut watcher = made.watch();
        made.task(700, 700, &texts[0], numbers[2] as u32, numbers[3] as i32, 1, numbers[4]);
        made.task(701, 701, &texts[1], USER, 700, numbers[5] as u32, numbers[6]);
        made.cpus([[numbers[7], numbers[8], 0], [numbers[9], numbers[10], numbers[11]]]);
        watcher.look();
        let files = ["stat", "interrupts", "700/stat", "700/comm", "700/task/700/stat",
            "700/task/700/schedstat", "701/task/701/stat", "701/task/x/stat", "2/stat", "500/stat"];
        for (path, text) in files.iter().zip(&texts[2..]) {
            made.put(path, text);
        }
        watcher.look();
        let seen = watcher.end();
        prop_assert!(seen.line().is_none_or(|line| !line.is_empty()));
    }
}
