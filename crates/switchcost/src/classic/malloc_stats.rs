//! `malloc_stats [bytes [trials]]`: what malloc costs by size of the block, by getpinfo() (Hines et al.
//! 2000, section 4, Table 2).

use std::process::ExitCode;

use model::trial::Tally;
use probe::classic::Block;
use threadclock::{CpuTime, getpinfo};

use super::argument::sizes;
use super::{Call, ask_the_kernel_rarely, or_dash, print};

pub(super) fn run(call: &Call) -> ExitCode {
    let told = sizes(call, "[bytes [trials]]", u32::MAX)
        .and_then(|(sizes, trials)| tell(call, &sizes, trials));
    told.err().unwrap_or(ExitCode::SUCCESS)
}

fn tell(call: &Call, sizes: &[u32], trials: u32) -> Result<(), ExitCode> {
    ask_the_kernel_rarely();
    let nothing = of_nothing(trials);
    print("  bytes  average cycles  std. dev.  without getpinfo()       us\n")?;
    let mut all = Vec::new();
    for bytes in sizes {
        let Some(times) = allocate(*bytes as usize, trials) else {
            let blocks = format!("malloc gave no {trials} blocks of {bytes} bytes");
            return Err(call.fail(&format!("{blocks}: ask for smaller or fewer ones"), 1));
        };
        let figures = Figures::of(&times, &nothing);
        print(&figures.row(&bytes.to_string()))?;
        all.extend(times);
    }
    if sizes.len() > 1 {
        print(&Figures::of(&all, &nothing).row("all"))?;
    }
    Ok(())
}

fn now() -> CpuTime {
    getpinfo(0).unwrap_or_default()
}

/// What getpinfo() itself takes.
#[inline(never)]
fn of_nothing(trials: u32) -> Vec<Taken> {
    now();
    let mut all = Vec::with_capacity(trials as usize);
    for _ in 0..trials {
        let start = now();
        all.push(Taken::between(start, now()));
    }
    all
}

/// Allocates all blocks, then frees them. Measured code.
#[inline(never)]
fn allocate(bytes: usize, trials: u32) -> Option<Vec<Taken>> {
    // Room for all before the first: nothing of our own is allocated between two calls.
    let mut all = Vec::with_capacity(trials as usize);
    let mut blocks = Vec::with_capacity(trials as usize);
    for _ in 0..trials {
        let start = now();
        let block = Block::new(bytes);
        all.push(Taken::between(start, now()));
        blocks.push(block);
    }
    let complete = blocks.iter().all(Option::is_some);
    blocks.into_iter().flatten().for_each(Block::free);
    complete.then_some(all)
}

/// CPU time between two readings; signed, as all differences are.
#[derive(Clone, Copy)]
struct Taken {
    cycles: i64,
    ns: i64,
}

impl Taken {
    fn between(start: CpuTime, end: CpuTime) -> Self {
        Self {
            cycles: end.cycles as i64 - start.cycles as i64,
            ns: end.ns as i64 - start.ns as i64,
        }
    }
}

struct Figures {
    mean: Option<f64>,
    sd: Option<f64>,
    net_cycles: Option<f64>,
    net_us: Option<f64>,
}

impl Figures {
    fn of(taken: &[Taken], nothing: &[Taken]) -> Self {
        let tally = |all: &[Taken], of: fn(&Taken) -> i64| Tally::from_iter(all.iter().map(of));
        let (cycles, ns) = (tally(taken, |t| t.cycles), tally(taken, |t| t.ns));
        let net =
            |all: &Tally, of: fn(&Taken) -> i64| Some(all.mean()? - tally(nothing, of).mean()?);
        Self {
            mean: cycles.mean(),
            sd: cycles.sd(),
            net_cycles: net(&cycles, |t| t.cycles),
            net_us: net(&ns, |t| t.ns).map(|ns| ns / 1e3),
        }
    }

    fn row(&self, name: &str) -> String {
        format!(
            "{name:>7}  {:>14}  {:>9}  {:>18}  {:>7}\n",
            or_dash(self.mean, 1),
            or_dash(self.sd, 1),
            or_dash(self.net_cycles, 1),
            or_dash(self.net_us, 3)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn getpinfo_is_taken_off_and_the_sign_kept() {
        let all = |values: &[i64]| -> Vec<Taken> {
            values.iter().map(|v| Taken { cycles: *v, ns: *v * 10 }).collect()
        };
        let figures = Figures::of(&all(&[600, 800]), &all(&[100, 120]));
        assert_eq!(
            figures.row("100"),
            "    100           700.0      141.4               590.0    5.900\n"
        );
        let figures = Figures::of(&all(&[100]), &all(&[110]));
        assert_eq!(
            figures.row("all"),
            "    all           100.0          -               -10.0   -0.100\n"
        );
    }
}
