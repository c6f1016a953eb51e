//! Makes foreign text harmless: labels may come from a run file that anybody wrote.

/// Removes control characters (a terminal obeys them, XML forbids them) and those that change the
/// direction of writing; white space becomes single blanks.
pub fn clean(text: &str) -> String {
    let visible: String = text.chars().filter(|c| c.is_whitespace() || !is_obeyed(*c)).collect();
    visible.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Like [`clean`], but keeps all white space and the ends of lines. For text without colours.
pub fn printable(text: &str) -> String {
    text.chars().filter(|c| matches!(c, '\n' | '\t') || !is_obeyed(*c)).collect()
}

/// Returns whether a terminal or a reader would obey a character and not show it, the end of a line
/// among them.
#[inline]
pub fn is_obeyed(c: char) -> bool {
    if c.is_ascii() { c.is_ascii_control() } else { c.is_control() || is_invisible(c) }
}

/// Returns whether a character is a mark of direction (Unicode's Bidi_Control), a joiner, another
/// character without width, or no character at all.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(c, '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{fffe}'..='\u{ffff}' | '\u{e0000}'..='\u{e0fff}')
}

/// Escapes text for a place between tags of HTML or SVG, or in an attribute with quotation marks.
/// Characters that would change the direction of what follows them, or that nobody sees, are spelt
/// out; control characters are left out, as XML forbids them.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => escaped.push(c),
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c if c.is_control() => {}
            c if is_obeyed(c) => escaped.extend(c.escape_unicode()),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_gone() {
        assert_eq!(clean("a\x1b[31mb\x07\u{9b}c"), "a[31mbc");
        assert_eq!(clean("  two\r\n\tlines\u{202e} "), "two lines");
        assert_eq!(clean("zero\u{200b}width\u{feff}\u{ffff}"), "zerowidth");
        assert_eq!(clean("µ, Größe, 大"), "µ, Größe, 大");
        // What stands for a byte of a name that is no UTF-8.
        assert_eq!(clean("caf\u{fffd}"), "caf\u{fffd}");
        assert_eq!(escape("a<b>&\"'\n\x07\u{202e}c"), "a&lt;b&gt;&amp;&quot;&#39;\n\\u{202e}c");
        assert_eq!(printable("a  b\n\tc\x1b[31m\r\u{202e}d"), "a  b\n\tc[31md");
    }
}
