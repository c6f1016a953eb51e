//! The figure for what switching costs a program, and what to conclude from it. `cost` and `trace`
//! print both alike.
//!
//! Two ranges are candidates, as shares of the CPU time: the switches themselves (`direct`), and
//! the switches with the refill of caches (`whole`):
//!
//! | whole | direct | printed |
//! |---|---|---|
//! | 14 to 20 % | 2 to 3 % | 14 to 20 % |
//! | too wide: 0.1 to 50 % | 2 to 3 % | at least 2 % |
//! | unknown | 2 to 3 % | at least 2 % |
//! | 0 to 1.5 % | unknown | at most 1.5 % |

use analysis::comparison::percent;
use analysis::program::{Program, ProgramCost, Range, count, percents, switches_in_words};
use rundata::words::time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::observation::UnreadReason;

/// Cost of switches: of each, and as a share of the CPU time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct PricedShare {
    /// Share of the program's CPU time, from 0 to 1.
    pub(crate) share: Range,
    /// Cost of a switch, in nanoseconds.
    pub(crate) each_ns: Range,
}

/// Figure that is printed for a program.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct CostFigure {
    /// Cost of its switches, with the refill of caches as far as that is known.
    #[serde(flatten)]
    pub(crate) priced: PricedShare,
    /// Reason why only one of the ends is known; absent if both are.
    pub(crate) open: Option<OpenEnd>,
}

/// Reason why an end of a cost is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OpenEnd {
    /// Refilling caches adds an unknown cost.
    NoRefill,
    /// The range with the refill of caches is too wide for an answer.
    TooWide,
    /// The costs are not resolved from zero: only the upper ends are known.
    NotResolved,
}

impl CostFigure {
    /// Chooses the figure: switches with the refill of caches (`whole`) if that is no wider than an
    /// answer may be, else the highest lower end that is known; if that is 0, the upper end with
    /// the refill of caches. Returns none if that is not known either.
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

    /// Chooses the figure from the estimate for a program; `direct_ns` is the cost of a switch
    /// itself.
    pub(super) fn from_estimate(
        cost: &ProgramCost,
        unread: Option<&UnreadReason>,
        direct_ns: Option<Range>,
    ) -> Option<Self> {
        let whole = match (cost, unread) {
            (ProgramCost::Estimated { share, cost_ns, .. }, None) => {
                Some(PricedShare { share: *share, each_ns: *cost_ns })
            }
            _ => None,
        };
        let direct = match (cost.direct_share(), direct_ns) {
            (Some(share), Some(each_ns)) => Some(PricedShare { share, each_ns }),
            _ => None,
        };
        Self::choose(whole, direct)
    }

    /// Returns the share in words: `14 to 20 %`, `at least 15 %` or `at most 1.5 %`.
    pub(crate) fn share_in_words(&self) -> String {
        let share = self.priced.share;
        match self.open {
            None => percents(share),
            Some(OpenEnd::NotResolved) => format!("at most {}", upper_percents(share)),
            Some(_) => percents(Range { high: 1.0, ..share }),
        }
    }

    /// Returns rate and cost in words: `5,300 switches a second at 1.5 to 2.6 us each`, or `at
    /// 1.5 us or more each`.
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

/// Returns the upper end of a share alone: `1.5 %`.
fn upper_percents(share: Range) -> String {
    percents(Range { low: share.high, ..share })
}

/// Share of the CPU time below which fewer switches are not worth any work.
const MIN_WORTHWHILE_SHARE: f64 = 0.01;
/// Share of the CPU time below which fewer switches are hardly worth any work.
const MIN_REWARDING_SHARE: f64 = 0.02;

/// Facts from which to conclude what a program would gain from fewer switches.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CostConclusion<'a> {
    pub(crate) figure: CostFigure,
    /// Share of the CPU time that refilling caches takes, if known.
    pub(crate) refill: Option<Range>,
    /// Share of the switches that were preemptions, from 0 to 1.
    pub(crate) involuntary_share: f64,
    /// Task that preempts it most often, if that was traced.
    pub(crate) preempter: Option<&'a str>,
    /// Command that would tell who preempts it, if that was not traced.
    pub(crate) to_trace: Option<&'a str>,
}

impl CostConclusion<'_> {
    /// Returns one sentence: `That is below 1 %: not worth an effort.`
    pub(crate) fn in_words(&self) -> String {
        let share = self.figure.priced.share;
        let most = upper_percents(share);
        let is_small = share.low < MIN_WORTHWHILE_SHARE || share.high < MIN_REWARDING_SHARE;
        match self.figure.open {
            Some(OpenEnd::NoRefill) if is_small => {
                return format!(
                    "The switches themselves take at most {most}: only refilling caches may be \
                     worth an effort."
                );
            }
            Some(OpenEnd::TooWide) if is_small => {
                return "The upper end is not known.".to_string();
            }
            None | Some(_) => {}
        }
        if share.high < MIN_WORTHWHILE_SHARE {
            let limit = percent(MIN_WORTHWHILE_SHARE);
            return format!("That is below {limit}: not worth an effort.");
        }
        if share.high < MIN_REWARDING_SHARE {
            return format!("At most {most}: not worth much effort.");
        }
        let saved = match self.figure.open {
            Some(OpenEnd::NoRefill | OpenEnd::TooWide) => self.figure.share_in_words(),
            None | Some(OpenEnd::NotResolved) => format!("up to {most}"),
        };
        let part = self.largest_part().map_or(String::new(), |part| format!(", most of it {part}"));
        format!("Fewer switches would save {saved} of its CPU time{part}: {}.", self.next_step())
    }

    /// Returns the larger of the switches themselves and the refill of caches.
    fn largest_part(&self) -> Option<&'static str> {
        let refill = middle(self.refill?);
        if 2.0 * refill > middle(self.figure.priced.share) {
            Some("by refilling caches")
        } else {
            Some("for the switches themselves")
        }
    }

    /// Returns what to try first.
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

fn middle(range: Range) -> f64 {
    f64::midpoint(range.low, range.high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn priced(low: f64, high: f64) -> Option<PricedShare> {
        let each_ns = Range { low: 10_000.0 * low, high: 10_000.0 * high };
        Some(PricedShare { share: Range { low, high }, each_ns })
    }

    fn conclusion(low: f64, high: f64, open: Option<OpenEnd>) -> CostConclusion<'static> {
        CostConclusion {
            figure: CostFigure { priced: priced(low, high).unwrap(), open },
            refill: Some(Range { low: 0.8 * low, high: 0.8 * high }),
            involuntary_share: 0.2,
            preempter: None,
            to_trace: Some("switchcost trace --pid 7"),
        }
    }

    #[test]
    fn a_figure_has_a_conclusion() {
        let unknown_refill = Some(OpenEnd::NoRefill);
        let unresolved = Some(OpenEnd::NotResolved);
        let words = |low, high, open| conclusion(low, high, open).in_words();
        assert_eq!(words(0.004, 0.009, None), "That is below 1 %: not worth an effort.");
        assert_eq!(
            words(0.004, 0.009, unknown_refill),
            "The switches themselves take at most 0.9 %: only refilling caches may be worth an \
             effort."
        );
        // The refill, which is unknown, may take more than the switches themselves.
        assert_eq!(
            words(0.011, 0.012, unknown_refill),
            "The switches themselves take at most 1.2 %: only refilling caches may be worth an \
             effort."
        );
        assert_eq!(words(0.006, 0.015, None), "At most 1.5 %: not worth much effort.");
        assert_eq!(words(0.0, 0.015, unresolved), "At most 1.5 %: not worth much effort.");
        let large = words(0.0, 0.3, unresolved);
        assert!(large.starts_with("Fewer switches would save up to 30 %"), "{large}");
        assert_eq!(
            words(0.02, 0.04, None),
            "Fewer switches would save up to 4 % of its CPU time, most of it by refilling caches: \
             most are its own sleeps, so let it do more work per wake-up."
        );
        let open = conclusion(0.02, 0.04, unknown_refill);
        let preempted = CostConclusion { refill: None, involuntary_share: 0.7, ..open };
        assert_eq!(
            preempted.in_words(),
            "Fewer switches would save at least 2 % of its CPU time: most are preemptions, and \
             `switchcost trace --pid 7` says by whom."
        );
        let traced = CostConclusion { preempter: Some("rustc"), ..preempted }.in_words();
        assert!(traced.ends_with("so keep rustc off its CPUs (taskset)."), "{traced}");
    }

    #[test]
    fn a_figure_has_the_ends_that_are_known() {
        let chosen = |whole, direct| {
            let figure = CostFigure::choose(whole, direct)?;
            Some((figure.share_in_words(), figure.open))
        };
        let words = |text: &str, open| Some((text.to_string(), open));
        let direct = priced(0.02, 0.03);
        assert_eq!(chosen(priced(0.14, 0.2), direct), words("14 to 20 %", None));
        assert_eq!(chosen(priced(0.15, 1.0), direct), words("at least 15 %", None));
        assert_eq!(chosen(None, direct), words("at least 2 %", Some(OpenEnd::NoRefill)));
        // The higher of the two lower ends.
        let wide = Some(OpenEnd::TooWide);
        assert_eq!(chosen(priced(0.001, 0.5), direct), words("at least 2 %", wide));
        assert_eq!(chosen(priced(0.04, 0.5), direct), words("at least 4 %", wide));
        let unresolved = Some(OpenEnd::NotResolved);
        assert_eq!(chosen(priced(0.0, 0.015), None), words("at most 1.5 %", unresolved));
        assert_eq!(chosen(priced(0.0, 1.0), None), None);
        assert_eq!(chosen(None, None), None);
    }
}
