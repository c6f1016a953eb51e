//! plotters writes an element a line, for each dash and each dot one. Neighbours that look alike become one
//! path here: a page has many pictures, and its reader waits for them.

use super::letters::FONT;

/// The same drawing in fewer bytes for an HTML page, its text in the page's font. Dots of one path that lie
/// on each other are not the darker for it.
pub(super) fn compact(svg: &str) -> String {
    // What SVG, and within HTML a browser, takes for granted. In texts quotation marks are escaped: none of
    // these can be one.
    let font = format!(" font-family=\"{FONT}\"");
    let usual =
        [" xmlns=\"http://www.w3.org/2000/svg\"", " opacity=\"1\"", " stroke=\"none\"", &font];
    let short = usual.iter().fold(svg.to_string(), |svg, attribute| svg.replace(attribute, ""));
    let mut paths = Paths::default();
    for line in short.lines() {
        match stroke(line) {
            Some((look, way)) => paths.add(look, &way),
            None => paths.other(line),
        }
    }
    paths.end();
    paths.svg
}

/// An element that one stroke draws: how it looks, and which way it goes.
fn stroke(line: &str) -> Option<(String, String)> {
    let alpha = attribute(line, "opacity").map_or(String::new(), |it| format!(" opacity=\"{it}\""));
    if line.starts_with("<polyline ") && attribute(line, "fill")? == "none" {
        let (colour, wide) = (attribute(line, "stroke")?, attribute(line, "stroke-width")?);
        let look = format!("stroke=\"{colour}\" stroke-width=\"{wide}\"{alpha}");
        return Some((look, format!("M{}", attribute(line, "points")?.trim_end())));
    }
    if line.starts_with("<circle ") && attribute(line, "fill")? != "none" {
        let radius: u32 = attribute(line, "r")?.parse().ok()?;
        let (colour, wide) = (attribute(line, "fill")?, 2 * radius);
        let look =
            format!("stroke=\"{colour}\" stroke-width=\"{wide}\" stroke-linecap=\"round\"{alpha}");
        return Some((look, format!("M{},{}h0", attribute(line, "cx")?, attribute(line, "cy")?)));
    }
    None
}

fn attribute<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(&format!(" {name}=\""))?;
    Some(rest.split_once('"')?.0)
}

#[derive(Default)]
struct Paths {
    svg: String,
    /// How the path looks that is being written.
    look: Option<String>,
}

impl Paths {
    fn add(&mut self, look: String, way: &str) {
        if self.look.as_ref() != Some(&look) {
            self.end();
            self.svg.push_str(&format!("<path fill=\"none\" {look} d=\""));
            self.look = Some(look);
        }
        self.svg.push_str(way);
    }

    fn other(&mut self, line: &str) {
        self.end();
        self.svg.push_str(line);
        self.svg.push('\n');
    }

    fn end(&mut self) {
        if self.look.take().is_some() {
            self.svg.push_str("\"/>\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_that_look_alike_are_one_path() {
        let dash =
            "<polyline fill=\"none\" opacity=\"1\" stroke=\"#000000\" stroke-width=\"8\" points=";
        let dot = "stroke=\"none\" stroke-width=\"1\"/>";
        let svg = [
            &format!("{dash}\"1,2 3,4 \"/>"),
            &format!("{dash}\"5,6 7,8 9,9 \"/>"),
            "<text x=\"1\" opacity=\"1\" font-family=\"DejaVu Sans\" fill=\"#141414\">",
            "a &quot; opacity=&quot;1&quot;",
            "</text>",
            &format!("<circle cx=\"10\" cy=\"20\" r=\"24\" opacity=\"0.6\" fill=\"#0072B2\" {dot}"),
            &format!("<circle cx=\"11\" cy=\"21\" r=\"24\" opacity=\"0.6\" fill=\"#0072B2\" {dot}"),
            &format!("<circle cx=\"12\" cy=\"22\" r=\"24\" opacity=\"1\" fill=\"#0072B2\" {dot}"),
            "</svg>",
        ];
        let head = "<svg width=\"720\" xmlns=\"http://www.w3.org/2000/svg\">\n";
        let dots = "stroke=\"#0072B2\" stroke-width=\"48\" stroke-linecap=\"round\"";
        let expected = [
            "<path fill=\"none\" stroke=\"#000000\" stroke-width=\"8\" d=\"M1,2 3,4M5,6 7,8 9,9\"/>",
            "<text x=\"1\" fill=\"#141414\">",
            "a &quot; opacity=&quot;1&quot;",
            "</text>",
            &format!("<path fill=\"none\" {dots} opacity=\"0.6\" d=\"M10,20h0M11,21h0\"/>"),
            &format!("<path fill=\"none\" {dots} d=\"M12,22h0\"/>"),
            "</svg>",
            "",
        ];
        assert_eq!(
            compact(&(head.to_string() + &svg.join("\n"))),
            "<svg width=\"720\">\n".to_string() + &expected.join("\n")
        );
    }
}
