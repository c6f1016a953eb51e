//! The schemas that the program prints, and what has to hold by them.

use serde_json::Value;

use super::Home;

pub struct Schema(jsonschema::Validator);

impl Schema {
    /// The one of that name.
    pub fn of(name: &str) -> Self {
        let said = Home::new().run(&["schema", name]);
        assert_eq!((said.code, &*said.err), (Some(0), ""), "{name}");
        let schema = serde_json::from_str(&said.out).expect("a schema in JSON");
        Self(jsonschema::validator_for(&schema).expect("a schema"))
    }

    pub fn assert_holds(&self, value: &Value) {
        let errors: Vec<_> = self.0.iter_errors(value).map(|error| error.to_string()).collect();
        assert_eq!(errors, Vec::<String>::new(), "{value}");
    }

    pub fn holds(&self, value: &Value) -> bool {
        self.0.is_valid(value)
    }
}
