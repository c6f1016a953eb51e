//! Values as typed: sizes, shares, durations, lists, places to write to.

use std::fmt;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rundata::bounds::{MAX_COUNT, MAX_MEMBERS, MAX_RINGS};
use rundata::ring::{Flight, MAX_FLIGHT, Policy};

/// Place that machine-readable output goes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    /// `-`
    Stdout,
    /// A file, for any other name.
    File(PathBuf),
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdout => f.write_str("-"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

impl FromStr for Destination {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "" => Err("an empty name (accepted: a file, or - for standard output)".to_string()),
            "-" => Ok(Self::Stdout),
            path => Ok(Self::File(PathBuf::from(path))),
        }
    }
}

/// A list that is one argument: to clap a `Vec` is an argument that may be given several times.
pub(crate) type List<T> = Vec<T>;

/// Most values of a list: a typing error must not ask for a million cases.
const MAX_VALUES: usize = 10_000;

/// Forms of a list, for its errors.
const LIST_FORMS: &str = "numbers and ranges such as 2,4,8 or 2..64 or 2..64:4 or 2..20000:x2";

/// Step from one value of a range to the next.
#[derive(Clone, Copy)]
enum RangeStep {
    Add(u64),
    Multiply(u64),
}

/// Parses a list of numbers such as `2,4,8`, `2..64`, `2..64:4` or `2..20000:x2`.
///
/// Its items are values or ranges `low..high`, `low..high:+step` (or `:step`) and
/// `low..high:xfactor`. Ranges include their end: a geometric range whose last step would pass the
/// end stops at the end itself. `parse_number` reads one number, so that callers can accept
/// suffixes such as `64K`. The result is sorted and holds each value once. An error names the item
/// that cannot be read, and why.
fn parse_list(
    text: &str,
    parse_number: impl Fn(&str) -> Result<u64, String>,
) -> Result<Vec<u64>, String> {
    let mut values = Vec::new();
    for item in text.split(',') {
        let item = item.trim();
        add_item(item, &parse_number, &mut values)
            .map_err(|why| format!("'{item}': {why} (accepted: {LIST_FORMS})"))?;
    }
    values.sort_unstable();
    values.dedup();
    Ok(values)
}

fn add_item(
    item: &str,
    parse_number: impl Fn(&str) -> Result<u64, String>,
    values: &mut Vec<u64>,
) -> Result<(), String> {
    if let Some((low, rest)) = item.split_once("..") {
        let (high, step) = rest.split_once(':').unwrap_or((rest, "1"));
        let step = parse_step(step, &parse_number)?;
        add_range(parse_number(low)?, parse_number(high)?, step, values)?;
    } else {
        if let Some((low, high)) = item.split_once('-') {
            if parse_number(low).is_ok() && parse_number(high).is_ok() {
                return Err(format!("use {low}..{high}"));
            }
        }
        values.push(parse_number(item)?);
    }
    if values.len() > MAX_VALUES {
        return Err(format!("more than {MAX_VALUES} values"));
    }
    Ok(())
}

fn parse_step(
    text: &str,
    parse_number: impl Fn(&str) -> Result<u64, String>,
) -> Result<RangeStep, String> {
    if let Some(factor) = text.strip_prefix('x') {
        return match factor.parse() {
            Ok(factor) if factor >= 2 => Ok(RangeStep::Multiply(factor)),
            _ => Err(format!("the factor 'x{factor}' must be x2 or more")),
        };
    }
    match parse_number(text.strip_prefix('+').unwrap_or(text))? {
        0 => Err("the step must be 1 or more".to_string()),
        step => Ok(RangeStep::Add(step)),
    }
}

fn add_range(low: u64, high: u64, step: RangeStep, values: &mut Vec<u64>) -> Result<(), String> {
    if low > high {
        return Err(format!("the range starts at {low}, above its end {high}"));
    }
    let is_geometric = matches!(step, RangeStep::Multiply(_));
    if low == 0 && is_geometric {
        return Err("a geometric range cannot start at 0".to_string());
    }
    let mut next = Some(low);
    while let Some(current) = next {
        if current >= high || values.len() > MAX_VALUES {
            break;
        }
        values.push(current);
        next = match step {
            RangeStep::Add(step) => current.checked_add(step),
            RangeStep::Multiply(factor) => current.checked_mul(factor),
        };
    }
    // The end belongs to the range when the steps meet it, and always to a geometric one: who asks
    // for 2..20000:x2 wants to see 20000.
    if next == Some(high) || is_geometric {
        values.push(high);
    }
    Ok(())
}

/// Parses ring sizes.
pub(crate) fn sizes(text: &str) -> Result<List<u32>, String> {
    up_to(text, MAX_MEMBERS, &format!("a ring has 1 to {MAX_MEMBERS} members"))
}

/// Parses numbers of items under way, and the word full; in the order of their size, full last.
pub(crate) fn flights(text: &str) -> Result<List<Flight>, String> {
    let (mut flights, mut numbers) = (Vec::new(), Vec::new());
    for item in text.split(',') {
        match item.trim().parse() {
            Ok(Flight::Full) => flights.push(Flight::Full),
            _ => numbers.push(item),
        }
    }
    if !numbers.is_empty() {
        let refused = format!("1 to {MAX_FLIGHT} items can be under way, or full");
        for count in up_to(&numbers.join(","), MAX_FLIGHT, &refused)? {
            flights.push(Flight::Items(count));
        }
    }
    flights.sort_unstable();
    flights.dedup();
    Ok(flights)
}

/// Numbers of rings that run at the same time, as typed: a list in which `max` is a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RingCounts {
    text: String,
}

/// The name of the largest sensible number of rings, which depends on the machine.
const MAX_NAME: &str = "max";

impl FromStr for RingCounts {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let counts = Self { text: text.to_string() };
        // The machine's own number is not known here: one that leaves room for other values.
        counts.resolve(MAX_VALUES as u32 / 2)?;
        Ok(counts)
    }
}

impl RingCounts {
    /// Returns the numbers, in ascending order and each once, where `max` is this one.
    pub(crate) fn resolve(&self, max: u32) -> Result<List<u32>, String> {
        let refused = format!("accepted are 1 to {MAX_RINGS} rings, and {MAX_NAME}");
        let numbers = parse_list(&self.text, |item| match item.parse::<u64>() {
            _ if item == MAX_NAME => Ok(max.into()),
            Ok(count) if (1..=u64::from(MAX_RINGS)).contains(&count) => Ok(count),
            Ok(_) => Err(refused.clone()),
            Err(_) => Err(format!("not a whole number, nor {MAX_NAME}")),
        })?;
        let mut counts = Vec::new();
        for number in numbers {
            counts.extend(u32::try_from(number));
        }
        Ok(counts)
    }
}

/// Parses counts or sizes above zero.
pub(crate) fn counts(text: &str) -> Result<List<u32>, String> {
    up_to(text, MAX_COUNT, &format!("accepted are 1 to {MAX_COUNT}"))
}

/// Parses a list of numbers from 1 to `most`; `refused` is the error for others.
fn up_to(text: &str, most: u32, refused: &str) -> Result<List<u32>, String> {
    let numbers = parse_list(text, |item: &str| match item.parse::<u64>() {
        Ok(count) if (1..=u64::from(most)).contains(&count) => Ok(count),
        Ok(_) => Err(refused.to_string()),
        Err(_) => Err("not a whole number".to_string()),
    })?;
    let mut counts = Vec::new();
    for number in numbers {
        counts.extend(u32::try_from(number));
    }
    Ok(counts)
}

/// Parses a list of sizes in bytes.
pub(crate) fn byte_sizes(text: &str) -> Result<List<u64>, String> {
    parse_list(text, bytes)
}

/// Parses bytes with an optional suffix in powers of 1024: 4096, 64K, 8MiB.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    parse_size::Config::new()
        .with_binary()
        .parse_size(text)
        .map_err(|error| format!("{error} (accepted: bytes, or with K, M, G in powers of 1024)"))
}

/// Parses a share as `1%` or `0.01`, above 0 and below 1.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    let accepted = "accepted: above 0% and below 100%, as 1% or 0.01";
    let number = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|percent| percent / 100.0),
        None => text.parse(),
    };
    match number {
        Ok(share) if share > 0.0 && share < 1.0 => Ok(share),
        Ok(percent) if (1.0..100.0).contains(&percent) && !text.ends_with('%') => {
            Err(format!("{text} is {} %: say {text}% ({accepted})", percent * 100.0))
        }
        _ => Err(accepted.to_string()),
    }
}

/// Longest time that may be asked for: every clock can hold its end.
pub(crate) const MAX_DURATION: Duration = Duration::from_secs(366 * 86_400);

/// Hint for a time with a `+` where nothing extends it.
pub(crate) const NO_EXTENSION_HINT: &str = "(accepted here: the time without the +)";

/// A time that only the end of a command ends.
pub(crate) const UNTIL_END: &str = "366days";

/// Parses a duration above zero: a plain number of seconds, or `20s`, `1m 30s` or `500ms`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    if text.len() > 1 && text.ends_with('+') {
        return Err(format!(
            "only the budget of a measurement may be extended {NO_EXTENSION_HINT}"
        ));
    }
    plain_duration(text)
}

/// Like [`duration`], but accepts zero: no time.
pub(crate) fn duration_or_zero(text: &str) -> Result<Duration, String> {
    match seconds(text) {
        Some(Duration::ZERO) => Ok(Duration::ZERO),
        _ => duration(text),
    }
}

fn plain_duration(text: &str) -> Result<Duration, String> {
    let accepted = "(accepted: above zero, as 20, 0.5, 90s, 2m or 500ms)";
    let parsed = match seconds(text) {
        Some(duration) => Ok(duration),
        None => humantime::parse_duration(text),
    };
    match parsed {
        Ok(Duration::ZERO) => Err(format!("no time at all {accepted}")),
        Ok(duration) if duration > MAX_DURATION => Err(format!("longer than a year {accepted}")),
        Ok(duration) => Ok(duration),
        Err(error) => Err(format!("{error} {accepted}")),
    }
}

/// Parses a plain number of seconds.
fn seconds(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(text.parse().ok()?).ok()
}

/// Time for a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeBudget {
    /// The time itself.
    pub(crate) time: Duration,
    /// Whether the plan may take longer if undisturbed time is missing.
    pub(crate) extends: bool,
}

/// Parses a budget: a duration, which is kept, or one with a `+` behind it, which may be extended.
pub(crate) fn budget(text: &str) -> Result<TimeBudget, String> {
    let extends = text.ends_with('+');
    let time = plain_duration(text.strip_suffix('+').unwrap_or(text))?;
    Ok(TimeBudget { time, extends })
}

/// Removes repeated items; each stays at its first place.
pub(crate) fn each_once<T: PartialEq>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for item in items {
        if !found.contains(&item) {
            found.push(item);
        }
    }
    found
}

/// Returns the duration in nanoseconds; the largest number for a longer one.
pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Builds a parser of the whole numbers of a range.
pub(crate) fn whole<T: FromStr + PartialOrd + fmt::Display + Clone>(
    range: RangeInclusive<T>,
) -> impl Fn(&str) -> Result<T, String> + Clone {
    let accepted = format!("accepted: whole numbers from {} to {}", range.start(), range.end());
    move |text| match text.parse() {
        Ok(number) if range.contains(&number) => Ok(number),
        _ => Err(accepted.clone()),
    }
}

/// Parses the id of a process.
pub(crate) fn pid(text: &str) -> Result<i32, String> {
    match text.parse() {
        Ok(pid @ 1..) => Ok(pid),
        _ => {
            Err("a process id is a whole number from 1 on (pgrep NAME and ps tell it)".to_string())
        }
    }
}

/// Parses a count above zero.
pub(crate) fn above_zero<T: FromStr + Default + PartialEq>(text: &str) -> Result<T, String> {
    match text.parse::<T>() {
        Ok(count) if count != T::default() => Ok(count),
        _ => Err("accepted: whole numbers from 1 on".to_string()),
    }
}

/// Parses a scheduling policy; SCHED_OTHER also by its name in other tools, `normal`.
pub(crate) fn policy(text: &str) -> Result<Policy, String> {
    match text.to_ascii_lowercase().trim_start_matches("sched_") {
        "normal" => Ok(Policy::Other),
        name => name.parse(),
    }
}

/// Longest name of a run, in bytes.
const MAX_NAME_BYTES: usize = 64;

/// Parses a name for a run: one that no file, no keyword and no published machine can have.
pub(crate) fn run_name(text: &str) -> Result<String, String> {
    let is_reserved = text == "last" || text.ends_with(".jsonl");
    let starts_well = text.starts_with(|c: char| c.is_ascii_alphanumeric());
    let is_plain = text.chars().all(|c| c.is_ascii_alphanumeric() || ".-_+".contains(c));
    if starts_well && is_plain && text.len() <= MAX_NAME_BYTES && !is_reserved {
        return Ok(text.to_string());
    }
    Err(format!(
        "accepted: a letter or digit, then letters, digits, '.', '-', '_' and '+', at most \
         {MAX_NAME_BYTES}; not 'last' and not the name of a run file"
    ))
}

/// Last moment of RFC 3339, in seconds since 1970.
const LAST_SECOND: u64 = 253_402_300_799;

/// Limits a moment to the range of RFC 3339: a clock that is wrong may say 1969, or the year
/// 9,500,000.
pub(crate) fn in_range(moment: SystemTime) -> SystemTime {
    let last = UNIX_EPOCH + Duration::from_secs(LAST_SECOND);
    moment.clamp(UNIX_EPOCH, last)
}

/// Writes a moment in RFC 3339, to the second.
pub(crate) fn seconds_in_words(moment: SystemTime) -> String {
    humantime::format_rfc3339_seconds(in_range(moment)).to_string()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn any_clock_has_a_moment_in_words() {
        let day = Duration::from_secs(86_400);
        assert_eq!(seconds_in_words(UNIX_EPOCH - day), "1970-01-01T00:00:00Z");
        let far = UNIX_EPOCH + 3_000_000_000 * day;
        assert_eq!(seconds_in_words(far), "9999-12-31T23:59:59Z");
    }

    #[test]
    fn shares_and_durations_and_sizes() {
        assert_eq!(share("1%"), Ok(0.01));
        assert_eq!(share("0.02"), Ok(0.02));
        for bad in ["0", "0%", "100%", "1", "-1%", "nan", "x", ""] {
            assert!(share(bad).is_err(), "{bad}");
        }
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("1m 30s"), Ok(Duration::from_secs(90)));
        // As sleep(1) takes them.
        assert_eq!(duration("20"), Ok(Duration::from_secs(20)));
        assert_eq!(duration("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(duration(UNTIL_END), Ok(MAX_DURATION));
        for (text, extends) in [("20s", false), ("20+", true), ("20s+", true)] {
            assert_eq!(budget(text), Ok(TimeBudget { time: Duration::from_secs(20), extends }));
        }
        assert!(budget("+").is_err() && budget("20s++").is_err());
        for bad in ["0s", "0", "", "-20", "-1s", "nan", "inf", "1e99", "soon", "9999years"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
        assert_eq!(bytes("64K"), Ok(65536));
        assert_eq!(bytes("1MiB"), Ok(1 << 20));
        assert!(bytes("lots").is_err());
        assert_eq!(byte_sizes("256K,384K,512K"), Ok(vec![262_144, 393_216, 524_288]));
        assert!(byte_sizes("much").is_err());
        assert_eq!(whole(2..=1000_u32)("2"), Ok(2));
        for bad in ["1", "0", "-1", "1001", "six", ""] {
            assert!(whole(2..=1000_u32)(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn policies() {
        for (name, is) in
            [("normal", Policy::Other), ("SCHED_FIFO", Policy::Fifo), ("rr", Policy::Rr)]
        {
            assert_eq!(policy(name), Ok(is));
        }
        assert!(policy("fifo2").unwrap_err().contains("did you mean 'fifo'?"));
    }

    #[test]
    fn names_of_runs() {
        for good in ["base", "6.18-rc1", "a_b+c", "0"] {
            assert_eq!(run_name(good), Ok(good.to_string()));
        }
        let long = "a".repeat(65);
        for bad in
            ["", "last", "last~1", "a/b", "-a", "a b", "a,b", "history:x", "x.jsonl", "é", &long]
        {
            assert!(run_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn ring_sizes() {
        assert_eq!(sizes("2..16:x2,3"), Ok(vec![2, 3, 4, 8, 16]));
        for bad in ["0", "0..4", "4194305", "-2", "2.5", "", "99999999999999999999"] {
            let error = sizes(bad).unwrap_err();
            assert!(error.contains("accepted"), "{bad}: {error}");
        }
    }

    fn parse_plain(text: &str) -> Result<Vec<u64>, String> {
        parse_list(text, |t| t.parse::<u64>().map_err(|_| "not a whole number".to_string()))
    }

    #[test]
    fn lists_ranges_and_geometric_ranges() {
        assert_eq!(parse_plain("2,4, 8,4").unwrap(), [2, 4, 8]);
        assert_eq!(parse_plain("2..6").unwrap(), [2, 3, 4, 5, 6]);
        assert_eq!(parse_plain("2..9:3").unwrap(), [2, 5, 8]);
        assert_eq!(parse_plain("2..8:+3").unwrap(), [2, 5, 8]);
        assert_eq!(parse_plain("2..20:x2").unwrap(), [2, 4, 8, 16, 20]);
        assert_eq!(parse_plain("7..7").unwrap(), [7]);
        assert_eq!(parse_plain("1,10..1000:x10").unwrap(), [1, 10, 100, 1000]);
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (text, item) in [
            ("2,zwei", "zwei"),
            ("", ""),
            ("9..2", "9..2"),
            ("2..8:0", "2..8:0"),
            ("2..8:x1", "2..8:x1"),
            ("2..8:xx", "2..8:xx"),
            ("0..8:x2", "0..8:x2"),
            ("1..99999999", "1..99999999"),
            ("2..", "2.."),
            ("-4", "-4"),
        ] {
            let error = parse_plain(text).unwrap_err();
            assert!(error.starts_with(&format!("'{item}': ")), "{text}: {error}");
        }
    }

    #[test]
    fn the_largest_numbers_do_not_overflow() {
        let end = u64::MAX;
        assert_eq!(parse_plain(&format!("{}..{end}", end - 1)).unwrap(), [end - 1, end]);
        assert_eq!(parse_plain(&format!("{}..{end}:x3", end / 2)).unwrap(), [end / 2, end]);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,30}") {
            if let Ok(values) = parse_plain(&text) {
                prop_assert!(!values.is_empty());
                prop_assert!(values.windows(2).all(|w| w[0] < w[1]));
            }
        }
    }
}
