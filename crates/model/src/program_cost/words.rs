//! The estimate in words.

use super::{ProgramCost, Range};
use crate::words::{plain, time};

/// What the estimate takes for granted.
pub(super) fn assumptions(share: Range, voluntary: f64, involuntary: f64) -> Vec<String> {
    let mut told = vec![
        "each switch costs what one of a ring of two costs here, whose members each touch a working set of this size".to_owned(),
        "whoever runs in between displaces as much as the program touches".to_owned(),
        "a cost between two measured arrays lies between theirs".to_owned(),
        "the time that was watched is typical".to_owned(),
    ];
    if involuntary > voluntary {
        told.push("most switches are involuntary: they come at any point of the work, where a ring switches between two rounds of it".into());
    }
    if share.low <= 0.0 {
        told.push("the lower end is not resolved from zero".into());
    }
    if share.high > 1.0 {
        told.push("the upper end is above the CPU time that there was: the surface overstates this program's switches".into());
    }
    told
}

impl ProgramCost {
    /// The estimate in one sentence, without a full stop and without the assumptions.
    #[must_use]
    pub fn in_words(&self) -> String {
        match self {
            ProgramCost::CannotTell { missing, direct_share } => {
                let direct = direct_share.map(|direct| {
                    format!("; by the direct cost alone {} of the CPU time", percents(direct))
                });
                format!("cannot tell: {}{}", missing.join("; "), direct.unwrap_or_default())
            }
            ProgramCost::Estimated { share, direct_share, cost_ns, switches_per_s, .. } => {
                let direct = direct_share
                    .map(|direct| format!(", {} by the direct cost alone", percents(direct)));
                format!(
                    "switching takes {} of the CPU time{}: {} switches a second at {} to {} each",
                    percents(*share),
                    direct.unwrap_or_default(),
                    plain(*switches_per_s),
                    time(cost_ns.low),
                    time(cost_ns.high),
                )
            }
        }
    }
}

/// `0.1 to 2 %`, two digits.
fn percents(share: Range) -> String {
    let two = |part: f64| {
        let percent = 100.0 * part;
        plain(format!("{percent:.1e}").parse().unwrap_or(percent))
    };
    format!("{} to {} %", two(share.low), two(share.high))
}
