//! How busy the machine is.

use model::machine::Load;
use model::reading::Reading;

use super::tree::{ReadError, Result, Tree, parse, reading};

pub(super) fn read(tree: &Tree) -> Load {
    let path = "/proc/loadavg";
    let text = reading(tree.text(path));
    let field = |index: usize| {
        text.as_ref().and_then(|text| {
            let field = text.split_whitespace().nth(index);
            reading(field.ok_or_else(|| ReadError::no_item(path, &format!("field {index}"))))
        })
    };
    let mean = |index| field(index).and_then(|item| reading(hundredths(path, item)));
    let tasks = field(3).and_then(|item| reading(pair(path, item)));
    Load {
        over_1_min: mean(0),
        over_5_min: mean(1),
        over_15_min: mean(2),
        runnable_tasks: tasks.as_ref().map(|(runnable, _)| *runnable),
        tasks: tasks.map(|(_, all)| all),
        uptime_s: uptime_s(tree),
    }
}

fn uptime_s(tree: &Tree) -> Reading<f64> {
    let path = "/proc/uptime";
    let text = reading(tree.word(path));
    text.and_then(|text| reading(hundredths(path, text.split(' ').next().unwrap_or_default())))
}

/// `12.34`. By way of a whole number, so that JSON gives back exactly what was read: `inf` and
/// `nan`, which `f64` takes too, have no JSON form.
fn hundredths(path: &str, item: &str) -> Result<f64> {
    let parts = item.split_once('.').filter(|(_, fraction)| fraction.len() == 2);
    let count = parts.and_then(|(whole, fraction)| {
        let whole = u64::from(whole.parse::<u32>().ok()?);
        Some(whole * 100 + u64::from(fraction.parse::<u8>().ok()?))
    });
    let count = count.ok_or_else(|| ReadError::invalid(path, item, "a number with two decimals"));
    Ok(count? as f64 / 100.0)
}

/// `3/123`.
fn pair(path: &str, item: &str) -> Result<(u64, u64)> {
    let parts = item.split_once('/');
    let (a, b) = parts.ok_or_else(|| ReadError::invalid(path, item, "two numbers with '/'"))?;
    Ok((parse(path, a)?, parse(path, b)?))
}
