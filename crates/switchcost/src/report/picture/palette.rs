//! Colours that the colour-blind tell apart (Okabe and Ito 2008), without the yellow, which paper hides.

use model::figure::Role;
use plotters::style::RGBColor;

const SERIES: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(90, 90, 90),
];

pub(super) const INK: RGBColor = RGBColor(20, 20, 20);
pub(super) const SOFT: RGBColor = RGBColor(95, 95, 95);
pub(super) const GRID: RGBColor = RGBColor(226, 226, 226);
pub(super) const SHADE: RGBColor = RGBColor(120, 120, 120);
pub(super) const EMPTY: RGBColor = RGBColor(236, 236, 236);

/// Of a series. Published ones are many, and no measured one is to have the colour of one: they are told
/// apart by symbol and line.
pub(super) fn colour(role: Role, number: usize) -> RGBColor {
    match role {
        Role::Published => SOFT,
        _ => SERIES[number % SERIES.len()],
    }
}

/// Black or white, whichever is read better on it (WCAG's relative luminance).
pub(super) fn readable_on(RGBColor(red, green, blue): RGBColor) -> RGBColor {
    let linear = |part: u8| (f64::from(part) / 255.0).powf(2.2);
    let luminance = 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
    if luminance > 0.18 { RGBColor(0, 0, 0) } else { RGBColor(255, 255, 255) }
}
