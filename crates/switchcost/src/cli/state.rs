//! States of the registers as typed.

use std::str::FromStr;

use model::state::State;

/// States: all that this CPU has, or a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StateNames {
    All,
    These(Vec<State>),
}

impl FromStr for StateNames {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "all" {
            return Ok(Self::All);
        }
        let states = text.split(',').map(|name| name.trim().parse());
        states.collect::<Result<_, String>>().map(Self::These).map_err(|why| {
            // The list of names ends in a bracket.
            why.strip_suffix(')').map_or(why.clone(), |why| format!("{why}, or all)"))
        })
    }
}
