//! Pictures for papers.

use testing::repeats;
use tiny_skia::{Pixmap, PremultipliedColorU8};

use crate::layout::layout;
use crate::page::{PlacedText, TextKind};
use crate::picture::{ElementSource, Ink, PAPER, elements, text_start, text_width};
use crate::{Figure, FigureBody, Role, Scale, render_png, render_svg, render_text, samples};

const NOTE: &str = "AMD EPYC 7B13, Linux 6.1.0; ring: 7 cases, 12 rounds, seed 1992.";

/// The texts of a picture.
fn texts(figure: &Figure) -> Vec<PlacedText> {
    layout(figure, &[], NOTE, &PAPER).texts
}

fn says(texts: &[PlacedText], words: &str) -> bool {
    texts.iter().any(|text| text.words == words)
}

#[test]
fn a_picture_says_all_that_a_paper_needs() {
    let texts = texts(&samples::ring());
    for words in [
        "Cost of a switch by the size of the ring",
        "members of the ring",
        "cost of a switch (us)",
        "knee 1.2x",
        "pipe",
        "Sun 4/280 (1992), thousandths",
        "fitted law",
        NOTE,
    ] {
        assert!(says(&texts, words), "{words} is not in {texts:?}");
    }
    for size in ["2", "4", "8", "16", "32", "64"] {
        assert!(says(&texts, size), "{size} is no tick");
    }
}

#[test]
fn caches_regions_and_sizes_are_named() {
    let texts = texts(&samples::cost());
    for words in ["L1 data 32 KiB", "L2 1 MiB", "all fits", "64 KiB", "10 us"] {
        assert!(says(&texts, words), "{words} is not in {texts:?}");
    }
    assert!(!says(&texts, "L3 1 GiB"), "it lies beyond the axis");
}

/// Returns the left end, the right end, and the middle of the height of a text.
fn span(text: &PlacedText) -> (f64, f64, f64) {
    let (left, _) = text_start(text);
    (left, left + text_width(&text.words, text.kind), text.at.1)
}

#[test]
fn no_text_touches_another_or_leaves_the_page() {
    for figure in samples::all() {
        let texts = texts(&figure);
        for (place, text) in texts.iter().enumerate() {
            let (left, right, y) = span(text);
            assert!(left >= 0.0 && right <= PAPER.width, "{text:?} leaves the page");
            for other in &texts[place + 1..] {
                let (from, to, height) = span(other);
                let apart = right < from || to < left || (y - height).abs() > 8.0;
                assert!(apart, "{}: {text:?} touches {other:?}", figure.id);
            }
        }
    }
}

#[test]
fn points_that_a_logarithmic_axis_cannot_show_are_counted() {
    let mut figure = samples::ring();
    figure.y.scale = Scale::Log;
    let FigureBody::Series(all) = &mut figure.body else { panic!("no series") };
    all[0].points[0].y = -100.0;
    let note = texts(&figure).into_iter().filter(|text| text.kind == TextKind::Note);
    let note: String = note.map(|text| text.words).collect();
    assert!(note.contains("1 of 17 points left out: not above zero"), "{note}");
}

#[test]
fn the_same_figure_is_the_same_picture_and_needs_no_font() {
    let drawn = render_svg(&samples::ring(), &[], NOTE);
    assert_eq!(drawn, render_svg(&samples::ring(), &[], NOTE));
    assert!(drawn.starts_with("<svg xmlns=") && drawn.ends_with("</svg>\n"));
    assert!(!drawn.contains("<text") && !drawn.contains("font-family"), "text is left in it");
    assert!(drawn.contains("<title>Cost of a switch by the size of the ring</title>"));
    assert!(drawn.contains("<desc>Rises from 1.9 us at 2 members.</desc>"));
}

#[test]
fn a_png_has_three_pixels_for_each_of_the_page() {
    let bytes = render_png(&samples::bars(), &[], NOTE).unwrap();
    let image = Pixmap::decode_png(&bytes).unwrap();
    assert_eq!(image.width(), 2160);
    // Bars of 55 % of the first series' blue (0, 114, 178) on white.
    let drawn = |pixel: &&PremultipliedColorU8| {
        let apart = |one: u8, other: u8| u32::from(one.abs_diff(other));
        apart(pixel.red(), 115) + apart(pixel.green(), 178) + apart(pixel.blue(), 213) < 12
    };
    let blue = image.pixels().iter().filter(drawn).count();
    assert!(blue > 30_000, "{blue}");
}

#[test]
fn pictures_and_plots_of_fixed_figures_are_kept_to_be_looked_at() {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/charts");
    std::fs::create_dir_all(&dir).unwrap();
    for figure in samples::all() {
        let look = crate::PlotStyle { columns: 60, colour: false, unicode: false };
        let (picture, drawn) =
            (render_png(&figure, &[], NOTE).unwrap(), render_svg(&figure, &[], NOTE));
        let plot = render_text(&figure, &[], &look);
        assert!(picture.starts_with(b"\x89PNG\r\n") && drawn.ends_with("</svg>\n"));
        assert!(plot.lines().count() > 5 && plot.contains(&figure.title), "{plot}");
        for (kind, bytes) in
            [("png", &*picture), ("svg", drawn.as_bytes()), ("txt", plot.as_bytes())]
        {
            std::fs::write(dir.join(format!("{}.{kind}", figure.id)), bytes).unwrap();
        }
    }
}

#[test]
fn figures_that_nobody_should_make_are_pictures_all_the_same() {
    let figures = samples::hostile();
    // Every fifth: of each kind of figure and with each kind of points, as there are nine of these.
    for figure in figures.iter().step_by(repeats(5, 1)) {
        let drawn = render_svg(figure, &["one".into(), "two".into()], NOTE);
        assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
        assert!(!drawn.chars().any(|c| c.is_control() && c != '\n'), "{drawn:?}");
    }
    // What is rastered is the same for all, and takes its time.
    assert!(
        figures
            .iter()
            .step_by(repeats(160, 32))
            .all(|figure| render_png(figure, &[], NOTE).is_ok())
    );
}

#[test]
fn published_values_have_no_colour_of_a_series() {
    let figure = samples::ring();
    let chart = layout(&figure, &[], NOTE, &PAPER);
    let published = chart.entries.iter().position(|e| e.series.role == Role::Published);
    let is_own =
        |source| matches!(source, ElementSource::Shape(shape, _) if shape.series == published);
    let drawn = elements(&chart);
    let mut own = drawn.iter().filter(|element| is_own(element.source));
    assert!(own.all(|element| element.ink == Ink::Soft));
}
