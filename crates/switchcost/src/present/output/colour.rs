//! Colour on a terminal: the headline's figure, and words that are verdicts. It is put on last,
//! when all that a terminal would obey has been taken out of the text.

use anstream::ColorChoice;

/// SGR sequences (ECMA-48, 8.3.117): bold cyan, green, red, yellow; the end of each.
const ANSWER: &str = "\x1b[1;36m";
const GOOD: &str = "\x1b[32m";
const BAD: &str = "\x1b[31m";
const DOUBT: &str = "\x1b[33m";
const END: &str = "\x1b[0m";

/// What a figure's unit may be.
const UNITS: [&str; 5] = ["ns", "us", "ms", "s", "%"];

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

/// The text with colours: of its first paragraph the first figure, of all of it the verdicts.
pub(crate) fn painted(text: &str) -> String {
    let end = text.find("\n\n").unwrap_or(text.len());
    let (headline, rest) = text.split_at(end);
    match figure(headline) {
        None => verdicts(headline) + &verdicts(rest),
        Some((start, end)) => {
            let (before, figure, after) =
                (&headline[..start], &headline[start..end], &headline[end..]);
            format!(
                "{}{ANSWER}{figure}{END}{}{}",
                verdicts(before),
                verdicts(after),
                verdicts(rest)
            )
        }
    }
}

/// Where the first figure with a unit stands: `1.54 us`, `1.94x`.
fn figure(text: &str) -> Option<(usize, usize)> {
    let words: Vec<(usize, &str)> = words(text).collect();
    let number =
        |word: &str| word.starts_with(|c: char| c.is_ascii_digit()) && word.parse::<f64>().is_ok();
    words.iter().enumerate().find_map(|(place, (start, word))| {
        let core = core(word);
        if core.strip_suffix('x').is_some_and(number) {
            return Some((*start, start + core.len()));
        }
        let (next, unit) = words.get(place + 1)?;
        let is_figure = number(word) && UNITS.contains(&self::core(unit));
        is_figure.then(|| (*start, next + self::core(unit).len()))
    })
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
    use super::*;

    /// With colours as letters in brackets.
    fn seen(text: &str) -> String {
        let marks = [(ANSWER, "[A:"), (GOOD, "[G:"), (BAD, "[B:"), (DOUBT, "[D:"), (END, "]")];
        marks.into_iter().fold(painted(text), |text, (code, mark)| text.replace(code, mark))
    }

    #[test]
    fn the_first_figure_of_the_headline_is_coloured() {
        for (plain, coloured) in [
            (
                "A switch costs 1.54 us (1.52 to 1.57) with 2 processes.\n\n  2  1.54 us\n",
                "A switch costs [A:1.54 us] (1.52 to 1.57) with 2 processes.\n\n  2  1.54 us\n",
            ),
            (
                "sleep 0.01 is 1.94x (1.86 to 2.13) faster than sleep 0.02\n",
                "sleep 0.01 is [A:1.94x] (1.86 to 2.13) [G:faster] than sleep 0.02\n",
            ),
            ("make: 12.3 s, 20 runs\n", "make: [A:12.3 s], 20 runs\n"),
            ("nothing was measured\n\n3 ms\n", "nothing was measured\n\n3 ms\n"),
            ("", ""),
        ] {
            assert_eq!(seen(plain), coloured);
        }
    }

    #[test]
    fn verdicts_are_coloured_wherever_they_stand() {
        let plain = "a\n\nmachine: noisy (a neighbour)\nFAIL: 2 cases are slower, 1 is faster; \
             slowerly\nPASS\n";
        let coloured = "a\n\nmachine: [D:noisy] (a neighbour)\n[B:FAIL]: 2 cases are [B:slower], \
             1 is [G:faster]; slowerly\n[G:PASS]\n";
        assert_eq!(seen(plain), coloured);
        assert_eq!(seen("it grows faster between 8 and 16"), "it grows faster between 8 and 16");
    }
}
