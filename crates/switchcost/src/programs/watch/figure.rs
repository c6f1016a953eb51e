//! The one figure for what switching costs a program, which `cost` and `trace` tell alike.

use analysis::comparison::percent;
use analysis::program::{Program, ProgramCost, Range, count, percents, switches_in_words};
use rundata::words::time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::seen::NotRead;

/// What switches cost: each of them, and their share of the CPU time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct PricedShare {
    /// Share of the program's CPU time, from 0 to 1.
    pub(crate) share: Range,
    /// Cost of a switch, in nanoseconds.
    pub(crate) each_ns: Range,
}

/// The figure that is told of a program.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct CostFigure {
    /// Its switches, with the refill of caches as far as that is known.
    #[serde(flatten)]
    pub(crate) priced: PricedShare,
    /// Why only one of the ends is known; absent where both are.
    pub(crate) open: Option<OpenEnd>,
}

/// Why the upper end of a cost is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OpenEnd {
    /// What refilling caches adds is not known.
    NoRefill,
    /// The range with the refill of caches is too wide for an answer.
    TooWide,
    /// The costs are not resolved from zero: only the upper ends are known.
    NotResolved,
}

impl CostFigure {
    /// Chooses what is told: switches with the refill of caches (`whole`) where that is no wider
    /// than an answer may be, else the highest lower end that is known; where that is 0, the upper
    /// end with the refill of caches. None where that is not known either.
    pub(crate) fn choose(whole: Option<PricedShare>, direct: Option<PricedShare>) -> Option<Self> {
        if let Some(priced) = whole.filter(|whole| !whole.share.is_wide()) {
            return Some(Self { priced, open: None });
        }
        let open = if whole.is_some() { OpenEnd::TooWide } else { OpenEnd::NoRefill };
        let bounds = [whole, direct].into_iter().flatten();
        let highest = bounds.max_by(|one, other| one.share.low.total_cmp(&other.share.low))?;
        if highest.share.low > 0.0 {
            return Some(Self { priced: highest, open: Some(open) });
        }
        let priced = whole.filter(|whole| whole.share.high < 1.0)?;
        Some(Self { priced, open: Some(OpenEnd::NotResolved) })
    }

    /// Chooses from the estimate for a program; `direct` is the cost of a switch itself.
    pub(super) fn from_estimate(
        cost: &ProgramCost,
        not_read: Option<&NotRead>,
        direct: Option<Range>,
    ) -> Option<Self> {
        let whole = match (cost, not_read) {
            (ProgramCost::Estimated { share, cost_ns, .. }, None) => {
                Some(PricedShare { share: *share, each_ns: *cost_ns })
            }
            _ => None,
        };
        let direct = cost.direct_share().zip(direct);
        Self::choose(whole, direct.map(|(share, each_ns)| PricedShare { share, each_ns }))
    }

    /// `14 to 20 %`, `at least 15 %` or `at most 1.5 %`.
    pub(crate) fn share_in_words(&self) -> String {
        let share = self.priced.share;
        match self.open {
            None => percents(share),
            Some(OpenEnd::NotResolved) => format!("at most {}", upper_end(share)),
            Some(_) => percents(Range { high: 1.0, ..share }),
        }
    }

    /// `5,300 switches a second at 1.5 to 2.6 us each`, or `at 1.5 us or more each`.
    pub(super) fn switches_in_words(&self, program: &Program) -> String {
        let (per_s, each_ns) = (program.switches_per_s().unwrap_or_default(), self.priced.each_ns);
        match self.open {
            None => switches_in_words(per_s, each_ns),
            Some(OpenEnd::NotResolved) => {
                format!("{} switches a second at {} or less each", count(per_s), time(each_ns.high))
            }
            Some(_) => {
                format!("{} switches a second at {} or more each", count(per_s), time(each_ns.low))
            }
        }
    }
}

/// The upper end of a share alone: `1.5 %`.
fn upper_end(share: Range) -> String {
    percents(Range { low: share.high, ..share })
}

/// Below this share of the CPU time fewer switches are not worth any work.
const WORTH_A_CHANGE: f64 = 0.01;
/// Below this share they are hardly worth it.
const HARDLY_WORTH_A_CHANGE: f64 = 0.02;

/// What to conclude from what switches cost a program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CostConclusion<'a> {
    pub(crate) figure: CostFigure,
    /// Share of the CPU time that refilling caches takes, where it is known.
    pub(crate) refill: Option<Range>,
    /// Share of the switches that were preemptions, from 0 to 1.
    pub(crate) involuntary_share: f64,
    /// Who preempts it most often, where that was traced.
    pub(crate) preempter: Option<&'a str>,
    /// The command that would say who preempts it, where it was not.
    pub(crate) to_trace: Option<&'a str>,
}

impl CostConclusion<'_> {
    /// One sentence: `That is below 1 %: not worth an effort.`
    pub(crate) fn in_words(&self) -> String {
        let share = self.figure.priced.share;
        let most = upper_end(share);
        match self.figure.open {
            Some(OpenEnd::NoRefill)
                if share.low < WORTH_A_CHANGE || share.high < HARDLY_WORTH_A_CHANGE =>
            {
                let itself = "The switches themselves take at most";
                return format!("{itself} {most}: only refilling caches may be worth an effort.");
            }
            Some(OpenEnd::TooWide)
                if share.low < WORTH_A_CHANGE || share.high < HARDLY_WORTH_A_CHANGE =>
            {
                return "How much more it is at most is not known.".to_string();
            }
            None | Some(_) => {}
        }
        if share.high < WORTH_A_CHANGE {
            return format!("That is below {}: not worth an effort.", percent(WORTH_A_CHANGE));
        }
        if share.high < HARDLY_WORTH_A_CHANGE {
            return format!("At most {most}: not worth much effort.");
        }
        let saved = match self.figure.open {
            Some(OpenEnd::NoRefill | OpenEnd::TooWide) => self.figure.share_in_words(),
            None | Some(OpenEnd::NotResolved) => format!("up to {most}"),
        };
        let part = self.largest_part().map_or(String::new(), |part| format!(", most of it {part}"));
        format!("Fewer switches would save {saved} of its CPU time{part}: {}.", self.next_step())
    }

    /// The larger of the switches themselves and the refill of caches.
    fn largest_part(&self) -> Option<&'static str> {
        let middle = |range: Range| f64::midpoint(range.low, range.high);
        let refill = middle(self.refill?);
        let is_refill = 2.0 * refill > middle(self.figure.priced.share);
        Some(if is_refill { "by refilling caches" } else { "for the switches themselves" })
    }

    /// What to try first.
    fn next_step(&self) -> String {
        if self.involuntary_share < 0.5 {
            return "most are its own sleeps, so let it do more work per wake-up".to_string();
        }
        match (self.preempter, self.to_trace) {
            (Some(name), _) => {
                format!("most are preemptions, so keep {name} off its CPUs (taskset)")
            }
            (None, Some(command)) => {
                format!("most are preemptions, and `{command}` says by whom")
            }
            (None, None) => "most are preemptions by its own threads".to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn priced(low: f64, high: f64) -> Option<PricedShare> {
        let each_ns = Range { low: 10_000.0 * low, high: 10_000.0 * high };
        Some(PricedShare { share: Range { low, high }, each_ns })
    }

    #[test]
    fn a_figure_has_a_conclusion() {
        let conclusion = |low: f64, high: f64, open| CostConclusion {
            figure: CostFigure { priced: priced(low, high).unwrap(), open },
            refill: Some(Range { low: 0.8 * low, high: 0.8 * high }),
            involuntary_share: 0.2,
            preempter: None,
            to_trace: Some("switchcost trace --pid 7"),
        };
        let words = |of: CostConclusion| of.in_words();
        assert_eq!(
            words(conclusion(0.004, 0.009, None)),
            "That is below 1 %: not worth an effort."
        );
        let open = Some(OpenEnd::NoRefill);
        assert_eq!(
            words(conclusion(0.004, 0.009, open)),
            "The switches themselves take at most 0.9 %: only refilling caches may be worth an \
             effort."
        );
        // Whatever the switches take, what is not known of the caches may be more.
        assert_eq!(
            words(conclusion(0.011, 0.012, open)),
            "The switches themselves take at most 1.2 %: only refilling caches may be worth an \
             effort."
        );
        assert_eq!(words(conclusion(0.006, 0.015, None)), "At most 1.5 %: not worth much effort.");
        let unresolved = Some(OpenEnd::NotResolved);
        assert_eq!(
            words(conclusion(0.0, 0.015, unresolved)),
            "At most 1.5 %: not worth much effort."
        );
        assert!(
            words(conclusion(0.0, 0.3, unresolved))
                .starts_with("Fewer switches would save up to 30 %")
        );
        let large = conclusion(0.02, 0.04, None);
        assert_eq!(
            words(large),
            "Fewer switches would save up to 4 % of its CPU time, most of it by refilling caches: \
             most are its own sleeps, so let it do more work per wake-up."
        );
        let preempted =
            CostConclusion { refill: None, involuntary_share: 0.7, ..conclusion(0.02, 0.04, open) };
        assert_eq!(
            words(preempted),
            "Fewer switches would save at least 2 % of its CPU time: most are preemptions, and \
             `switchcost trace --pid 7` says by whom."
        );
        let traced = CostConclusion { preempter: Some("rustc"), ..preempted };
        assert!(words(traced).ends_with("so keep rustc off its CPUs (taskset)."));
    }

    #[test]
    fn one_figure_is_told_with_the_ends_that_are_known() {
        let told = |whole, direct| {
            let figure = CostFigure::choose(whole, direct);
            figure.map(|figure| (figure.share_in_words(), figure.open))
        };
        let words = |text: &str, open| Some((text.to_string(), open));
        let direct = priced(0.02, 0.03);
        assert_eq!(told(priced(0.14, 0.2), direct), words("14 to 20 %", None));
        assert_eq!(told(priced(0.15, 1.0), direct), words("at least 15 %", None));
        assert_eq!(told(None, direct), words("at least 2 %", Some(OpenEnd::NoRefill)));
        // The highest lower end, of both.
        let wide = Some(OpenEnd::TooWide);
        assert_eq!(told(priced(0.001, 0.5), direct), words("at least 2 %", wide));
        assert_eq!(told(priced(0.04, 0.5), direct), words("at least 4 %", wide));
        assert_eq!(
            told(priced(0.0, 0.015), None),
            words("at most 1.5 %", Some(OpenEnd::NotResolved))
        );
        assert_eq!(told(priced(0.0, 1.0), None), None);
        assert_eq!(told(None, None), None);
    }
}
