//! Charts as SVG.

use std::fmt::Write;

use crate::figure::Figure;
use crate::font::{self, Pen};
use crate::layout::{At, layout};
use crate::picture::{Draw, Element, PAPER, elements, letters, micro, sample, start, texts};
use crate::text::{clean, escape};

/// A figure for a paper, its texts as outlines. `runs` are the names of the runs that it is of; `note`
/// stands below it.
pub fn svg(figure: &Figure, runs: &[String], note: &str) -> String {
    let chart = layout(figure, runs, note, &PAPER);
    let (width, height) = (PAPER.width, number(chart.height));
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\">\
         <title>{}</title><desc>{}</desc>\n<path fill=\"#ffffff\" d=\"M0,0H{width}V{height}H0Z\"/>\n",
        escape(&clean(&figure.title)),
        escape(&clean(&figure.in_words)),
    );
    let samples = chart.items.iter().flat_map(sample);
    let drawn = elements(&chart).into_iter().chain(samples);
    for element in drawn.filter(|element| !element.paths.is_empty()) {
        let ink = hex(element.ink.colour());
        // Writing to a String cannot fail.
        let _ = writeln!(svg, "<path {}/>", attributes(&element, &ink));
    }
    for (text, colour) in texts(&chart) {
        let (pixels, bold) = letters(text.kind);
        let ((x, y), scale) = (start(&text), font::scale(pixels, bold));
        let stroke = |stroke: &Pen| match stroke {
            Pen::Move(x, y) => format!("M{x} {y}"),
            Pen::Line(x, y) => format!("L{x} {y}"),
            Pen::Curve(x1, y1, x, y) => format!("Q{x1} {y1} {x} {y}"),
            Pen::Close => "Z".to_string(),
        };
        let d: String = font::outline(&micro(&text.words), bold).iter().map(stroke).collect();
        let _ = writeln!(
            svg,
            "<path fill=\"{}\" transform=\"matrix({scale:.6} 0 0 -{scale:.6} {x:.2} {y:.2})\" d=\"{d}\"/>",
            hex(colour),
        );
    }
    svg.push_str("</svg>\n");
    svg
}

/// A colour as SVG and CSS write it.
pub(crate) fn hex([red, green, blue]: [u8; 3]) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// Pixels to a tenth.
pub(crate) fn number(pixels: f64) -> f64 {
    (pixels * 10.0).round() / 10.0
}

/// Places as the `d` of a path.
pub(crate) fn path(paths: &[Vec<At>], draw: Draw) -> String {
    let mut d = String::new();
    for places in paths {
        for (place, (x, y)) in places.iter().enumerate() {
            let _ =
                write!(d, "{}{},{}", if place == 0 { 'M' } else { 'L' }, number(*x), number(*y));
        }
        d.push_str(match draw {
            Draw::Fill => "Z",
            Draw::Dots(_) => "h0",
            Draw::Line(..) => "",
        });
    }
    d
}

/// What an element looks like, in that colour, and where it is.
pub(crate) fn attributes(element: &Element, ink: &str) -> String {
    let look = match element.draw {
        Draw::Fill => format!("fill=\"{ink}\""),
        Draw::Dots(wide) => {
            format!(
                "fill=\"none\" stroke=\"{ink}\" stroke-width=\"{wide}\" stroke-linecap=\"round\""
            )
        }
        Draw::Line(wide, dash) => {
            let dash =
                dash.map_or(String::new(), |(on, off)| format!(" stroke-dasharray=\"{on} {off}\""));
            format!("fill=\"none\" stroke=\"{ink}\" stroke-width=\"{wide}\"{dash}")
        }
    };
    let alpha = match element.alpha {
        1.0 => String::new(),
        alpha => format!(" opacity=\"{alpha}\""),
    };
    format!("{look}{alpha} d=\"{}\"", path(&element.paths, element.draw))
}
