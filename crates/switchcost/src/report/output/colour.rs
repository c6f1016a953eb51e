//! Colour on a terminal: the answer's figure, which its text marks, and words that are verdicts. It
//! is put on last, when all that a terminal would obey has been taken out of the text and its lines
//! are broken.

use std::ops::Range;

use analysis::marked::{MarkedText, SpanRole};
use anstream::ColorChoice;
use charts::printable;

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

/// Returns `shown` in colours: the first figure that `text` marks, and the verdicts. `shown` is what
/// became of the text: it differs in blanks and ends of lines alone, and what a terminal would obey
/// is gone.
pub(crate) fn painted(text: &MarkedText, shown: &str) -> String {
    let figure = text.spans().iter().find(|span| span.role == SpanRole::Figure);
    let place = figure.and_then(|span| find_shown(text, &span.range, shown));
    let Some(Range { start, end }) = place else { return verdicts(shown) };
    let (before, figure, after) = (&shown[..start], &shown[start..end], &shown[end..]);
    format!("{}{ANSWER}{figure}{END}{}", verdicts(before), verdicts(after))
}

/// Returns where a part of a text stands in what is shown of it, by the letters before it.
fn find_shown(text: &str, part: &Range<usize>, shown: &str) -> Option<Range<usize>> {
    let first = count_letters(&text[..part.start]);
    let last = (first + count_letters(&text[part.clone()])).checked_sub(1)?;
    let mut letters = shown.char_indices().filter(|(_, letter)| !letter.is_whitespace());
    let (start, _) = letters.clone().nth(first)?;
    let (end, letter) = letters.nth(last)?;
    (start <= end).then_some(start..end + letter.len_utf8())
}

/// Counts what is neither a blank nor something that a terminal would obey.
fn count_letters(text: &str) -> usize {
    printable(text).chars().filter(|letter| !letter.is_whitespace()).count()
}

/// The text with its verdicts in colour.
fn verdicts(text: &str) -> String {
    let (mut painted, mut done, mut before) = (String::new(), 0, "");
    for (start, word) in words(text) {
        let core = core(word);
        if let Some(colour) = verdict(core, before) {
            let end = start + core.len();
            painted += &format!("{}{colour}{core}{END}", &text[done..start]);
            done = end;
        }
        before = core;
    }
    painted + &text[done..]
}

/// The colour of a word behind another. What grows faster is no better for it.
fn verdict(word: &str, before: &str) -> Option<&'static str> {
    Some(match word {
        "PASS" => GOOD,
        "faster" if before != "grows" => GOOD,
        "FAIL" | "slower" => BAD,
        "UNDECIDED" | "undecided" | "inconclusive" | "noisy" | "unusable" => DOUBT,
        _ => return None,
    })
}

/// Words between blanks, and where they start.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let start = |word: &str| word.as_ptr() as usize - text.as_ptr() as usize;
    text.split_whitespace().map(move |word| (start(word), word))
}

/// Without the punctuation behind it.
fn core(word: &str) -> &str {
    word.trim_end_matches(['.', ',', ':', ';', ')'])
}

#[cfg(test)]
mod tests {
    use analysis::marked;

    use super::*;

    /// Returns the text with colours as letters in brackets.
    fn seen(text: impl Into<MarkedText>, shown: &str) -> String {
        let mut seen = painted(&text.into(), shown);
        let marks = [(ANSWER, "[A:"), (GOOD, "[G:"), (BAD, "[B:"), (DOUBT, "[D:"), (END, "]")];
        for (code, mark) in marks {
            seen = seen.replace(code, mark);
        }
        seen
    }

    #[test]
    fn the_first_marked_figure_is_coloured() {
        let cost = || marked![MarkedText::figure("1.54 us"), " (1.52 to 1.57)"];
        let text = marked!["A switch of 2 us costs ", cost(), " with 2, ", cost(), ".\n"];
        let coloured = "A switch of 2 us costs [A:1.54 us] (1.52 to 1.57) with 2, 1.54 us (1.52 to \
             1.57).\n";
        assert_eq!(seen(&text, &text), coloured);
        let text = marked!["x is ", MarkedText::figure("1.94x"), " (1.86 to 2.13) faster than y\n"];
        assert_eq!(seen(&text, &text), "x is [A:1.94x] (1.86 to 2.13) [G:faster] than y\n");
        for plain in ["nothing was measured\n\n3 ms\n", ""] {
            assert_eq!(seen(plain, plain), plain);
        }
    }

    #[test]
    fn a_figure_is_found_where_lines_were_broken_and_controls_are_gone() {
        let text = marked!["of\x1b 'a\u{202e} \u{e4}' it ", MarkedText::figure("1.54 us"), " each"];
        let shown = "of\n  'a \u{e4}'\n  it 1.54 us each";
        assert_eq!(seen(&text, shown), "of\n  'a \u{e4}'\n  it [A:1.54 us] each");
        // Where less is shown than there is, nothing is painted at a wrong place.
        assert_eq!(seen(&text, "of 'a"), "of 'a");
    }

    #[test]
    fn verdicts_are_coloured_wherever_they_stand() {
        let plain = "a\n\nmachine: noisy (a neighbour)\nFAIL: 2 cases are slower, 1 is faster; \
             slowerly\nPASS\n";
        let coloured = "a\n\nmachine: [D:noisy] (a neighbour)\n[B:FAIL]: 2 cases are [B:slower], \
             1 is [G:faster]; slowerly\n[G:PASS]\n";
        assert_eq!(seen(plain, plain), coloured);
        let grows = "it grows faster between 8 and 16";
        assert_eq!(seen(grows, grows), grows);
    }
}
