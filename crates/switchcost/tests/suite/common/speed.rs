//! What a test says that is known of the CPU it runs on: in the table, seen before, or never seen.

use std::fs;
use std::sync::OnceLock;

use analysis::speed::cpu_key;
use rundata::run::Run;
use serde_json::{Value, json};

use super::Home;

/// What is known of a CPU before a run, whatever CPU it is.
#[derive(Clone, Copy, Debug)]
pub enum Known {
    /// It is in the program's table, with this ratio.
    InTable(f64),
    /// So many launches have seen that ratio.
    Seen(f64, u32),
    /// Nobody has measured it.
    Never,
}

/// The CPU that a stored run measured on, as the table has it; absent where the machine does not
/// say which it is.
pub fn cpu_of(home: &Home) -> Option<String> {
    let text = fs::read_to_string(home.run_files().pop().expect("a run")).expect("a file");
    let header = Run::parse(&text).expect("a run").header;
    cpu_key(&header.machine, *header.plan.cpus().first()?)
}

/// The CPU that a ring is measured on here.
pub fn cpu() -> Option<String> {
    static CPU: OnceLock<Option<String>> = OnceLock::new();
    let measure = || {
        let home = Home::new();
        home.measure(&["--members", "2", "--rounds", "1", "--laps", "9", "--placement", "same"]);
        cpu_of(&home)
    };
    CPU.get_or_init(measure).clone()
}

impl Home {
    /// Has the program find this of the CPU, and of no other.
    pub fn know(&self, cpu: &str, known: Known) {
        let (table, seen) = match known {
            Known::InTable(ratio) => (json!({cpu: ratio}), json!({})),
            Known::Seen(ratio, launches) => {
                (json!({}), json!({cpu: [{"ratio": ratio, "launches": launches}]}))
            }
            Known::Never => (json!({}), json!({})),
        };
        self.state(&json!({"cpus": seen, "table": table}).to_string());
    }

    /// Puts a text in the place of what is known of CPUs.
    pub fn state(&self, text: &str) {
        let folder = self.path().join("state/switchcost");
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("full-speed.json"), text).expect("a file");
    }

    /// What the program has written of CPUs; null where there is nothing.
    pub fn state_now(&self) -> Value {
        let file = self.path().join("state/switchcost/full-speed.json");
        fs::read(file).map_or(Value::Null, |text| serde_json::from_slice(&text).expect("JSON"))
    }
}
