//! The screen of a captured state, to the letter.

use analysis::program::Range;
use rundata::reading::Reading;

use super::keys::{KeyAction, PressedKey, ScreenState};
use super::screen::{ScreenSize, lines, screen};
use super::{SCHEMA, TopUpdate};
use crate::observe::live::GroupBy;
use crate::observe::live::rows::{
    PreemptionCount, QuantileBucket, RowOrder, SwitchRow, TopPreempter,
};
use crate::observe::live::session::TracerOverhead;

fn row(name: &str, id: u32, sleeps: f64, preempted: f64) -> SwitchRow {
    let between = |high_ns| Some(QuantileBucket { low_ns: high_ns / 2, high_ns });
    SwitchRow {
        name: name.into(),
        id: Some(id),
        voluntary_per_s: sleeps,
        preempted_per_s: preempted,
        migrations_per_s: 2.5,
        cpu_share: 0.42,
        wait_median: between(2_048),
        wait_99: between(131_072),
        burst_median: between(16_384),
        cost_share: Some(Range { low: 0.012, high: 0.021 }),
        preempted_by: (preempted > 0.0)
            .then(|| TopPreempter { name: "kworker/1:2".into(), per_s: preempted / 10.0 }),
        ..SwitchRow::default()
    }
}

fn update() -> TopUpdate {
    TopUpdate {
        schema: SCHEMA,
        seconds: 2.0,
        total: row("machine", 0, 38_300.0, 2_900.0),
        own: TracerOverhead {
            ns_per_switch: Reading::Known(165.0),
            cpu_ns: 2_000_000,
            share: Reading::Known(0.003),
            preemptions: PreemptionCount { count: 0, of_switches: 82_400, per_s: 0.0 },
        },
        rows: vec![
            row("postgres", 812, 38_000.0, 1_200.0),
            row("kworker/1:2", 57, 300.0, 0.0),
            row("rsync", 4_194_304, 0.0, 1_700.0),
        ],
        profile: Reading::unknown("none"),
        profile_age_s: None,
        notices: Vec::new(),
    }
}

fn size(columns: usize, rows: usize) -> ScreenSize {
    ScreenSize { columns, rows }
}

fn state() -> ScreenState {
    ScreenState::new(GroupBy::Process, RowOrder::Switches, String::new())
}

const KEYS: &str = "q quit  s sort  g group  / filter  f freeze  h help";

#[test]
fn a_terminal_of_80_columns_and_24_lines() {
    let shown = screen(Some(&update()), &state(), size(80, 24));
    let expected = "\
41,200 switches a second, 93 % voluntary; by process, most switches first
this tracer: 0.3 % of the machine, 165 ns a switch
most preemptions by another: rsync by kworker/1:2, 170 a second
name                 id sleeps prmpts yields  moves   wait    p99    run  cost %
postgres            812    38k   1.2k      0    2.5   <2us <131us  <16us 1.2-2.1
rsync           4194304      0   1.7k      0    2.5   <2us <131us  <16us 1.2-2.1
kworker/1:2          57    300      0      0    2.5   <2us <131us  <16us 1.2-2.1";
    assert_eq!(shown.len(), 24);
    assert_eq!(shown[..7].join("\n"), expected);
    assert_eq!(shown[7..23].concat(), "");
    assert_eq!(shown[23], format!("{KEYS}  c: cpu %, preempted by"));
    // As text for scripts it is the same, and says what is not in it.
    let mut update = update();
    state().arrange(&mut update.rows);
    let text = lines(&update, &state());
    let left_out = "hidden columns: cpu %, preempted by (--batch=json has all)";
    assert_eq!(text[3], left_out);
    assert_eq!([&text[..3], &text[4..]].concat().join("\n"), expected);
}

/// However much is to be told, and however wide the terminal of whoever reads it.
#[test]
fn text_for_scripts_has_80_columns() {
    let mut update = update();
    update.own.ns_per_switch = Reading::unknown("no switch was measured");
    update.own.share = Reading::unknown("no CPU was seen");
    let text = lines(&update, &state()).join("\n");
    assert!(text.contains("what it adds to a switch"), "{text}");
    assert!(text.lines().all(|line| line.len() <= 80), "{text}");
}

#[test]
fn what_this_program_itself_preempts_is_told_apart() {
    let mut update = update();
    update.own.preemptions = PreemptionCount { count: 21, of_switches: 82_400, per_s: 10.5 };
    let shown = screen(Some(&update), &state(), size(80, 24));
    let said = "this tracer took the CPU: 21 of 82,400 switches (0.025 %), 10.5 a second";
    assert_eq!(shown[2], said);
}

#[test]
fn a_terminal_of_160_columns_and_50_lines() {
    let shown = screen(Some(&update()), &state(), size(160, 50));
    let expected = "\
name                 id sleeps prmpts yields  moves   wait    p99    run  cost % cpu % preempted by
postgres            812    38k   1.2k      0    2.5   <2us <131us  <16us 1.2-2.1    42 kworker/1:2";
    assert_eq!(shown[3..5].join("\n"), expected);
    assert_eq!((shown.len(), &*shown[49]), (50, KEYS));
}

#[test]
fn no_terminal_is_too_small() {
    for columns in 0..100 {
        for rows in 0..30 {
            let shown = screen(Some(&update()), &state(), size(columns, rows));
            assert_eq!(shown.len(), rows);
            assert!(shown.iter().all(|line| line.chars().count() <= columns), "{shown:?}");
        }
    }
}

#[test]
fn keys_sort_group_filter_freeze_and_scroll() {
    let mut state = state();
    let names = |state: &ScreenState, rows| -> Vec<String> {
        let shown = screen(Some(&update()), state, size(80, rows));
        let names = shown.iter().skip(4).take(rows - 5).filter(|line| !line.is_empty());
        names.filter_map(|line| line.split_whitespace().next()).map(String::from).collect()
    };
    assert_eq!(state.press(PressedKey::Char('s')), KeyAction::Nothing);
    assert_eq!(names(&state, 24), ["rsync", "postgres", "kworker/1:2"]);
    state.press(PressedKey::Down);
    assert_eq!(names(&state, 7), ["postgres", "kworker/1:2"]);
    // No further than the last row.
    state.press(PressedKey::PageDown);
    assert_eq!(names(&state, 7), ["postgres", "kworker/1:2"]);
    for c in "/syn".chars() {
        state.press(PressedKey::Char(c));
    }
    assert_eq!(names(&state, 24), ["rsync"]);
    assert!(screen(Some(&update()), &state, size(80, 24))[23].starts_with("filter: syn_"));
    // While it is typed letters are letters.
    assert_eq!(state.press(PressedKey::Char('q')), KeyAction::Nothing);
    state.press(PressedKey::Escape);
    assert_eq!((state.filter.as_str(), state.is_typing), ("", false));
    assert_eq!(
        (state.press(PressedKey::Char('g')), state.by),
        (KeyAction::Regroup, GroupBy::Thread)
    );
    state.press(PressedKey::Char('f'));
    assert!(screen(Some(&update()), &state, size(80, 24))[0].starts_with("frozen: 41,200 "));
    state.press(PressedKey::Char('h'));
    let help = screen(Some(&update()), &state, size(80, 24))[3..].to_vec();
    assert!(help.iter().any(|line| line.starts_with("q          quit")));
    // Nothing of it is cut.
    assert_eq!(help[..20], screen(Some(&update()), &state, size(200, 24))[3..23]);
    assert_eq!(state.press(PressedKey::Char('q')), KeyAction::Quit);
}

/// What goes first where there is less room, and what is said of it.
#[test]
fn narrow_terminals_keep_what_matters_and_say_what_went() {
    let mut state = state();
    let head = |state: &ScreenState, columns: usize| {
        let shown = screen(Some(&update()), state, size(columns, 24));
        (shown[3].clone(), shown[23].clone())
    };
    let (names, last) = head(&state, 60);
    assert_eq!(names, "name                 id sleeps prmpts    p99    run  cost %");
    assert_eq!(last, "q s g / f h  c: yields, moves, wait, cpu %, preempted by");
    let (names, last) = head(&state, 40);
    assert_eq!(names, "name            sleeps prmpts    p99");
    assert_eq!(last, "q s g / f h  c: 8 more columns");
    // The key shows them, round and round, and all of them once.
    let mut seen = Vec::new();
    for _ in 0..20 {
        let (names, _) = head(&state, 60);
        if seen.contains(&names) {
            break;
        }
        assert!(names.starts_with("name "), "{names}");
        seen.push(names);
        state.press(PressedKey::Char('c'));
    }
    let all = seen.join(" ");
    for heading in ["id", "yields", "moves", "wait", "cost %", "cpu %", "preempted by"] {
        assert_eq!(all.matches(&format!(" {heading}")).count(), 1, "{heading}: {seen:?}");
    }
    // All there is room for: nothing is said.
    assert_eq!(head(&state, 160).1, KEYS);
}

#[test]
fn this_programs_own_rows_stand_apart() {
    let mut update = update();
    update.rows[0] = SwitchRow { own: true, ..row("switchcost", 99, 90_000.0, 0.0) };
    let shown = screen(Some(&update), &state(), size(80, 24));
    let names: Vec<&str> =
        shown[4..8].iter().map(|line| line.split("  ").next().unwrap()).collect();
    assert_eq!(names, ["rsync", "kworker/1:2", "this program:", "switchcost"]);
}

/// All of the help is read on any terminal: it goes before other lines, and scrolls.
#[test]
fn help_fits_the_terminal() {
    for (columns, rows) in [(80, 24), (60, 20), (40, 12)] {
        let mut state = state();
        state.press(PressedKey::Char('?'));
        let (mut read, mut before) = (Vec::new(), Vec::new());
        loop {
            let shown = screen(Some(&update()), &state, size(columns, rows));
            assert!(shown.iter().all(|line| line.chars().count() <= columns), "{shown:?}");
            read.extend(
                shown[1..rows - 1]
                    .iter()
                    .flat_map(|line| line.split_whitespace())
                    .map(str::to_string),
            );
            if shown == before {
                break;
            }
            before = shown;
            state.press(PressedKey::Down);
        }
        for word in ["quit", "columns,", "Escape", "sched_yield(2)", "percentile,", "often"] {
            assert!(read.iter().any(|of| of == word), "{columns}x{rows}: {word}");
        }
    }
}
