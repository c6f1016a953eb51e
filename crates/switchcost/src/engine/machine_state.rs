//! A state of the whole machine under which one half of a session is measured: a value of a setting
//! (`--ab-setting`), or what a command brings about (`--ab-commands`).

use anyhow::Result;

use super::machine_setting::SettingArm;
use super::state_commands::CommandArm;

/// One of the two states of a session.
#[derive(Clone)]
pub(crate) enum MachineState {
    /// A value of a setting.
    Setting(SettingArm),
    /// What a command brings about.
    Command(CommandArm),
}

impl MachineState {
    /// Brings the machine into the state, if it is not in it.
    pub(crate) fn establish(&self) -> Result<()> {
        match self {
            Self::Setting(arm) => arm.establish(),
            Self::Command(arm) => arm.establish(),
        }
    }

    /// Fails if the machine is no longer in the state.
    pub(crate) fn check_unchanged(&self) -> Result<()> {
        match self {
            Self::Setting(arm) => arm.check_unchanged(),
            Self::Command(arm) => arm.check_unchanged(),
        }
    }

    /// Ends both states of the session.
    pub(crate) fn finish(&self) -> Result<()> {
        match self {
            Self::Setting(arm) => arm.finish(),
            Self::Command(arm) => arm.finish(),
        }
    }

    /// Returns what is in force in a few words: `sched_autogroup_enabled=0`, `sysctl -w a=1`.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Setting(arm) => arm.stored().in_words(),
            Self::Command(arm) => arm.shown(),
        }
    }

    /// Returns like [`Self::shown`] what a file may have of it: of a command its program and a hash,
    /// unless it is to be stored as a whole; nothing of an anonymous one.
    pub(crate) fn stored(&self, anonymous: bool, is_whole: bool) -> String {
        match self {
            Self::Setting(_) => self.shown(),
            Self::Command(arm) => arm.stored(anonymous, is_whole),
        }
    }
}
