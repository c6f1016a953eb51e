//! Which of several stored runs prices a program's switches. Knows no files: a run is what its
//! header and its end say, and its figures are asked for only where they decide.

use rundata::run::StopReason;

use super::profile::ProfileGrade;

/// A stored run that may be the profile, by its header and its end alone.
#[derive(Clone, Debug, Default)]
pub struct Candidate {
    /// As it is named in an answer.
    pub name: String,
    /// Why it ended; none of one that was killed or is still going on.
    pub end: Option<StopReason>,
    /// In what its machine switches otherwise than this one; empty where it does not.
    pub foreign: Vec<String>,
    /// Whether it is a quick measurement of `run`.
    pub is_quick: bool,
    /// Parts of its setting (policy, link, members, walk) that are not the program's.
    pub apart: u32,
    /// Whether its arrays lie on both sides of the working set.
    pub encloses: bool,
}

/// What the figures of a candidate are worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worth {
    /// Nothing: why.
    None(&'static str),
    /// It has some.
    Some {
        /// How sure they are.
        grade: ProfileGrade,
        /// Whether they have a cost for the working set.
        answers: bool,
    },
}

/// Why a run that was interrupted or failed is no profile; nothing for one that went to its end.
pub fn unfinished(end: Option<StopReason>) -> Option<&'static str> {
    match end {
        None => Some("it did not end"),
        Some(StopReason::Interrupted) => Some("it was interrupted"),
        Some(StopReason::Failed) => Some("it failed"),
        Some(StopReason::Precise | StopReason::BudgetSpent | StopReason::RoundsDone) => None,
    }
}

impl Candidate {
    fn refused(&self) -> Option<String> {
        let other = || format!("of another machine: {}", self.foreign.join(", "));
        let unfinished = unfinished(self.end).map(str::to_string);
        unfinished.or_else(|| (!self.foreign.is_empty()).then(other))
    }

    /// Less is better; of equals the newest is.
    fn rank(&self) -> (bool, bool, u32) {
        (self.is_quick, !self.encloses, self.apart)
    }
}

/// Stored runs whose costs are computed in search of a clean one that answers, which takes a while
/// each.
const MOST_READ: usize = 8;
/// Refused runs that are named.
const MOST_NAMED: usize = 3;

/// The number of the best of `candidates`, newest first: complete and of this machine; a run of
/// `cost` before a quick one; one that has a cost for the working set; clean; closest in setting;
/// the newest. `worth`
/// tells of the figures of one. Else who was refused and why, in words.
pub fn choose(
    candidates: &[Candidate],
    mut worth: impl FnMut(usize) -> Worth,
) -> Result<usize, String> {
    let (mut fit, mut refused) = (Vec::new(), Vec::new());
    for (number, candidate) in candidates.iter().enumerate() {
        match candidate.refused() {
            None => fit.push((candidate.rank(), number)),
            Some(why) => refused.push((number, why)),
        }
    }
    fit.sort_unstable();
    let mut best = None;
    for (rank, number) in fit.into_iter().take(MOST_READ) {
        match worth(number) {
            Worth::None(why) => refused.push((number, why.to_string())),
            Worth::Some { grade, answers } => {
                // What few rounds say of the working set is told where nothing else is known.
                let is_rough = grade == ProfileGrade::FewRounds;
                let key = (is_rough, rank.0, !answers, grade, rank, number);
                best = Some(best.map_or(key, |before| key.min(before)));
                if grade == ProfileGrade::FullSpeed && answers {
                    break;
                }
            }
        }
    }
    best.map(|(.., number)| number).ok_or_else(|| none_serves(candidates, refused))
}

/// What is said without any stored profile.
pub const NO_PROFILE: &str = "no stored cost profile: run `switchcost cost` first";

fn none_serves(candidates: &[Candidate], mut refused: Vec<(usize, String)>) -> String {
    refused.sort_unstable();
    if refused.is_empty() {
        return NO_PROFILE.to_string();
    }
    let more = match refused.len().saturating_sub(MOST_NAMED) {
        0 => String::new(),
        more => format!("; {more} more"),
    };
    let named = refused.iter().take(MOST_NAMED);
    let named: Vec<String> =
        named.map(|(number, why)| format!("{} ({why})", candidates[*number].name)).collect();
    format!(
        "no stored cost profile can be used: {}{more}: run `switchcost cost` first",
        named.join("; ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLEAN: Worth = Worth::Some { grade: ProfileGrade::FullSpeed, answers: true };
    const NOISY: Worth = Worth::Some { grade: ProfileGrade::BusyCore, answers: true };

    fn complete(name: &str) -> Candidate {
        let end = Some(StopReason::BudgetSpent);
        Candidate { name: name.into(), end, encloses: true, ..Candidate::default() }
    }

    /// The name of the one that is chosen of some that are as clean as said, newest first.
    fn chosen(all: &[(Candidate, Worth)]) -> Result<String, String> {
        let candidates: Vec<Candidate> = all.iter().map(|(of, _)| of.clone()).collect();
        choose(&candidates, |number| all[number].1).map(|number| candidates[number].name.clone())
    }

    fn of_two(newer: (Candidate, Worth), older: (Candidate, Worth)) -> String {
        chosen(&[newer, older]).unwrap()
    }

    #[test]
    fn a_complete_run_is_taken_before_a_newer_one_that_is_not() {
        for end in [None, Some(StopReason::Interrupted), Some(StopReason::Failed)] {
            let newer = Candidate { end, ..complete("newer") };
            assert_eq!(of_two((newer, CLEAN), (complete("older"), NOISY)), "older", "{end:?}");
        }
        for end in [StopReason::Precise, StopReason::RoundsDone] {
            let newer = Candidate { end: Some(end), ..complete("newer") };
            assert_eq!(of_two((newer, CLEAN), (complete("older"), CLEAN)), "newer");
        }
    }

    #[test]
    fn a_run_of_another_kernel_is_none_of_this_machine() {
        let foreign = vec!["kernel.release".to_string()];
        let newer = Candidate { foreign, ..complete("newer") };
        assert_eq!(of_two((newer, CLEAN), (complete("older"), NOISY)), "older");
    }

    #[test]
    fn clean_goes_before_close_and_close_before_new() {
        let older = || (complete("older"), CLEAN);
        assert_eq!(of_two((complete("newer"), NOISY), older()), "older");
        assert_eq!(of_two((complete("newer"), CLEAN), older()), "newer");
        let apart = Candidate { apart: 1, ..complete("newer") };
        assert_eq!(of_two((apart.clone(), CLEAN), older()), "older");
        assert_eq!(of_two((apart, CLEAN), (complete("older"), NOISY)), "newer");
        let narrow = Candidate { encloses: false, ..complete("newer") };
        assert_eq!(of_two((narrow, CLEAN), older()), "older");
        let silent = Worth::Some { grade: ProfileGrade::FullSpeed, answers: false };
        assert_eq!(of_two((complete("newer"), silent), older()), "older");
        // A busy machine measured the size that is asked for: an older run says nothing of it.
        assert_eq!(of_two((complete("newer"), NOISY), (complete("older"), silent)), "newer");
        // Few rounds are better than none, and worse than any that have intervals.
        let few = Worth::Some { grade: ProfileGrade::FewRounds, answers: true };
        assert_eq!(of_two((complete("newer"), few), (complete("older"), silent)), "older");
        assert_eq!(chosen(&[(complete("few"), few)]), Ok("few".to_string()));
        let quick = Candidate { is_quick: true, ..complete("newer") };
        assert_eq!(of_two((quick, CLEAN), (complete("older"), NOISY)), "older");
    }

    #[test]
    fn who_was_refused_is_named_with_the_reason() {
        assert_eq!(chosen(&[]), Err(NO_PROFILE.to_string()));
        let interrupted = Candidate { end: Some(StopReason::Interrupted), ..complete("a") };
        let foreign = Candidate { foreign: vec!["mitigations.srso".into()], ..complete("b") };
        let all = [
            (interrupted.clone(), CLEAN),
            (foreign, CLEAN),
            (complete("c"), Worth::None("nothing was measured")),
            (interrupted.clone(), CLEAN),
            (interrupted, CLEAN),
        ];
        assert_eq!(
            chosen(&all).unwrap_err(),
            "no stored cost profile can be used: a (it was interrupted); b (of another \
             machine: mitigations.srso); c (nothing was measured); 2 more: run `switchcost cost` \
             first"
        );
    }

    #[test]
    fn no_more_are_read_than_needed() {
        let all = vec![complete("of many"); 100];
        let mut read = 0;
        let mut count = |worth: Worth| {
            read += 1;
            worth
        };
        assert_eq!(choose(&all, |_| count(CLEAN)), Ok(0));
        assert_eq!(choose(&all, |_| count(NOISY)), Ok(0));
        assert_eq!(read, 1 + MOST_READ);
    }
}
