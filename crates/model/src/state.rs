//! Which registers members have in use when they are switched from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::named::named;

/// The vector registers that each member writes in every hop, before it passes the token on, so that
/// the kernel has to save and restore them with each switch. All others are in their initial
/// configuration (Intel SDM volume 1, section 13.6), which it need not save.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// None: what the others are compared with.
    None,
    /// x86: XMM0 to XMM15.
    Sse,
    /// x86: YMM0 to YMM15.
    Avx,
    /// x86: YMM0 to YMM15, whose upper halves VZEROUPPER then clears, as compilers do at the end of
    /// a function.
    Vzeroupper,
    /// x86: ZMM0 to ZMM31 and the masks K1 to K7.
    Avx512,
    /// Arm: V0 to V31.
    Neon,
}

named!(
    State,
    "state of the registers",
    None => "none",
    Sse => "sse",
    Avx => "avx",
    Vzeroupper => "vzeroupper",
    Avx512 => "avx512",
    Neon => "neon"
);

impl State {
    /// What is written, for reports.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::None => "no vector register is in use",
            Self::Sse => "XMM0-15 written in each hop",
            Self::Avx => "YMM0-15 written in each hop",
            Self::Vzeroupper => "YMM0-15 written in each hop, then VZEROUPPER",
            Self::Avx512 => "ZMM0-31 and K1-7 written in each hop",
            Self::Neon => "V0-31 written in each hop",
        }
    }
}
