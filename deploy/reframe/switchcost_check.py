"""ReFrame: measures rings of 2 and 64 on each system, and asserts what a switch costs there (docs/fleet.md).

    reframe --checkpath deploy/reframe --run --performance-report
    reframe ... -S SwitchCost.program=/opt/switchcost/bin/switchcost -S SwitchCost.budget=30s
"""

import csv

import reframe as rfm
import reframe.utility.sanity as sn

# Nanoseconds: what is expected, and by which share it may be below and above. None asserts nothing.
REFERENCES = {
    # "daint:normal": {"switch_2": (1500, -0.2, 0.1, "ns"), "switch_64": (2200, -0.2, 0.1, "ns")},
    "*": {"switch_2": (0, None, None, "ns"), "switch_64": (0, None, None, "ns")},
}


@rfm.simple_test
class SwitchCost(rfm.RunOnlyRegressionTest):
    program = variable(str, value="switchcost")
    budget = variable(str, value="20s")

    descr = "What a context switch costs"
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    num_tasks = 1
    exclusive_access = True
    # The run files: `switchcost fleet collect --dataset DIR OUTPUT-OF-REFRAME` takes them.
    keep_files = ["switchcost", "ring.csv"]
    reference = REFERENCES

    @run_before("run")
    def set_command(self):
        self.env_vars = {"XDG_DATA_HOME": "$PWD", "XDG_STATE_HOME": "$PWD"}
        self.executable = self.program
        # Not `measure`: in a short time it has no ring of 64.
        self.executable_opts = ["ring", "--members", "2,64", "--budget", self.budget, "--name", "reframe", "--quiet"]
        self.postrun_cmds = [f"{self.program} runs export reframe --format summary-csv --output ring.csv"]

    @sanity_function
    def has_both_rings(self):
        return sn.all([sn.assert_true(ring_ns(2)), sn.assert_true(ring_ns(64))])

    @performance_function("ns")
    def switch_2(self):
        return ring_ns(2)

    @performance_function("ns")
    def switch_64(self):
        return ring_ns(64)


@sn.deferrable
def ring_ns(members):
    """The cost of a switch in a ring of so many; the test's folder is the current one."""
    with open("ring.csv") as file:
        rows = [row for row in csv.DictReader(file) if row["members"] == str(members)]
    # Rings are measured under SCHED_FIFO, too, where that is allowed and others use the CPU. The normal policy's is first.
    rows.sort(key=lambda row: row["policy"] != "other")
    for row in rows:
        if row["estimate"]:
            return float(row["estimate"])
    raise ValueError(f"no cost that may be quoted: {rows[0]['not_quotable'] if rows else 'the ring was not measured'}")
