//! Pages of charts.

use crate::{Body, Figure, Page, Series, samples};

fn page(figures: &[Figure], runs: &[String]) -> String {
    Page {
        title: "a <page>",
        generator: "charts 1",
        style: "",
        header: "",
        footer: "",
        runs,
        figures,
        own: "relative to a ring of two",
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
    assert!(html.contains("2,1900,1805,1995;4,1938,"), "{html}");
    assert!(html.contains("<td>2</td><td>1.9 us</td><td>1.8 us to 2 us</td>"), "{html}");
    assert!(html.contains("<option value=\"own\">relative to a ring of two</option>"));
    assert!(html.contains("<title>a &lt;page&gt;</title>"));
}

#[test]
fn an_entry_of_the_legend_switches_its_law_too() {
    let html = page(&[samples::ring()], &["A".into()]);
    assert!(html.contains("data-series=\"0 1\"><svg"), "pipe with its law: {html}");
    assert!(html.contains("aria-pressed=\"true\" data-series=\"2\""), "published alone");
    let alone = page(&[samples::histogram()], &["A".into()]);
    assert!(!alone.contains("class=\"legend\""), "one series needs none");
}

#[test]
fn multiples_of_a_run_are_there_where_there_are_several() {
    let mut figure = samples::ring();
    let Body::Series(all) = &mut figure.body else { panic!("no series") };
    let other = Series { run: Some(1), ..all[0].clone() };
    all.push(other);
    let html = page(&[figure], &["A".into(), "B".into()]);
    for (name, told) in [("run-0", "relative to run A"), ("run-1", "relative to run B")] {
        assert!(html.contains(&format!("<option value=\"{name}\">{told}</option>")), "{name}");
        assert!(html.contains(&format!("<g data-base=\"{name}\" ")), "{name}");
    }
    assert!(html.contains("<th scope=\"row\">B: pipe</th>"), "tables tell runs apart");
    assert!(html.contains("data-y-label=\"cost of a switch, relative to run A\""));
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
