//! The formulas of the memorandum (VenturCom, "VENIX Kernel Response Time", June 1984). Any unit of
//! time; what comes out has the unit of what goes in. Signed.

/// System calls in a loop of simsig: kill, signal, and the signal's catch, which counts as one.
pub const CALLS_PER_SIGNAL: f64 = 3.0;

/// Average interrupt latency, by its estimate: a fourth of a system call.
pub fn interrupt_latency(system_call: f64) -> f64 {
    system_call / 4.0
}

/// What the kernel spends on processing a signal: its time less that of three system calls.
pub fn kernel_processing(signal: f64, system_call: f64) -> f64 {
    signal - CALLS_PER_SIGNAL * system_call
}

/// A context switch from a loop of two processes, in which there are two signals and two switches.
pub fn context_switch(two_process_loop: f64, signal: f64) -> f64 {
    (two_process_loop - 2.0 * signal) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::venix1984::{Processor, published};

    /// Whether a printed figure, one decimal in ms, can come of inputs that were themselves rounded:
    /// each may be off by half a unit of its last place.
    fn follows(printed: f64, computed: f64, inputs_off: f64) -> bool {
        (printed - computed).abs() <= 0.05 + inputs_off + 1e-9
    }

    fn of(name: &str) -> Processor {
        published().unwrap().into_iter().find(|processor| processor.name == name).unwrap()
    }

    #[test]
    fn its_switches_follow_from_its_loops_and_signals() {
        for (name, exact) in [("80186", 1.5), ("8088", 5.1), ("LSI 11/23", 2.15)] {
            let p = of(name);
            let switch = context_switch(p.two_process_loop_ms, p.signal_ms);
            assert!((switch - exact).abs() < 1e-9, "{name}: {switch}");
            assert!(follows(p.context_switch_ms, switch, 0.0), "{name}: {switch}");
        }
    }

    #[test]
    fn its_kernel_processing_follows_on_two_of_its_three_processors() {
        // 0.05 from the signal, three times 0.005 from the system call.
        for (name, exact, does) in
            [("80186", 0.12, true), ("8088", 0.64, true), ("LSI 11/23", 1.3, false)]
        {
            let p = of(name);
            let processing = kernel_processing(p.signal_ms, p.system_call_ms);
            assert!((processing - exact).abs() < 1e-9, "{name}: {processing}");
            // It prints 0.7 ms for the 11/23, of which it says that the system call is to be
            // "interpreted somewhat differently".
            assert_eq!(follows(p.kernel_processing_ms, processing, 0.065), does, "{name}");
        }
    }

    #[test]
    fn its_interrupt_latency_is_a_fourth_of_a_call_but_on_the_11_23() {
        for (name, does) in [("80186", true), ("8088", true), ("LSI 11/23", false)] {
            let p = of(name);
            let latency = interrupt_latency(p.system_call_ms);
            assert_eq!(follows(p.interrupt_latency_ms, latency, 0.0), does, "{name}: {latency}");
        }
    }

    #[test]
    fn less_than_nothing_stays_so() {
        assert!(kernel_processing(2.0, 1.0) < 0.0 && context_switch(1.0, 1.0) < 0.0);
    }
}
