//! Charts for pages of others, and figures from JSON.

use serde_json::{Value, json};

use crate::{Figure, FigureBody, InlineSize, MapContrast, Scale, Unit, inline_svg, samples};

fn whole(figure: &Figure) -> String {
    inline_svg(figure, InlineSize::Whole)
}

fn read(figure: Value) -> Figure {
    serde_json::from_value(figure).expect("a figure")
}

/// Hosts by how much slower they are; one of thousands stands alone.
fn histogram() -> Figure {
    read(json!({
        "id": "hosts",
        "title": "Hosts",
        "x": {"label": "slower", "unit": "change", "scale": "linear"},
        "y": {"label": "hosts", "unit": "count", "scale": "root"},
        "body": {"series": [{"name": "hosts", "role": "histogram", "points": [
            {"x": -5, "y": 10}, {"x": 0, "y": 4000}, {"x": 5, "y": 0}, {"x": 10, "y": 1},
            {"x": 15, "y": 0},
        ]}]},
        "marks": [{"x": 12, "label": "n007"}],
    }))
}

#[test]
fn text_stays_text_and_colours_are_classes() {
    let svg = whole(&samples::ring());
    for part in [
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 640 ",
        "<path class=\"s0\" color=\"#0072b2\" ",
        "<desc>Rises from 1.9 µs at 2 members.</desc>",
        ">members of the ring</text>",
        "<title>pipe 2: 1.9 µs (1.8 µs to 2 µs)</title>",
        "<title>knee 1.2x, 8</title>",
    ] {
        assert!(svg.contains(part), "{part} is not in {svg}");
    }
    assert_eq!((svg.lines().count(), svg.matches("<title>knee").count()), (1, 1));
    let panel = inline_svg(&samples::ring(), InlineSize::Panel);
    assert!(panel.contains("viewBox=\"0 0 320 "), "{panel}");
}

#[test]
fn one_host_is_seen_beside_thousands() {
    let svg = whole(&histogram());
    for words in ["+10 % to +15 %: 1", "0 % to +5 %: 4000", "n007, +12 %"] {
        assert!(svg.contains(&format!("<title>{words}</title>")), "{words} is not in {svg}");
    }
    assert_eq!(svg.matches("to +10 %: 0<").count(), 0, "an empty bar has no path");
    for label in ["hosts", "2000", "slower (%)", "+10", "n007"] {
        assert!(svg.contains(&format!(">{label}</text>")), "{label} is not in {svg}");
    }
}

#[test]
fn colours_tell_how_far_from_the_middle_a_value_is() {
    let map = json!({
        "unit": "change", "xs": [0, 1], "ys": [0, 1], "values": [[-50, 25], [0, null]],
        "contrast": {"middle": 0, "reach": 25},
    });
    let svg = whole(&read(json!({
        "id": "map",
        "title": "Host by case",
        "x": {"label": "case", "unit": "names", "scale": "linear", "names": ["1", "2"],
            "full_names": ["ring of 2", "ring of 4"]},
        "y": {"label": "", "unit": "names", "scale": "linear", "names": ["n1", "n2 <b>"]},
        "body": {"map": map},
    })));
    assert!(svg.contains(">1</text>") && !svg.contains(">ring of 2</text>"), "{svg}");
    assert!(svg.contains(">n2 &lt;b&gt;</text>") && !svg.contains("<b>"), "{svg}");
    let cell = |words: &str| {
        let end = svg.find(&format!("<title>{words}</title>")).unwrap_or_else(|| panic!("{svg}"));
        let start = svg[..end].rfind("<path").expect("a path");
        svg[start..end].to_string()
    };
    let faster = cell("n1, ring of 2: -50 %");
    assert!(faster.contains("class=\"s0\"") && !faster.contains("opacity"), "{faster}");
    let slower = cell("n1, ring of 4: +25 %");
    assert!(slower.contains("class=\"s1\"") && !slower.contains("opacity"), "{slower}");
    assert!(cell("n2 &lt;b&gt;, ring of 2: 0 %").contains("opacity=\"0.06\""));
    assert!(cell("n2 &lt;b&gt;, ring of 4: not resolved").contains("fill=\"#ececec\""));
}

#[test]
fn days_are_dates_and_lines_have_their_names() {
    let svg = whole(&read(json!({
        "id": "",
        "title": "Drift",
        "x": {"label": "", "unit": "day", "scale": "linear"},
        "y": {"label": "slower", "unit": "change", "scale": "linear"},
        "body": {"series": [
            {"name": "all hosts", "role": "measured", "points": [
                {"x": 20780, "y": 0}, {"x": 20781, "y": 0.1}, {"x": 20782, "y": -0.1}]},
            {"name": "rack 4", "role": "measured", "points": [
                {"x": 20780, "y": 0}, {"x": 20781, "y": 3}, {"x": 20782, "y": 6}]},
        ]},
    })));
    for text in [">2026-11-24</text>", ">rack 4</text>", "<title>rack 4 2026-11-25: +6 %</title>"] {
        assert!(svg.contains(text), "{text} is not in {svg}");
    }
}

#[test]
fn what_a_figure_in_json_leaves_out_has_a_default_and_what_it_adds_is_an_error() {
    let figure = histogram();
    assert_eq!((figure.y.scale, figure.x.unit), (Scale::Root, Unit::Change));
    assert_eq!((figure.base, &*figure.in_words, figure.regions.len()), (None, "", 0));
    let more = r#"{"id": "", "title": "", "colour": "red"}"#;
    let why = serde_json::from_str::<Figure>(more).expect_err("an unknown key").to_string();
    assert!(why.contains("unknown field `colour`"), "{why}");
}

#[test]
fn a_figure_that_nobody_should_make_is_drawn_as_one_harmless_line() {
    let mut all = samples::hostile();
    for reach in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let mut figure = samples::map();
        let FigureBody::Map(map) = &mut figure.body else { panic!("no map") };
        map.contrast = Some(MapContrast { middle: 0.0, reach });
        all.push(figure);
    }
    let mut rooted = all.clone();
    rooted.iter_mut().for_each(|figure| figure.y.scale = Scale::Root);
    for figure in all.iter().chain(&rooted) {
        for size in [InlineSize::Whole, InlineSize::Panel] {
            let svg = inline_svg(figure, size);
            assert!(!svg.contains(char::is_control) && !svg.contains("NaN"), "{svg}");
            for tag in ["title", "text", "desc"] {
                let (opened, closed) = (format!("<{tag}"), format!("</{tag}>"));
                assert_eq!(svg.matches(&opened).count(), svg.matches(&closed).count(), "{svg}");
            }
        }
    }
}
