//! The report: what is in the file, and where it goes. That a browser draws it, `report_browser.rs`.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::stored::{RUN, stored_run};
use common::{Home, Said};
use serde_json::Value;

const MOST_BYTES: usize = 6_000_000;

fn report(home: &Home, args: &[&str]) -> Said {
    Said::of(home.command(common::PROGRAM).current_dir(home.path()).arg("report").args(args))
}

fn written(home: &Home, args: &[&str]) -> String {
    let said = report(home, &[args, &["-o", "out.html"]].concat());
    assert_eq!((said.code, &*said.out), (Some(0), "report: out.html\n"), "{}", said.err);
    fs::read_to_string(home.path().join("out.html")).expect("a report")
}

/// The charts that the script of the page is given.
fn charts(html: &str) -> Vec<Value> {
    let (_, from) = html.split_once("id=\"data\">").expect("data");
    let (json, _) = from.split_once("</script>").expect("its end");
    let data: Value = serde_json::from_str(json).expect("JSON");
    data["figures"].as_array().expect("figures").clone()
}

fn chart<'a>(charts: &'a [Value], id: &str) -> &'a Value {
    charts.iter().find(|chart| chart["id"] == id).unwrap_or_else(|| panic!("no {id}"))
}

fn series<'a>(chart: &'a Value, role: &str) -> Vec<&'a Value> {
    let all = chart["body"]["series"].as_array().expect("series");
    all.iter().filter(|series| series["role"] == role).collect()
}

/// The page without the script that draws.
fn page(html: &str) -> &str {
    html.split_once("<script type=\"text/plain\"").expect("plotly").0
}

#[test]
fn a_report_is_one_file_that_says_what_was_measured_on_what() {
    let home = Home::new();
    let html = written(&home, &[&stored_run(&home, "run.jsonl", |_| {})]);
    let figures = page(&html).split("<figure ").skip(1);
    let without = figures.filter(|figure| figure.matches("<svg").count() != 1);
    assert_eq!(without.count(), 0, "each chart is a picture until it is drawn");
    assert!(!html.contains("DejaVu"), "text of pictures has the page's font");
    assert!(html.len() < MOST_BYTES, "{} bytes", html.len());
    let page = page(&html);
    for word in [
        "A switch costs",
        "\">Machine: ",
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
    let charts = charts(&html);
    for chart in &charts {
        let id = chart["id"].as_str().expect("an id");
        assert!(page.contains(&format!("<figure id=\"{id}\">")), "no place for {id}");
        assert!(page.contains(&format!("aria-describedby=\"{id}-words\"")), "no words for {id}");
    }
    assert_eq!(page.matches("<figure ").count(), charts.len());
    assert!(
        page.matches("<table>").count() >= charts.len() - 1,
        "all but single samples are listed"
    );
}

#[test]
fn the_machines_of_1992_are_among_the_rings_and_the_years_end_here() {
    let home = Home::new();
    let charts = charts(&written(&home, &[&stored_run(&home, "run.jsonl", |_| {})]));
    let published = series(chart(&charts, "ring-cost"), "published");
    let of_1992 = |series: &&&Value| series["name"].as_str().is_some_and(|n| n.ends_with("1992"));
    assert_eq!(published.iter().filter(of_1992).count(), 9);
    let years = chart(&charts, "history")["x"]["names"].as_array().expect("names").clone();
    assert_eq!(years.last(), Some(&"this run".into()));
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
    let charts = charts(&html);
    let cost = chart(&charts, "ring-cost");
    let runs: Vec<&Value> = series(cost, "measured").iter().map(|series| &series["run"]).collect();
    assert_eq!(runs, [0, 1]);
    let sun = |series: &&&Value| series["name"] == "sun-4/280, 1992";
    let published = series(cost, "published");
    let sun: Vec<&&Value> = published.iter().filter(sun).collect();
    assert_eq!(
        sun.iter().map(|series| &series["run"]).collect::<Vec<_>>(),
        [2],
        "once, and asked for"
    );
    // Three times the time of every hop is three times the cost of a switch.
    let relative = &cost["relative"]["run-0"];
    let ratio = |which: usize| relative[which]["points"][0]["y"].as_f64().expect("a ratio");
    assert_eq!(ratio(0), 1.0);
    assert!((ratio(1) - 3.0).abs() < 1e-3, "{}", ratio(1));
    assert!(cost["relative"]["two"].is_array());
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
    let escaped = "&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;&lt;img src=x onerror=alert(2)&gt;&quot;&#39;&amp;";
    assert!(count(&html, escaped) > 5, "what was said is still there");
    assert_eq!(series(chart(&charts(&html), "ring-cost"), "measured")[0]["name"], HOSTILE);
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
        (&["nonesuch"][..], 1, "nonesuch"),
        (&["history:nonesuch"], 2, "sun-4/280"),
        (&[], 2, "<RUNS>"),
        (&[&run, "-o", "/nonesuch/report.html"], 1, "/nonesuch/report.html"),
        (&[&run, "-o", ""], 2, "empty"),
    ] {
        let said = report(&home, args);
        assert_eq!(said.code, Some(code), "{args:?}: {said:?}");
        assert!(said.err.contains(word), "{args:?}: {}", said.err);
    }
}
