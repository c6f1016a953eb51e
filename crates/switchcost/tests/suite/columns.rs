//! The columns of tables: docs/columns.md and the Python package's list are what the program prints.
//! With UPDATE_SNAPSHOTS=1 both are written anew.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

use crate::common::Home;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Stores `text` in a file of the repository if that is asked for, and compares it.
fn assert_stored(path: &str, text: &str) {
    let path = Path::new(ROOT).join(path);
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(&path, text).expect("a file");
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(stored, text, "{}: run this test with UPDATE_SNAPSHOTS=1", path.display());
}

const ABOVE: &str = "# Columns\n\n\
    Columns of `samples` (`--csv`, `runs export --format csv`), `cases` (`runs export --format summary-csv`) and \
    `commands` (`run --csv`), as `switchcost help schema columns` prints them. \
    Cells are empty where a value is not known or does not apply, never 0. \
    The [Python package](python.md) has `samples` and `cases` as tables, [datasets](fleet.md#dataset) too.\n\n\
    | column | tables | values | unit | meaning |\n|---|---|---|---|---|\n";

fn as_markdown(columns: &[Value]) -> String {
    let mut text = ABOVE.to_string();
    for column in columns {
        let word = |name: &str| column[name].as_str().expect("text").replace('|', "\\|");
        let tables: Vec<&str> =
            column["tables"].as_array().expect("tables").iter().filter_map(Value::as_str).collect();
        let _ = writeln!(
            text,
            "| `{}` | {} | {} | {} | {} |",
            word("name"),
            tables.join(", "),
            word("kind"),
            word("unit"),
            word("meaning")
        );
    }
    text
}

#[test]
fn the_docs_and_the_package_have_the_declared_columns() {
    let said = Home::new().run(&["help", "schema", "columns"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let declared = said.json();
    let columns = declared["columns"].as_array().expect("columns");
    assert!(columns.len() > 100, "{} columns", columns.len());
    assert_stored("docs/columns.md", &as_markdown(columns));
    assert_stored("python/src/switchcost/columns.json", &said.out);
}
