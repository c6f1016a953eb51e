//! `switchcost compare`: did it change?

use std::process::ExitCode;

use anyhow::{Result, bail};
use model::comparison::{Change, Comparison, LIMIT, Terms};

use crate::cli::CompareArgs;
use crate::failure::{tell, usage};
use crate::report::change;
use crate::session::{self, Ended};
use crate::{resolve, subjects};

/// What a script must be able to tell from "slower beyond the limit", which is 1 (diff(1), grep(1)).
const TROUBLE: u8 = 2;

pub(super) fn run(args: &CompareArgs) -> Result<ExitCode> {
    let compared = args.ring.output.refuse_plot("a comparison").and_then(|()| match &args.ab {
        Some(_) if args.ring.launches > 1 => Err(usage(format!(
            "--launches {}: --ab measures both settings in one session (accepted with it: 1; several launches are \
             compared as BASE NEW)",
            args.ring.launches
        ))),
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
    if let Some(flag) = prefixes.iter().find(|prefix| prefix.starts_with('-')) {
        return Err(usage(format!(
            "--ab: a prefix is a command, and '{flag}' is none: is one of the two missing? ('' measures as it is)"
        )));
    }
    if let Some(base) = &args.base {
        return Err(usage(format!("{base}: --ab measures two settings and takes no runs")));
    }
    let measured = match session::measure(prefixes, &args.ring, terms(args))? {
        Ended::Measured(measured) => measured,
        Ended::Interrupted(code) => return Ok(ExitCode::from(code)),
    };
    let paths: Vec<_> = measured.paths.iter().map(|path| &**path).collect();
    change::write(&measured.found, &paths, &args.ring.output)?;
    if let Some(code) = measured.interrupted {
        return Ok(ExitCode::from(code));
    }
    let code = verdict(&measured.found, args)?;
    // That something is slower is true whatever else failed.
    if measured.not_whole && code == ExitCode::SUCCESS {
        bail!("a case could not be measured, or the session could not be stored: see above");
    }
    Ok(code)
}

fn check(args: &CompareArgs) -> Result<()> {
    match args.ring.output.csv.is_some() {
        true => Err(usage("--csv: a comparison has no samples (--json; runs export --format csv)")),
        false => args.ring.output.check(),
    }
}

/// Only somebody who asked for a gate gets one.
fn verdict(found: &Comparison, args: &CompareArgs) -> Result<ExitCode> {
    if found.changes.is_empty() {
        bail!("{}", found.in_words);
    }
    if args.fail_above.is_none() {
        return Ok(ExitCode::SUCCESS);
    }
    if found.is_worse_beyond_limit() {
        return Ok(ExitCode::FAILURE);
    }
    let lost = found.lost();
    if !lost.is_empty() {
        let each = |(title, why): &(&str, &str)| format!("{title}: {why}");
        bail!(
            "--fail-above: not tested, though the base has it: {}",
            lost.iter().map(each).collect::<Vec<_>>().join("; ")
        );
    }
    if !found.changes.iter().any(Change::is_tested) {
        bail!(
            "--fail-above: nothing was tested: no case has an interval on both sides (not seen at the CPU's full \
             speed, too few rounds, a cost that is not resolved from zero, or published figures only)"
        );
    }
    Ok(ExitCode::SUCCESS)
}
