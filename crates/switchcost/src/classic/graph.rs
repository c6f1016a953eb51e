//! Sloan's graph in text: CPU seconds against processes, with the projected line, to the scale of
//! both. 80 columns.

use model::scaling::projected;

/// Columns of the axis' figures, with the axis.
const MARGIN: usize = 11;
const WIDTH: usize = 80 - MARGIN;
const HEIGHT: usize = 20;

const MEASURED: char = 'o';
const PROJECTED: char = '.';

/// Of points (processes, CPU seconds), with those of the ring of two. `None` for less than two points.
pub(super) fn draw(points: &[(u32, f64)], cpu_of_two_s: Option<f64>) -> Option<String> {
    let largest = points.iter().map(|(processes, _)| *processes).max()?;
    let line = |processes: u32| cpu_of_two_s.map(|seconds| projected(seconds, processes));
    let top = points.iter().map(|(_, cpu)| *cpu).chain(line(largest)).fold(0.0, f64::max);
    if points.len() < 2 || top <= 0.0 {
        return None;
    }
    let column = |processes: f64| (processes / f64::from(largest) * (WIDTH - 1) as f64).round();
    let row = |seconds: f64| (HEIGHT - 1) - (seconds / top * (HEIGHT - 1) as f64).round() as usize;
    let mut grid = vec![[' '; WIDTH]; HEIGHT];
    if let Some(slope) = line(largest).map(|last| last / (WIDTH - 1) as f64) {
        for x in 0..WIDTH {
            grid[row(slope * x as f64)][x] = PROJECTED;
        }
    }
    for (processes, cpu_s) in points {
        grid[row(*cpu_s)][column(f64::from(*processes)) as usize] = MEASURED;
    }
    Some(frame(&grid, top, largest))
}

/// Puts the axes round it. Every fifth row has its figure.
fn frame(grid: &[[char; WIDTH]], top: f64, largest: u32) -> String {
    let mut lines = vec!["CPU Seconds".to_string()];
    for (y, cells) in grid.iter().enumerate() {
        let value = top * (HEIGHT - 1 - y) as f64 / (HEIGHT - 1) as f64;
        let label = match y % 5 == 0 || y == HEIGHT - 1 {
            true => figure(value),
            false => String::new(),
        };
        let cells: String = cells.iter().collect();
        lines.push(format!("{label:>9} |{}", cells.trim_end()));
    }
    lines.push(format!("{:>9} +{}", "", "-".repeat(WIDTH)));
    let right = largest.to_string();
    let middle = "Processes";
    let left_gap = (WIDTH - middle.len()) / 2;
    let right_gap = WIDTH - left_gap - middle.len() - right.len();
    lines.push(format!("{:>MARGIN$}{:left_gap$}{middle}{:right_gap$}{right}", "0", "", ""));
    lines.join("\n")
}

/// Fits into the margin.
fn figure(value: f64) -> String {
    match value {
        0.0 => "0".to_string(),
        value if value >= 1e3 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(processes: u32, cpu_s: u32) -> (u32, f64) {
        (processes, f64::from(cpu_s))
    }

    /// The Sun-4/280, whose knee lies at sixteen processes.
    fn sun() -> Vec<(u32, f64)> {
        let table = [
            (2, 873),
            (4, 1835),
            (8, 3788),
            (10, 4569),
            (16, 21874),
            (20, 27461),
            (32, 50551),
            (48, 75362),
            (64, 96545),
        ];
        table.iter().map(|(processes, cpu)| point(*processes, *cpu)).collect()
    }

    #[test]
    fn it_is_80_columns_wide_and_has_every_point() {
        let text = draw(&sun(), Some(873.0)).unwrap();
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
        let marks = text.lines().filter(|line| line.contains('|')).flat_map(str::chars);
        assert_eq!(marks.filter(|mark| *mark == MEASURED).count(), 9, "{text}");
        assert!(text.ends_with("64"), "{text}");
    }

    #[test]
    fn the_largest_is_at_the_top_right_and_the_line_below_it() {
        let text = draw(&sun(), Some(873.0)).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1].find(MEASURED), Some(79), "{text}");
        assert!(lines[1].starts_with("    96545 |"), "{text}");
        // 27936 s at 64 processes: at 29 % of the height.
        let ends = lines.iter().position(|line| line.len() == 80 && line.ends_with(PROJECTED));
        assert_eq!(ends, Some(1 + 14), "{text}");
    }

    #[test]
    fn perfect_scaling_lies_on_the_line() {
        let points = [point(2, 10), point(4, 20), point(64, 320)];
        let text = draw(&points, Some(10.0)).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1].find(MEASURED), Some(79), "{text}");
        assert!(!lines[1].contains(PROJECTED) || lines[1].len() == 80, "{text}");
    }

    #[test]
    fn one_point_is_no_graph_and_without_a_ring_of_two_there_is_no_line() {
        assert_eq!(draw(&[point(2, 1)], Some(1.0)), None);
        assert_eq!(draw(&[], None), None);
        assert_eq!(draw(&[point(2, 0), point(4, 0)], Some(0.0)), None);
        let text = draw(&[point(4, 1), point(8, 3)], None).unwrap();
        let marks = |mark| text.lines().filter(|l| l.contains('|')).any(|l| l[11..].contains(mark));
        assert!(marks(MEASURED) && !marks(PROJECTED), "{text}");
    }
}
