use super::*;

#[test]
fn every_published_machine_has_a_name_of_its_own_and_figures() {
    let all = published().unwrap();
    let names: Vec<&str> = all.iter().map(|machine| &*machine.name).collect();
    assert_eq!(
        names,
        [
            "80186",
            "8088",
            "lsi-11/23",
            "aviion-av400",
            "hp-9000/720",
            "370/4381",
            "rs6000/530-aix-3.1",
            "rs6000/530-aix-3.2",
            "702/e",
            "sun-4/280",
            "sun-4/470",
            "sun-4/630",
            "pentium-pro/166",
            "xeon-2.0",
        ]
    );
    assert!(all.is_sorted_by_key(|machine| machine.year));
    assert!(all.iter().all(|machine| !machine.cases.is_empty()));
    // Of several CPUs the scheduler chose.
    let solbourne = all.iter().find(|machine| machine.name == "702/e").unwrap();
    assert_eq!(solbourne.subject().cases[0].label("placement"), Some("free"));
}

/// The memorandum's switch is half a loop less a signal, to the digit that it prints.
#[test]
fn the_switch_of_1984_is_the_difference_of_its_rings() {
    for machine in published().unwrap().iter().filter(|machine| machine.year == 1984) {
        let figure = |case: usize, of: Quantity| {
            let figures = &machine.cases[case].figures;
            figures[&of]
        };
        let difference = figure(1, Quantity::NsPerHop) - figure(0, Quantity::NsPerHop);
        let printed = figure(1, Quantity::NsPerSwitchAboveSolo);
        assert!((difference - printed).abs() < 0.051e6, "{}: {difference} {printed}", machine.name);
    }
}

#[test]
fn a_run_of_rings_has_the_figures_of_its_record() {
    let run = crate::run::Run::parse(include_str!("../../tests/fixtures/run-v1.jsonl")).unwrap();
    let record = crate::record::Record::of(&run);
    let subject = Subject::of_run(&run);
    for (case, summary) in subject.cases.iter().zip(&record.cases) {
        let middle = |of: Quantity| case.figure(of).and_then(|figure| figure.values.middle());
        let value = |estimate: Option<crate::estimate::Estimate>| estimate.map(|e| e.value);
        assert_eq!(middle(Quantity::NsPerHop), value(summary.ns_per_hop));
        let above = value(summary.ns_per_switch_above_solo);
        assert_eq!(middle(Quantity::NsPerSwitchAboveSolo), above);
        let by_cpu = value(summary.cpu_ns_per_switch_above_solo);
        assert_eq!(middle(Quantity::CpuNsPerSwitchAboveSolo), by_cpu);
    }
    assert_eq!(subject.cases[1].label("members"), Some("2"));
    assert_eq!(subject.cases[1].label("work"), None);
}
