//! Known answers: runs whose costs are chosen, and the figures that they must become.

mod made;
mod others;
mod published;
mod responses;
mod rings;
mod working_sets;

use charts::{Figure, Point, Role, Scale, Series, Unit, together};

use super::*;

fn figure<'a>(figures: &'a [Figure], id: &str) -> &'a Figure {
    let ids = || figures.iter().map(|figure| figure.id.as_str()).collect::<Vec<_>>();
    figures.iter().find(|figure| figure.id == id).unwrap_or_else(|| panic!("{id} in {:?}", ids()))
}

fn series<'a>(figure: &'a Figure, role: Role, name: &str) -> &'a Series {
    let named = |series: &&Series| series.role == role && series.name == name;
    let all = || figure.series().iter().map(|s| (s.role, s.name.as_str())).collect::<Vec<_>>();
    figure.series().iter().find(named).unwrap_or_else(|| panic!("{role:?} {name} in {:?}", all()))
}

fn near(value: f64, wanted: f64) -> bool {
    (value / wanted - 1.0).abs() < 0.01
}
