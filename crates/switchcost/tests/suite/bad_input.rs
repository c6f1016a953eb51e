//! What cannot be done is refused in one clear line that names the value and what is accepted.

use std::fs::File;

use crate::common::{Home, PROGRAM, Said, allowed_cpus};
use testing::{Need, lacks};

/// Says no in one line: exit 2, nothing measured, nothing on standard output.
fn assert_refused(args: &[&str], named: &str, accepted: &str) {
    let home = Home::new();
    let said = home.run(args);
    assert_eq!(said.code, Some(2), "{args:?}: {said:?}");
    assert_eq!(said.out, "", "{args:?}");
    let first = said.err.lines().next().unwrap_or_default();
    assert_eq!(first, said.error(), "{args:?}: the error comes first");
    assert!(first.contains(named), "{args:?}: no {named:?} in {first:?}");
    assert!(first.contains(accepted), "{args:?}: no {accepted:?} in {first:?}");
    assert_eq!(home.run_files().len(), 0, "{args:?} left a run file");
}

fn assert_ring_refused(args: &[&str], named: &str, accepted: &str) {
    assert_refused(&[&["ring"], args].concat(), named, accepted);
}

#[test]
fn sizes() {
    for (list, named) in [
        ("0", "'0': a ring has 1 to 4194304 members"),
        ("0..4", "'0..4': a ring has 1 to 4194304 members"),
        ("2,0", "'0': a ring has 1 to 4194304 members"),
        ("4194305", "'4194305': a ring has 1 to 4194304 members"),
        ("99999999999999999999", "'99999999999999999999'"),
        ("zwei", "'zwei': not a whole number"),
        ("2.5", "'2.5': not a whole number"),
        ("2,,4", "'2,,4'"),
        ("", "''"),
        ("9..2", "the range starts at 9, above its end 2"),
        ("2..", "'2..'"),
        ("2..8:0", "'2..8:0'"),
        ("2..8:x1", "'x1'"),
        ("1..4194304", "more than 10000 values"),
    ] {
        let accepted = "accepted: numbers and ranges such as 2,4,8 or 2..64";
        assert_ring_refused(&["--members", list], named, accepted);
    }
    assert_ring_refused(&["--members=-4"], "'-4'", "accepted: numbers and ranges");
}

#[test]
fn items_under_way() {
    for list in ["0", "65537", "1000000000", "99999999999999999999", "1..100000:x2", "16,0"] {
        let accepted = "accepted: numbers and ranges such as";
        assert_ring_refused(&["--flight", list], "'", accepted);
    }
    for word in ["many", "", "1.5", "full,many", "16,,2", "FULL"] {
        assert_ring_refused(&["--flight", word], "not a whole number", "accepted: ");
    }
    assert_ring_refused(&["--flight=-4"], "'-4'", "accepted: ");
    let pair = "a stream has a writer and a reader";
    assert_ring_refused(&["--flight", "full", "--members", "2,4"], "--members 4", pair);
    assert_ring_refused(&["--flight", "2", "--state", "sse"], "--state", "cannot be used with");
}

#[test]
fn work_that_cannot_be_walked() {
    let multiple = "must be a multiple of 8 bytes";
    for (work, stride, named, accepted) in [
        ("4K", "0", "--stride 0:", multiple),
        ("4K", "12", "--stride 12:", multiple),
        ("4K", "8K", "--stride 8192:", "larger than the array of 4096 bytes (--work)"),
        ("12", "8", "--work 12:", multiple),
        ("lots", "8", "'lots'", "accepted: bytes, or with K, M, G in powers of 1024"),
        ("4K", "wide", "'wide'", "accepted: bytes, or with K, M, G in powers of 1024"),
        ("", "8", "''", "accepted: bytes"),
        ("4096G", "8", "--work 4398046511104 in 64 members", "ask for less work or fewer"),
    ] {
        assert_ring_refused(&["--work", work, "--stride", stride], named, accepted);
    }
}

#[test]
fn a_stride_without_work_is_checked_all_the_same() {
    assert_ring_refused(&["--stride", "0", "--rounds", "1"], "--stride 0", "above 0");
}

#[test]
fn cpus() {
    let accepted = "accepted: same, free, sweep, or CPU numbers such as 1 or 0,2";
    for list in ["here", "", "0,,1", "0-1", "99999999999", "1.5"] {
        assert_ring_refused(&["--placement", list], &format!("'{list}'"), accepted);
    }
    let have: Vec<String> = allowed_cpus().iter().map(u32::to_string).collect();
    let accepted = format!("accepted here: {}", have.join(","));
    assert_ring_refused(&["--placement", "9999"], "CPU 9999 is not present", &accepted);
    let mixed = format!("{},9999", have[0]);
    assert_ring_refused(&["--placement", &mixed], "CPU 9999 is not present", &accepted);
}

#[test]
fn a_cpu_outside_the_affinity_mask() {
    if lacks([Need::TwoCpus, Need::Program("taskset")]) {
        return;
    }
    let cpus = allowed_cpus();
    let [first, second, ..] = &cpus[..] else { panic!("{cpus:?}") };
    let home = Home::new();
    let placement = second.to_string();
    let said = Said::of(home.command("taskset").args(["-c", &first.to_string(), PROGRAM]).args([
        "ring",
        "--placement",
        &placement,
    ]));
    assert_eq!((said.code, &*said.out), (Some(2), ""));
    let named = format!("CPU {second} is not in this process's cpuset or affinity mask");
    assert!(said.error().contains(&named), "{}", said.err);
    assert!(said.error().contains(&format!("accepted here: {first};")), "{}", said.err);
}

#[test]
fn time_precision_and_counts() {
    for budget in ["0", "0s", "0ms", "+", "20s++", "soon", "", "1fortnight"] {
        let accepted = "accepted: above zero, as 20, 0.5, 90s, 2m or 500ms";
        assert_ring_refused(&["--budget", budget], &format!("'{budget}'"), accepted);
    }
    assert_ring_refused(&["--budget=-1s"], "'-1s'", "accepted: above zero");
    // Only what is measured may take longer than its budget.
    let home = Home::new();
    for args in [
        &["trace", "--all"][..],
        &["trace", "--seconds", "1+", "--", "true"],
        &["top", "--batch"],
        &["cost", "--pid", "1"],
        &["run", "-m", "5", "true"],
    ] {
        let budget: &[&str] = if args.contains(&"--") { &[] } else { &["--budget", "60s+"] };
        let said = home.run(&[&args[..1], budget, &args[1..]].concat());
        assert_eq!((said.code, &*said.out), (Some(2), ""), "{args:?}: {}", said.err);
        let words = "only the budget of a measurement may be extended (accepted here: the time";
        assert!(said.error().contains(words), "{args:?}: {}", said.err);
    }
    for precision in ["0", "0%", "100%", "1", "nan", "NaN%", "inf", "tight", ""] {
        let accepted = "accepted: above 0% and below 100%, as 1% or 0.01";
        assert_ring_refused(&["--precision", precision], &format!("'{precision}'"), accepted);
    }
    assert_ring_refused(&["--precision=-1%"], "'-1%'", "accepted: above 0%");
    for flag in ["--laps", "--rounds"] {
        for count in ["0", "many", "1.5", "", "99999999999999999999"] {
            let accepted = "accepted: whole numbers from 1 on";
            assert_ring_refused(&[flag, count], &format!("'{count}'"), accepted);
        }
    }
    assert_ring_refused(&["--rounds", "4294967296"], "'4294967296'", "accepted: whole numbers");
}

#[test]
fn seeds() {
    for seed in ["x", "1.5", "18446744073709551616"] {
        assert_ring_refused(&["--seed", seed], &format!("'{seed}'"), "accepted");
    }
}

/// As people type them, without an equals sign.
#[test]
fn numbers_below_zero() {
    for (flag, number) in [
        ("--members", "-4"),
        ("--budget", "-1s"),
        ("--precision", "-1%"),
        ("--laps", "-1"),
        ("--rounds", "-1"),
        ("--seed", "-1"),
        ("--work", "-8"),
        ("--stride", "-8"),
    ] {
        assert_ring_refused(&[flag, number], &format!("'{number}'"), "accepted");
    }
}

#[test]
fn names() {
    for (flag, accepted) in [
        ("--link", "accepted: pipe"),
        ("--kind", "accepted: process, thread"),
        ("--policy", "accepted: other, fifo, rr, batch"),
        ("--op", "accepted: read, write, rmw"),
    ] {
        for name in ["no-such-thing", ""] {
            assert_ring_refused(&[flag, name], &format!("'{name}'"), accepted);
        }
    }
}

#[test]
fn places_to_write_to() {
    let accepted = "accepted: a file, or - for standard output";
    assert_ring_refused(&["--json", ""], "''", accepted);
    assert_ring_refused(&["--csv="], "''", accepted);
    assert_refused(&["runs", "export", "last", "--output", ""], "''", accepted);
    let both = "only one of them can have standard output";
    assert_ring_refused(&["--json", "-", "--csv", "-"], "--json - and --csv -", both);
}

#[test]
fn one_file_for_both_formats() {
    let home = Home::new();
    let file = home.path().join("both").display().to_string();
    assert_ring_refused(
        &["--members", "2", "--rounds", "1", "--laps", "1", "--json", &file, "--csv", &file],
        &file,
        "only one",
    );
}

/// Here the parser's own words name what is wrong, and the usage below them what is accepted.
#[test]
fn unknown_flags_and_commands() {
    for (args, named) in [
        (&["ring", "--bogus"][..], "'--bogus'"),
        (&["ring", "extra"], "'extra'"),
        (&["ring", "--members"], "'--members <LIST>'"),
        (&["ring", "--members", "2", "--members", "4"], "'--members <LIST>'"),
        (&["bogus"], "'bogus'"),
        (&["runs", "bogus"], "'bogus'"),
        (&["runs", "show"], "required arguments"),
        (&["runs", "remove"], "required arguments"),
        (&["help", "completions", "tcl"], "'tcl'"),
        (&["runs", "export", "last", "--format", "xml"], "'xml'"),
    ] {
        assert_refused(args, named, "");
    }
    let said = Home::new().run(&["help", "completions", "tcl"]);
    assert!(said.err.contains("bash, elvish, fish, powershell, zsh"), "{}", said.err);
    let said = Home::new().run(&["runs", "export", "last", "--format", "xml"]);
    assert!(
        said.err.contains(
            "[possible values: json, csv, summary-csv, markdown, go-bench, openmetrics, bmf, gab, \
             otava, history]"
        ),
        "{}",
        said.err
    );
}

const SMALL: [&str; 9] =
    ["ring", "--members", "2", "--rounds", "1", "--laps", "9", "--budget", "600s"];

#[test]
fn an_output_that_cannot_be_written_is_refused_before_anything_is_measured() {
    for flag in ["--json", "--csv"] {
        let home = Home::new();
        let folder = home.path().display().to_string();
        for path in ["/nonexistent/folder/file", &folder] {
            let said = home.run(&[&SMALL[..], &[flag, path]].concat());
            assert_eq!((said.code, &*said.out), (Some(2), ""), "{}", said.err);
            assert!(said.error().contains(path), "{}", said.err);
        }
        assert_eq!(home.run_files().len(), 0);
    }
}

#[test]
fn an_output_that_fails_in_the_end_loses_no_table() {
    for flag in ["--json", "--csv"] {
        let home = Home::new();
        let said = home.run(&[&SMALL[..], &[flag, "/dev/full"]].concat());
        assert_eq!(said.code, Some(1), "{said:?}");
        assert_eq!(said.sizes(), ["1", "2"]);
        assert!(said.error().contains("/dev/full"), "{}", said.err);
        assert_eq!(home.run_files().len(), 1, "the run is stored all the same");
    }
}

#[test]
fn of_two_unwritable_outputs_both_are_told() {
    let full = File::options().write(true).open("/dev/full").expect("/dev/full");
    let args = [&SMALL[..], &["--json", "/dev/full", "--csv", "-"]].concat();
    let said = Said::of(Home::new().command(PROGRAM).args(args).stdout(full));
    assert_eq!(said.code, Some(1), "{said:?}");
    for place in ["/dev/full", "standard output"] {
        assert!(said.err.contains(place), "no {place} in {}", said.err);
    }
}
