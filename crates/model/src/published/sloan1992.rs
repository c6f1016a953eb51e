//! Sloan, "Context Switch Time Scalability: Benchmark Results" (1992), Appendix 1:
//! `data/sloan1992.csv` as typed values.

/// Laps of every run.
pub const LAPS: f64 = 1e6;

/// A ring of one size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    /// Members of the ring.
    pub processes: u32,
    /// Real time of a million laps, in seconds as printed.
    pub real_s: f64,
    /// CPU time of all members.
    pub cpu_s: f64,
    /// Its user part.
    pub user_s: f64,
    /// Its system part.
    pub system_s: f64,
    /// CPU time of the ring of two, scaled to this size, as printed.
    pub projected_s: f64,
}

impl Row {
    /// One of its times in nanoseconds a hop.
    pub fn ns_per_hop(&self, seconds: f64) -> f64 {
        seconds * 1e9 / (LAPS * f64::from(self.processes))
    }
}

/// A machine and its operating system.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    /// Who made it.
    pub vendor: String,
    /// Its model.
    pub model: String,
    /// Number of its CPUs.
    pub cpus: u32,
    /// Its operating system.
    pub system: String,
    /// By size of the ring, as printed.
    pub rows: Vec<Row>,
}

/// A line that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("sloan1992.csv, line {line}: {what}")]
pub struct Sloan1992Error {
    /// Its number, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub what: String,
}

/// Reads the text of `sloan1992.csv`: comment lines, a header, a ring a line, machine by machine.
pub fn parse(text: &str) -> Result<Vec<Machine>, Sloan1992Error> {
    let mut machines: Vec<Machine> = Vec::new();
    let lines = text.lines().enumerate().filter(|(_, line)| !line.starts_with('#'));
    for (index, line) in lines.skip(1) {
        let read = machine(line).map_err(|what| Sloan1992Error { line: index + 1, what })?;
        let known = machines
            .iter_mut()
            .find(|known| known.model == read.model && known.system == read.system);
        match known {
            Some(known) => known.rows.extend(read.rows),
            None => machines.push(read),
        }
    }
    Ok(machines)
}

/// The figures that come with the program.
pub fn published() -> Result<Vec<Machine>, Sloan1992Error> {
    parse(include_str!("../../../../data/sloan1992.csv"))
}

/// A line as a machine with one ring.
fn machine(line: &str) -> Result<Machine, String> {
    let fields: Vec<&str> = line.split(',').collect();
    let [vendor, model, cpus, system, processes, real, cpu, user, in_kernel, projected] =
        fields[..]
    else {
        return Err(format!("{} fields instead of 10", fields.len()));
    };
    let row = Row {
        processes: count(processes)?,
        real_s: seconds(real)?,
        cpu_s: seconds(cpu)?,
        user_s: seconds(user)?,
        system_s: seconds(in_kernel)?,
        projected_s: seconds(projected)?,
    };
    let (vendor, model, system) = (vendor.to_owned(), model.to_owned(), system.to_owned());
    Ok(Machine { vendor, model, cpus: count(cpus)?, system, rows: vec![row] })
}

fn count(field: &str) -> Result<u32, String> {
    let count = field.parse().ok().filter(|count| *count > 0);
    count.ok_or_else(|| format!("'{field}' is not a whole number above 0"))
}

fn seconds(field: &str) -> Result<f64, String> {
    match field.parse::<f64>() {
        Ok(number) if number.is_finite() && number > 0.0 => Ok(number),
        _ => Err(format!("'{field}' is not a time above 0")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nine_machines_as_printed() {
        let all = published().unwrap();
        assert_eq!(all.len(), 9);
        assert_eq!(all.iter().map(|machine| machine.rows.len()).sum::<usize>(), 78);
        let sun = all.iter().find(|machine| machine.model == "Sun-4/280").unwrap();
        assert_eq!((sun.cpus, &*sun.system), (1, "SunOS 4.1.1"));
        // 1294 seconds for a million laps of two hops: 647 us a hop.
        assert_eq!(sun.rows[0].ns_per_hop(sun.rows[0].real_s), 647_000.0);
    }

    #[test]
    fn a_bad_line_is_named() {
        let header = "# source\nvendor,...\n";
        for (line, word) in [
            ("IBM,370/4381,1", "3 fields"),
            ("IBM,370/4381,0,AIX,2,1,1,1,1,1", "'0'"),
            ("IBM,370/4381,1,AIX,2,-1,1,1,1,1", "'-1'"),
            ("IBM,370/4381,1,AIX,2,1,1,1,1,", "''"),
        ] {
            let error = parse(&format!("{header}{line}\n")).unwrap_err();
            assert_eq!(error.line, 3);
            assert!(error.what.contains(word), "{error}");
        }
    }
}
