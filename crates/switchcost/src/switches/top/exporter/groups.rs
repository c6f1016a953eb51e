//! Counters by control group, of a limited number of groups.

use std::collections::{BTreeMap, HashMap};

use super::growth::SwitchTotals;
use crate::report::output::exports::{Gauge, GaugeValue, Labels};
use crate::switches::top::counters::{CounterFamily, CounterValue};

/// Looks without a switch after which a control group gives its series to another one.
pub(super) const MAX_QUIET_LOOKS: u32 = 20;
/// So many times what the least active group with a series does is enough to take it...
const MIN_LEAD: f64 = 10.0;
/// ... in so many looks in a row.
const LEAD_LOOKS: u32 = 4;
/// Fewer switches in a look take no series from a group that is not quiet.
const MIN_LEAD_SWITCHES: f64 = 100.0;
/// The weight of a look in a group's average.
const LOOK_WEIGHT: f64 = 0.125;
/// The control group of all that have no series of their own. No path is called so.
pub(super) const OTHER: &str = "other";

/// The counters of a control group.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct GroupSeries {
    totals: SwitchTotals,
    /// Looks since its last switch.
    quiet_looks: u32,
    /// Switches in a look, on an average of the last ones.
    per_look: f64,
}

/// A control group without a series.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct WaitingGroup {
    /// Looks since its last switch.
    quiet_looks: u32,
    /// Looks in a row in which it did many times what the least active group with a series does.
    lead_looks: u32,
}

/// Counters by control group, of a limited number of groups.
///
/// What a group does while it has no series belongs to `other` for ever, so that no counter goes
/// back and nothing is counted twice.
#[derive(Debug)]
pub(super) struct GroupCounters {
    max_groups: usize,
    groups: BTreeMap<String, GroupSeries>,
    waiting: HashMap<String, WaitingGroup>,
    rest: SwitchTotals,
}

impl GroupCounters {
    pub(super) fn new(max_groups: usize) -> Self {
        Self {
            max_groups,
            groups: BTreeMap::new(),
            waiting: HashMap::new(),
            rest: SwitchTotals::default(),
        }
    }

    /// Adds what was done in a look by processes whose control group is not known.
    pub(super) fn add_unknown(&mut self, grown: SwitchTotals) {
        self.rest.add(grown);
    }

    /// Adds what control groups did in a look. Of groups without series those that switched most
    /// come first to what room there is.
    pub(super) fn add(&mut self, mut grown: HashMap<String, SwitchTotals>) {
        for (name, series) in &mut self.groups {
            let totals = grown.remove(name).unwrap_or_default();
            series.totals.add(totals);
            series.quiet_looks = if totals.switches() > 0 { 0 } else { series.quiet_looks + 1 };
            series.per_look += LOOK_WEIGHT * (totals.switches() as f64 - series.per_look);
        }
        for group in self.waiting.values_mut() {
            group.quiet_looks += 1;
        }
        let mut unknown = Vec::from_iter(grown);
        unknown.sort_by(|(a_name, a), (b_name, b)| {
            b.switches().cmp(&a.switches()).then_with(|| a_name.cmp(b_name))
        });
        for (name, totals) in unknown {
            if self.make_room(&name, totals) {
                self.waiting.remove(&name);
                let per_look = totals.switches() as f64;
                self.groups.insert(name, GroupSeries { totals, quiet_looks: 0, per_look });
            } else {
                self.rest.add(totals);
            }
        }
        self.waiting.retain(|_, group| group.quiet_looks < MAX_QUIET_LOOKS);
    }

    /// Returns whether there is room for the series of this group, after taking that of the group that
    /// has been quiet for longest, if that is long enough, or of the least active one, if this one has
    /// been far more active for long enough.
    fn make_room(&mut self, name: &str, totals: SwitchTotals) -> bool {
        if self.groups.len() < self.max_groups {
            return true;
        }
        let quietest = self.groups.iter().max_by_key(|(_, series)| series.quiet_looks);
        if let Some((quietest, series)) = quietest {
            if series.quiet_looks >= MAX_QUIET_LOOKS {
                let quietest = quietest.clone();
                self.groups.remove(&quietest);
                return true;
            }
        }
        let least = self.groups.iter().min_by(|(_, a), (_, b)| a.per_look.total_cmp(&b.per_look));
        let Some((least, series)) = least else { return false };
        let lead = (MIN_LEAD * series.per_look).max(MIN_LEAD_SWITCHES);
        let waiting = self.waiting.entry(name.to_string()).or_default();
        // A look without a switch of it is between: it is no longer in a row.
        let is_in_row = waiting.quiet_looks <= 1;
        waiting.quiet_looks = 0;
        let leads = totals.switches() as f64 >= lead;
        let earlier = if is_in_row { waiting.lead_looks } else { 0 };
        waiting.lead_looks = if leads { earlier + 1 } else { 0 };
        if waiting.lead_looks < LEAD_LOOKS {
            return false;
        }
        let least = least.clone();
        self.groups.remove(&least);
        true
    }

    /// Returns a line for each group, `other` last, with so many more labels and a figure.
    fn values(&self, kind: Option<&str>, figure: fn(SwitchTotals) -> f64) -> Vec<CounterValue> {
        let mut values = Vec::new();
        for (name, series) in &self.groups {
            values.push(group_value(name, kind, figure(series.totals)));
        }
        values.push(group_value(OTHER, kind, figure(self.rest)));
        values
    }

    pub(super) fn text(&self) -> String {
        let switches = CounterFamily {
            name: "switchcost_cgroup_switches",
            unit: "",
            help: "Switches of the tasks of a control group, yields among the involuntary ones.",
        };
        let mut values = self.values(Some("voluntary"), |totals| totals.voluntary as f64);
        values.extend(self.values(Some("involuntary"), |totals| totals.involuntary as f64));
        let cpu_time = CounterFamily {
            name: "switchcost_cgroup_cpu_seconds",
            unit: "seconds",
            help: "CPU time of the tasks of a control group.",
        };
        let times = self.values(None, |totals| totals.cpu_ns as f64 / 1e9);
        let waiting = Gauge {
            name: "switchcost_cgroups_in_other",
            unit: "",
            help: "Control groups that switched in the last 20 looks and have no series.",
        };
        let count = GaugeValue { labels: Labels::new(), value: self.waiting.len() as f64 };
        switches.text(&values) + &cpu_time.text(&times) + &waiting.text(&[count])
    }
}

fn group_value(group: &str, kind: Option<&str>, value: f64) -> CounterValue {
    let mut labels: Labels = vec![("cgroup".to_string(), group.to_string())];
    labels.extend(kind.map(|kind| ("kind".to_string(), kind.to_string())));
    CounterValue { labels, value }
}

#[cfg(test)]
mod tests {
    use super::super::growth::tests::totals;
    use super::*;

    fn grown(groups: &[(&str, u64)]) -> HashMap<String, SwitchTotals> {
        let mut grown = HashMap::new();
        for (name, switches) in groups {
            grown.insert((*name).to_string(), totals(*switches, 0));
        }
        grown
    }

    #[test]
    fn series_are_bounded_and_what_has_none_is_other() {
        let mut counters = GroupCounters::new(2);
        counters.add(grown(&[("/little", 1), ("/much", 30), ("/more", 40)]));
        counters.add_unknown(totals(5, 0));
        assert_eq!(Vec::from_iter(counters.groups.keys()), ["/more", "/much"]);
        assert_eq!(counters.rest, totals(6, 0));
        // A group that switches keeps its series, if a new one does much for a moment.
        counters.add(grown(&[("/little", 1_000), ("/much", 1)]));
        assert_eq!(counters.groups["/much"].totals, totals(31, 0));
        assert_eq!(counters.rest, totals(1_006, 0));
        assert_eq!(counters.waiting.len(), 1);
    }

    #[test]
    fn a_quiet_group_gives_its_series_away_and_no_counter_goes_back() {
        let mut counters = GroupCounters::new(1);
        counters.add(grown(&[("/quiet", 10)]));
        let mut rest = counters.rest;
        for look in 1..MAX_QUIET_LOOKS {
            counters.add(grown(&[("/new", 3)]));
            assert!(counters.groups.contains_key("/quiet"), "{look}");
            assert!(counters.rest.switches() >= rest.switches());
            rest = counters.rest;
        }
        counters.add(grown(&[("/new", 3)]));
        // What it did before stays where it was counted.
        assert_eq!(counters.groups["/new"].totals, totals(3, 0));
        assert_eq!((counters.groups.len(), counters.rest), (1, rest));
        assert_eq!(counters.waiting.len(), 0);
    }

    #[test]
    fn a_far_busier_group_takes_the_series_of_the_least_active_one() {
        let mut counters = GroupCounters::new(2);
        counters.add(grown(&[("/busy", 5_000), ("/idle", 20)]));
        // Not in a row: one look is without it, in another it does less.
        for switches in [9_000, 9_000, 9_000, 0, 9_000, 9_000, 9_000, 30] {
            let mut look = grown(&[("/busy", 5_000), ("/idle", 20)]);
            if switches > 0 {
                look.extend(grown(&[("/late", switches)]));
            }
            counters.add(look);
        }
        assert_eq!(Vec::from_iter(counters.groups.keys()), ["/busy", "/idle"]);
        let rest = counters.rest;
        assert_eq!(rest, totals(6 * 9_000 + 30, 0));
        for _ in 0..LEAD_LOOKS {
            counters.add(grown(&[("/busy", 5_000), ("/idle", 20), ("/late", 9_000)]));
        }
        assert_eq!(Vec::from_iter(counters.groups.keys()), ["/busy", "/late"]);
        // The last look is in its series, those before stay in the rest.
        assert_eq!(counters.groups["/late"].totals, totals(9_000, 0));
        assert_eq!(counters.rest, totals(rest.voluntary + 3 * 9_000, 0));
        // Two that are alike do not take turns.
        let mut counters = GroupCounters::new(1);
        for _ in 0..50 {
            counters.add(grown(&[("/one", 5_000), ("/two", 6_000)]));
        }
        assert_eq!(Vec::from_iter(counters.groups.keys()), ["/two"]);
    }

    #[test]
    fn each_group_has_lines_by_kind_and_a_group_cannot_end_a_line() {
        let mut counters = GroupCounters::new(1);
        counters.add(HashMap::from([("/a\"b".to_string(), totals(3, 1))]));
        counters.add(grown(&[("/c", 2)]));
        let expected = "\
# TYPE switchcost_cgroup_switches counter
# HELP switchcost_cgroup_switches Switches of the tasks of a control group, yields among the involuntary ones.
switchcost_cgroup_switches_total{cgroup=\"/a\\\"b\",kind=\"voluntary\"} 3
switchcost_cgroup_switches_total{cgroup=\"other\",kind=\"voluntary\"} 2
switchcost_cgroup_switches_total{cgroup=\"/a\\\"b\",kind=\"involuntary\"} 1
switchcost_cgroup_switches_total{cgroup=\"other\",kind=\"involuntary\"} 0
# TYPE switchcost_cgroup_cpu_seconds counter
# UNIT switchcost_cgroup_cpu_seconds seconds
# HELP switchcost_cgroup_cpu_seconds CPU time of the tasks of a control group.
switchcost_cgroup_cpu_seconds_total{cgroup=\"/a\\\"b\"} 0.000004
switchcost_cgroup_cpu_seconds_total{cgroup=\"other\"} 0.000002
# TYPE switchcost_cgroups_in_other gauge
# HELP switchcost_cgroups_in_other Control groups that switched in the last 20 looks and have no series.
switchcost_cgroups_in_other{} 1
";
        assert_eq!(counters.text(), expected);
    }
}
