"""The facts of a run: columns of `machine`, and of `machines` in a fleet's dataset (docs/python.md, "Tables")."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from switchcost._program import printable

_LONGEST = 4096


def _plain(value: Any) -> Any:
    """As it is; the different values of a list, `name: value` of a map."""
    if isinstance(value, list):
        return ", ".join(sorted({str(one) for one in value if one is not None}))
    if isinstance(value, dict):
        return "; ".join(f"{name}: {known}" for name in sorted(value) if (known := _at(value, name)) is not None)
    return value


def _first(values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def _count(items: Any) -> int | None:
    return len(items) if items else None


def _steppings(models: Any) -> str:
    keys = ("family", "model", "stepping")
    return ", ".join(sorted({"-".join(str(_at(one, key)) for key in keys) for one in models or []}))


def _hypervisor(facts: Any) -> str | None:
    """Its name where one is known, else whether CPUID says that there is one."""
    flag = _at(facts, "cpu_flag")
    if flag is False:
        return "none"
    names = ("hypervisor_type", "dmi_vendor", "dmi_product", "device_tree_hypervisor")
    return " ".join(name for key in names if (name := _at(facts, key))) or ("yes" if flag else None)


def _end(end: Any) -> str | None:
    return "killed" if end is None else _at(end, "reason")


class Fact(NamedTuple):
    """A column."""

    name: str
    #: See `tables.kind`.
    kind: str
    #: Where the record has it; `[]` is each item of a list.
    path: str
    meaning: str
    #: What makes the column's value of what is there, which is None where it is not known.
    reads: Callable[[Any], Any] = _plain


FACTS = (
    Fact("name", "str", "header.name", "the run's name, if one was given"),
    Fact("experiment", "str", "header.plan.experiment", "`ring`, `cost`, ..."),
    Fact("build_version", "str", "header.build.version", "the program"),
    Fact("build_commit", "str", "header.build.commit", "the program's source"),
    Fact("build_target", "str", "header.build.target", "what it was built for"),
    Fact("end_reason", "str", "end", "why the run ended; `killed`: it has no end", _end),
    Fact("noise", "str", "noise.level", "the verdict on the machine's noise"),
    Fact("noise_reasons", "str", "noise.reasons", "why", lambda words: "; ".join(words or [])),
    Fact("clean_share", "float", "noise.clean_share", "share of slices at full speed"),
    Fact("clock_ghz", "float", "speed[].clock_ghz", "the core's clock as it was measured", _first),
    Fact("load_1_min", "float", "header.machine.load.over_1_min", "load when the run started"),
    Fact("kernel_release", "str", "header.machine.kernel.release", "`uname -r`"),
    Fact("kernel_version", "str", "header.machine.kernel.version", "`uname -v`"),
    Fact("kernel_command_line", "str", "header.machine.kernel.command_line", "up to `--`"),
    Fact("hz", "int", "header.machine.kernel.hz", "timer interrupts a second"),
    Fact("preemption", "str", "header.machine.kernel.preemption.model", "`none`, `voluntary`, `full`, `lazy`"),
    Fact("realtime_kernel", "bool", "header.machine.kernel.preemption.realtime", "CONFIG_PREEMPT_RT"),
    Fact("clock_source", "str", "header.machine.kernel.clock_source.current", "`tsc`, `kvm-clock`, ..."),
    Fact("mitigations", "str", "header.machine.mitigations", "`name: state` of each vulnerability, by name"),
    Fact("cpu_vendor", "str", "header.machine.cpu.models[].vendor", "several kinds of CPU have commas between them"),
    Fact("cpu_model", "str", "header.machine.cpu.models[].name", "the same"),
    Fact("cpu_stepping", "str", "header.machine.cpu.models", "family-model-stepping", _steppings),
    Fact("microcode", "str", "header.machine.cpu.models[].microcode", "its revision"),
    Fact("cpus_online", "int", "header.machine.cpu.topology", "CPUs that run", _count),
    Fact("smt_control", "str", "header.machine.cpu.smt_control", "`on`, `off`, `forceoff`, `notsupported`, ..."),
    Fact("numa_nodes", "int", "header.machine.numa.nodes", "memory nodes", _count),
    Fact("frequency_driver", "str", "header.machine.frequency.policies[].driver", "several have commas between them"),
    Fact("frequency_governor", "str", "header.machine.frequency.policies[].governor", "the same"),
    Fact("boost", "bool", "header.machine.frequency.boost", "whether CPUs may run above their nominal frequency"),
    Fact("idle_driver", "str", "header.machine.frequency.idle_driver", ""),
    Fact("idle_governor", "str", "header.machine.frequency.idle_governor", ""),
    Fact("hypervisor", "str", "header.machine.virtualization", "`none`, `yes` or its name", _hypervisor),
    Fact("cpu_flag", "bool", "header.machine.virtualization.cpu_flag", "whether CPUID says that there is a hypervisor"),
    Fact("dmi_vendor", "str", "header.machine.virtualization.dmi_vendor", "the system's vendor"),
    Fact("dmi_product", "str", "header.machine.virtualization.dmi_product", "the system"),
    Fact("memory_bytes", "int", "header.machine.memory.total_bytes", "MemTotal"),
    Fact("thp_enabled", "str", "header.machine.memory.thp_enabled", "of huge pages: `always`, `madvise`, `never`"),
    Fact("cgroup_levels", "int", "header.machine.cgroup.cpu_levels", "groups with a CPU controller above the process"),
)


def facts_of(record: dict[str, Any]) -> dict[str, Any]:
    """The facts of a record by column; None where one is not known."""
    return {fact.name: _value(fact, _at(record, fact.path)) for fact in FACTS}


def _value(fact: Fact, found: Any) -> Any:
    value = fact.reads(found)
    return printable(str(value), _LONGEST) or None if fact.kind == "str" and value is not None else value


def _at(value: Any, path: str) -> Any:
    """What lies at a path; None where it is absent or `{"unknown": why}`, of a list what each item has there."""
    path, _, of_each = path.partition("[].")
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    if isinstance(value, dict) and "unknown" in value:
        return None
    return [_at(item, of_each) for item in value or []] if of_each else value
