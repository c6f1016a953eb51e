//! The report: what is in the file, and where it goes. That a browser draws it,
//! `report_browser.rs`.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::stored::{
    RUN, captured_on_one_machine, captured_run, full_speed_run, lengthen, stored_run,
};
use crate::common::{Home, Said};

const MOST_BYTES: usize = 400_000;

fn report(home: &Home, args: &[&str]) -> Said {
    Said::of(home.command(crate::common::PROGRAM).current_dir(home.path()).arg("report").args(args))
}

fn written(home: &Home, args: &[&str]) -> String {
    let said = report(home, &[args, &["-o", "out.html"]].concat());
    assert_eq!((said.code, &*said.out), (Some(0), "report: out.html\n"), "{}", said.err);
    fs::read_to_string(home.path().join("out.html")).expect("a report")
}

/// The chart of that id, from its tag to its end.
fn chart<'a>(html: &'a str, id: &str) -> &'a str {
    let start = format!("<figure id=\"{id}\"");
    let (_, from) = html.split_once(&start).unwrap_or_else(|| panic!("no {id}"));
    from.split_once("</figure>").expect("its end").0
}

/// An attribute of what comes first in a text that has it.
fn attribute<'a>(text: &'a str, name: &str) -> &'a str {
    let (_, from) = text.split_once(&format!(" {name}=\"")).unwrap_or_else(|| panic!("no {name}"));
    from.split_once('"').expect("its end").0
}

/// The names of a chart's series, by their number.
fn names(chart: &str) -> Vec<&str> {
    attribute(chart, "data-names").split('\n').collect()
}

/// The values of a series' points where the chart is drawn relative to a base.
fn values(chart: &str, base: &str, series: &str) -> Vec<f64> {
    let (_, group) = chart.split_once(&format!("<g data-base=\"{base}\"")).expect("a base");
    let (group, _) = group.split_once("</g>").expect("its end");
    let tag = format!("data-part=\"points\" data-series=\"{series}\"");
    let (_, shape) = group.split_once(&tag).expect("points");
    let points = attribute(shape, "data-places").split(';');
    points
        .map(|point| point.split(',').nth(1).expect("a value").parse().expect("a number"))
        .collect()
}

/// The page without the script that answers the reader.
fn page(html: &str) -> &str {
    html.split_once("<script>").expect("a script").0
}

#[test]
fn a_report_is_one_file_that_says_what_was_measured_on_what() {
    let home = Home::new();
    let html = written(&home, &[&stored_run(&home, "run.jsonl", |_| {})]);
    let figures: Vec<&str> = page(&html).split("<figure ").skip(1).collect();
    let held = figures.iter().filter(|figure| figure.matches("<svg viewBox=").count() == 1);
    assert_eq!(held.count(), figures.len(), "each chart is held once");
    assert!(!html.contains("DejaVu"), "text of charts has the page's font");
    assert!(html.len() < MOST_BYTES, "{} bytes", html.len());
    let page = page(&html);
    for word in [
        "<p class=\"lead\">A switch costs",
        "<span class=\"of\">switch, 2 processes</span>",
        "<span class=\"of\">the machine was</span>",
        "<dt>noise</dt><dd>",
        "<h2 id=\"ring-cost-title\">By processes?</h2>",
        "<dt>kernel</dt><dd>Linux 6.18.44-fc-v445</dd>",
        "<dt>policy</dt><dd>other</dd>",
        "<dt>placement</dt><dd>same</dd>",
        "Content-Security-Policy",
        "default-src 'none'",
    ] {
        assert!(page.contains(word), "no {word}");
    }
    for outside in [" src=", "<link", "url(", "@import", "http://", "https://"] {
        assert!(!page.contains(outside), "{outside} asks for something outside of the file");
    }
    for figure in &figures {
        let id = figure.split('"').nth(1).expect("an id");
        assert!(figure.contains(&format!("aria-describedby=\"{id}-words\"")), "no words for {id}");
    }
    let listed = page.matches("<table>").count();
    assert!(listed >= figures.len() - 1, "all but single samples are listed");
}

#[test]
fn the_machines_of_1992_are_among_the_rings_and_the_years_end_here() {
    let home = Home::new();
    let html = written(&home, &[&stored_run(&home, "run.jsonl", |_| {})]);
    let cost = chart(&html, "ring-cost");
    let names = names(cost);
    let published = attribute(cost, "data-published").split(' ');
    let of_1992 =
        |number: &&str| names[number.parse::<usize>().expect("a number")].ends_with("1992");
    assert_eq!(published.filter(of_1992).count(), 9);
    let years = chart(&html, "history");
    let ticks: Vec<&str> = years.split("class=\"tick\"").skip(1).collect();
    let last = ticks.iter().rfind(|tick| tick.contains("text-anchor=\"end\"")).expect("names");
    assert!(last.contains(">this run<"), "{last}");
    // Nobody has asked for them yet.
    assert!(html.contains("<html lang=\"en\">") && html.contains("id=\"published\">"));
    assert!(html.contains("<figure id=\"history\" class=\"published\""));
    let asked = written(&home, &["--history", &stored_run(&home, "again.jsonl", |_| {})]);
    assert!(
        asked.contains("data-published=\"yes\"") && asked.contains("id=\"published\" checked>")
    );
}

#[test]
fn the_difference_of_two_runs_stands_first_with_the_worst_case_on_top() {
    let home = Home::new();
    let base = full_speed_run(&home, "base.jsonl", |_| {});
    // Each case is slower by more than the one before it.
    let slow = full_speed_run(&home, "slow.jsonl", |line| {
        let case = line.pointer("/sample/case").and_then(|case| case.as_u64());
        let slower = |ns: &Value| (ns.as_u64().expect("a time") * (2 + case.unwrap_or(0))).into();
        if let Some(elapsed) = line.pointer_mut("/sample/elapsed_ns") {
            *elapsed = slower(elapsed);
        }
        let slices = line.pointer_mut("/sample/slices/elapsed_ns");
        for elapsed in slices.and_then(|all| all.as_array_mut()).into_iter().flatten() {
            *elapsed = slower(elapsed);
        }
    });
    let html = written(&home, &[&base, &slow]);
    let first = page(&html).split("<figure id=\"").nth(1).expect("a chart");
    assert!(first.starts_with("difference\""), "{first}");
    assert!(
        html.contains("<p class=\"lead\">slow is slower than base in all 3 cases"),
        "the answer is the difference"
    );
    let compared = Said::of(home.command(crate::common::PROGRAM).args(["compare", &base, &slow]));
    // What `compare` says in its table: the change of the first case.
    let ratio = compared.out.lines().find_map(|line| line.trim().strip_prefix("ring of 2 "));
    let ratio = ratio.expect("a case").split_whitespace().nth(4).expect("a ratio").to_string();
    let tile = page(&html).split("<span class=\"figure\">").nth(1).expect("a tile");
    let tiles: Vec<&str> = page(&html).split("<span class=\"of\">").skip(1).collect();
    let two = tiles.iter().find(|tile| tile.starts_with("ring of 2<")).expect("its tile");
    let digits = ratio.trim_end_matches('x');
    assert!(two.contains(&format!("<span class=\"figure\">{digits}")), "{ratio}: {two}");
    assert!(tile.starts_with(char::is_numeric), "{tile}");
    let values: Vec<f64> = attribute(first, "data-words")
        .lines()
        .map(|words| words.split(' ').next().expect("a ratio").parse().expect("a number"))
        .collect();
    assert!(values.len() > 1 && values.is_sorted_by(|one, other| one > other), "{values:?}");
}

/// What `compare --report` draws of two runs is what `report` does; of cases that pair across a
/// setting only it has the difference.
#[test]
fn a_comparison_is_drawn_as_its_runs_are() {
    let home = Home::new();
    let base = full_speed_run(&home, "base.jsonl", |_| {});
    let slow = full_speed_run(&home, "slow.jsonl", |line| lengthen(line, 130));
    let batch = full_speed_run(&home, "batch.jsonl", |line| {
        lengthen(line, 130);
        let cases = line.pointer_mut("/header/plan/cases").and_then(|of| of.as_array_mut());
        cases.into_iter().flatten().for_each(|case| case["policy"] = "batch".into());
    });
    let to = home.path().join("compared.html").display().to_string();
    let compare = |args: &[&str]| home.run(&[&["compare"], args, &["--report", &to]].concat());
    let said = compare(&[&base, &slow]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.out.ends_with(&format!("\nreport: {to}\n")), "{}", said.out);
    let html = fs::read_to_string(&to).expect("a report");
    assert_eq!(html, written(&home, &[&base, &slow]));
    let said = compare(&[&base, &batch, "--across", "policy"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let across = fs::read_to_string(&to).expect("a report");
    assert!(page(&across).contains("<figure id=\"difference\""));
    assert!(!page(&written(&home, &[&base, &batch])).contains("<figure id=\"difference\""));
    // On standard output it stands alone.
    let said = home.run(&["compare", &base, &slow, "-o", "-"]);
    assert!(said.out.starts_with("<!doctype html>") && said.err.contains("ring of 2"), "{said:?}");
    let both = home.run(&["compare", &base, &slow, "-o", "-", "--json", "-"]);
    assert_eq!((both.code, &*both.out), (Some(2), ""), "{}", both.err);
}

#[test]
fn runs_of_several_experiments_are_one_machine_with_two_pictures_first() {
    let home = Home::new();
    let all = captured_on_one_machine(&home, &["ring", "cost", "clock"]);
    let html = written(&home, &[&all[0], &all[1], &all[2]]);
    let page = page(&html);
    let (first, others) = page.split_once("id=\"controls\"").expect("controls");
    let ids = |text: &str| -> Vec<String> {
        let all = text.split("<figure id=\"").skip(1);
        all.filter_map(|figure| Some(figure.split_once('"')?.0.to_string())).collect()
    };
    assert_eq!(ids(first), ["ring-cost", "cost-by-array"]);
    assert!(ids(others).contains(&"clock-calls".to_string()));
    let tiles = page.matches("<li class=\"tile").count();
    assert!((6..=8).contains(&tiles), "{tiles} tiles");
    for word in ["with 4 MiB of working set", "; the machine was noisy.", "By working set?"] {
        assert!(page.contains(word), "no {word}");
    }
    assert!(html.len() < MOST_BYTES, "{} bytes", html.len());
}

/// The captured readings of clocks are of another CPU than the ring: no sentence and no picture is
/// of both, and each tile says which run it is of.
#[test]
fn runs_of_several_experiments_on_two_machines_are_told_apart() {
    let home = Home::new();
    let all = ["ring", "clock"].map(|name| captured_run(&home, name));
    let html = written(&home, &[&all[0], &all[1]]);
    let page = page(&html);
    for words in
        ["A: A switch costs ", "B: Reading a thread", "<b class=\"letter\">B</b> ", "B: reading "]
    {
        assert!(page.contains(words), "no {words}");
    }
    assert!(!page.contains("Measured on"));
    assert!(page.contains("A: switch, 2 processes"));
}

#[test]
fn a_run_is_not_set_beside_itself() {
    let home = Home::new();
    let one = captured_run(&home, "ring");
    let said = report(&home, &[&one, &one]);
    assert_eq!(said.code, Some(2), "{}", said.err);
    assert!(said.err.contains("are the same run"), "{}", said.err);
}

/// A pair whose cases differ in all of them: no figure of one stands for the other.
#[test]
fn tiles_of_runs_without_a_common_case_say_whose_they_are() {
    let home = Home::new();
    let one = captured_run(&home, "ring");
    let text = fs::read_to_string(&one).unwrap();
    let (other, changed) =
        (home.path().join("other.jsonl"), text.replace("\"other\"", "\"batch\""));
    assert_ne!(text, changed);
    fs::write(&other, changed).unwrap();
    let html = written(&home, &[&one, &other.display().to_string()]);
    let page = page(&html);
    for name in ["A: switch, 2 processes", "B: switch, 2 processes"] {
        assert!(page.contains(name), "no {name}");
    }
}

#[test]
fn several_runs_and_a_published_machine_are_drawn_in_the_same_axes() {
    let home = Home::new();
    let slow = stored_run(&home, "slow.jsonl", |line| {
        if let Some(elapsed) = line.pointer_mut("/sample/elapsed_ns") {
            *elapsed = (elapsed.as_u64().expect("a time") * 3).into();
        }
    });
    let html =
        written(&home, &[&stored_run(&home, "run.jsonl", |_| {}), &slow, "history:sun-4/280"]);
    let cost = chart(&html, "ring-cost");
    let all = names(cost);
    let measured: Vec<&&str> = all.iter().filter(|name| name.ends_with(": pipe")).collect();
    assert_eq!(measured, [&"A: pipe", &"B: pipe"]);
    let sun: Vec<&&str> = all.iter().filter(|name| name.ends_with("sun-4/280, 1992")).collect();
    assert_eq!(sun, [&"C: sun-4/280, 1992"], "once, and asked for");
    // Three times the time of every hop is three times the cost of a switch.
    let of =
        |name: &str| all.iter().position(|known| *known == name).expect("a series").to_string();
    assert_eq!(values(cost, "run-0", &of("A: pipe"))[0], 1.0);
    let slower = values(cost, "run-0", &of("B: pipe"))[0];
    assert!((slower - 3.0).abs() < 1e-3, "{slower}");
    assert!(cost.contains("<g data-base=\"own\""));
    let page = page(&html);
    assert!(page.contains("relative to run B") && page.contains("<b class=\"letter\">C</b>"));
    assert!(page.contains("<th scope=\"row\">B: pipe</th>"), "tables tell runs apart");
}

#[test]
fn what_a_run_file_says_is_text_and_nothing_else() {
    const HOSTILE: &str = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&";
    let home = Home::new();
    let run = stored_run(&home, "run.jsonl", |line| {
        if let Some(header) = line.get_mut("header") {
            header["run"] = HOSTILE.into();
            header["invocation"] = vec![HOSTILE].into();
            header["notices"] = vec![HOSTILE].into();
            header["machine"]["kernel"]["release"] = HOSTILE.into();
            header["machine"]["cpu"]["models"][0]["name"] = HOSTILE.into();
            for case in header["plan"]["cases"].as_array_mut().into_iter().flatten() {
                case["link"] = HOSTILE.into();
            }
        }
    });
    let harmless = written(&home, &[&stored_run(&home, "harmless.jsonl", |_| {})]);
    let html = written(&home, &[&run]);
    let count = |html: &str, what: &str| html.matches(what).count();
    for tag in ["<script", "</script", "<img"] {
        assert_eq!(count(&html, tag), count(&harmless, tag), "{tag}");
    }
    let escaped = "&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;&lt;img src=x \
         onerror=alert(2)&gt;&quot;&#39;&amp;";
    assert!(count(&html, escaped) > 5, "what was said is still there");
    assert!(attribute(chart(&html, "ring-cost"), "data-names").starts_with(escaped));
}

#[test]
fn a_report_is_replaced_and_any_other_file_is_left_alone() {
    let home = Home::new();
    let run = stored_run(&home, "run.jsonl", |_| {});
    let at = |name: &str| -> PathBuf { home.path().join(name) };
    let said = report(&home, &[&run]);
    assert_eq!((said.code, &*said.out), (Some(0), "report: report.html\n"), "{}", said.err);
    let first = fs::read(at("report.html")).expect("a report");
    let slow = stored_run(&home, "slow.jsonl", |line| {
        if let Some(header) = line.get_mut("header") {
            header["machine"]["kernel"]["release"] = "2.4.20".into();
        }
    });
    assert_eq!(report(&home, &[&slow]).code, Some(0));
    assert_ne!(fs::read(at("report.html")).expect("a report"), first, "a report is replaced");
    // The easiest slip: the run where the report should stand.
    let said = report(&home, &[&run, "-o", &run]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("run.jsonl") && said.err.contains("no report"), "{}", said.err);
    assert_eq!(fs::read_to_string(&run).expect("the run").lines().count(), RUN.lines().count());
    fs::write(at("empty.html"), "").expect("a file");
    assert_eq!(report(&home, &[&run, "-o", "empty.html"]).code, Some(0), "nothing is lost");
    assert_eq!(report(&home, &[&run, "-o", "/dev/null"]).code, Some(0));
}

#[test]
fn standard_output_takes_a_report_and_nothing_beside() {
    let home = Home::new();
    let said = report(&home, &[&stored_run(&home, "run.jsonl", |_| {}), "-o", "-"]);
    assert_eq!((said.code, &*said.err), (Some(0), ""));
    assert!(said.out.starts_with("<!doctype html>") && said.out.ends_with("</html>\n"));
    assert!(!Path::new(&home.path().join("report.html")).exists());
}

#[test]
fn what_cannot_be_drawn_or_written_is_told() {
    let home = Home::new();
    let run = stored_run(&home, "run.jsonl", |_| {});
    for (args, code, word) in [
        (&["nonesuch"][..], 2, "nonesuch"),
        (&["history:nonesuch"], 2, "sun-4/280"),
        (&[], 2, "<RUNS>"),
        (&[&run, "-o", "/nonesuch/report.html"], 2, "/nonesuch/report.html"),
        (&[&run, "-o", ""], 2, "empty"),
    ] {
        let said = report(&home, args);
        assert_eq!(said.code, Some(code), "{args:?}: {said:?}");
        assert!(said.err.contains(word), "{args:?}: {}", said.err);
    }
}

/// A record that `run` or `profile` wrote once.
fn record(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captured");
    folder.join(format!("{name}.json")).display().to_string()
}

#[test]
fn records_of_commands_and_of_calls_have_pages_with_their_answers() {
    let home = Home::new();
    let commands = written(&home, &[&record("run")]);
    assert!(page(&commands).contains("<p class=\"lead\">sleep 0.02 is "), "{commands}");
    assert_eq!(names(chart(&commands, "times")), ["real time", "CPU time"]);
    assert_eq!(names(chart(&commands, "ratios")), ["real time", "CPU time", "no change"]);
    assert_eq!(
        names(chart(&commands, "rounds")),
        ["sleep 0.02", "sleep 0.03", "sleep 0.0202"],
        "each command has its runs"
    );
    let calls = written(&home, &[&record("profile")]);
    assert!(page(&calls).contains("<p class=\"lead\">An allocation or free takes "), "{calls}");
    assert_eq!(names(chart(&calls, "calls")), ["a call"]);
    assert!(names(chart(&calls, "sizes")).contains(&"malloc"));
}

#[test]
fn a_record_is_drawn_alone_and_other_json_is_refused() {
    let home = Home::new();
    let run = stored_run(&home, "run.jsonl", |_| {});
    let both = report(&home, &[&record("run"), &run]);
    assert_eq!(both.code, Some(2), "{}", both.err);
    assert!(both.err.contains("name it alone"), "{}", both.err);
    fs::write(home.path().join("other.json"), "{\"schema\": 1}").expect("a file");
    let other = report(&home, &["other.json"]);
    assert_eq!(other.code, Some(2), "{}", other.err);
    assert!(other.err.contains("no record of run, profile or trend"), "{}", other.err);
    fs::write(home.path().join("cut.json"), "{\"schema\": 1").expect("a file");
    let cut = report(&home, &["cut.json"]);
    assert!(cut.err.contains("cannot read cut.json"), "{}", cut.err);
    assert!(!home.path().join("report.html").exists());
}

#[test]
fn commands_write_their_page_themselves_and_nothing_else_goes_there() {
    let home = Home::new();
    let to = home.path().join("page.html").display().to_string();
    let said = home.run(&["run", "-n", "2", "--no-estimate", "--report", &to, "true", "true 2"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.err.contains(&format!("report: {to}")), "{}", said.err);
    let html = fs::read_to_string(&to).expect("a page");
    assert_eq!(names(chart(&html, "rounds")), ["true", "true 2"]);
    // What is passed on keeps no command line where that was asked for.
    let secret = "true of-nobody-else";
    for (args, is_kept) in [
        (&["run", "-n", "2", "--no-estimate", secret][..], true),
        (&["run", "-n", "2", "--no-estimate", "--anonymous", secret], false),
    ] {
        let said = home.run(&[args, &["--report", &to]].concat());
        assert_eq!(said.code, Some(0), "{}", said.err);
        let html = fs::read_to_string(&to).expect("a page");
        assert_eq!(html.contains("of-nobody-else"), is_kept, "{args:?}");
    }
    let both = home.run(&["run", "--json", "-", "--report", "-", "true"]);
    assert_eq!(both.code, Some(2), "{}", both.err);
    assert!(both.err.contains("--report - and --json -: only one of them"), "{}", both.err);
    // A file that is no report is left alone.
    let other = home.path().join("other.html").display().to_string();
    fs::write(&other, "mine").expect("a file");
    let refused = home.run(&["run", "--report", &other, "true"]);
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    assert_eq!(fs::read_to_string(&other).expect("a file"), "mine");
}
