//! The font, and how much room text takes.

use std::sync::{Arc, OnceLock};

use anyhow::{Result, anyhow};
use plotters::style::{Color, FontStyle, IntoFont, RGBColor, TextStyle, register_font};
use resvg::usvg;

use super::paint::UNITS;

/// DejaVu Sans, of a free licence.
pub(super) const FONT: &str = "DejaVu Sans";

/// plotters writes a size divided by this.
const PLOTTERS_FONT_SCALE: f64 = 1.24;

/// Makes the font known to plotters. Again and again does no harm.
pub(super) fn register() -> Result<()> {
    let fonts =
        [(FontStyle::Normal, dejavu::sans::regular()), (FontStyle::Bold, dejavu::sans::bold())];
    for (style, font) in fonts {
        register_font(FONT, style, font).map_err(|_| anyhow!("the font {FONT} cannot be read"))?;
    }
    Ok(())
}

/// What usvg draws text with: that font, and no other.
pub(super) fn options() -> usvg::Options<'static> {
    static FONTS: OnceLock<Arc<usvg::fontdb::Database>> = OnceLock::new();
    let fonts = FONTS.get_or_init(|| {
        let mut fonts = usvg::fontdb::Database::new();
        fonts.load_font_data(dejavu::sans::regular().to_vec());
        fonts.load_font_data(dejavu::sans::bold().to_vec());
        Arc::new(fonts)
    });
    usvg::Options {
        fontdb: fonts.clone(),
        font_family: FONT.to_string(),
        ..usvg::Options::default()
    }
}

/// A style of so many pixels.
pub(super) fn style(pixels: f64, colour: RGBColor) -> TextStyle<'static> {
    let size = pixels * f64::from(UNITS) * PLOTTERS_FONT_SCALE;
    let style = TextStyle::from((FONT, size).into_font());
    TextStyle { color: colour.to_backend_color(), ..style }
}

/// The width of a text in pixels.
pub(super) fn width(text: &str, pixels: f64) -> f64 {
    let size = pixels * f64::from(UNITS) * PLOTTERS_FONT_SCALE;
    let wide = (FONT, size).into_font().box_size(text).map_or(0, |(wide, _)| wide);
    // plotters takes the size for the height of a line, of which an em is less.
    f64::from(wide) / f64::from(UNITS)
}

/// As much of a text as fits, and an ellipsis for the rest.
pub(super) fn fit(text: &str, pixels: f64, room: f64) -> String {
    if width(text, pixels) <= room {
        return text.to_string();
    }
    // Where each character ends; no page is as wide as what is left out here.
    let ends: Vec<usize> =
        text.char_indices().map(|(start, c)| start + c.len_utf8()).take(400).collect();
    let shortened = |end: &usize| format!("{}…", text[..*end].trim_end());
    let fitting = ends.partition_point(|end| width(&shortened(end), pixels) <= room);
    fitting.checked_sub(1).map_or("…".to_string(), |last| shortened(&ends[last]))
}

/// Lines that fit, broken between words.
pub(super) fn wrap(text: &str, pixels: f64, room: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let word = fit(word, pixels, room);
        match lines.last_mut() {
            Some(line) if width(&format!("{line} {word}"), pixels) <= room => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    lines
}
