//! `--print MEASURE`: one number of a run on standard output, and nothing else there.
//!
//! ```text
//! p99:load=90       PrintRequest      as typed: a measure, and words of its case
//!                   PrintableMeasure  where its number is: a quantity, a measure of a ring, a tally, a command
//! PrintableRun      --find_number-->  the case that the words mean; else the first of those that the first
//!                                     line answers with; else the only one that has the measure
//! PrintedNumber     1543.2 to standard output; why it may not be quoted to standard error
//! ```
//!
//! Measures have the ids of their declarations: [`Quantity`], `analysis::measures`, and the columns of
//! commands. An underscore of an id may be typed as a dash.

use std::collections::BTreeMap;
use std::str::FromStr;

use analysis::estimate::Estimate;
use analysis::findings::TrialSummary;
use analysis::measures::{MEASURES, MeasureValue, RingMeasure, ValueKind};
use analysis::quote::NotQuotable;
use analysis::results::{CaseResults, LaunchFigure, Quantity, QuantityUnit, Results};
use anyhow::{Result, bail};
use rundata::experiment::suggest_name;
use rundata::trial::MeasureUnit;

use super::columns::Columns;
use super::declarations::{COLUMNS, ExportedTable};
use super::exports::{launch, target};
use super::{print_text, write_output};
use crate::base::failure::{Interrupted, print_message, usage};
use crate::base::values::{Destination, each_once};
use crate::report::printout::printout;

/// Most cases that an error names.
const MAX_NAMED_CASES: usize = 8;

/// Values that a median and a 99th percentile need for an interval at 95 %.
const MIN_MEDIAN_VALUES: u64 = 6;
const MIN_TAIL_VALUES: u64 = 368;

/// The word that asks for the list of all measures.
const LIST: &str = "help";

/// What `--print` asks for, as typed: `help`, `p99`, `ns:ring of 4`.
#[derive(Clone, Debug)]
pub(crate) enum PrintRequest {
    /// The list of all measures.
    List,
    /// A number.
    Number(PrintedMeasure),
}

/// A measure, and words of the case that has it.
#[derive(Clone, Debug)]
pub(crate) struct PrintedMeasure {
    measure: PrintableMeasure,
    /// Title, experiment, or labels with commas between them; absent where none was typed.
    case_words: Option<String>,
}

/// A measure that can be printed.
#[derive(Clone, Copy, Debug)]
struct PrintableMeasure {
    id: &'static str,
    /// Empty for counts and shares.
    unit: &'static str,
    meaning: &'static str,
    source: MeasureSource,
}

/// Where the number of a measure is.
#[derive(Clone, Copy, Debug)]
enum MeasureSource {
    /// The quantity that stands for the case, where that is a time.
    First(FigurePart),
    Quantity(Quantity),
    Ring(&'static RingMeasure),
    /// A quantile of the times of a trial, or of wake-ups under load.
    Quantile(TimeQuantile),
    /// A column of commands that `run` ran, by its median.
    Command,
}

/// A part of a figure.
#[derive(Clone, Copy, Debug)]
enum FigurePart {
    Value,
    Cycles,
    Low,
    High,
}

#[derive(Clone, Copy, Debug)]
enum TimeQuantile {
    P50,
    P99,
}

const fn measure(
    id: &'static str,
    unit: &'static str,
    meaning: &'static str,
    source: MeasureSource,
) -> PrintableMeasure {
    PrintableMeasure { id, unit, meaning, source }
}

/// Short names of what is asked for most.
const SHORT_MEASURES: [PrintableMeasure; 6] = [
    measure(
        "ns",
        "ns",
        "the figure that stands for the case: a switch, a hop, a call, real time",
        MeasureSource::First(FigurePart::Value),
    ),
    measure(
        "cycles",
        "cycles",
        "the same in cycles of the core's clock",
        MeasureSource::First(FigurePart::Cycles),
    ),
    measure("low", "ns", "lower end of its interval", MeasureSource::First(FigurePart::Low)),
    measure("high", "ns", "upper end of its interval", MeasureSource::First(FigurePart::High)),
    measure(
        "p50",
        "ns",
        "median of the wake-ups, or of a trial's times",
        MeasureSource::Quantile(TimeQuantile::P50),
    ),
    measure("p99", "ns", "99th percentile of these", MeasureSource::Quantile(TimeQuantile::P99)),
];

/// Columns of commands that are no figures.
const NO_FIGURES: [&str; 4] = ["round", "command", "exit_code", "signal"];

/// Returns all measures, each id once.
fn all_measures() -> Vec<PrintableMeasure> {
    let mut all = SHORT_MEASURES.to_vec();
    for quantity in Quantity::ALL {
        let unit = quantity.unit().name();
        let source = MeasureSource::Quantity(quantity);
        all.push(measure(quantity.id(), unit, quantity.meaning(), source));
    }
    for ring in MEASURES {
        all.push(measure(ring.id, ring.unit.name(), ring.meaning, MeasureSource::Ring(ring)));
    }
    for column in COLUMNS {
        let is_number = matches!(column.kind, ValueKind::Integer | ValueKind::Float);
        let is_of_commands = column.tables.contains(&ExportedTable::Commands);
        if is_number && is_of_commands && !NO_FIGURES.contains(&column.name) {
            all.push(measure(column.name, column.unit, column.meaning, MeasureSource::Command));
        }
    }
    let mut distinct: Vec<PrintableMeasure> = Vec::new();
    for measure in all {
        if !distinct.iter().any(|known| known.id == measure.id) {
            distinct.push(measure);
        }
    }
    distinct
}

impl PrintableMeasure {
    /// Returns the id as it is typed: `switches-per-hop`.
    fn typed(&self) -> String {
        self.id.replace('_', "-")
    }
}

impl FromStr for PrintRequest {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == LIST {
            return Ok(Self::List);
        }
        let (id, case_words) = match text.split_once(':') {
            Some((id, words)) => (id, Some(words.trim().to_string())),
            None => (text, None),
        };
        let measures = all_measures();
        let id = id.trim().replace('-', "_");
        if let Some(measure) = measures.iter().find(|measure| measure.id == id) {
            return Ok(Self::Number(PrintedMeasure { measure: *measure, case_words }));
        }
        let typed: Vec<String> = measures.iter().map(PrintableMeasure::typed).collect();
        let suggestion = suggest_name(&id.replace('_', "-"), typed.iter().map(String::as_str));
        Err(format!(
            "no measure has this name{suggestion} (accepted: {LIST} for the list, MEASURE, MEASURE:CASE)"
        ))
    }
}

impl PrintRequest {
    /// Prints the list of measures where that was asked for.
    ///
    /// # Errors
    /// [`Interrupted`] with exit code 0 behind the list: nothing is measured.
    pub(crate) fn check(&self) -> Result<()> {
        if let Self::Number(_) = self {
            return Ok(());
        }
        let columns = Columns::<PrintableMeasure>::new()
            .left("measure", PrintableMeasure::typed)
            .left("unit", |measure| measure.unit)
            .left("meaning", |measure| measure.meaning);
        print_text(printout![columns.table(all_measures()), "\n"])?;
        Err(Interrupted(0).into())
    }

    /// Returns the number that is asked for; absent for the list.
    pub(crate) fn number(&self) -> Option<&PrintedMeasure> {
        match self {
            Self::List => None,
            Self::Number(number) => Some(number),
        }
    }
}

/// A case with what is known of it beside its figures.
pub(crate) struct PrintableCase<'a> {
    pub(crate) results: &'a CaseResults,
    /// The summary of a trial.
    pub(crate) trial: Option<&'a TrialSummary>,
    /// Medians of what a command used, by column.
    pub(crate) used: BTreeMap<String, Estimate>,
}

/// A run, or commands, of which a number is printed.
pub(crate) struct PrintableRun<'a> {
    results: &'a Results,
    cases: Vec<PrintableCase<'a>>,
    /// Numbers of the cases that the first line answers with, in its order.
    answer_cases: Vec<usize>,
}

/// A number, and what it is.
struct PrintedNumber {
    value: f64,
    /// The reason why it may not be quoted; absent where it may.
    not_quotable: Option<String>,
}

impl PrintedNumber {
    fn new(value: f64) -> Self {
        Self { value, not_quotable: None }
    }

    fn from_count(estimate: Estimate) -> Self {
        let not_quotable = estimate.quote_count().err().map(|why| why.to_string());
        Self { value: estimate.value, not_quotable }
    }

    /// Returns a part of the figure of a quantity; absent where that is not known.
    fn from_figure(
        quantity: Quantity,
        figure: &LaunchFigure,
        part: FigurePart,
        target: Option<&str>,
    ) -> Option<Self> {
        let estimate = figure.estimate?;
        let reason = quantity.quote(&estimate).err().map(|why| quantity.why_not(&why));
        let value = match part {
            FigurePart::Value => estimate.value,
            FigurePart::Low => estimate.low?,
            FigurePart::High => estimate.high?,
            FigurePart::Cycles => return figure.cycles(target?).map(Self::from_cost),
        };
        Some(Self { value, not_quotable: reason })
    }

    fn from_cost(estimate: Estimate) -> Self {
        let not_quotable = estimate.quote_cost().err().map(|why| why.to_string());
        Self { value: estimate.value, not_quotable }
    }

    fn from_ring(value: MeasureValue) -> Option<Self> {
        match value {
            MeasureValue::Cost(estimate) => Some(Self::from_cost(estimate)),
            MeasureValue::Count(estimate) => Some(Self::from_count(estimate)),
            MeasureValue::Number(number) => Some(Self::new(number)),
            MeasureValue::Flag(is_set) => Some(Self::new(f64::from(u8::from(is_set)))),
            MeasureValue::NoCost(_) | MeasureValue::Unknown => None,
        }
    }
}

impl PrintableCase<'_> {
    /// Returns the number of a measure; absent where the case does not have it.
    fn number(&self, measure: &PrintableMeasure, target: Option<&str>) -> Option<PrintedNumber> {
        match measure.source {
            MeasureSource::First(part) => {
                let (quantity, _) = self.results.figures.first_key_value()?;
                // A rate or a share has no nanoseconds.
                if quantity.unit() != QuantityUnit::Nanoseconds {
                    return None;
                }
                self.quantity_number(*quantity, part, target)
            }
            MeasureSource::Quantity(quantity) => {
                self.quantity_number(quantity, FigurePart::Value, target)
            }
            MeasureSource::Ring(ring) => {
                PrintedNumber::from_ring((ring.read)(self.results.summary.as_deref()?))
            }
            MeasureSource::Quantile(quantile) => self.quantile_number(quantile),
            MeasureSource::Command => {
                self.used.get(measure.id).copied().map(PrintedNumber::from_count)
            }
        }
    }

    fn quantity_number(
        &self,
        quantity: Quantity,
        part: FigurePart,
        target: Option<&str>,
    ) -> Option<PrintedNumber> {
        PrintedNumber::from_figure(quantity, launch(self.results, quantity)?, part, target)
    }

    /// Returns a quantile of wake-ups under load, else of the times of a trial in nanoseconds.
    fn quantile_number(&self, quantile: TimeQuantile) -> Option<PrintedNumber> {
        let under_load = match quantile {
            TimeQuantile::P50 => Quantity::WakeP50Ns,
            TimeQuantile::P99 => Quantity::WakeP99Ns,
        };
        if let Some(number) = self.quantity_number(under_load, FigurePart::Value, None) {
            return Some(number);
        }
        let trial = self.trial?;
        let headline = trial.case.trial.headline();
        if headline.unit != MeasureUnit::Ns {
            return None;
        }
        let times = trial.quantities.get(headline.tally)?;
        let (value, min_values) = match quantile {
            TimeQuantile::P50 => (times.p50, MIN_MEDIAN_VALUES),
            TimeQuantile::P99 => (times.p99, MIN_TAIL_VALUES),
        };
        let not_quotable = if times.count < min_values {
            Some(format!("{} values, too few", times.count))
        } else {
            self.why_times_are_not_quotable()
        };
        Some(PrintedNumber { value: value as f64, not_quotable })
    }

    /// Returns why no time of the case may be quoted: too few rounds, or a core that others shared.
    /// Whether a difference of times is resolved says nothing of the times.
    fn why_times_are_not_quotable(&self) -> Option<String> {
        let (quantity, _) = self.results.figures.first_key_value()?;
        let estimate = launch(self.results, *quantity)?.estimate?;
        match quantity.quote(&estimate).err()? {
            NotQuotable::NotResolved { .. } => None,
            why => Some(quantity.why_not(&why)),
        }
    }

    /// Returns whether words with commas between them mean the case, each its title, its experiment, a
    /// label or its number. Titles and labels may have commas, too.
    fn is_meant_by(&self, words: &str) -> bool {
        if self.is_meant_by_word(words.trim()) {
            return true;
        }
        for (comma, _) in words.match_indices(',') {
            let (word, others) = (words[..comma].trim(), &words[comma + 1..]);
            if self.is_meant_by_word(word) && self.is_meant_by(others) {
                return true;
            }
        }
        false
    }

    fn is_meant_by_word(&self, word: &str) -> bool {
        self.results.is_meant_by(word) || word == case_word(self.results)
    }
}

/// Returns the word that means a case alone, its number in the plan: `case=3`.
fn case_word(case: &CaseResults) -> String {
    format!("case={}", case.number)
}

impl<'a> PrintableRun<'a> {
    /// Makes a run of results, of whose cases nothing else is known.
    pub(crate) fn from_results(results: &'a Results) -> Self {
        let mut cases = Vec::new();
        for case in &results.cases {
            cases.push(PrintableCase { results: case, trial: None, used: BTreeMap::new() });
        }
        Self { results, cases, answer_cases: Vec::new() }
    }

    /// Adds the summaries of trials, which `find` returns by the number of the case.
    pub(crate) fn with_trials(mut self, find: impl Fn(usize) -> Option<&'a TrialSummary>) -> Self {
        for case in &mut self.cases {
            case.trial = find(case.results.number);
        }
        self
    }

    /// Adds the medians of what commands used, which `find` returns by the number of the case.
    pub(crate) fn with_used(mut self, find: impl Fn(usize) -> BTreeMap<String, Estimate>) -> Self {
        for case in &mut self.cases {
            case.used = find(case.results.number);
        }
        self
    }

    /// Adds the numbers of the cases that the first line answers with, in its order.
    pub(crate) fn with_answer(self, answer_cases: Vec<usize>) -> Self {
        Self { answer_cases, ..self }
    }

    /// Writes the number that is asked for to a file or standard output.
    ///
    /// # Errors
    /// No case has the measure, or it is open which one is meant.
    pub(crate) fn write(&self, asked: &PrintedMeasure, to: &Destination) -> Result<()> {
        write_output(&self.line(asked)?, to)
    }

    /// Returns the line of the number that is asked for, and says on standard error if it may not be
    /// quoted.
    fn line(&self, asked: &PrintedMeasure) -> Result<Vec<u8>> {
        let (case, number) = self.find_number(asked)?;
        if let Some(why) = number.not_quotable {
            let id = asked.measure.typed();
            print_message(&format!("note: {}, {id}: not for quoting: {why}", case.results.title));
        }
        Ok(format!("{}\n", number.value).into_bytes())
    }

    /// Finds the case that is meant, and its number.
    fn find_number(&self, asked: &PrintedMeasure) -> Result<(&PrintableCase<'a>, PrintedNumber)> {
        let (measure, target) = (&asked.measure, target(self.results));
        let meant = self.cases_of_words(asked)?;
        let mut found = Vec::new();
        for case in &meant {
            if let Some(number) = case.number(measure, target) {
                found.push((*case, number));
            }
        }
        if found.len() > 1 && asked.case_words.is_none() {
            for number in &self.answer_cases {
                let place = found.iter().position(|(case, _)| case.results.number == *number);
                if let Some(place) = place {
                    return Ok(found.swap_remove(place));
                }
            }
        }
        if found.len() > 1 {
            let cases: Vec<&PrintableCase> = found.iter().map(|(case, _)| *case).collect();
            return Err(ambiguous(measure, &cases));
        }
        match found.pop() {
            Some(found) => Ok(found),
            None => bail!("{}", self.no_number(measure, &meant)),
        }
    }

    /// Returns the cases that the words of the request mean; all without words.
    fn cases_of_words(&self, asked: &PrintedMeasure) -> Result<Vec<&PrintableCase<'a>>> {
        let Some(words) = &asked.case_words else { return Ok(self.cases.iter().collect()) };
        let mut meant: Vec<&PrintableCase> = self.cases.iter().collect();
        meant.retain(|case| case.is_meant_by(words));
        if meant.is_empty() {
            let titles: Vec<String> =
                self.cases.iter().map(|case| case.results.title.clone()).collect();
            let titles = named_cases(&each_once(titles));
            return Err(usage(format!("--print: no case is called '{words}' (cases: {titles})")));
        }
        Ok(meant)
    }

    /// Says that none of these cases has a measure, and which ones they have.
    fn no_number(&self, measure: &PrintableMeasure, cases: &[&PrintableCase]) -> String {
        let target = target(self.results);
        let mut known = Vec::new();
        for other in all_measures() {
            if cases.iter().any(|case| case.number(&other, target).is_some()) {
                known.push(other.typed());
            }
        }
        let known = if known.is_empty() { "none".to_string() } else { known.join(", ") };
        format!("--print {}: no case has it (known here: {known})", measure.typed())
    }
}

/// Returns the error that several cases have a measure, with what to type.
fn ambiguous(measure: &PrintableMeasure, cases: &[&PrintableCase]) -> anyhow::Error {
    let id = measure.typed();
    let mut names = Vec::new();
    for case in cases {
        names.push(distinct_words(case, cases));
    }
    let first = shell_quoted(&format!("{id}:{}", names.first().cloned().unwrap_or_default()));
    usage(format!(
        "--print {id}: {} cases have it: name one, as --print {first} (cases: {}; of a stored \
         run: `switchcost runs show RUN --print ...`)",
        cases.len(),
        named_cases(&names)
    ))
}

/// Returns a word in quotes for the shell.
fn shell_quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Returns words that mean a case and none of the others, as they may be typed: its title; where others
/// have the same, with the experiment and the labels in which they differ; else with its number.
fn distinct_words(case: &PrintableCase, cases: &[&PrintableCase]) -> String {
    let CaseResults { title, experiment, labels, .. } = case.results;
    let mut namesakes: Vec<&CaseResults> = cases.iter().map(|case| case.results).collect();
    namesakes.retain(|namesake| namesake.title.eq_ignore_ascii_case(title));
    let mut words = title.clone();
    if namesakes.iter().any(|namesake| namesake.experiment != *experiment) {
        words += &format!(",{experiment}");
    }
    for (name, value) in labels {
        if namesakes.iter().any(|namesake| namesake.label(name) != Some(value.as_str())) {
            words += &format!(",{name}={value}");
        }
    }
    if cases.iter().filter(|other| other.is_meant_by(&words)).count() > 1 {
        words += &format!(",{}", case_word(case.results));
    }
    words
}

/// Lists the first names of several.
fn named_cases(names: &[String]) -> String {
    let mut shown = names.to_vec();
    shown.truncate(MAX_NAMED_CASES);
    let more = match names.len() - shown.len() {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    format!("{}{more}", shown.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::figures::tests::fixture;

    fn number_of(request: &str, answer_cases: Vec<usize>) -> Result<f64> {
        let results = Results::from_run(&fixture());
        let run = PrintableRun::from_results(&results).with_answer(answer_cases);
        let request: PrintRequest = request.parse().expect("a request");
        let asked = request.number().expect("a number");
        run.find_number(asked).map(|(_, number)| number.value)
    }

    #[test]
    fn each_measure_has_an_id_and_says_what_it_is() {
        let all = all_measures();
        assert!(all.len() > 40, "{}", all.len());
        for measure in &all {
            assert!(!measure.meaning.is_empty(), "{measure:?}");
            assert!(measure.typed().parse::<PrintRequest>().is_ok(), "{measure:?}");
            assert!(measure.id.parse::<PrintRequest>().is_ok(), "{measure:?}");
        }
        for id in ["ns", "cycles", "p50", "p99", "switches-per-hop", "real-ns", "voluntary"] {
            assert!(all.iter().any(|measure| measure.typed() == id), "{id}");
        }
    }

    #[test]
    fn a_number_is_that_of_the_case_that_is_meant() {
        let results = Results::from_run(&fixture());
        let hop = |case: usize| {
            let summary = results.cases[case].summary.as_ref().expect("a ring");
            summary.ns_per_hop.expect("a hop").value
        };
        for (request, expected) in [
            ("ns-per-hop", hop(1)),
            ("ns_per_hop:ring of 4", hop(2)),
            ("ns-per-hop:Ring Of 4", hop(2)),
            ("ns-per-hop:members=1", hop(0)),
            ("ns-per-hop:ring,members=1,link=pipe", hop(0)),
        ] {
            assert_eq!(number_of(request, vec![1]).expect("a number"), expected, "{request}");
        }
        // The ring of one has no switch: the other two are not told apart.
        let why = number_of("ns-per-switch-above-solo", Vec::new()).expect_err("ambiguous");
        let words = "2 cases have it: name one, as --print 'ns-per-switch-above-solo:ring of 2'";
        assert!(why.to_string().contains(words), "{why}");
        let why = number_of("p99", vec![1]).expect_err("no wake-ups");
        assert!(why.to_string().contains("no case has it (known here: ns, "), "{why}");
        let why = number_of("ns:ring of 5", vec![1]).expect_err("no such ring");
        assert!(why.to_string().contains("no case is called 'ring of 5'"), "{why}");
    }

    #[test]
    fn what_an_error_names_means_one_case() {
        let mut results = Results::from_run(&fixture());
        // Of two experiments, alike in all, with a comma in the title, a prefix of another, a label
        // with a comma, a quote.
        let originals = results.cases.clone();
        for (title, experiment, cpus) in [
            ("ring, of 2", "ring", "0,1"),
            ("ring, of 2", "response", "0,1"),
            ("ring, of 2", "response", "0,1"),
            ("ring, of 2", "response", "0,1,2"),
            ("Ring, of 2", "cost", "0"),
            ("ring", "ring", "0"),
            ("it's", "ring", "1"),
        ] {
            let mut case = originals[1].clone();
            (case.title, case.experiment) = (title.to_string(), experiment);
            case.labels.push(("cpus".to_string(), cpus.to_string()));
            results.cases.push(case);
        }
        for (number, case) in results.cases.iter_mut().enumerate() {
            case.number = number;
        }
        let run = PrintableRun::from_results(&results);
        let cases: Vec<&PrintableCase> = run.cases.iter().collect();
        for case in &cases {
            let words = distinct_words(case, &cases);
            let mut meant = cases.clone();
            meant.retain(|other| other.is_meant_by(&words));
            let numbers: Vec<usize> = meant.iter().map(|case| case.results.number).collect();
            assert_eq!(numbers, [case.results.number], "{words}");
        }
        assert_eq!(shell_quoted("it's"), r"'it'\''s'");
    }

    #[test]
    fn a_rate_has_no_nanoseconds() {
        let mut results = Results::from_run(&fixture());
        for case in &mut results.cases {
            let (_, figure) = case.figures.pop_first().expect("a figure");
            case.figures = [(Quantity::PerSecond, figure)].into();
        }
        let run = PrintableRun::from_results(&results);
        for request in ["ns", "low", "high", "cycles"] {
            let request: PrintRequest = request.parse().expect("a request");
            let found = run.find_number(request.number().expect("a number"));
            let why = found.err().expect("no time").to_string();
            assert!(why.contains("no case has it"), "{why}");
        }
    }

    #[test]
    fn a_word_that_is_no_measure_is_refused_with_the_nearest() {
        let why = "switches-per-hops".parse::<PrintRequest>().expect_err("refused");
        assert!(why.contains("did you mean 'switches-per-hop'?"), "{why}");
        assert!("help".parse::<PrintRequest>().is_ok_and(|request| request.number().is_none()));
    }
}
