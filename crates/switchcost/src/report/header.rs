//! What stands before the charts: what was found, on what, how.

use std::fmt::Write;

use charts::escape;
use model::noise::NoiseLevel;

use super::drawn::Drawn;

pub(crate) const FOOTER: &str = "<footer><p>A switch is one that the kernel counted; its cost is what a hop of the ring costs above \
the ring of one, taken within rounds. Bands and bars show intervals over rounds. \
Published figures are as printed (1984 to 2007) and have none.</p></footer>\n";

/// `lead` is what the runs say together; by their `names` the charts tell runs apart.
pub(crate) fn header(runs: &[Drawn], names: &[String], lead: Option<&str>) -> String {
    let lead =
        lead.map_or(String::new(), |lead| format!("<p class=\"lead\">{}</p>\n", escape(lead)));
    let mut text =
        format!("<header>\n<h1>What a context switch costs</h1>\n{lead}<div class=\"runs\">\n");
    for (name, run) in names.iter().zip(runs) {
        let name =
            if runs.len() > 1 { format!("<b class=\"letter\">{name}</b> ") } else { String::new() };
        // Writing to a String cannot fail.
        let _ = write!(text, "<section class=\"run\">\n<h2>{name}{}</h2>\n", escape(&run.title));
        for (place, sentence) in run.headline.iter().enumerate() {
            let class = if place == 0 { " class=\"headline\"" } else { "" };
            let _ = writeln!(text, "<p{class}>{}</p>", escape(sentence));
        }
        text.push_str(&noise(run));
        text.push_str(&facts(run, runs.len() == 1));
        if let Some(told) = &run.text {
            let _ = writeln!(
                text,
                "<details><summary>All that the run says, as on the terminal</summary><pre tabindex=\"0\">{}</pre></details>",
                escape(told)
            );
        }
        text.push_str("</section>\n");
    }
    text.push_str("</div>\n</header>\n");
    text
}

/// What it was measured on in a line, and all that is known of that below: open where one run is all.
fn facts(run: &Drawn, open: bool) -> String {
    let mut text = format!("<p>Measured on {}.</p>\n", escape(&run.setting));
    text.push_str(if open { "<details open>" } else { "<details>" });
    text.push_str("<summary>How it was measured</summary><dl>");
    for (what, is) in &run.facts {
        // Writing to a String cannot fail.
        let _ = write!(text, "<div><dt>{}</dt><dd>{}</dd></div>", escape(what), escape(is));
    }
    text.push_str("</dl></details>\n");
    text
}

fn noise(run: &Drawn) -> String {
    let Some(verdict) = &run.noise else { return String::new() };
    let class = match verdict.level {
        NoiseLevel::Quiet => "quiet",
        NoiseLevel::Noisy => "noisy",
        NoiseLevel::Unusable => "unusable",
        NoiseLevel::Unknown => "unknown",
    };
    format!("<p class=\"noise {class}\">Machine: {}.</p>\n", escape(&verdict.in_words()))
}
