//! The judgements of a gate as results of tests, for what shows those: JUnit XML for CI, KTAP for the
//! kernel's test harnesses. A judgement is a test case:
//!
//! | Judgement | JUnit | KTAP |
//! |---|---|---|
//! | PASS | passed | `ok` |
//! | FAIL | `failure` | `not ok` |
//! | UNDECIDED | `skipped` | `ok ... # SKIP` |
//! | not measured, though the base was | `error` | `not ok ... # ERROR` |
//!
//! JUnit's format is the one that Jenkins and GitLab read (junit-team's `testsuites`, `testsuite`,
//! `testcase`), KTAP's is Documentation/dev-tools/ktap.rst of Linux. Ten elements need no writer of
//! XML: the escapes are those of the pages.

use anyhow::Result;
use charts::{clean, escape};
use clap::Args;

use super::{check_apart, check_destination, write_output};
use crate::base::values::Destination;

/// Options of a gate: files of its judgements.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct JudgementOptions {
    /// With --fail-above: each judgement as a JUnit test case
    ///
    /// FAIL is a failure, UNDECIDED is skipped, each with its words.
    #[arg(long, value_name = "FILE|-", requires = "fail_above")]
    pub(crate) junit: Option<Destination>,

    /// With --fail-above: each judgement as a line of KTAP
    #[arg(long, value_name = "FILE|-", requires = "fail_above")]
    pub(crate) ktap: Option<Destination>,
}

/// What a gate found of one figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JudgementOutcome {
    Pass,
    Fail,
    Undecided,
    /// It could not be judged: something was not measured, or did not succeed.
    Unjudged,
}

/// The judgement of a gate on one figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FigureJudgement {
    /// Name of the figure, unique in its gate: the case, or the command and the figure.
    pub(crate) name: String,
    pub(crate) outcome: JudgementOutcome,
    /// The reason: `is 4.9 % slower (4.1 to 5.7 %)`.
    pub(crate) words: String,
}

impl JudgementOptions {
    /// Returns all outputs by the flags that ask for them.
    pub(crate) fn places(&self) -> [(&'static str, Option<&Destination>); 2] {
        [("--junit", self.junit.as_ref()), ("--ktap", self.ktap.as_ref())]
    }

    /// Checks, before anything is measured, that the files can be written, and not to the place of
    /// another output. Changes nothing.
    pub(crate) fn check(&self, outputs: &[(&str, Option<&Destination>)]) -> Result<()> {
        for (flag, place) in self.places() {
            if let Some(place) = place {
                check_destination(flag, place)?;
            }
        }
        check_apart(&[&self.places()[..], outputs].concat())
    }

    /// Returns the option whose file goes to standard output, if one does.
    pub(crate) fn on_stdout(&self) -> Option<&'static str> {
        let mut places = self.places().into_iter();
        let (flag, _) = places.find(|(_, place)| *place == Some(&Destination::Stdout))?;
        Some(flag)
    }

    /// Writes that nothing was judged, and why: an older file would be read as the judgement.
    pub(crate) fn write_unjudged(&self, gate: &str, reason: &str) -> Result<()> {
        let (name, words) = ("all figures".to_string(), reason.to_string());
        self.write(gate, &[FigureJudgement { name, outcome: JudgementOutcome::Unjudged, words }])
    }

    /// Writes the files that were asked for; `gate` is the command that judged.
    pub(crate) fn write(&self, gate: &str, judgements: &[FigureJudgement]) -> Result<()> {
        if let Some(place) = &self.junit {
            write_output(junit(gate, judgements).as_bytes(), place)?;
        }
        if let Some(place) = &self.ktap {
            write_output(ktap(judgements).as_bytes(), place)?;
        }
        Ok(())
    }
}

/// Returns JUnit XML: one suite, named as the command that judged.
fn junit(gate: &str, judgements: &[FigureJudgement]) -> String {
    let count = |outcome| judgements.iter().filter(|one| one.outcome == outcome).count();
    let counts = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"",
        judgements.len(),
        count(JudgementOutcome::Fail),
        count(JudgementOutcome::Unjudged),
        count(JudgementOutcome::Undecided)
    );
    let mut text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_string();
    text += &format!("<testsuites name=\"switchcost\" {counts}>\n");
    text += &format!("  <testsuite name=\"switchcost {gate}\" {counts}>\n");
    for judgement in judgements {
        text += &test_case(gate, judgement);
    }
    text + "  </testsuite>\n</testsuites>\n"
}

/// Returns the element of one judgement.
fn test_case(gate: &str, judgement: &FigureJudgement) -> String {
    let (name, words) = (escape(&clean(&judgement.name)), escape(&clean(&judgement.words)));
    let element = match judgement.outcome {
        JudgementOutcome::Pass => format!("<system-out>{words}</system-out>"),
        JudgementOutcome::Fail => {
            format!("<failure message=\"{words}\" type=\"FAIL\">{words}</failure>")
        }
        JudgementOutcome::Unjudged => {
            format!("<error message=\"{words}\" type=\"not judged\">{words}</error>")
        }
        JudgementOutcome::Undecided => format!("<skipped message=\"UNDECIDED: {words}\"/>"),
    };
    format!(
        "    <testcase classname=\"switchcost.{gate}\" name=\"{name}\" time=\"0\">\n      \
         {element}\n    </testcase>\n"
    )
}

/// Returns KTAP: a version line, the plan, and a line for each judgement.
fn ktap(judgements: &[FigureJudgement]) -> String {
    let mut text = format!("KTAP version 1\n1..{}\n", judgements.len());
    for (number, judgement) in (1..).zip(judgements) {
        let words = ktap_text(&judgement.words);
        let (result, remark) = match judgement.outcome {
            JudgementOutcome::Pass => ("ok", String::new()),
            JudgementOutcome::Undecided => ("ok", format!(" # SKIP UNDECIDED: {words}")),
            JudgementOutcome::Fail => ("not ok", format!(" # {words}")),
            JudgementOutcome::Unjudged => ("not ok", format!(" # ERROR {words}")),
        };
        text += &format!("{result} {number} {}{remark}\n", ktap_text(&judgement.name));
    }
    text
}

/// Returns a text for a line of KTAP. A `#` would end the name and begin a directive.
fn ktap_text(text: &str) -> String {
    clean(&text.replace('#', " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judgements() -> Vec<FigureJudgement> {
        let judge = |name: &str, outcome, words: &str| FigureJudgement {
            name: name.to_string(),
            outcome,
            words: words.to_string(),
        };
        vec![
            judge("ring of 2", JudgementOutcome::Pass, "is not slower by more than 3 %"),
            judge("a \"b\" <c> & # d\n", JudgementOutcome::Fail, "is 4.9 % slower\u{1b}[31m"),
            judge("ring of 4", JudgementOutcome::Undecided, "may be up to 5.0 % slower"),
            judge("ring of 8", JudgementOutcome::Unjudged, "was measured in base only: # gone"),
        ]
    }

    #[test]
    fn a_line_of_ktap_is_one_judgement() {
        let expected = "KTAP version 1\n1..4\nok 1 ring of 2\n\
            not ok 2 a \"b\" <c> & d # is 4.9 % slower[31m\n\
            ok 3 ring of 4 # SKIP UNDECIDED: may be up to 5.0 % slower\n\
            not ok 4 ring of 8 # ERROR was measured in base only: gone\n";
        assert_eq!(ktap(&judgements()), expected);
        assert_eq!(ktap(&[]), "KTAP version 1\n1..0\n");
    }

    #[test]
    fn junit_counts_each_outcome_and_escapes_words() {
        let text = junit("compare", &judgements());
        let counts = "tests=\"4\" failures=\"1\" errors=\"1\" skipped=\"1\">";
        assert_eq!(text.matches(counts).count(), 2, "{text}");
        assert!(text.contains("name=\"a &quot;b&quot; &lt;c&gt; &amp; # d\""), "{text}");
        assert!(text.contains("<failure message=\"is 4.9 % slower[31m\""), "{text}");
        assert!(text.contains("<skipped message=\"UNDECIDED: may be up to"), "{text}");
        assert_eq!(text.matches("<error ").count(), 1, "{text}");
    }
}
