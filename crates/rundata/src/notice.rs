//! Notices of what was asked for and not granted or not measured, in the header of a run.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A notice of what was asked for and not granted or not measured, and how to get it.
///
/// In JSON one of no particular kind is its text, another an object with kind and text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "StoredNotice", into = "StoredNotice")]
pub struct Notice {
    /// Kind of the notice, for programs.
    pub kind: NoticeKind,
    /// The sentence for people, without its full stop.
    pub text: String,
}

/// Subject of a notice, as far as reports tell notices apart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoticeKind {
    /// Nothing but its text.
    Other,
    /// The budget was too short for all sizes that were asked for.
    TooShort,
    /// A part of a switch that is not measured here, by its name.
    PartNotMeasured(String),
}

/// A notice as it is stored. Older programs stored texts only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum StoredNotice {
    Text(String),
    OfKind { kind: NoticeKind, text: String },
}

impl Notice {
    /// Builds notices that are of no kind but only have a text.
    pub fn from_texts(texts: impl IntoIterator<Item = String>) -> Vec<Self> {
        texts.into_iter().map(Self::from).collect()
    }

    /// Builds the notice that the budget was too short for all sizes that were asked for.
    pub fn too_short(text: impl Into<String>) -> Self {
        Self { kind: NoticeKind::TooShort, text: text.into() }
    }

    /// Builds the notice that a part of a switch is not measured here; `why` names it and says what
    /// it needs.
    pub fn part_not_measured(part: &str, why: impl fmt::Display) -> Self {
        let kind = NoticeKind::PartNotMeasured(part.to_string());
        Self { kind, text: format!("not measured: {why}") }
    }
}

impl<T: Into<String>> From<T> for Notice {
    fn from(text: T) -> Self {
        Self { kind: NoticeKind::Other, text: text.into() }
    }
}

impl From<StoredNotice> for Notice {
    fn from(stored: StoredNotice) -> Self {
        match stored {
            StoredNotice::Text(text) => text.into(),
            StoredNotice::OfKind { kind, text } => Self { kind, text },
        }
    }
}

impl From<Notice> for StoredNotice {
    fn from(notice: Notice) -> Self {
        let Notice { kind, text } = notice;
        if kind == NoticeKind::Other { Self::Text(text) } else { Self::OfKind { kind, text } }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_notice_is_its_text_and_others_say_their_kind() {
        let notices: Vec<Notice> = vec![
            "no SCHED_FIFO".into(),
            Notice::too_short("Measured 2 of 3 sizes"),
            Notice::part_not_measured("filter", "filter: no seccomp"),
        ];
        let json = serde_json::to_value(&notices).expect("JSON");
        let expected = serde_json::json!([
            "no SCHED_FIFO",
            {"kind": "too_short", "text": "Measured 2 of 3 sizes"},
            {"kind": {"part_not_measured": "filter"}, "text": "not measured: filter: no seccomp"},
        ]);
        assert_eq!(json, expected);
        let read: Vec<Notice> = serde_json::from_value(json).expect("notices");
        assert_eq!(read, notices);
    }
}
