//! The choice of the stored run that prices a program's switches. It reads no files: a candidate is
//! described by its header and its end, and its figures are asked for only where they decide.

use rundata::run::StopReason;

use super::profile::ProfileGrade;

/// A stored run that may be the profile, by its header and its end alone.
#[derive(Clone, Debug, Default)]
pub struct ProfileCandidate {
    /// Name of the run in an answer.
    pub name: String,
    /// Reason for its end; absent for one that was killed or is still going on.
    pub end: Option<StopReason>,
    /// Facts in which its machine differs from this one so that switches cost something else.
    pub foreign: Vec<String>,
    /// True for a quick measurement of `run`.
    pub is_quick: bool,
    /// Count of its settings (policy, link, members, walk) that are not the program's.
    pub apart: u32,
    /// True if its arrays lie on both sides of the working set.
    pub encloses: bool,
}

/// The use of a candidate's figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CandidateWorth {
    /// They cannot be used, with the reason.
    None(&'static str),
    /// They can be used.
    Some {
        /// Precision of the figures.
        grade: ProfileGrade,
        /// True if there is a cost for the working set.
        answers: bool,
    },
}

/// Returns why a run that was interrupted or failed is no profile; absent for a complete one.
pub fn unfinished(end: Option<StopReason>) -> Option<&'static str> {
    match end {
        None => Some("it did not end"),
        Some(StopReason::Interrupted) => Some("it was interrupted"),
        Some(StopReason::Failed) => Some("it failed"),
        Some(StopReason::Precise | StopReason::BudgetSpent | StopReason::RoundsDone) => None,
    }
}

/// Order of candidates by their headers; the lesser is the better.
type HeaderRank = (bool, bool, u32);

impl ProfileCandidate {
    /// Returns why the run cannot be the profile.
    fn refusal(&self) -> Option<String> {
        if let Some(why) = unfinished(self.end) {
            return Some(why.to_string());
        }
        if self.foreign.is_empty() {
            return None;
        }
        Some(format!("of another machine: {}", self.foreign.join(", ")))
    }

    fn rank(&self) -> HeaderRank {
        (self.is_quick, !self.encloses, self.apart)
    }
}

/// Most stored runs whose costs are computed in search of a clean one that answers: each takes a
/// while.
const MAX_READ: usize = 8;
/// Most refused runs that are named.
const MAX_NAMED: usize = 3;

/// Returns the number of the best of `candidates`, which are given newest first. The error says who
/// was refused and why.
///
/// A candidate must be complete and of this machine. Preferred are, in this order: a run of `cost`
/// to a quick one, a cost for the working set, a clean run, a close setting, a new run. `worth`
/// returns the use of a candidate's figures by its number.
pub fn choose(
    candidates: &[ProfileCandidate],
    mut worth: impl FnMut(usize) -> CandidateWorth,
) -> Result<usize, String> {
    let (mut usable, mut refused) = (Vec::new(), Vec::new());
    for (number, candidate) in candidates.iter().enumerate() {
        match candidate.refusal() {
            None => usable.push((candidate.rank(), number)),
            Some(why) => refused.push((number, why)),
        }
    }
    usable.sort_unstable();
    let mut best = None;
    for (rank, number) in usable.into_iter().take(MAX_READ) {
        match worth(number) {
            CandidateWorth::None(why) => refused.push((number, why.to_string())),
            CandidateWorth::Some { grade, answers } => {
                // Few rounds serve only where nothing else does.
                let is_rough = grade == ProfileGrade::FewRounds;
                let (is_quick, ..) = rank;
                let key = (is_rough, is_quick, !answers, grade, rank, number);
                best = Some(best.map_or(key, |before| key.min(before)));
                if grade == ProfileGrade::FullSpeed && answers {
                    break;
                }
            }
        }
    }
    match best {
        Some((.., number)) => Ok(number),
        None => Err(none_serves(candidates, refused)),
    }
}

/// Reason for a missing cost where no profile is stored.
pub const NO_PROFILE: &str = "no stored cost profile: run `switchcost cost` first";

fn none_serves(candidates: &[ProfileCandidate], mut refused: Vec<(usize, String)>) -> String {
    refused.sort_unstable();
    if refused.is_empty() {
        return NO_PROFILE.to_string();
    }
    let more = match refused.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!("; {more} more"),
    };
    let mut named = Vec::new();
    for (number, why) in refused.iter().take(MAX_NAMED) {
        named.push(format!("{} ({why})", candidates[*number].name));
    }
    format!(
        "no stored cost profile can be used: {}{more}: run `switchcost cost` first",
        named.join("; ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLEAN: CandidateWorth =
        CandidateWorth::Some { grade: ProfileGrade::FullSpeed, answers: true };
    const NOISY: CandidateWorth =
        CandidateWorth::Some { grade: ProfileGrade::BusyCore, answers: true };

    fn complete(name: &str) -> ProfileCandidate {
        let end = Some(StopReason::BudgetSpent);
        ProfileCandidate { name: name.into(), end, encloses: true, ..ProfileCandidate::default() }
    }

    /// The name of the one that is chosen of some that are as clean as said, newest first.
    fn chosen(all: &[(ProfileCandidate, CandidateWorth)]) -> Result<String, String> {
        let candidates: Vec<ProfileCandidate> = all.iter().map(|(of, _)| of.clone()).collect();
        choose(&candidates, |number| all[number].1).map(|number| candidates[number].name.clone())
    }

    fn of_two(
        newer: (ProfileCandidate, CandidateWorth),
        older: (ProfileCandidate, CandidateWorth),
    ) -> String {
        chosen(&[newer, older]).unwrap()
    }

    #[test]
    fn a_complete_run_is_taken_before_a_newer_one_that_is_not() {
        for end in [None, Some(StopReason::Interrupted), Some(StopReason::Failed)] {
            let newer = ProfileCandidate { end, ..complete("newer") };
            assert_eq!(of_two((newer, CLEAN), (complete("older"), NOISY)), "older", "{end:?}");
        }
        for end in [StopReason::Precise, StopReason::RoundsDone] {
            let newer = ProfileCandidate { end: Some(end), ..complete("newer") };
            assert_eq!(of_two((newer, CLEAN), (complete("older"), CLEAN)), "newer");
        }
    }

    #[test]
    fn a_run_of_another_kernel_is_none_of_this_machine() {
        let foreign = vec!["kernel.release".to_string()];
        let newer = ProfileCandidate { foreign, ..complete("newer") };
        assert_eq!(of_two((newer, CLEAN), (complete("older"), NOISY)), "older");
    }

    #[test]
    fn clean_goes_before_close_and_close_before_new() {
        let older = || (complete("older"), CLEAN);
        assert_eq!(of_two((complete("newer"), NOISY), older()), "older");
        assert_eq!(of_two((complete("newer"), CLEAN), older()), "newer");
        let apart = ProfileCandidate { apart: 1, ..complete("newer") };
        assert_eq!(of_two((apart.clone(), CLEAN), older()), "older");
        assert_eq!(of_two((apart, CLEAN), (complete("older"), NOISY)), "newer");
        let narrow = ProfileCandidate { encloses: false, ..complete("newer") };
        assert_eq!(of_two((narrow, CLEAN), older()), "older");
        let silent = CandidateWorth::Some { grade: ProfileGrade::FullSpeed, answers: false };
        assert_eq!(of_two((complete("newer"), silent), older()), "older");
        // A busy machine measured the size that is asked for: an older run says nothing of it.
        assert_eq!(of_two((complete("newer"), NOISY), (complete("older"), silent)), "newer");
        // Few rounds are better than none, and worse than any that have intervals.
        let few = CandidateWorth::Some { grade: ProfileGrade::FewRounds, answers: true };
        assert_eq!(of_two((complete("newer"), few), (complete("older"), silent)), "older");
        assert_eq!(chosen(&[(complete("few"), few)]), Ok("few".to_string()));
        let quick = ProfileCandidate { is_quick: true, ..complete("newer") };
        assert_eq!(of_two((quick, CLEAN), (complete("older"), NOISY)), "older");
    }

    #[test]
    fn who_was_refused_is_named_with_the_reason() {
        assert_eq!(chosen(&[]), Err(NO_PROFILE.to_string()));
        let interrupted = ProfileCandidate { end: Some(StopReason::Interrupted), ..complete("a") };
        let foreign =
            ProfileCandidate { foreign: vec!["mitigations.srso".into()], ..complete("b") };
        let all = [
            (interrupted.clone(), CLEAN),
            (foreign, CLEAN),
            (complete("c"), CandidateWorth::None("nothing was measured")),
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
        let mut count = |worth: CandidateWorth| {
            read += 1;
            worth
        };
        assert_eq!(choose(&all, |_| count(CLEAN)), Ok(0));
        assert_eq!(choose(&all, |_| count(NOISY)), Ok(0));
        assert_eq!(read, 1 + MAX_READ);
    }
}
