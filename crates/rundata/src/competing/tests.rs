use proptest::prelude::*;

use super::*;

const S: u64 = 1_000_000_000;

fn task(name: &str, kernel: bool, cpu: u32, cpu_ns: u64) -> CompetingTask {
    let on = if cpu == 1 { CpuRole::Measured } else { CpuRole::Sibling };
    CompetingTask { name: name.to_string(), pid: 77, processes: 1, kernel, cpu, on, cpu_ns }
}

fn ten_seconds(tasks: Vec<CompetingTask>) -> CompetingTasks {
    CompetingTasks {
        cpus: vec![1],
        siblings: vec![3],
        elapsed_ns: 10 * S,
        tasks,
        ..CompetingTasks::default()
    }
}

#[test]
fn who_had_how_much_of_which_cpu_is_said_the_most_first() {
    let found = ten_seconds(vec![
        task("stress-ng", false, 1, 12 * S / 10),
        task("kdamond.0", true, 1, 33 * S / 10),
        CompetingTask { processes: 4, ..task("cc1", false, 3, S / 4) },
    ]);
    let line = "also on CPU 1: kdamond.0 (kernel thread) 33 %, stress-ng 12 %; \
                its sibling, CPU 3: cc1 (4 processes) 2.5 %";
    assert_eq!(found.line().as_deref(), Some(line));
}

#[test]
fn what_had_too_little_is_kept_and_not_told() {
    let below = vec![task("a", false, 1, S / 20 - 1), task("b", false, 3, S / 10 - 1)];
    assert_eq!(ten_seconds(below).line(), None);
    let at = ten_seconds(vec![task("a", false, 1, S / 20), task("b", false, 3, S / 10)]);
    assert_eq!(at.line().as_deref(), Some("also on CPU 1: a 0.5 %; its sibling, CPU 3: b 1.0 %"));
}

#[test]
fn ticks_and_interrupts_are_told_of_all_measured_cpus_together() {
    let of = |source: &str, name: &str, count| InterruptSource {
        source: source.to_string(),
        name: name.to_string(),
        count,
    };
    let found = CompetingTasks {
        cpus: vec![0, 1],
        unseen_ns: Some(S),
        softirq_ns: Some(S),
        irq_ns: Some(S / 20),
        steal_ns: Some(2 * S),
        // The ring's own wake-ups across CPUs, and a tick of 250 a second.
        interrupts: Some(vec![
            of("RES", "Rescheduling interrupts", 9_000_000),
            of("36", "virtio1-req.0", 60_000),
            of("LOC", "Local timer interrupts", 5_000),
        ]),
        ..ten_seconds(vec![])
    };
    let line = "also of CPUs 0,1: tasks that came and went between two looks 5.0 %, the \
         hypervisor (steal) 10 %, soft interrupts (the link's own included) 5.0 %; virtio1-req.0 \
         3000 a second";
    assert_eq!(found.line().as_deref(), Some(line));
}

#[test]
fn a_few_ticks_are_chance() {
    let ticks = |ns| CompetingTasks {
        elapsed_ns: S,
        unseen_ns: Some(ns),
        irq_ns: Some(ns),
        softirq_ns: Some(ns),
        ..ten_seconds(vec![])
    };
    assert_eq!(ticks(40_000_000).line(), None);
    assert_eq!(ticks(50_000_000).line().unwrap().split(", ").count(), 3);
}

#[test]
fn what_is_not_visible_is_said_also_where_nothing_was_seen() {
    let hidden = Some("no kernel threads".to_string());
    let found = CompetingTasks { hidden, ..ten_seconds(vec![]) };
    assert_eq!(found.line().as_deref(), Some("other tasks: not all visible (no kernel threads)"));
    let unseen = CompetingTasks { unseen_ns: Some(5 * S), ..found };
    let line = "also of CPU 1: tasks that are not visible here 50 %; other tasks: not all visible \
                (no kernel threads)";
    assert_eq!(unseen.line().as_deref(), Some(line));
}

#[test]
fn only_the_most_are_kept_and_the_rest_is_summed() {
    let tasks = (0..50).map(|n| task(&format!("t{n:02}"), false, 1, (n + 1) * S / 1000));
    let beside = (0..5).map(|n| task(&format!("s{n}"), false, 3, n));
    let found = ten_seconds(tasks.chain(beside).collect()).shortened();
    assert_eq!((found.tasks.len(), found.tasks[0].name.as_str()), (MAX_KEPT_ENTRIES, "t49"));
    // 1 + 2 + ... + 30 milliseconds; those beside took nothing from a measured CPU.
    assert_eq!(found.other_tasks_ns, 465 * S / 1000);
    let line = "also on CPU 1: t49 0.5 %; of CPU 1: further tasks 4.7 %";
    assert_eq!(found.line().as_deref(), Some(line));
}

#[test]
fn sessions_are_added_up() {
    let first = CompetingTasks {
        unseen_ns: Some(3),
        steal_ns: Some(5),
        interrupts: Some(vec![]),
        ..ten_seconds(vec![task("a", false, 1, 4 * S), task("k", true, 1, S)])
    };
    let second = CompetingTasks {
        unseen_ns: None,
        steal_ns: Some(6),
        ..ten_seconds(vec![
            CompetingTask { pid: 99, ..task("a", false, 1, 2 * S) },
            task("k", true, 1, S),
            task("k", true, 3, S),
        ])
    };
    let both = first.clone().plus(second);
    assert_eq!((both.elapsed_ns, both.unseen_ns, both.steal_ns), (20 * S, None, Some(11)));
    assert_eq!(both.interrupts, None);
    let told: Vec<_> =
        both.tasks.iter().map(|t| (t.name.as_str(), t.cpu, t.processes, t.cpu_ns / S)).collect();
    assert_eq!(told, [("a", 1, 2, 6), ("k", 1, 1, 2), ("k", 3, 1, 1)]);
    let line = both.line().unwrap();
    assert!(line.starts_with("also on CPU 1: a (2 processes) 30 %"), "{line}");
}

fn any_task() -> impl Strategy<Value = CompetingTask> {
    (".{0,8}", any::<(i32, u32, bool, u32, bool, u64)>()).prop_map(|(name, rest)| {
        let (pid, processes, kernel, cpu, measured, cpu_ns) = rest;
        let on = if measured { CpuRole::Measured } else { CpuRole::Sibling };
        CompetingTask { name, pid, processes, kernel, cpu, on, cpu_ns }
    })
}

fn any_tasks() -> impl Strategy<Value = CompetingTasks> {
    let interrupts = (".{0,4}", ".{0,8}", any::<u64>());
    let interrupts =
        interrupts.prop_map(|(source, name, count)| InterruptSource { source, name, count });
    let figures = any::<(u64, u32, u64, u64, Option<u64>)>();
    let accounts = any::<(Option<u64>, Option<u64>, Option<u64>, Option<String>)>();
    (
        prop::collection::vec(any::<u32>(), 0..12),
        prop::collection::vec(any_task(), 0..40),
        prop::option::of(prop::collection::vec(interrupts, 0..30)),
        figures,
        accounts,
    )
        .prop_map(|(cpus, tasks, interrupts, figures, accounts)| {
            let (elapsed_ns, looks, looking_ns, other_tasks_ns, unseen_ns) = figures;
            let (irq_ns, softirq_ns, steal_ns, hidden) = accounts;
            CompetingTasks {
                siblings: cpus.clone(),
                cpus,
                elapsed_ns,
                looks,
                looking_ns,
                tasks,
                other_tasks_ns,
                unseen_ns,
                hidden,
                interrupts,
                irq_ns,
                softirq_ns,
                steal_ns,
            }
        })
}

proptest! {
    #[test]
    fn any_tasks_is_told_and_survives_json(one in any_tasks(), other in any_tasks()) {
        let both = one.clone().plus(other);
        for found in [one, both] {
            prop_assert!(found.line().is_none_or(|line| !line.is_empty() && line.len() < 10_000));
            let text = serde_json::to_string(&found).unwrap();
            prop_assert_eq!(serde_json::from_str::<CompetingTasks>(&text).unwrap(), found);
        }
    }
}
