//! Figures that others have published, and those of this program on machines of today, as typed
//! values of the tables in `data/`.

pub mod hines2000;
pub mod li2007;
pub mod modern;
pub mod sloan1992;
pub mod venix1984;

use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error};

/// An error in a file of published figures. No release has one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("data/{file}: {what}")]
pub struct PublishedError {
    /// Name of the file.
    pub file: &'static str,
    /// The error, with its line.
    pub what: String,
}

/// Parses the rows of a file: comment lines, a header, and a row a line.
fn parse_rows<T: DeserializeOwned>(
    file: &'static str,
    text: &str,
) -> Result<Vec<T>, PublishedError> {
    let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(text.as_bytes());
    let mut rows = Vec::new();
    for row in reader.deserialize() {
        rows.push(row.map_err(|error| PublishedError { file, what: error.to_string() })?);
    }
    Ok(rows)
}

/// Parses a finite number above 0.
fn positive<'de, D: Deserializer<'de>>(field: D) -> Result<f64, D::Error> {
    let number = f64::deserialize(field)?;
    if number.is_finite() && number > 0.0 {
        return Ok(number);
    }
    Err(D::Error::custom(format!("{number} is not above 0")))
}
