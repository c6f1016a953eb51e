//! All instruments by name: a stored run is handed to the one that took it.

/// Does `$body`, a `Result`, with `$I` standing for the instrument that took the run in the file
/// `$path`; an error where that is none of ours.
macro_rules! with_instrument_of {
    ($path:expr, $I:ident => $body:expr) => {{
        use model::instrument::Instrument as _;
        let path: &std::path::Path = $path;
        let experiment = crate::store::experiment(path)?;
        if model::ring::Ring::EXPERIMENTS.contains(&&*experiment) {
            type $I = model::ring::Ring;
            $body
        } else if model::trial::Trials::EXPERIMENTS.contains(&&*experiment) {
            type $I = model::trial::Trials;
            $body
        } else if model::response::Response::EXPERIMENTS.contains(&&*experiment) {
            type $I = model::response::Response;
            $body
        } else {
            Err(anyhow::anyhow!(
                "{} is a run of '{experiment}', an experiment that this switchcost does not know",
                path.display()
            ))
        }
    }};
}

pub(crate) use with_instrument_of;
