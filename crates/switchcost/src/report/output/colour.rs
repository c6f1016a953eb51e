//! Colour on a terminal: the answer's figure and the verdicts, as the text marks them. It is put on
//! last, when all that a terminal would obey has been taken out of the text and its lines are broken.

use analysis::marked::{MarkedText, SpanRole};
use anstream::ColorChoice;

/// SGR sequences (ECMA-48, 8.3.117): bold cyan, green, red, yellow; the end of each.
const ANSWER: &str = "\x1b[1;36m";
const GOOD: &str = "\x1b[32m";
const BAD: &str = "\x1b[31m";
const DOUBT: &str = "\x1b[33m";
const END: &str = "\x1b[0m";

/// From here on colour is as `--color` says; auto is for terminals, and asks NO_COLOR and
/// CLICOLOR_FORCE.
pub(crate) fn choose(choice: clap::ColorChoice) {
    let choice = match choice {
        clap::ColorChoice::Auto => ColorChoice::Auto,
        clap::ColorChoice::Always => ColorChoice::Always,
        clap::ColorChoice::Never => ColorChoice::Never,
    };
    choice.write_global();
}

/// Returns the text in colours: the first of its figures, and its verdicts.
pub(crate) fn painted(text: &MarkedText) -> String {
    let (mut painted, mut done) = (String::new(), 0);
    let mut has_answer = false;
    for span in text.spans() {
        let colour = match span.role {
            SpanRole::Figure if !has_answer => ANSWER,
            SpanRole::Better => GOOD,
            SpanRole::Worse => BAD,
            SpanRole::Doubtful => DOUBT,
            _ => continue,
        };
        has_answer |= span.role == SpanRole::Figure;
        painted += &text[done..span.range.start];
        painted += &format!("{colour}{}{END}", &text[span.range.clone()]);
        done = span.range.end;
    }
    painted + &text[done..]
}

#[cfg(test)]
mod tests {
    use analysis::marked;

    use super::*;

    /// Returns the text with colours as letters in brackets.
    fn seen(text: impl Into<MarkedText>) -> String {
        let mut seen = painted(&text.into());
        let marks = [(ANSWER, "[A:"), (GOOD, "[G:"), (BAD, "[B:"), (DOUBT, "[D:"), (END, "]")];
        for (code, mark) in marks {
            seen = seen.replace(code, mark);
        }
        seen
    }

    #[test]
    fn the_first_marked_figure_and_all_verdicts_are_coloured() {
        let cost = || marked![MarkedText::figure("1.54 us"), " (1.52 to 1.57)"];
        let text = marked!["A switch of 2 us costs ", cost(), " with 2, ", cost(), ".\n"];
        let coloured = "A switch of 2 us costs [A:1.54 us] (1.52 to 1.57) with 2, 1.54 us (1.52 to \
             1.57).\n";
        assert_eq!(seen(text), coloured);
        let faster = MarkedText::new(SpanRole::Better, "faster");
        let text = marked!["x is ", MarkedText::figure("1.94x"), " ", faster, " than the slower y"];
        assert_eq!(seen(text), "x is [A:1.94x] [G:faster] than the slower y");
        let gate = marked![MarkedText::new(SpanRole::Doubtful, "UNDECIDED"), ": PASS or FAIL"];
        assert_eq!(seen(gate), "[D:UNDECIDED]: PASS or FAIL");
        for plain in ["nothing was measured\n\n3 ms, slower\n", ""] {
            assert_eq!(seen(plain), plain);
        }
    }
}
