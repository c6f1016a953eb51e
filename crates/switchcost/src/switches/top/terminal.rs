//! The terminal: taken over, and given back however this ends (but by kill -9).
//!
//! A library for this (ratatui with crossterm) would bring thirty packages for one table.

use std::fmt::Write as _;
use std::io::{self, Read, Write, stdin, stdout};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize, tcsetattr,
};

use textwrap::core::display_width;

use super::keys::PressedKey;
use super::screen::ScreenSize;

/// Switches to another screen, without a cursor and without line wrap (console_codes(4), xterm).
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l";
/// Switches back.
const LEAVE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";

pub(super) struct RawTerminal {
    before: Termios,
    /// The lines on the screen.
    drawn: Vec<String>,
    /// The size for which they were drawn; none before.
    drawn_size: Option<ScreenSize>,
}

impl RawTerminal {
    pub(super) fn open() -> io::Result<Self> {
        let before = tcgetattr(stdin())?;
        let mut raw = before.clone();
        // Ctrl-C stays a signal; Ctrl-Z would leave the other screen behind.
        raw.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
        raw.special_codes[SpecialCodeIndex::VSUSP] = 0;
        tcsetattr(stdin(), OptionalActions::Flush, &raw)?;
        let terminal = Self { before, drawn: Vec::new(), drawn_size: None };
        write(ENTER)?;
        Ok(terminal)
    }

    /// Returns the size of the terminal; 80 columns and 24 lines where that is not known.
    pub(super) fn size(&self) -> ScreenSize {
        match tcgetwinsize(stdout()) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
                ScreenSize { columns: size.ws_col.into(), rows: size.ws_row.into() }
            }
            _ => ScreenSize { columns: 80, rows: 24 },
        }
    }

    /// Shows these lines. Only what has changed is written, all at once, so that nothing flickers.
    pub(super) fn draw(&mut self, lines: &[String]) -> io::Result<()> {
        let size = self.size();
        let mut text = String::new();
        if self.drawn_size != Some(size) {
            self.drawn_size = Some(size);
            self.drawn.clear();
            text += "\x1b[2J";
        }
        for (number, line) in lines.iter().enumerate() {
            if self.drawn.get(number) != Some(line) {
                // Behind the last column it would take that away.
                let clear = if display_width(line) < size.columns { "\x1b[K" } else { "" };
                // Writing to a String cannot fail.
                let _ = write!(text, "\x1b[{};1H{line}{clear}", number + 1);
            }
        }
        self.drawn = lines.to_vec();
        if text.is_empty() { Ok(()) } else { write(&text) }
    }

    /// Waits for keys, no longer than this; returns none if a signal comes first.
    pub(super) fn keys(&self, longest: Duration) -> io::Result<Vec<PressedKey>> {
        let timeout = Timespec::try_from(longest).ok();
        match poll(&mut [PollFd::new(&stdin(), PollFlags::IN)], timeout.as_ref()) {
            Ok(0) | Err(Errno::INTR) => return Ok(Vec::new()),
            ready => ready?,
        };
        let mut bytes = [0; 64];
        match stdin().read(&mut bytes) {
            // The terminal is gone.
            Ok(0) => Ok(vec![PressedKey::Char('q')]),
            Ok(length) => Ok(parse_keys(&bytes[..length])),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        // Nobody there to see it is no reason to fail.
        let _ = write(LEAVE);
        let _ = tcsetattr(stdin(), OptionalActions::Flush, &self.before);
    }
}

fn write(text: &str) -> io::Result<()> {
    let mut out = stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Sequences that terminals send for keys.
const SEQUENCES: [(&str, PressedKey); 6] = [
    ("\x1b[A", PressedKey::Up),
    ("\x1bOA", PressedKey::Up),
    ("\x1b[B", PressedKey::Down),
    ("\x1bOB", PressedKey::Down),
    ("\x1b[5~", PressedKey::PageUp),
    ("\x1b[6~", PressedKey::PageDown),
];

/// Parses the bytes that a terminal sends for keys.
fn parse_keys(bytes: &[u8]) -> Vec<PressedKey> {
    let text = String::from_utf8_lossy(bytes);
    let (mut rest, mut keys) = (&*text, Vec::new());
    while let Some(c) = rest.chars().next() {
        if let Some((sequence, key)) =
            SEQUENCES.iter().find(|(sequence, _)| rest.starts_with(sequence))
        {
            keys.push(*key);
            rest = &rest[sequence.len()..];
            continue;
        }
        rest = &rest[c.len_utf8()..];
        match c {
            '\x1b' if rest.starts_with(['[', 'O']) => {
                // Another key: up to the letter that ends it.
                rest = match rest[1..].find(|c: char| c.is_ascii_alphabetic() || c == '~') {
                    Some(end) => &rest[end + 2..],
                    None => "",
                };
            }
            '\x1b' => keys.push(PressedKey::Escape),
            '\r' | '\n' => keys.push(PressedKey::Enter),
            '\x7f' | '\x08' => keys.push(PressedKey::Backspace),
            c if !c.is_control() => keys.push(PressedKey::Char(c)),
            _ => {}
        }
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_terminals_send_for_keys() {
        let typed = b"q\x1b[A\x1bOB\x1b[6~\x1b[15~\x1b[1;5Cs\x1b\r\x7f\x01\xc3\xa9";
        let expected = [
            PressedKey::Char('q'),
            PressedKey::Up,
            PressedKey::Down,
            PressedKey::PageDown,
            PressedKey::Char('s'),
            PressedKey::Escape,
            PressedKey::Enter,
            PressedKey::Backspace,
            PressedKey::Char('\u{e9}'),
        ];
        assert_eq!(parse_keys(typed), expected);
        assert_eq!(parse_keys(b"\x1b["), []);
        assert_eq!(parse_keys(b""), []);
    }
}
