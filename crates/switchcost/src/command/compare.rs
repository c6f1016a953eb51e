//! `switchcost compare`: did it change?

use std::process::ExitCode;

use anyhow::{Result, bail};
use model::comparison::{Comparison, LIMIT, Terms};

use crate::cli::CompareArgs;
use crate::failure::{tell, usage};
use crate::report::change;
use crate::{resolve, session, subjects};

/// What a script must be able to tell from "dearer beyond the limit", which is 1 (diff(1), grep(1)).
const TROUBLE: u8 = 2;

pub(super) fn run(args: &CompareArgs) -> Result<ExitCode> {
    let compared = args.ring.output.refuse_plot("a comparison").and_then(|()| match &args.ab {
        Some(prefixes) => measured(args, prefixes),
        None => stored(args),
    });
    Ok(compared.unwrap_or_else(|error| {
        let _ = tell(&error);
        ExitCode::from(TROUBLE)
    }))
}

fn terms(args: &CompareArgs) -> Terms {
    Terms {
        limit: args.fail_above.unwrap_or(LIMIT),
        confidence: resolve::CONFIDENCE,
        wanted: args.cost.wanted(),
    }
}

fn stored(args: &CompareArgs) -> Result<ExitCode> {
    check(args)?;
    let (Some(base), Some(new)) = (&args.base, &args.new) else {
        return Err(usage("BASE NEW: two runs are compared, or two settings (--ab)"));
    };
    let (base, new) = (subjects::find(base)?, subjects::find(new)?);
    let found = Comparison::of(&base, &new, terms(args));
    change::write(&found, &[], &args.ring.output)?;
    verdict(&found, args)
}

fn measured(args: &CompareArgs, prefixes: &[String]) -> Result<ExitCode> {
    check(args)?;
    if let Some(base) = &args.base {
        return Err(usage(format!("{base}: --ab measures two settings and takes no runs")));
    }
    let measured = session::measure(prefixes, &args.ring, terms(args))?;
    let paths: Vec<_> = measured.paths.iter().map(|path| &**path).collect();
    change::write(&measured.found, &paths, &args.ring.output)?;
    if let Some(code) = measured.interrupted {
        return Ok(ExitCode::from(code));
    }
    if measured.not_whole {
        bail!("a case could not be measured, or the session could not be stored: see above");
    }
    verdict(&measured.found, args)
}

fn check(args: &CompareArgs) -> Result<()> {
    match args.ring.output.csv.is_some() {
        true => Err(usage("--csv: a comparison has no samples (--json; runs export --format csv)")),
        false => Ok(()),
    }
}

/// Only somebody who asked for a gate gets one.
fn verdict(found: &Comparison, args: &CompareArgs) -> Result<ExitCode> {
    if found.changes.is_empty() {
        bail!("{}", found.in_words);
    }
    let is_told = |change: &model::comparison::Change| change.ratio.low.is_some();
    if args.fail_above.is_some() && !found.changes.iter().any(is_told) {
        bail!(
            "--fail-above: nothing was tested: no case has an interval (too few rounds, a base that is not resolved from zero, or published figures only)"
        );
    }
    Ok(match args.fail_above.is_some() && found.is_worse_beyond_limit() {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
}
