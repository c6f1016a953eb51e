//! Links as typed, and `switchcost links`.

use std::str::FromStr;

use clap::Args;

use super::values::Destination;

/// Names of links: all that can be had here, or a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LinkNames {
    All,
    These(Vec<String>),
}

impl FromStr for LinkNames {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "all" {
            return Ok(Self::All);
        }
        let mut names: Vec<String> = Vec::new();
        for name in text.split(',').map(str::trim) {
            if !names.iter().any(|known| known == name) {
                names.push(name.to_string());
            }
        }
        Ok(Self::These(names))
    }
}

#[derive(Debug, Args)]
pub(crate) struct LinksArgs {
    /// Write the list as JSON to a file, or - for standard output
    #[arg(long, value_name = "FILE|-")]
    pub(crate) json: Option<Destination>,
}
