//! The columns of tables and the facts of runs: docs/columns.md and the Python package's list are
//! what the program prints.
//! With UPDATE_SNAPSHOTS=1 both are written anew.

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

const ABOVE_FACTS: &str = "\n## Facts\n\n\
    Columns of `machine` in [Python](python.md#tables), and of `machines` in [datasets](fleet.md#columns). \
    *In the record*: where `runs export --format json` has it; `[]` is each item of a list.\n\n\
    | fact | tables | values | unit | in the record | meaning |\n|---|---|---|---|---|---|\n";

/// Returns a row of a table whose first cell is a name.
fn row(name: &str, cells: &[&str]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
    format!("| `{name}` | {} |\n", cells.join(" | "))
}

/// Returns a text of a declaration.
fn text<'a>(declaration: &'a Value, key: &str) -> &'a str {
    declaration[key].as_str().expect("text")
}

/// Returns the tables of a declaration with commas between them.
fn tables(declaration: &Value) -> String {
    let tables = declaration["tables"].as_array().expect("tables");
    let tables: Vec<&str> = tables.iter().filter_map(Value::as_str).collect();
    tables.join(", ")
}

fn as_markdown(columns: &[Value], facts: &[Value]) -> String {
    let mut markdown = ABOVE.to_string();
    for column in columns {
        let [name, kind, unit, meaning] =
            ["name", "kind", "unit", "meaning"].map(|key| text(column, key));
        markdown += &row(name, &[&tables(column), kind, unit, meaning]);
    }
    markdown += ABOVE_FACTS;
    for fact in facts {
        let [name, kind, unit, path, meaning] =
            ["name", "kind", "unit", "path", "meaning"].map(|key| text(fact, key));
        let path = if path.is_empty() { String::new() } else { format!("`{path}`") };
        markdown += &row(name, &[&tables(fact), kind, unit, &path, meaning]);
    }
    markdown
}

#[test]
fn the_docs_and_the_package_have_the_declared_columns_and_facts() {
    let said = Home::new().run(&["help", "schema", "columns"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let declared = said.json();
    let columns = declared["columns"].as_array().expect("columns");
    assert!(columns.len() > 100, "{} columns", columns.len());
    let facts = declared["facts"].as_array().expect("facts");
    assert!(facts.len() > 40, "{} facts", facts.len());
    assert_stored("docs/columns.md", &as_markdown(columns, facts));
    assert_stored("python/src/switchcost/columns.json", &said.out);
}
