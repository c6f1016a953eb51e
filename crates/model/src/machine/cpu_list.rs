//! The kernel's list format for sets of CPUs: `0-3,8`.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// CPU numbers at or above this are refused; the largest `CONFIG_NR_CPUS` of any architecture is
/// 8,192. Without a bound, `0-4294967295` in a damaged file would fill the memory.
const MAX_CPUS: u32 = 65_536;

/// A set of CPU numbers, sorted and each once. Text and JSON hold it in the kernel's list format
/// (`0-3,8`; empty for none), see "List format" in cpuset(7).
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct CpuList(Vec<u32>);

/// Why a text is not a CPU list; the message names the bad item.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct CpuListError(String);

impl CpuList {
    /// The CPU numbers, rising.
    pub fn as_slice(&self) -> &[u32] {
        &self.0
    }

    /// The CPU numbers, rising.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().copied()
    }

    /// How many CPUs there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the CPU is in the set.
    pub fn contains(&self, cpu: u32) -> bool {
        self.0.binary_search(&cpu).is_ok()
    }

    /// Whether every CPU of this set is in the other.
    pub fn is_subset(&self, other: &CpuList) -> bool {
        self.iter().all(|cpu| other.contains(cpu))
    }
}

impl FromIterator<u32> for CpuList {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> Self {
        let mut cpus: Vec<u32> = cpus.into_iter().collect();
        cpus.sort_unstable();
        cpus.dedup();
        CpuList(cpus)
    }
}

impl FromStr for CpuList {
    type Err = CpuListError;

    fn from_str(text: &str) -> Result<Self, CpuListError> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(CpuList::default());
        }
        // A set, not a list of ranges: `0-65535` a thousand times over stays small.
        let mut present = Vec::new();
        for item in text.split(',') {
            let (first, last) = parse_item(item.trim()).map_err(CpuListError)?;
            if present.len() <= last as usize {
                present.resize(last as usize + 1, false);
            }
            present[first as usize..=last as usize].fill(true);
        }
        Ok((0..).zip(present).filter(|(_, is_in)| *is_in).map(|(cpu, _)| cpu).collect())
    }
}

fn parse_item(item: &str) -> Result<(u32, u32), String> {
    let number = |text: &str| match text.parse::<u64>() {
        Ok(cpu) if cpu < u64::from(MAX_CPUS) => Ok(cpu as u32),
        Ok(_) => Err(format!("'{item}' names a CPU of {MAX_CPUS} or more")),
        Err(_) => Err(format!("'{item}' is neither a CPU number nor a range")),
    };
    let (first, last) = item.split_once('-').unwrap_or((item, item));
    match (number(first)?, number(last)?) {
        (first, last) if first > last => Err(format!("the range '{item}' ends before it begins")),
        range => Ok(range),
    }
}

impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs = self.0.chunk_by(|a, b| a + 1 == *b);
        let item = |run: &[u32]| match run {
            [first, .., last] => format!("{first}-{last}"),
            _ => run[0].to_string(),
        };
        f.write_str(&runs.map(item).collect::<Vec<_>>().join(","))
    }
}

impl TryFrom<String> for CpuList {
    type Error = CpuListError;

    fn try_from(text: String) -> Result<Self, CpuListError> {
        text.parse()
    }
}

impl From<CpuList> for String {
    fn from(list: CpuList) -> String {
        list.to_string()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_kernels_format_is_read_and_printed() {
        for (text, cpus) in [
            ("", vec![]),
            ("0", vec![0]),
            ("0-3,8", vec![0, 1, 2, 3, 8]),
            ("0-1,4-5,7", vec![0, 1, 4, 5, 7]),
        ] {
            let list: CpuList = text.parse().unwrap();
            assert_eq!(list.as_slice(), cpus);
            assert_eq!(list.to_string(), text);
        }
        assert_eq!("8,0-2,1\n".parse::<CpuList>().unwrap().to_string(), "0-2,8");
    }

    #[test]
    fn errors_name_the_bad_item() {
        for (text, message) in [
            ("0-3,x", "'x' is neither a CPU number nor a range"),
            ("0,,2", "'' is neither a CPU number nor a range"),
            ("-1", "'-1' is neither a CPU number nor a range"),
            ("0,5-2", "the range '5-2' ends before it begins"),
            ("0-4294967295", "'0-4294967295' names a CPU of 65536 or more"),
        ] {
            assert_eq!(text.parse::<CpuList>().unwrap_err().to_string(), message);
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(cpus in proptest::collection::vec(0_u32..300, 0..40)) {
            let list: CpuList = cpus.into_iter().collect();
            prop_assert_eq!(list.to_string().parse::<CpuList>().unwrap(), list);
        }

        #[test]
        fn any_text_is_a_list_or_an_error(text: String) {
            let _ = text.parse::<CpuList>();
        }
    }
}
