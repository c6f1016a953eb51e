//! Which states of the registers a ring is measured with: those asked for, or all that this CPU has.

use anyhow::Result;
use model::state::State;
use probe::ring;

use crate::cli::StateNames;
use crate::failure::usage;

/// The states in their order, none among them, and a word on each that was left out of all. One that was
/// asked for by name and that this CPU lacks is an error. Without any the members do nothing about
/// registers.
pub(crate) fn choose(asked: Option<&StateNames>) -> Result<(Vec<Option<State>>, Vec<String>)> {
    let Some(asked) = asked else { return Ok((vec![None], Vec::new())) };
    let mut notices = Vec::new();
    let mut states = vec![State::None];
    match asked {
        StateNames::These(names) => {
            for state in names {
                ring::check_state(*state).map_err(usage)?;
            }
            states.extend(names);
        }
        StateNames::All => {
            for state in State::ALL {
                match ring::check_state(*state) {
                    Ok(()) => states.push(*state),
                    Err(why) => notices.push(format!("left out: {why}")),
                }
            }
        }
    }
    states.sort();
    states.dedup();
    Ok((states.into_iter().map(Some).collect(), notices))
}
