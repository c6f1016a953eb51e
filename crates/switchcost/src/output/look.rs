//! What the terminal can show.

use std::env;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;

use anstream::{AutoStream, ColorChoice};
use charts::Look;

/// No plot is wider, however wide the terminal is.
const WIDEST: usize = 80;

/// How a plot may look on standard output.
pub(crate) fn of_stdout() -> Look {
    of(&io::stdout())
}

/// How it may look on standard error, for reports that go there.
pub(crate) fn of_stderr() -> Look {
    of(&io::stderr())
}

fn of<S: anstream::stream::RawStream + IsTerminal + AsFd>(stream: &S) -> Look {
    let size = terminal_size::terminal_size_of(stream).map(|(columns, _)| columns.0.into());
    // NO_COLOR, CLICOLOR_FORCE, TERM=dumb and what is no terminal, as every program of clap's has it.
    let colour = AutoStream::choice(stream) != ColorChoice::Never;
    let variable = |name: &str| env::var_os(name).and_then(|value| value.into_string().ok());
    Look {
        columns: columns(variable("COLUMNS").as_deref(), size),
        colour,
        unicode: is_utf8(variable),
    }
}

/// COLUMNS says what a user wants, before what the terminal has.
fn columns(wanted: Option<&str>, terminal: Option<usize>) -> usize {
    let wanted = wanted.and_then(|text| text.trim().parse().ok());
    wanted.or(terminal).filter(|columns| *columns > 0).unwrap_or(WIDEST).min(WIDEST)
}

/// The first of these that is set and not empty counts (locale(7)).
fn is_utf8(variable: impl Fn(&str) -> Option<String>) -> bool {
    let set = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(variable);
    let locale = set.into_iter().find(|value| !value.is_empty()).unwrap_or_default();
    let locale = locale.to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plot_is_as_wide_as_the_terminal_but_no_wider_than_eighty() {
        assert_eq!(columns(None, None), 80);
        assert_eq!(columns(None, Some(60)), 60);
        assert_eq!(columns(Some("50"), Some(60)), 50);
        assert_eq!(columns(Some("132"), None), 80);
        assert_eq!(columns(Some("wide"), Some(70)), 70);
        assert_eq!(columns(Some("0"), None), 80);
    }

    #[test]
    fn the_locale_says_whether_there_is_more_than_ascii() {
        let of = |set: &[(&str, &str)]| {
            is_utf8(|name| {
                set.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string())
            })
        };
        assert!(of(&[("LANG", "en_US.UTF-8")]));
        assert!(of(&[("LC_CTYPE", "C.utf8"), ("LANG", "C")]));
        assert!(!of(&[("LC_ALL", "POSIX"), ("LANG", "en_US.UTF-8")]));
        assert!(of(&[("LC_ALL", ""), ("LANG", "en_US.UTF-8")]));
        assert!(!of(&[]));
    }
}
