//! A value that was read from the system, or the reason why it could not be read.

use std::fmt::Display;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A value read from the system, or why there is none. "Could not be read" differs from "is zero".
///
/// In JSON a known value stands as itself, an unknown one as `{"unknown": "why"}`. So that the two
/// are told apart, `T` must not be an object whose only field is a string named `unknown`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, deny_unknown_fields)]
#[schemars(rename = "Reading_of_{T}")]
pub enum Reading<T> {
    // First: an untagged enum takes the first variant that fits, and a `T` whose fields all have
    // defaults would fit anything.
    /// Not read.
    Unknown {
        /// Source and failure, path first: `/proc/x: No such file or directory`.
        #[serde(rename = "unknown")]
        why: String,
    },
    /// Read.
    Known(T),
}

impl<T> Reading<T> {
    /// Builds a reading that failed, with the reason.
    pub fn unknown(why: impl Into<String>) -> Self {
        Reading::Unknown { why: why.into() }
    }

    /// Returns the value, if it was read.
    pub fn known(&self) -> Option<&T> {
        match self {
            Reading::Known(value) => Some(value),
            Reading::Unknown { .. } => None,
        }
    }

    /// Returns the value, or the reason why there is none.
    pub fn ok(&self) -> Result<&T, String> {
        self.known().ok_or_else(|| self.why().unwrap_or_default().to_string())
    }

    /// Returns the reason why there is no value; `None` where there is one.
    pub fn why(&self) -> Option<&str> {
        match self {
            Reading::Known(_) => None,
            Reading::Unknown { why } => Some(why),
        }
    }

    /// Borrows the value; copies the reason.
    pub fn as_ref(&self) -> Reading<&T> {
        match self {
            Reading::Known(value) => Reading::Known(value),
            Reading::Unknown { why } => Reading::unknown(why.clone()),
        }
    }

    /// Changes a known value; a reason stays.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Reading<U> {
        self.and_then(|value| Reading::Known(change(value)))
    }

    /// Goes on from a known value to a further reading; a reason stays.
    pub fn and_then<U>(self, next: impl FnOnce(T) -> Reading<U>) -> Reading<U> {
        match self {
            Reading::Known(value) => next(value),
            Reading::Unknown { why } => Reading::Unknown { why },
        }
    }

    /// Tries another source if this one failed. When both fail, both reasons are kept.
    pub fn or_else(self, other: impl FnOnce() -> Reading<T>) -> Reading<T> {
        match self {
            Reading::Known(_) => self,
            Reading::Unknown { why: first } => match other() {
                Reading::Unknown { why } => Reading::unknown(format!("{first}; {why}")),
                known => known,
            },
        }
    }
}

/// A field that is missing in a stored record reads as unknown.
impl<T> Default for Reading<T> {
    fn default() -> Self {
        Reading::unknown("not recorded")
    }
}

impl<T, E: Display> From<Result<T, E>> for Reading<T> {
    fn from(result: Result<T, E>) -> Self {
        match result {
            Ok(value) => Reading::Known(value),
            Err(error) => Reading::unknown(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde::de::DeserializeOwned;

    use super::*;

    fn round_trip<T: Serialize + DeserializeOwned>(reading: &Reading<T>) -> (String, Reading<T>) {
        let json = serde_json::to_string(reading).unwrap();
        let back = serde_json::from_str(&json).unwrap();
        (json, back)
    }

    #[test]
    fn a_known_value_stands_as_itself_and_an_unknown_one_says_why() {
        let (json, back) = round_trip(&Reading::Known(0_u32));
        assert_eq!(json, "0");
        assert_eq!(back, Reading::Known(0));

        let absent = Reading::<u32>::unknown("/proc/x: absent");
        let (json, back) = round_trip(&absent);
        assert_eq!(json, r#"{"unknown":"/proc/x: absent"}"#);
        assert_eq!(back, absent);
        assert_eq!(back.why(), Some("/proc/x: absent"));
    }

    #[test]
    fn no_limit_is_a_known_value() {
        let (json, back) = round_trip(&Reading::<Option<u64>>::Known(None));
        assert_eq!(json, "null");
        assert_eq!(back, Reading::Known(None));
    }

    #[test]
    fn text_and_maps_that_speak_of_unknown_stay_known() {
        let text = Reading::Known("unknown".to_owned());
        assert_eq!(round_trip(&text).1, text);
        let nested = BTreeMap::from([("unknown".to_owned(), Reading::<String>::unknown("x"))]);
        let nested = Reading::Known(nested);
        assert_eq!(round_trip(&nested).1, nested);
        let pair = ["unknown", "other"].map(|key| (key.to_owned(), "x".to_owned()));
        let pair = Reading::Known(BTreeMap::from(pair));
        assert_eq!(round_trip(&pair).1, pair);
    }

    #[test]
    fn two_failed_sources_give_both_reasons() {
        let neither = Reading::<u8>::unknown("a: absent").or_else(|| Reading::unknown("b: absent"));
        assert_eq!(neither.why(), Some("a: absent; b: absent"));
        assert_eq!(Reading::unknown("a").or_else(|| Reading::Known(2)), Reading::Known(2));
        assert_eq!(Reading::Known(1).or_else(|| Reading::Known(2)), Reading::Known(1));
    }

    proptest! {
        #[test]
        fn any_reading_survives_json(known: bool, number: u64, why: String) {
            let number = if known { Reading::Known(number) } else { Reading::unknown(why.clone()) };
            prop_assert_eq!(&round_trip(&number).1, &number);
            let text = if known { Reading::Known(why) } else { Reading::unknown(why) };
            prop_assert_eq!(&round_trip(&text).1, &text);
        }
    }
}
