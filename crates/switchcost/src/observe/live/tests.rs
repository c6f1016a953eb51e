//! What was added up, of threads that are made up.

use analysis::program::{Direct, Price, Range};
use proptest::prelude::*;
use switchtrace::{
    DurationHistogram, SwitchCause, SwitchPair, ThreadKey, ThreadSnapshot, WaitHistogram,
};

use super::GroupBy;
use super::account::{PairCounts, SwitchAccount, ThreadUsage, TraceScope, TracedTask};
use super::labels::ProcessLabels;
use super::rows::{RowGrouping, ShownColumns, rate, rows};
use crate::report::terminal::WIDTH;

const SECOND: u64 = 1_000_000_000;

/// The name of a thread that was born at so many seconds.
pub(crate) fn name(tid: u32, born_s: u64) -> ThreadKey {
    ThreadKey { tid, born: ((born_s * SECOND) >> 10) as u32 }
}

/// A histogram with so many in one bucket.
pub(crate) fn lengths(bucket: usize, count: u32) -> DurationHistogram {
    let mut counts = [0; 32];
    counts[bucket] = count;
    counts.into()
}

/// Waits with so many in the last eighth of an octave.
pub(crate) fn octave(octave: usize, count: u32) -> WaitHistogram {
    let mut counts = [0; 256];
    counts[8 * octave + 7] = count;
    counts.into()
}

/// A thread of process `tgid` that was switched so often, half of it by others.
pub(crate) fn thread(name: ThreadKey, tgid: u32, comm: &str, switches: u64) -> ThreadSnapshot {
    let half = u32::try_from(switches / 2).unwrap();
    let mut off = [DurationHistogram::default(); SwitchCause::ALL.len()];
    (off[0], off[2]) = (lengths(9, half), lengths(14, half));
    ThreadSnapshot {
        key: name,
        tgid,
        parent: 1,
        comm: comm.into(),
        ended: false,
        running: false,
        cpu_ns: switches * 10_000,
        waited_ns: None,
        voluntary: switches - switches / 2,
        involuntary: switches / 2,
        yields: 0,
        migrations: 0,
        bursts: lengths(7, u32::try_from(switches).unwrap()),
        waits: octave(3, u32::try_from(switches).unwrap()),
        off,
    }
}

pub(crate) fn pair(
    prev: ThreadKey,
    next: ThreadKey,
    voluntary: u64,
    involuntary: u64,
) -> SwitchPair {
    SwitchPair { prev, next, voluntary, involuntary }
}

fn switches(account: &SwitchAccount) -> u64 {
    account.total().switches()
}

#[test]
fn counts_begin_with_the_first_look_or_with_the_thread() {
    let mut account = SwitchAccount::new(TraceScope::All);
    let (old, late, young) = (name(10, 1), name(11, 2), name(12, 101));
    account.add_look(100 * SECOND, vec![thread(old, 10, "old", 1_000)], &[]);
    assert_eq!(switches(&account), 0);
    let now = vec![
        thread(old, 10, "old", 1_040),
        // It had no room before.
        thread(late, 11, "late", 500),
        thread(young, 12, "young", 6),
    ];
    account.add_look(102 * SECOND, now, &[]);
    assert_eq!(switches(&account), 46);
    account.add_look(103 * SECOND, vec![thread(late, 11, "late", 502)], &[]);
    assert_eq!(switches(&account), 48);
    // An id given anew is another thread.
    account.add_look(104 * SECOND, vec![thread(name(11, 104), 11, "late", 4)], &[]);
    assert_eq!(switches(&account), 52);
    // It was born just before the last look, and came into the table behind it.
    let forked = ThreadKey { born: name(13, 104).born - 100, ..name(13, 104) };
    account.add_look(105 * SECOND, vec![thread(forked, 13, "forked", 8)], &[]);
    assert_eq!(switches(&account), 60);
}

/// A switch may change a record each time that a look reads it.
#[test]
fn a_thread_that_one_look_has_not_read_loses_nothing() {
    let mut account = SwitchAccount::new(TraceScope::All);
    let (old, young) = (name(10, 1), name(11, 101));
    account.add_look(100 * SECOND, vec![thread(old, 10, "old", 1_000)], &[]);
    account.add_look(102 * SECOND, vec![], &[]);
    let now = vec![thread(old, 10, "old", 1_006), thread(young, 11, "young", 4)];
    account.add_look(103 * SECOND, now, &[]);
    assert_eq!(switches(&account), 10);
    // What two looks have not read is taken for gone.
    account.add_look(104 * SECOND, vec![], &[]);
    assert_eq!(account.living_processes().count(), 2);
    account.add_look(105 * SECOND, vec![], &[]);
    assert_eq!(account.living_processes().count(), 0);
}

#[test]
fn pairs_of_what_has_ended_are_forgotten_once_they_are_counted() {
    let mut account = SwitchAccount::new(TraceScope::All);
    let (one, other) = (name(10, 1), name(11, 1));
    let idle = ThreadKey::default();
    let pairs = |count| [pair(one, other, count, 1), pair(one, idle, 2, 0)];
    let threads = || vec![thread(one, 10, "one", 4), thread(other, 11, "other", 4)];
    assert_eq!(account.add_look(SECOND, threads(), &pairs(5)), []);
    assert_eq!(account.add_look(2 * SECOND, threads(), &pairs(9)), []);
    let key = (TracedTask::Thread(one), TracedTask::Thread(other));
    assert_eq!(account.pairs[&key], PairCounts { voluntary: 4, involuntary: 0 });
    let mut ended = threads();
    ended[1].ended = true;
    assert_eq!(account.add_look(3 * SECOND, ended.clone(), &pairs(10)), [], "counted only now");
    assert_eq!(account.add_look(4 * SECOND, ended.clone(), &pairs(10)), [(one, other)]);
    assert_eq!(account.add_look(5 * SECOND, ended, &[pair(one, idle, 2, 0)]), []);
    assert_eq!(account.pairs[&key], PairCounts { voluntary: 5, involuntary: 0 });
    assert_eq!(account.switches_of_all(), 0);
}

#[test]
fn a_tree_grows_with_its_descendants_only() {
    let mut account = SwitchAccount::new(TraceScope::Tree(u32::MAX));
    let at = |tid, parent, switches| ThreadSnapshot {
        parent,
        ..thread(name(tid, 101), tid, "x", switches)
    };
    account.add_look(100 * SECOND, vec![], &[]);
    account.set_scope(TraceScope::Tree(20));
    // The grandchild comes first; 30 is somebody else. The launcher (7) had another child before,
    // and becomes the parent of 23, whose own has ended.
    let rehearsal = ThreadSnapshot { key: name(19, 100), ..at(19, 7, 40) };
    let orphan = ThreadSnapshot { key: name(23, 102), ..at(23, 7, 6) };
    account.add_look(
        102 * SECOND,
        vec![at(22, 21, 2), orphan, at(30, 1, 100), rehearsal, at(21, 20, 4), at(20, 7, 8)],
        &[],
    );
    assert_eq!((switches(&account), account.living_processes().next().is_some()), (20, true));
    // The id of the child is given to another process.
    let anew = ThreadSnapshot { key: name(21, 103), ..at(21, 1, 50) };
    account.add_look(104 * SECOND, vec![anew, at(20, 7, 10)], &[]);
    assert_eq!(switches(&account), 22);
    let mut all = vec![at(20, 7, 10), at(30, 1, 100)];
    all[0].ended = true;
    account.add_look(105 * SECOND, all, &[]);
    assert_eq!(account.living_processes().next(), None);
}

#[test]
fn running_processes_have_the_children_that_there_are_and_those_that_come() {
    let at = |tid, born_s, parent, switches| ThreadSnapshot {
        parent,
        ..thread(name(tid, born_s), tid, "x", switches)
    };
    // 40 is this program, started by one of those that it looks at; 41 its child.
    let look = |more: u64| {
        vec![
            at(22, 3, 21, 100 + 2 * more),
            at(21, 2, 20, 100),
            at(20, 1, 1, 100),
            at(30, 1, 1, 100 + 50 * more),
            at(40, 4, 20, 100 + 10 * more),
            at(41, 5, 40, 100 + 10 * more),
        ]
    };
    let account = |scope: TraceScope| {
        let mut account = SwitchAccount::new(scope).by_observer(40);
        account.add_look(100 * SECOND, look(0), &[]);
        let mut now = look(1);
        // A child of a child that was there, and one of somebody else.
        now.extend([at(23, 101, 22, 6), at(31, 101, 30, 8)]);
        account.add_look(102 * SECOND, now, &[]);
        account
    };
    let family = account(TraceScope::Families(vec![20]));
    assert_eq!((switches(&family), family.children()), (8, 3));
    assert_eq!(family.total_of_roots().switches(), 0);
    assert_eq!((family.cpu_ns_of(23), family.busiest()), (60_000, Some(23)));
    assert_eq!(family.left_out(), None);
    let alone = account(TraceScope::Processes(vec![20]));
    assert_eq!((switches(&alone), alone.children()), (0, 0));
    let (count, used) = alone.left_out().expect("its children");
    assert_eq!((count, used.switches()), (3, 8));
    let two = account(TraceScope::Families(vec![20, 30]));
    assert_eq!((switches(&two), two.children()), (66, 4));
    // The id of the first is given to somebody else, whose child is not of the family.
    let mut family = family;
    family.add_look(
        104 * SECOND,
        vec![at(20, 103, 1, 4), at(50, 103, 20, 4), at(23, 101, 22, 8)],
        &[],
    );
    assert_eq!(switches(&family), 10);
}

/// A thousand threads a second, for as long as one likes: nothing is lost of the sums, and memory
/// is bounded.
#[test]
fn a_crowd_that_comes_and_goes_is_added_up_by_name() {
    let mut account = SwitchAccount::new(TraceScope::All);
    account.add_look(0, vec![], &[]);
    let mut tid = 0;
    for second in 1..testing::repeats(22, 60) {
        let mut threads = Vec::new();
        let mut pairs = Vec::new();
        for _ in 0..1_000 {
            tid += 1;
            let name = name(tid, second);
            pairs.push(pair(name, ThreadKey::default(), 2, 0));
            let comm = format!("x{}", tid % 10_000);
            threads.push(ThreadSnapshot { ended: true, ..thread(name, tid, &comm, 2) });
        }
        account.add_look((second + 1) * SECOND, threads, &pairs);
    }
    assert_eq!(switches(&account), 2 * u64::from(tid));
    assert_eq!(account.switches_of_all(), 4 * u64::from(tid));
    assert!(
        account.tasks.len() <= 6_000 && account.pairs.len() <= 17_384,
        "{}",
        account.tasks.len()
    );
    assert_eq!(account.most_ended, 1_000);
}

/// Its row stays its own when it has ended, however many others have.
#[test]
fn a_process_that_was_asked_for_is_not_added_up_with_others() {
    let root = thread(name(7, 0), 7, "server", 10);
    let mut account = SwitchAccount::new(TraceScope::Families(vec![7]));
    account.add_look(0, vec![root.clone()], &[]);
    let mut threads = vec![ThreadSnapshot { ended: true, ..thread(name(7, 0), 7, "server", 16) }];
    for tid in 100..10_100 {
        let child =
            ThreadSnapshot { parent: 7, ended: true, ..thread(name(tid, 1), tid, "server", 2) };
        threads.push(child);
    }
    account.add_look(2 * SECOND, threads, &[]);
    // What has ended is added up by the look after it.
    account.add_look(3 * SECOND, Vec::new(), &[]);
    let labels = ProcessLabels::default();
    let all = rows(
        &account,
        RowGrouping { by: GroupBy::Process, labels: &labels },
        1.0,
        Price::default(),
    );
    let found = all.iter().find(|row| row.id == Some(7)).expect("a row of its own");
    assert_eq!(found.switches_per_s(), 6.0);
    assert!(all.len() < 10, "{} rows", all.len());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the tracer says, the sums are those of the growth.
    #[test]
    fn sums_are_the_growth(looks in proptest::collection::vec(proptest::collection::vec(0_u64..1_000, 3), 1..8)) {
        let mut account = SwitchAccount::new(TraceScope::All);
        let mut counts = [0; 3];
        for (at, look) in looks.iter().enumerate() {
            look.iter().zip(&mut counts).for_each(|(more, count)| *count += more);
            let threads = (0..3).map(|of| thread(name(of + 1, 0), of + 1, "x", counts[of as usize]));
            account.add_look(at as u64 * SECOND, threads.collect(), &[]);
        }
        let growth: u64 = looks.iter().skip(1).flatten().sum();
        prop_assert_eq!(switches(&account), growth);
    }
}

#[test]
fn rows_are_of_threads_or_of_processes() {
    let mut account = SwitchAccount::new(TraceScope::All);
    let (main, worker, alien) = (name(10, 1), name(11, 1), name(20, 1));
    let look = |of: u64| {
        vec![
            thread(main, 10, "server", 100 * of),
            thread(worker, 10, "server:work", 400 * of),
            thread(alien, 20, "kworker/1:2", 10 * of),
        ]
    };
    account.add_look(2 * SECOND, look(1), &[pair(worker, alien, 0, 1), pair(worker, main, 0, 1)]);
    account.add_look(4 * SECOND, look(3), &[pair(worker, alien, 0, 11), pair(worker, main, 0, 31)]);
    // Half of the switches are involuntary: up to 1,600 ns.
    let direct = Direct {
        pipe: Range { low: 1_000.0, high: 2_000.0 },
        yields: Some(Range { low: 780.0, high: 1_200.0 }),
    };
    let price = Price { direct: Some(direct), total: None };
    let text = |by, columns: usize| -> Vec<String> {
        let rows =
            rows(&account, RowGrouping { by, labels: &ProcessLabels::default() }, 2.0, price);
        let columns = ShownColumns::fitting(columns, 0);
        std::iter::once(columns.head()).chain(rows.iter().map(|row| columns.row(row))).collect()
    };
    assert_eq!(
        text(GroupBy::Process, WIDTH),
        [
            "name                 id sleeps prmpts yields  moves   wait    p99    run  cost %",
            "server               10    250    250      0      0   <1us   <1us  <16us  6.0-16",
            "kworker/1:2          20      5      5      0      0   <1us   <1us  <16us  6.0-16",
        ]
    );
    assert_eq!(
        text(GroupBy::Thread, 102)[..3],
        [
            "name                 id sleeps prmpts yields  moves   wait    p99    run  cost % \
             cpu % preempted by",
            "server:work          11    200    200      0      0   <1us   <1us  <16us  6.0-16   \
             0.4 server",
            "server               10     50     50      0      0   <1us   <1us  <16us  6.0-16   \
             0.1",
        ]
    );
    assert!(text(GroupBy::Process, 110)[1].ends_with("kworker/1:2"));
}

#[test]
fn rates_have_six_columns_at_most() {
    let all = [0.0, 0.01, 0.3, 12.0, 950.4, 1_234.0, 41_200.0, 683_999.0, 1_200_000.0];
    assert_eq!(all.map(rate), ["0", "<0.1", "0.3", "12", "950", "1.2k", "41k", "684k", "1.2M"]);
}

#[test]
fn names_are_cut_and_obey_no_terminal() {
    let mut account = SwitchAccount::new(TraceScope::All);
    account.add_look(0, vec![], &[]);
    let strange =
        thread(name(1, 1), 1, "\u{1b}[2Jab\ncd\u{4f60}\u{597d}\u{4f60}\u{597d}\u{4f60}xyz", 2);
    account.add_look(2 * SECOND, vec![strange], &[]);
    let lines: Vec<String> = rows(
        &account,
        RowGrouping { by: GroupBy::Thread, labels: &ProcessLabels::default() },
        1.0,
        Price::default(),
    )
    .iter()
    .map(|row| ShownColumns::fitting(WIDTH, 0).row(row))
    .collect();
    assert!(lines[0].starts_with("[2Jab cd\u{4f60}\u{597d}\u{4f60}        1 "), "{}", lines[0]);
}

/// Named one by one: who adds a field says here what its sum is.
#[test]
fn all_that_threads_did_is_added_up() {
    let of = |times: u32| {
        let count = u64::from(times);
        ThreadUsage {
            voluntary: count,
            involuntary: 20 * count,
            yields: 3 * count,
            migrations: 4 * count,
            cpu_ns: 5 * count,
            bursts: lengths(6, 6 * times),
            waits: octave(7, 7 * times),
            off: std::array::from_fn(|cause| lengths(8 + cause, 8 * times)),
        }
    };
    let mut sum = of(1);
    sum.add(&of(100));
    assert_eq!(sum, of(101));
    assert_eq!((sum.switches(), sum.preempted()), (21 * 101, 17 * 101));
}

#[test]
fn yields_are_no_preemptions() {
    let used = ThreadUsage { involuntary: 5, yields: 7, ..ThreadUsage::default() };
    assert_eq!(used.preempted(), 0);
}
