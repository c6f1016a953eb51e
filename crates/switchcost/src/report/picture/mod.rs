//! Figures as pictures for papers: SVG and PNG, the same drawing.
//!
//! plotters draws, with a font that this program carries; usvg turns its text into outlines, so that a
//! picture looks the same where that font is not installed; resvg makes pixels of that. In the HTML report
//! text stays text.

mod axes;
mod cells;
mod compact;
mod key;
mod labels;
mod letters;
mod page;
mod paint;
mod palette;
mod series;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use model::figure::Figure;
use resvg::{tiny_skia, usvg};

use super::drawing::clean;
use compact::compact;
use page::Sheet;

/// Pixels of a PNG for each of the SVG's: at 720 wide, 300 to the inch over a page's 7.2 inches.
const PIXELS: f32 = 3.0;

/// What stands below every picture.
pub(crate) struct Caption<'a> {
    /// Names of the runs that the figures are of, by their index.
    pub(crate) runs: &'a [String],
    /// Machine, kernel, date, plan.
    pub(crate) text: &'a str,
}

/// Writes each figure as `ID.svg` into a folder, which is made if it is not there. Gives the files.
pub(crate) fn write_svg(figures: &[Figure], caption: &Caption, dir: &Path) -> Result<Vec<PathBuf>> {
    write(figures, dir, "svg", |figure| {
        let tree = tree(figure, caption)?;
        Ok(described(figure, &tree.to_string(&usvg::WriteOptions::default())).into_bytes())
    })
}

/// Writes each figure as `ID.png`, likewise.
pub(crate) fn write_png(figures: &[Figure], caption: &Caption, dir: &Path) -> Result<Vec<PathBuf>> {
    write(figures, dir, "png", |figure| {
        let tree = tree(figure, caption)?;
        let size = tree.size().to_int_size();
        let pixels = |length: u32| (length as f32 * PIXELS) as u32;
        let mut image = tiny_skia::Pixmap::new(pixels(size.width()), pixels(size.height()))
            .ok_or_else(|| {
                anyhow!("a picture of {} by {} pixels is too large", size.width(), size.height())
            })?;
        image.fill(tiny_skia::Color::WHITE);
        let scale = tiny_skia::Transform::from_scale(PIXELS, PIXELS);
        resvg::render(&tree, scale, &mut image.as_mut());
        image.encode_png().context("cannot encode the picture")
    })
}

/// The figure for a page that has its title and its words: nothing behind it, its text in the page's font.
pub(crate) fn within_a_page(figure: &Figure, runs: &[String]) -> Result<String> {
    Ok(compact(&page::draw(figure, &Caption { runs, text: "" }, Sheet::Bare)?))
}

fn write(
    figures: &[Figure],
    dir: &Path,
    format: &str,
    draw: impl Fn(&Figure) -> Result<Vec<u8>>,
) -> Result<Vec<PathBuf>> {
    std::fs::create_dir_all(dir)
        .with_context(|| format!("cannot make the folder {} (--{format})", dir.display()))?;
    let mut taken = BTreeMap::new();
    let mut written = Vec::new();
    for figure in figures {
        let path = dir.join(format!("{}.{format}", file_name(figure, &mut taken)));
        let bytes = draw(figure).with_context(|| format!("cannot draw {}", path.display()))?;
        std::fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
        written.push(path);
    }
    Ok(written)
}

/// The figure's id as far as it can be a file's name; the second of two that are alike gets a number.
fn file_name(figure: &Figure, taken: &mut BTreeMap<String, u32>) -> String {
    let usable = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let kept: String = figure.id.chars().filter(|c| usable(*c)).take(100).collect();
    let name = if kept.is_empty() { "figure".to_string() } else { kept };
    let times = taken.entry(name.clone()).or_default();
    *times += 1;
    match *times {
        1 => name,
        times => format!("{name}-{times}"),
    }
}

/// The picture with all text as outlines.
fn tree(figure: &Figure, caption: &Caption) -> Result<usvg::Tree> {
    let svg = page::draw(figure, caption, Sheet::Paper)?;
    usvg::Tree::from_str(&svg, &letters::options()).context("cannot read the drawing back")
}

/// With title and description, for those who do not see it.
fn described(figure: &Figure, svg: &str) -> String {
    let text =
        |words: &str| clean(words).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let about =
        format!("<title>{}</title><desc>{}</desc>", text(&figure.title), text(&figure.in_words));
    match svg.find('>') {
        Some(end) => format!("{}{about}{}", &svg[..=end], &svg[end + 1..]),
        None => svg.to_string(),
    }
}

#[cfg(test)]
mod tests;
