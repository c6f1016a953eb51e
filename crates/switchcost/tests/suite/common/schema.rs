//! The schemas that the program prints, and what has to hold by them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use jsonschema::Validator;
use serde_json::Value;

use super::Home;

pub struct Schema(Arc<Validator>);

impl Schema {
    /// The one of that name: printed by the program once, for all tests.
    pub fn of(name: &str) -> Self {
        static PRINTED: Mutex<BTreeMap<String, Arc<Validator>>> = Mutex::new(BTreeMap::new());
        // One that is none fails the test that asks for it, and no other.
        let mut printed = PRINTED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let known = printed.get(name).cloned();
        Self(known.unwrap_or_else(|| {
            let validator = Arc::new(validator(name));
            printed.insert(name.to_string(), Arc::clone(&validator));
            validator
        }))
    }

    pub fn assert_holds(&self, value: &Value) {
        let errors: Vec<_> = self.0.iter_errors(value).map(|error| error.to_string()).collect();
        assert_eq!(errors, Vec::<String>::new(), "{value}");
    }

    pub fn holds(&self, value: &Value) -> bool {
        self.0.is_valid(value)
    }
}

fn validator(name: &str) -> Validator {
    let said = Home::new().run(&["help", "schema", name]);
    assert_eq!((said.code, &*said.err), (Some(0), ""), "{name}");
    let schema = serde_json::from_str(&said.out).expect("a schema in JSON");
    jsonschema::validator_for(&schema).expect("a schema")
}
