use super::*;
use crate::report::drawing::samples;

fn caption() -> Caption<'static> {
    Caption { runs: &[], text: "AMD EPYC 7B13, Linux 6.1.0; ring: 7 cases, 12 rounds, seed 1992." }
}

/// The page of a figure before its text became outlines.
fn page(figure: &Figure) -> String {
    page::draw(figure, &caption(), Sheet::Paper).unwrap()
}

fn ring() -> Figure {
    samples::ring()
}

#[test]
fn a_picture_says_all_that_a_paper_needs() {
    let svg = page(&ring());
    for words in [
        "Cost of a switch by the size of the ring",
        "members of the ring",
        "cost of a switch (µs)",
        "knee 1.2x",
        "pipe",
        "Sun 4/280 (1992), thousandths",
        "fitted law",
        "AMD EPYC 7B13, Linux 6.1.0; ring: 7 cases, 12 rounds, seed 1992.",
    ] {
        assert!(svg.lines().any(|line| line == words), "{words} is not in {svg}");
    }
    for size in ["2", "4", "8", "16", "32", "64"] {
        assert!(svg.lines().any(|line| line == size), "{size} is no tick");
    }
}

#[test]
fn caches_regions_and_sizes_are_named() {
    let svg = page(&samples::cost());
    for words in
        ["L1 data 32 KiB", "L2 1 MiB", "all fits", "two do not fit together", "64 KiB", "10 µs"]
    {
        assert!(svg.lines().any(|line| line == words), "{words} is not in {svg}");
    }
    assert!(!svg.contains("L3 1 GiB"), "it lies beyond the axis");
}

#[test]
fn labels_above_a_plot_do_not_touch() {
    let svg = page(&samples::cost());
    let mut spans: Vec<(f64, f64, f64)> = Vec::new();
    for label in ["L1 data 32 KiB", "break, rmw by 16 B", "L2 1 MiB", "TLB 352 pages"] {
        let tag = svg.lines().zip(svg.lines().skip(1)).find(|(_, text)| *text == label).unwrap().0;
        let number = |name: &str| -> f64 {
            let rest = tag.split(&format!(" {name}=\"")).nth(1).unwrap();
            rest.split('"').next().unwrap().parse().unwrap()
        };
        let (x, y) = (number("x") / f64::from(paint::UNITS), number("y"));
        let end = x + letters::width(label, 9.5);
        let touches = |(from, to, row): &&(f64, f64, f64)| *row == y && x < *to && end > *from;
        assert_eq!(spans.iter().find(touches), None, "{label}");
        spans.push((x, end, y));
    }
}

#[test]
fn points_that_a_logarithmic_axis_cannot_show_are_counted() {
    let mut figure = ring();
    figure.y.scale = model::figure::Scale::Log;
    let model::figure::Body::Series(all) = &mut figure.body else { panic!("no series") };
    all[0].points[0].y = -100.0;
    let svg = page(&figure);
    assert!(svg.contains("1 of 17 points left out: not above zero"), "{svg}");
}

#[test]
fn the_same_figure_is_the_same_picture_and_needs_no_font() {
    let dir = tempfile::tempdir().unwrap();
    let (one, other) = (dir.path().join("one"), dir.path().join("deep/er"));
    let figures = [ring(), ring()];
    let written = write_svg(&figures, &caption(), &one).unwrap();
    assert_eq!(written, [one.join("ring-cost.svg"), one.join("ring-cost-2.svg")]);
    write_svg(&figures, &caption(), &other).unwrap();
    let read = |dir: &Path| std::fs::read_to_string(dir.join("ring-cost.svg")).unwrap();
    assert_eq!(read(&one), read(&other));
    let svg = read(&one);
    assert!(!svg.contains("<text") && !svg.contains("font-family"), "text is left in it");
    assert!(svg.contains("<title>Cost of a switch by the size of the ring</title>"));
    assert!(svg.contains("<desc>Rises from 1.9 us at 2 members.</desc>"));
}

#[test]
fn a_png_has_three_pixels_for_each_of_the_page() {
    let dir = tempfile::tempdir().unwrap();
    let written = write_png(&[samples::bars()], &caption(), dir.path()).unwrap();
    let image = tiny_skia::Pixmap::load_png(&written[0]).unwrap();
    assert_eq!(image.width(), 2160);
    let blue = palette::colour(model::figure::Role::Measured, 0);
    let drawn = |pixel: &tiny_skia::PremultipliedColorU8| {
        let apart = |one: u8, other: u8| u32::from(one.abs_diff(other));
        apart(pixel.red(), 115) + apart(pixel.green(), 178) + apart(pixel.blue(), 213) < 12
    };
    // Bars of 55 % of blue on white.
    assert_eq!((blue.0, blue.1, blue.2), (0, 114, 178));
    assert!(image.pixels().iter().filter(|pixel| drawn(pixel)).count() > 50_000);
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let taken = dir.path().join("file");
    std::fs::write(&taken, "").unwrap();
    let error = format!("{:#}", write_svg(&[ring()], &caption(), &taken).unwrap_err());
    assert!(error.contains("--svg") && error.contains(taken.to_str().unwrap()), "{error}");
}

#[test]
fn names_of_files_stay_in_the_folder() {
    let mut taken = BTreeMap::new();
    let mut name = |id: &str| file_name(&Figure { id: id.into(), ..ring() }, &mut taken);
    assert_eq!(name("../../etc/passwd"), "etcpasswd");
    assert_eq!(name("\x1b"), "figure");
    assert_eq!(name("ring-cost"), "ring-cost");
    assert_eq!(name("ring-cost"), "ring-cost-2");
}

#[test]
fn figures_that_nobody_should_make_are_pictures_all_the_same() {
    let figures = samples::hostile();
    for figure in &figures {
        let svg = page(figure);
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
    // What is read back is the same for all, and takes its time.
    for figure in figures.iter().step_by(32) {
        let svg = tree(figure, &caption()).unwrap().to_string(&usvg::WriteOptions::default());
        let svg = described(figure, &svg);
        assert!(usvg::Tree::from_str(&svg, &letters::options()).is_ok(), "{svg}");
    }
}
