//! VenturCom, "VENIX Kernel Response Time" (1984): `data/venix1984.csv` as typed values.

/// What one processor took, in milliseconds as printed.
#[derive(Debug, Clone, PartialEq)]
pub struct Processor {
    /// Its name.
    pub name: String,
    /// Its clock, where the memorandum says.
    pub clock_mhz: Option<f64>,
    /// A system call: getuid.
    pub system_call_ms: f64,
    /// Average interrupt latency, estimated.
    pub interrupt_latency_ms: f64,
    /// A signal to oneself, caught and its handler installed again.
    pub signal_ms: f64,
    /// Of that the kernel's processing.
    pub kernel_processing_ms: f64,
    /// A loop of two processes that send each other a signal.
    pub two_process_loop_ms: f64,
    /// A context switch.
    pub context_switch_ms: f64,
}

/// A line that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("venix1984.csv, line {line}: {what}")]
pub struct Venix1984Error {
    /// Its number, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub what: String,
}

/// Reads the text of `venix1984.csv`: comment lines, a header, a processor a line.
pub fn parse(text: &str) -> Result<Vec<Processor>, Venix1984Error> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.starts_with('#'));
    let read = |(index, line): (usize, &str)| {
        processor(line).map_err(|what| Venix1984Error { line: index + 1, what })
    };
    lines.skip(1).map(read).collect()
}

/// The figures that come with the program.
pub fn published() -> Result<Vec<Processor>, Venix1984Error> {
    parse(include_str!("../../../../data/venix1984.csv"))
}

fn processor(line: &str) -> Result<Processor, String> {
    let fields: Vec<&str> = line.split(',').collect();
    let [name, clock, call, latency, signal, processing, two_processes, switch] = fields[..] else {
        return Err(format!("{} fields instead of 8", fields.len()));
    };
    let clock_mhz = if clock.is_empty() { None } else { Some(positive(clock)?) };
    Ok(Processor {
        name: name.to_owned(),
        clock_mhz,
        system_call_ms: positive(call)?,
        interrupt_latency_ms: positive(latency)?,
        signal_ms: positive(signal)?,
        kernel_processing_ms: positive(processing)?,
        two_process_loop_ms: positive(two_processes)?,
        context_switch_ms: positive(switch)?,
    })
}

fn positive(field: &str) -> Result<f64, String> {
    match field.parse::<f64>() {
        Ok(number) if number.is_finite() && number > 0.0 => Ok(number),
        _ => Err(format!("'{field}' is not a time or frequency above 0")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_processors_as_printed() {
        let all = published().unwrap();
        let names: Vec<&str> = all.iter().map(|processor| &*processor.name).collect();
        assert_eq!(names, ["80186", "8088", "LSI 11/23"]);
        let clocks: Vec<Option<f64>> = all.iter().map(|processor| processor.clock_mhz).collect();
        assert_eq!(clocks, [Some(8.0), Some(4.77), None]);
        let Processor { system_call_ms, context_switch_ms, .. } = all[0];
        assert_eq!((system_call_ms, context_switch_ms), (0.36, 1.5));
        assert_eq!((all[2].signal_ms, all[2].two_process_loop_ms), (4.6, 13.5));
    }

    #[test]
    fn a_bad_line_is_named() {
        let header = "# source\nprocessor,...\n";
        for (line, word) in [
            ("80186,8,0.36", "3 fields"),
            ("80186,8,,0.1,1.2,0.2,5.4,1.5", "''"),
            ("80186,8,0,0.1,1.2,0.2,5.4,1.5", "'0'"),
            ("80186,8,0.36,0.1,1.2,0.2,5.4,inf", "'inf'"),
        ] {
            let error = parse(&format!("{header}{line}\n")).unwrap_err();
            assert_eq!(error.line, 3);
            assert!(error.what.contains(word), "{error}");
        }
    }
}
