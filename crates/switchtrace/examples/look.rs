//! Traces for a second and prints the busiest threads.
use std::{thread, time::Duration};

fn main() -> Result<(), switchtrace::Error> {
    let tracer = switchtrace::Tracer::open(&switchtrace::Options::default())?;
    thread::sleep(Duration::from_secs(1));
    let mut threads = tracer.threads();
    threads.sort_by_key(|thread| std::cmp::Reverse(thread.bursts.total()));
    for thread in threads.iter().take(10) {
        println!(
            "{:>7} {:16} {:>9} switches, waits {:?}, bursts {:?}",
            thread.key.tid,
            thread.comm,
            thread.bursts.total(),
            thread.waits.quantile_ns(0.5),
            thread.bursts.quantile_ns(0.5)
        );
    }
    let mut pairs = tracer.pairs();
    pairs.sort_by_key(|pair| std::cmp::Reverse(pair.voluntary + pair.involuntary));
    println!("{} threads; {:?}; {:?}", threads.len(), tracer.lost(), &pairs[..pairs.len().min(3)]);
    Ok(())
}
