//! Who has which colour and symbol, and what stands in the legend.

use crate::figure::{Role, Series};

use crate::text::clean;

/// A series and how it is told from others.
#[derive(Clone, Debug)]
pub(crate) struct Entry<'a> {
    /// The series.
    pub(crate) series: &'a Series,
    /// Its name, with that of its run where there are several.
    pub(crate) name: String,
    /// The number of its colour and symbol; that of the series that it is fitted to, if there is one.
    pub(crate) colour: usize,
    /// Whether it belongs to another series, so that one word for all of its kind will do.
    pub(crate) follows: bool,
}

/// One entry for each series, in their order. `runs` are the names of the runs that the figure is of.
pub(crate) fn entries<'a>(all: &'a [Series], runs: &[String]) -> Vec<Entry<'a>> {
    let mut colours: Vec<Option<usize>> = vec![None; all.len()];
    let mut next = 0;
    for (place, _) in all.iter().enumerate().filter(|(_, series)| !is_line(series)) {
        colours[place] = Some(next);
        next += 1;
    }
    for (place, series) in all.iter().enumerate() {
        colours[place] =
            colours[place].or_else(|| leader(all, series).and_then(|led| colours[led]));
        if colours[place].is_none() {
            colours[place] = Some(next);
            next += 1;
        }
    }
    let entry = |(series, colour): (&'a Series, Option<usize>)| Entry {
        series,
        name: name(series, runs),
        colour: colour.unwrap_or_default(),
        follows: is_line(series) && leader(all, series).is_some(),
    };
    all.iter().zip(colours).map(entry).collect()
}

/// What all lines of a kind that follow others are called together: their look, and its meaning.
pub(crate) fn followers(entries: &[Entry]) -> Vec<(Role, &'static str)> {
    let kinds = [(Role::Law, "fitted law"), (Role::Projected, "projected")];
    let is_there =
        |role: Role| entries.iter().any(|entry| entry.follows && entry.series.role == role);
    kinds.into_iter().filter(|(role, _)| is_there(*role)).collect()
}

fn is_line(series: &Series) -> bool {
    matches!(series.role, Role::Law | Role::Projected)
}

/// The measured series that a law is of: the only one of its run, or the one whose name it begins with.
fn leader(all: &[Series], law: &Series) -> Option<usize> {
    let of_run = |series: &&Series| series.role == Role::Measured && series.run == law.run;
    let begins = |series: &&Series| law.name.starts_with(&series.name);
    let place = |chosen: &Series| all.iter().position(|series| std::ptr::eq(series, chosen));
    match all.iter().filter(of_run).filter(begins).max_by_key(|series| series.name.len()) {
        Some(named) => place(named),
        None => {
            let mut measured = all.iter().filter(of_run);
            measured.next().filter(|_| measured.next().is_none()).and_then(place)
        }
    }
}

fn name(series: &Series, runs: &[String]) -> String {
    let run = series.run.filter(|_| runs.len() > 1).and_then(|run| runs.get(run));
    match run {
        Some(run) => format!("{}: {}", clean(run), clean(&series.name)),
        None => clean(&series.name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(name: &str, run: usize, role: Role) -> Series {
        Series { name: name.into(), run: Some(run), role, points: Vec::new() }
    }

    #[test]
    fn a_law_has_the_colour_of_what_it_is_fitted_to() {
        let all = [
            series("pipe", 0, Role::Measured),
            series("pipe, threads", 0, Role::Measured),
            series("pipe, threads, law", 0, Role::Law),
            series("pipe, law", 0, Role::Law),
            series("pipe", 1, Role::Measured),
            series("law", 1, Role::Law),
            series("elsewhere", 2, Role::Law),
        ];
        let found = entries(&all, &["a".into(), "b\x1b".into()]);
        let colours: Vec<usize> = found.iter().map(|entry| entry.colour).collect();
        assert_eq!(colours, [0, 1, 1, 0, 2, 2, 3]);
        let follows: Vec<bool> = found.iter().map(|entry| entry.follows).collect();
        assert_eq!(follows, [false, false, true, true, false, true, false]);
        assert_eq!(found[4].name, "b: pipe");
        assert_eq!(followers(&found), [(Role::Law, "fitted law")]);
        assert_eq!(entries(&all, &["a".into()])[4].name, "pipe");
    }
}
