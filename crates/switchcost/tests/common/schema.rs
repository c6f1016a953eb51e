//! The schemas in docs/, and what has to hold by them.

use std::fs;
use std::path::Path;

use serde_json::Value;

pub struct Schema(jsonschema::Validator);

impl Schema {
    /// The one in docs/ of that name.
    pub fn of(file: &str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(file);
        let text = fs::read_to_string(path).expect("a schema in docs/");
        let schema = serde_json::from_str(&text).expect("a schema in JSON");
        Self(jsonschema::validator_for(&schema).expect("a schema"))
    }

    pub fn assert_holds(&self, value: &Value) {
        let errors: Vec<_> = self.0.iter_errors(value).map(|error| error.to_string()).collect();
        assert_eq!(errors, Vec::<String>::new(), "{value}");
    }
}
