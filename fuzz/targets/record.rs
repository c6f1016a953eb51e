//! What is computed of a run file that anybody may have written, and told as JSON.

#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use rundata::experiment::{Experiment, CaseKinds};
use analysis::record::{ExplainRecord, ResponseRecord, RingRecord, TrialRecord};
use rundata::run::Run;
use analysis::subject::Subject;

fuzz_mutator!(|data: &mut [u8], size: usize, most: usize, seed: u32| {
    fuzz::changed_lines(data, size, most, seed)
});

fuzz_target!(|data: &[u8]| {
    let Ok(run) = Run::parse(&String::from_utf8_lossy(data)) else { return };
    let experiment = run.header.plan.experiment;
    let told = match experiment.case_kinds() {
        CaseKinds::Both if experiment == Experiment::Explain => {
            serde_json::to_string(&ExplainRecord::from_run(&run))
        }
        CaseKinds::Rings => serde_json::to_string(&RingRecord::from_run(&run)),
        CaseKinds::Trials => serde_json::to_string(&TrialRecord::from_run(&run)),
        CaseKinds::Both => serde_json::to_string(&ResponseRecord::from_run(&run)),
    };
    told.expect("a record can be told");
    let _ = Subject::of_run(&run);
});
