//! How busy the machine was.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::reading::Reading;

/// How busy the machine was when it was read (proc_loadavg(5), proc_uptime(5)). All volatile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Load {
    /// Mean number of tasks that ran or waited for the disk, over a minute.
    pub over_1_min: Reading<f64>,
    /// Over five minutes.
    pub over_5_min: Reading<f64>,
    /// Over fifteen minutes.
    pub over_15_min: Reading<f64>,
    /// Tasks that run or could.
    pub runnable_tasks: Reading<u64>,
    /// All tasks.
    pub tasks: Reading<u64>,
    /// Time since the start of the machine.
    pub uptime_s: Reading<f64>,
}
