//! Pages of charts.

use crate::{Figure, FigureBody, HtmlPage, Point, Role, Series, samples};

fn page(figures: &[Figure], runs: &[String]) -> String {
    page_with(figures, runs, false)
}

fn page_with(figures: &[Figure], runs: &[String], has_published: bool) -> String {
    HtmlPage {
        title: "a <page>",
        generator: "charts 1",
        style: "",
        header: "",
        behind: "",
        contents: &[("how", "How")],
        footer: "",
        runs,
        figures,
        heading: &|figure| format!("{}?", figure.title),
        first: 1,
        has_published,
        only_published: &["history"],
        own: "relative to the first point that holds",
        published: "machines of old",
        unlisted: "Not listed.",
    }
    .html()
}

#[test]
fn each_chart_is_drawn_once_has_its_numbers_in_a_table_and_its_places_for_the_script() {
    let html = page(&samples::all(), &["A".into()]);
    let figures: Vec<&str> = html.split("<figure ").skip(1).collect();
    assert_eq!(figures.len(), samples::all().len());
    for figure in &figures {
        assert_eq!(figure.matches("<svg viewBox=").count(), 1, "{figure}");
        let listed = figure.matches("<table>").count() + figure.matches("Not listed.").count();
        assert_eq!(listed, 1, "{figure}");
    }
    // The first value of the ring's series with its interval.
    assert!(html.contains("data-places=\"2,1900,0.693147,7.54961;4,1938,"), "{html}");
    assert!(html.contains("<td>2</td><td>1.9 µs</td><td>1.8 µs to 2 µs</td>"), "{html}");
    assert!(html.contains("<option value=\"own\">relative to the first point that holds</option>"));
    assert!(html.contains("<title>a &lt;page&gt;</title>"));
}

/// Each line has its name beside its end even without a script: none on another, none beyond the
/// plot.
#[test]
fn lines_that_are_published_have_their_names_in_the_picture() {
    let mut figure = samples::ring();
    let FigureBody::Series(all) = &mut figure.body else { panic!("series") };
    let names = ["up & one", "up two", "up three", "down one", "down two"];
    for (number, name) in names.iter().enumerate() {
        let y = if number < 3 { 9_000.0 } else { 0.0 };
        let points = all[0].points.iter().map(|point| Point::bare(point.x, y)).collect();
        let role = Role::Published;
        all.push(Series { name: name.to_string(), run: None, role, points });
    }
    let shown = page_with(&[figure.clone()], &["A".into()], true);
    let place = |name: &str| -> f64 {
        let (before, _) = shown.split_once(&format!(">{name}</text>")).expect("its name");
        let own = &before[before.rfind("<text class=\"name\"").expect("a name")..];
        attributes(own, "y")[0].parse().expect("a place")
    };
    let mut places = names.map(|name| place(&name.replace('&', "&amp;")));
    places.sort_by(f64::total_cmp);
    assert!(places.windows(2).all(|two| two[1] - two[0] > 9.0), "{places:?}");
    let plot: Vec<f64> =
        attributes(&shown, "data-plot")[0].split(' ').map(|edge| edge.parse().unwrap()).collect();
    // A name may reach over the edge by half a letter.
    assert!(places[0] > plot[1] && places[4] < plot[3] + 5.0, "{places:?} in {plot:?}");
    assert!(!page_with(&[figure], &["A".into()], false).contains("class=\"name\""));
}

/// Returns the values of an attribute, of all elements that have it.
fn attributes<'a>(html: &'a str, name: &str) -> Vec<&'a str> {
    let start = format!(" {name}=\"");
    html.split(&start).skip(1).filter_map(|rest| Some(rest.split_once('"')?.0)).collect()
}

/// The labels of each rung of a ladder.
fn rungs(ladder: &str) -> Vec<Vec<&str>> {
    let label = |tick: &'_ str| tick.find(' ').map_or(0, |blank| blank + 1);
    ladder.lines().map(|rung| rung.split('\t').map(|tick| &tick[label(tick)..]).collect()).collect()
}

#[test]
fn the_script_is_told_the_ends_and_ticks_of_all_states() {
    let html = page(&[samples::ring()], &["A".into()]);
    // As suits it, linear, logarithmic: the numbers of both rulers.
    assert_eq!(attributes(&html, "data-on"), ["0 1 \n2 1 \n0 3 ", "0 4 \n2 4 \n0 5 "]);
    assert_eq!(attributes(&html, "data-off"), attributes(&html, "data-on"), "none is far off");
    assert_eq!(attributes(&html, "data-of"), ["2", "1", "0", "3", "1", "3"]);
    // From 2 to 64, a 25th of ln 32 beyond both; from zero to a 20th of the largest value above it.
    let ends = attributes(&html, "data-ends");
    assert_eq!(ends[..2], ["0.554518,4.29751", "0,3623.26"]);
    assert_eq!(attributes(&html, "data-title")[1], "cost of a switch (µs)");
    let (whole, finer) = (attributes(&html, "data-ticks"), attributes(&html, "data-finer"));
    assert_eq!(
        whole[0].lines().last(),
        Some("0.693147 2\t1.38629 4\t2.07944 8\t2.77259 16\t3.46574 32\t4.15888 64")
    );
    assert_eq!(rungs(whole[1])[3], ["0.0", "0.5", "1.0", "1.5", "2.0", "2.5", "3.0", "3.5"]);
    assert_eq!(rungs(finer[1])[0][..3], ["0.0", "0.2", "0.4"]);
    assert_eq!(rungs(finer[1])[1][18..21], ["1.8", "1.9", "2.0"]);
    assert_eq!(rungs(whole[3])[1], ["2 µs", "3 µs"]);
    assert_eq!(rungs(whole[5])[1], ["1.0", "1.5"], "multiples, logarithmic");
}

#[test]
fn the_script_is_told_the_words_of_each_value() {
    let html = page(&[samples::ring()], &["A".into()]);
    let words: Vec<Vec<&str>> =
        attributes(&html, "data-words").iter().map(|words| words.lines().collect()).collect();
    // What is published comes first, behind all else.
    assert_eq!(words[1][0], "1.9 µs (1.8 µs to 2 µs)\t2");
    assert!(words.iter().any(|series| series[0] == "2.62 µs\t2"), "published: {words:?}");
    let links = page(&[samples::bars()], &["A".into()]);
    assert!(links.contains("3.12 µs (2.81 µs to 3.43 µs)\tunix stream socket\n"), "{links}");
}

#[test]
fn what_is_published_has_axes_without_it_and_what_no_axis_shows_is_counted() {
    let mut figure = samples::ring();
    let FigureBody::Series(all) = &mut figure.body else { panic!("no series") };
    all[0].points[0].y = -100.0;
    all[2].points.iter_mut().for_each(|point| point.y *= 100.0);
    let html = page(&[figure], &["A".into()]);
    let lost = |count| {
        format!("1 of {count} points left out: not above zero, so not on a logarithmic axis.")
    };
    assert_eq!(attributes(&html, "data-on")[0], format!("0 1 \n2 1 \n0 3 {}", lost(17)));
    assert_eq!(attributes(&html, "data-off")[0], format!("0 4 \n2 4 \n0 5 {}", lost(11)));
    let titles = attributes(&html, "data-title");
    let last = attributes(&html, "data-ticks")[4].lines().last().unwrap();
    assert_eq!((titles[4], rungs(last)[0].last()), ("cost of a switch (µs)", Some(&"3.5")));
    // A place that a logarithmic axis does not have.
    assert!(html.contains("data-places=\"2,-100,0.693147,NaN;4,1938,"), "{html}");
}

#[test]
fn published_series_are_there_when_asked_for_and_not_drawn_before() {
    let figures = [
        samples::ring(),
        Figure { id: "history".into(), title: "Years".into(), ..samples::ring() },
    ];
    let path = |html: &str| {
        let (_, figure) = html.split_once("<figure id=\"ring-cost\"").unwrap();
        let (_, shape) = figure.split_once("data-part=\"line\" data-series=\"2\"").unwrap();
        attributes(shape, "d")[0].len()
    };
    let html = page(&figures, &["A".into()]);
    assert_eq!(path(&html), 0, "not drawn");
    assert!(html.contains("<input type=\"checkbox\" id=\"published\"> machines of old"));
    assert!(html.contains("<tr class=\"published\"><th scope=\"row\">Sun 4/280"), "{html}");
    assert!(html.contains("<figure id=\"history\" class=\"published\""));
    assert!(html.contains("<li class=\"published\"><a href=\"#history\">"));
    assert!(html.contains("<html lang=\"en\">"));
    let shown = page_with(&figures, &["A".into()], true);
    assert!(path(&shown) > 0, "drawn");
    assert!(shown.contains("<html lang=\"en\" data-published=\"yes\">"));
    assert!(shown.contains("id=\"published\" checked>"));
    let without = page(&[samples::bars()], &["A".into()]);
    assert!(!without.contains("id=\"published\""), "no switch where nothing is published");
}

#[test]
fn a_page_has_contents_controls_behind_its_first_charts_and_a_way_past_all_that() {
    let html = page(&samples::all(), &["A".into()]);
    let places = [
        "class=\"skip\" href=\"#charts\"",
        "<nav ",
        "id=\"charts\"",
        "<figure ",
        "id=\"controls\"",
    ];
    let places = places.map(|what| html.find(what).unwrap_or_else(|| panic!("no {what}")));
    assert!(places.is_sorted(), "{places:?}");
    assert!(html.contains("<li><a href=\"#how\">How</a></li>"));
    assert!(
        html.contains("<h2 id=\"ring-cost-title\">Cost of a switch by the size of the ring?</h2>")
    );
}

#[test]
fn a_distribution_is_a_line_with_its_percentiles_in_the_table() {
    let html = page(&[samples::distribution()], &["A".into()]);
    assert!(
        html.contains("data-part=\"line\" data-series=\"0\" data-words=\"0 %\t900 ns\n"),
        "{html}"
    );
    let rows = "<td>5 µs</td><td>50 %</td>";
    assert_eq!(html.matches("<th scope=\"row\">").count(), 2, "percentiles only");
    assert!(html.contains(rows), "{html}");
    assert!(html.contains("data-y=\"share of wake-ups up to it (%)\""));
}

#[test]
fn an_entry_of_the_legend_switches_its_law_too() {
    let html = page(&[samples::ring()], &["A".into()]);
    assert!(html.contains("data-series=\"0 1\"><svg"), "pipe with its law: {html}");
    assert!(!html.contains("data-series=\"2\"><svg"), "published ones have a switch of their own");
    let alone = page(&[samples::bars()], &["A".into()]);
    assert!(!alone.contains("class=\"legend\""), "one series needs none");
}

#[test]
fn multiples_of_a_run_are_there_where_there_are_several() {
    let mut figure = samples::ring();
    let FigureBody::Series(all) = &mut figure.body else { panic!("no series") };
    let other = Series { run: Some(1), ..all[0].clone() };
    all.push(other);
    let html = page(&[figure], &["A".into(), "B".into()]);
    for (name, told) in [("run-0", "relative to run A"), ("run-1", "relative to run B")] {
        assert!(html.contains(&format!("<option value=\"{name}\">{told}</option>")), "{name}");
        assert!(html.contains(&format!("<g data-base=\"{name}\" ")), "{name}");
    }
    assert!(html.contains("<th scope=\"row\">B: pipe</th>"), "tables tell runs apart");
    assert!(html.contains("data-title=\"cost of a switch, relative to run A\""));
}

#[test]
fn what_nobody_should_write_is_text() {
    let html = page(&samples::hostile(), &["</script><b>".into(), "\"'".into()]);
    let harmless = page(&samples::all(), &["A".into(), "B".into()]);
    for tag in ["<script", "</script", "<b>"] {
        assert_eq!(html.matches(tag).count(), harmless.matches(tag).count(), "{tag}");
    }
    assert!(!html.contains("d=\"MNaN") && !html.contains(",NaNL"));
    assert!(!html.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t')));
}
