//! Figures that others have published, to set beside ours. The tables are in `data/`.

pub mod hines2000;
pub mod li2007;
pub mod sloan1992;
pub mod venix1984;

use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error};

/// A file of published figures that cannot be read, which no release has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("data/{file}: {what}")]
pub struct PublishedError {
    /// Its name.
    pub file: &'static str,
    /// What is wrong with it, and in which line.
    pub what: String,
}

/// The rows of a file: comment lines, a header, and a row a line.
fn rows<T: DeserializeOwned>(file: &'static str, text: &str) -> Result<Vec<T>, PublishedError> {
    let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(text.as_bytes());
    let wrong = |error: csv::Error| PublishedError { file, what: error.to_string() };
    reader.deserialize().map(|row| row.map_err(wrong)).collect()
}

/// A number above 0.
fn positive<'de, D: Deserializer<'de>>(field: D) -> Result<f64, D::Error> {
    let number = f64::deserialize(field)?;
    let is_sound = number.is_finite() && number > 0.0;
    is_sound.then_some(number).ok_or_else(|| D::Error::custom(format!("{number} is not above 0")))
}
