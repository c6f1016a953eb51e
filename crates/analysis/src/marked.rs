//! Text whose spans say what they are: who makes a sentence marks its figures, a terminal paints by
//! the marks, and all other outputs leave them out.

use std::fmt;
use std::ops::{Add, Deref, Range};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The meaning of a marked span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanRole {
    /// A figure that answers what was asked, with its unit.
    Figure,
    /// A verdict that is good news: PASS, faster.
    Better,
    /// A verdict that is bad news: FAIL, slower.
    Worse,
    /// A verdict that leaves doubt: UNDECIDED, a noisy machine.
    Doubtful,
    /// A figure that was not measured at full speed.
    NotAtFullSpeed,
    /// A figure by CPU time.
    ByCpuTime,
    /// A figure at full speed in few rounds.
    FewRounds,
}

/// A marked part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The bytes of the text that it covers.
    pub range: Range<usize>,
    /// Their meaning.
    pub role: SpanRole,
}

/// Text with marked spans; what is not marked is plain. As JSON it is a string without marks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MarkedText {
    text: String,
    /// In the order of the text; none overlaps another.
    spans: Vec<Span>,
}

impl MarkedText {
    /// Marks all of a text.
    pub fn new(role: SpanRole, text: impl Into<String>) -> Self {
        let text = text.into();
        let spans = vec![Span { range: 0..text.len(), role }];
        Self { text, spans }
    }

    /// Marks these parts of a text; each ends before the next begins.
    pub fn with_spans(
        text: String,
        parts: impl IntoIterator<Item = (Range<usize>, SpanRole)>,
    ) -> Self {
        let mut spans = Vec::new();
        for (range, role) in parts {
            spans.push(Span { range, role });
        }
        Self { text, spans }
    }

    /// Marks which way a cost went: `slower` is bad news, `faster` good.
    pub fn direction(is_slower: bool) -> Self {
        Self::change(is_slower, if is_slower { "slower" } else { "faster" })
    }

    /// Marks a word that says which way a figure went; more of it is bad news.
    pub fn change(is_more: bool, word: &str) -> Self {
        Self::new(if is_more { SpanRole::Worse } else { SpanRole::Better }, word)
    }

    /// Marks a figure with its unit.
    pub fn figure(text: impl Into<String>) -> Self {
        Self::new(SpanRole::Figure, text)
    }

    /// Returns the text without marks.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the marked spans in the order of the text.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Adds a text at the end, with its marks.
    pub fn push(&mut self, other: impl Into<Self>) {
        let other = other.into();
        let start = self.text.len();
        self.text += &other.text;
        for Span { range, role } in other.spans {
            self.spans.push(Span { range: start + range.start..start + range.end, role });
        }
    }

    /// Puts texts one behind another with `separator` between them.
    pub fn join(parts: impl IntoIterator<Item = Self>, separator: &str) -> Self {
        let mut joined = Self::default();
        for (number, part) in parts.into_iter().enumerate() {
            if number > 0 {
                joined.push(separator);
            }
            joined.push(part);
        }
        joined
    }

    /// Returns a part of the text with the spans that are wholly in it.
    pub fn slice(&self, range: Range<usize>) -> Self {
        let mut spans = Vec::new();
        for span in &self.spans {
            if range.start <= span.range.start && span.range.end <= range.end {
                let moved = span.range.start - range.start..span.range.end - range.start;
                spans.push(Span { range: moved, role: span.role });
            }
        }
        Self { text: self.text[range].to_string(), spans }
    }

    /// Replaces the first letter, if it is one of ASCII, by a capital.
    pub fn capitalized(mut self) -> Self {
        if let Some(first) = self.text.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        self
    }

    /// Replaces the first letter, if it is one of ASCII, by a small one.
    pub fn uncapitalized(mut self) -> Self {
        if let Some(first) = self.text.get_mut(..1) {
            first.make_ascii_lowercase();
        }
        self
    }
}

/// Puts texts, marked and plain, one behind another.
#[macro_export]
macro_rules! marked {
    ($($part:expr),* $(,)?) => {{
        let mut text = $crate::marked::MarkedText::default();
        $(text.push($part);)*
        text
    }};
}

impl From<String> for MarkedText {
    fn from(text: String) -> Self {
        Self { text, spans: Vec::new() }
    }
}

impl From<&str> for MarkedText {
    fn from(text: &str) -> Self {
        text.to_string().into()
    }
}

impl From<&String> for MarkedText {
    fn from(text: &String) -> Self {
        text.clone().into()
    }
}

impl From<&MarkedText> for MarkedText {
    fn from(text: &MarkedText) -> Self {
        text.clone()
    }
}

impl From<MarkedText> for String {
    fn from(text: MarkedText) -> Self {
        text.text
    }
}

impl Deref for MarkedText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for MarkedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl Add<&str> for MarkedText {
    type Output = Self;

    fn add(mut self, other: &str) -> Self {
        self.push(other);
        self
    }
}

impl PartialEq<str> for MarkedText {
    fn eq(&self, other: &str) -> bool {
        self.text == other
    }
}

impl PartialEq<&str> for MarkedText {
    fn eq(&self, other: &&str) -> bool {
        self.text == *other
    }
}

impl PartialEq<String> for MarkedText {
    fn eq(&self, other: &String) -> bool {
        self.text == *other
    }
}

impl Serialize for MarkedText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.text.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for MarkedText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
    }
}

impl JsonSchema for MarkedText {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        String::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text with its figures in brackets.
    fn shown(text: &MarkedText) -> String {
        let (mut shown, mut done) = (String::new(), 0);
        for Span { range, .. } in text.spans() {
            shown += &format!("{}[{}]", &text[done..range.start], &text[range.clone()]);
            done = range.end;
        }
        shown + &text[done..]
    }

    #[test]
    fn marks_go_with_their_text() {
        let cost = marked![MarkedText::figure("1.54 us"), " (1.52 to 1.57)"];
        let text = marked!["A switch costs ", &cost, String::from(" here"), "."];
        assert_eq!(shown(&text), "A switch costs [1.54 us] (1.52 to 1.57) here.");
        let both = MarkedText::join([cost.clone(), cost], ", ");
        assert_eq!(shown(&both), "[1.54 us] (1.52 to 1.57), [1.54 us] (1.52 to 1.57)");
        assert_eq!(shown(&text.slice(9..22)), "costs [1.54 us]");
        assert_eq!(shown(&text.slice(0..20)), "A switch costs 1.54 ", "a part of a figure is none");
        assert_eq!(shown(&text.uncapitalized()), "a switch costs [1.54 us] (1.52 to 1.57) here.");
        assert_eq!(shown(&MarkedText::from("µs").capitalized()), "µs");
    }

    #[test]
    fn json_has_no_marks() {
        let text = marked!["it takes ", MarkedText::figure("2 s")];
        let json = serde_json::to_string(&text).unwrap();
        assert_eq!(json, "\"it takes 2 s\"");
        let back: MarkedText = serde_json::from_str(&json).unwrap();
        assert_eq!((back.as_str(), back.spans().len()), ("it takes 2 s", 0));
    }
}
