//! `switchcost ring --launches`: several launches of one plan, and what they say together.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::SystemTime;

use analysis::estimate::Speed;
use analysis::marked::MarkedText;
use analysis::results::{CaseResults, Results};
use anyhow::{Context, Result};
use rundata::plan::Plan;
use rundata::run::{Launch, Run};
use stats::SampleSummary;

use super::RingArgs;
use crate::base::failure::usage;
use crate::base::lines::Layout;
use crate::engine::execute::{self, About};
use crate::engine::interrupt::Interrupt;
use crate::engine::progress::Progress;
use crate::engine::setting::Here;
use crate::engine::store::speed::results_of;
use crate::report::output::print_fitted;
use crate::report::printout::{Printout, printout};
use crate::report::table::Table;
use crate::report::terminal::{self, interval, sentence, value};

/// The same plan so many times, each with a seed of its own, and what all of them say together.
pub(crate) fn take(args: &RingArgs) -> Result<ExitCode> {
    let (count, output) = (args.launches, &args.output);
    if output.files.json.is_some() || output.files.csv.is_some() || output.plot {
        return Err(usage(
            "--launches: each launch is a run of its own, which `runs export` and `runs show` \
                write (no --json, --csv or --plot here)",
        ));
    }
    let here = Here::detect()?;
    let (plan, notices) = super::plan::plan(args, &here)?;
    let interrupt = Interrupt::watch()?;
    let set = execute::run_name(plan.experiment, SystemTime::now());
    let (mut runs, mut whole) = (Vec::new(), true);
    for number in 1..=count {
        let plan = Plan { seed: plan.seed.wrapping_add(u64::from(number) - 1), ..plan.clone() };
        let progress = Progress::new(&plan, output.files.quiet);
        let launch = Some(Launch { set: set.clone(), number, of: count });
        let planned = (plan, notices.clone());
        let taken =
            execute::take(planned, here.clone(), &interrupt, progress, launch, About::of(output));
        whole &= taken.is_whole();
        let path = taken.path();
        runs.push((taken.run, path));
        if interrupt.signal().is_some() {
            break;
        }
    }
    if !output.files.quiet {
        let layout = Layout::terminal().with_wide_tables(output.view.wide);
        print_fitted(text(&runs), layout).context("cannot print the report")?;
    }
    Ok(interrupt.exit_code().unwrap_or(u8::from(!whole)).into())
}

/// Each launch's figures and all of them together.
fn text(runs: &[(Run, Option<PathBuf>)]) -> Printout {
    let sides = results_of(&runs.iter().map(|(run, _)| run).collect::<Vec<_>>());
    let (Some((first, _)), Some(all)) = (runs.first(), Results::from_launches(sides)) else {
        return Printout::default();
    };
    let confidence = first.header.plan.stopping.confidence;
    let columns =
        ["case", "cost of", "ns", "interval", "scatter between launches", "at full speed"];
    let rows = all.cases.iter().map(|case| row(case, all.launch_scatter_of(case.number)));
    let table = Table::new(columns, rows);
    let places: String =
        runs.iter().map(|(_, path)| terminal::place(path.as_deref()) + "\n").collect();
    let unfinished = runs.iter().find_map(|(run, _)| run.unfinished());
    let heading = sentence(unfinished, terminal::heading(&first.header));
    let many = runs.len();
    let confidence = 100.0 * confidence;
    let scatters = all.cases.iter().map(|case| 100.0 * all.launch_scatter_of(case.number));
    let (least, most) =
        scatters.fold((f64::INFINITY, 0.0_f64), |(least, most), of| (least.min(of), most.max(of)));
    let scatter =
        if least == most { format!("{most:.1}") } else { format!("{least:.1} to {most:.1}") };
    let legend = format!(
        "\n\nns: mean of the launches at full speed and at one clock; interval: {confidence:.0} %, \
         by the launches' own errors and their scatter (taken to be {scatter} %)\n{places}"
    );
    printout![heading, format!(", {many} launches\n\n"), table, legend]
}

fn row(case: &CaseResults, launch_scatter: f64) -> [MarkedText; 6] {
    let dash = || "-".to_string();
    let first = case.figures.first_key_value();
    let launches = first.map_or(&[][..], |(_, values)| values.launches());
    let counting = first.map(|(_, values)| values.counting().0).unwrap_or_default();
    let full = counting.iter().filter(|of| of.quote_cost().is_ok() && of.speed == Speed::Full);
    let values: Vec<f64> = full.map(|estimate| estimate.value).collect();
    let together = first.and_then(|(_, values)| values.together_at_one_clock(launch_scatter));
    let scatter = SampleSummary::from_values(&values)
        .map(|s| format!("{:.1} %", 100.0 * s.deviation / s.mean));
    [
        case.title.clone().into(),
        first.map_or_else(dash, |(of, _)| of.in_words().to_string()).into(),
        value(together),
        interval(together).into(),
        scatter.unwrap_or_else(dash).into(),
        first.map_or_else(dash, |_| format!("{} of {}", values.len(), launches.len())).into(),
    ]
}
