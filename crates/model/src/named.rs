//! Types whose values have names.

/// Names shared by the command line, CSV and JSON.
macro_rules! named {
    ($type:ty, $what:literal, $($variant:ident => $name:literal),+) => {
        impl $type {
            /// Every value, in the order in which help lists them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
            /// The name used on the command line, in CSV and in JSON.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
        impl std::str::FromStr for $type {
            type Err = String;
            fn from_str(text: &str) -> Result<Self, String> {
                match text {
                    $($name => Ok(Self::$variant),)+
                    other => Err(format!(
                        concat!("'{}' is not a ", $what, " (accepted: {})"),
                        other,
                        [$($name),+].join(", ")
                    )),
                }
            }
        }
    };
}

pub(crate) use named;
