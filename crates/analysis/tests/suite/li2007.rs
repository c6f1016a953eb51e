//! Li, Ding and Shen's figures (`data/li2007.csv`) against what their paper says.

// Clippy takes only functions marked as tests for tests, not their helpers.
#![allow(clippy::unwrap_used)]

use analysis::findings::interference::{InterferenceVerdict, judge};
use analysis::published::li2007::{DIRECT_US, LiFigures};
use rundata::trial::interference::ProgramSetting;

const COSTS: &str = include_str!("../../../../data/li2007.csv");
const TIMES: &str = include_str!("../../../../data/li2007_times.csv");

fn figures() -> LiFigures {
    LiFigures::published().unwrap()
}

fn verdict() -> InterferenceVerdict {
    judge(&figures().runs)
}

#[test]
fn the_file_is_whole() {
    let figures = figures();
    assert!(COSTS.contains(&format!("c1 is {DIRECT_US}.")));
    assert_eq!((figures.first_region.low_us, figures.first_region.high_us), (4.2, 8.7));
    assert_eq!(figures.first_region.largest_bytes, 200 * 1024);
    assert_eq!((figures.second_region.low_us, figures.second_region.high_us), (38.6, 203.2));
    let strides: Vec<_> = figures.by_stride.iter().map(|t| (t.stride_bytes, t.mean_us)).collect();
    assert_eq!(strides, [(Some(8), Some(116.5)), (Some(128), Some(825.3))]);
    assert_eq!(figures.runs.len(), 12);
}

#[test]
fn the_second_region_costs_4_to_48_times_the_first() {
    let (low, high) = figures().second_over_first();
    assert_eq!(format!("{low:.1} to {high:.1}"), "4.4 to 48.4");
}

/// "The confidence intervals obtained from single-processor is much larger" under interference, and
/// "similar" when quiet. The ratios are those of the widths as printed.
#[test]
fn the_growths_are_those_of_the_printed_widths() {
    let verdict = verdict();
    let of = |setting: ProgramSetting| {
        let of_setting = verdict.comparisons.iter().filter(move |c| c.setting == setting);
        of_setting.map(|c| format!("{:.3}", c.growth.unwrap().ratio)).collect::<Vec<_>>()
    };
    // (263.79 - 220.72) / (226.35 - 221.00), and so on down the tables.
    assert_eq!(of(ProgramSetting::Plain), ["8.050", "3.552", "2.394"]);
    assert_eq!(of(ProgramSetting::Augmented), ["1.843", "0.914", "0.493"]);
    let quiet = verdict.comparisons[0].quiet.unwrap();
    assert!((quiet.low - 242.07).abs() < 1e-9 && (quiet.high - 246.46).abs() < 1e-9, "{quiet:?}");
}

#[test]
fn the_verdict_is_the_papers() {
    assert_eq!(
        verdict().in_words(),
        "augmented setting: growth of its interval not resolved, 0.940x (0.587x to 1.50x); its \
         means moved by -1.1 to +0.8 % (0 of 3 resolved). plain setting: its interval grew 4.09x \
         (2.56x to 6.55x) under the disturbance; its means moved by +5.6 to +13.9 % (2 of 3 \
         resolved). the plain setting's grew 4.35x (2.24x to 8.46x) as much as the augmented \
         one's (90 % intervals)"
    );
}

#[test]
fn a_broken_file_says_where() {
    let broken = COSTS.replace("4.2,8.7", "4.2,much");
    let error = LiFigures::parse(&broken, TIMES).unwrap_err().to_string();
    assert!(error.starts_with("data/li2007.csv: ") && error.contains("line: 4"), "{error}");
    let nothing = LiFigures::parse("", TIMES).unwrap_err().what;
    assert_eq!(nothing, "one of the two regions is missing");
    let longer = |text: &str| format!("{text}a,b\n");
    assert!(LiFigures::parse(&longer(COSTS), TIMES).unwrap_err().what.contains("2 fields"));
    let error = LiFigures::parse(COSTS, &longer(TIMES)).unwrap_err();
    assert!(error.file == "li2007_times.csv" && error.what.contains("2 fields"), "{error}");
}
