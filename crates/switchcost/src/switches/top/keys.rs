//! What keys do: without a terminal.

use analysis::program::CostProfile;

use crate::observe::live::GroupBy;
use crate::observe::live::rows::{RowOrder, SwitchRow};
use crate::programs::watch::OwnCost;

/// A key, as far as any does something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PressedKey {
    Char(char),
    Enter,
    Escape,
    Backspace,
    Up,
    Down,
    PageUp,
    PageDown,
}

/// What the program is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyAction {
    Nothing,
    Quit,
    /// Rows are of something else now.
    Regroup,
}

/// What is shown, and how.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ScreenState {
    pub(super) by: GroupBy,
    pub(super) sort: RowOrder,
    pub(super) filter: String,
    /// Whether the filter is being typed.
    pub(super) is_typing: bool,
    pub(super) frozen: bool,
    pub(super) help: bool,
    /// Rows that were scrolled past, or lines of the help.
    pub(super) first: usize,
    /// Which set of columns is shown.
    pub(super) columns: usize,
    /// The stored costs, or why there are none; absent before they were looked up.
    pub(super) costs: Option<Result<CostProfile, String>>,
    /// Programs that were measured themselves.
    pub(super) own: Vec<OwnCost>,
}

const GROUPS: [GroupBy; 4] = [GroupBy::Process, GroupBy::Thread, GroupBy::Cgroup, GroupBy::User];
const ORDERS: [RowOrder; 5] =
    [RowOrder::Switches, RowOrder::Preempted, RowOrder::Wait, RowOrder::Cost, RowOrder::Cpu];
const PAGE: usize = 10;

/// The one that follows, round and round.
fn next<T: Copy + PartialEq>(all: &[T], of: T) -> T {
    let at = all.iter().position(|one| *one == of).unwrap_or(0);
    all[(at + 1) % all.len()]
}

impl ScreenState {
    pub(super) fn new(by: GroupBy, sort: RowOrder, filter: String) -> Self {
        let (is_typing, frozen, help) = (false, false, false);
        Self {
            by,
            sort,
            filter,
            is_typing,
            frozen,
            help,
            first: 0,
            columns: 0,
            costs: None,
            own: Vec::new(),
        }
    }

    pub(super) fn press(&mut self, key: PressedKey) -> KeyAction {
        if self.is_typing {
            self.type_filter(key);
            return KeyAction::Nothing;
        }
        match key {
            PressedKey::Char('q') => return KeyAction::Quit,
            PressedKey::Char('g') => {
                (self.by, self.first) = (next(&GROUPS, self.by), 0);
                return KeyAction::Regroup;
            }
            PressedKey::Char('s') => (self.sort, self.first) = (next(&ORDERS, self.sort), 0),
            PressedKey::Char('f' | ' ') => self.frozen = !self.frozen,
            PressedKey::Char('c') => self.columns += 1,
            PressedKey::Char('h' | '?') => (self.help, self.first) = (!self.help, 0),
            PressedKey::Char('/') => (self.is_typing, self.help, self.first) = (true, false, 0),
            PressedKey::Escape => (self.help, self.filter) = (false, String::new()),
            PressedKey::Up => self.first = self.first.saturating_sub(1),
            PressedKey::PageUp => self.first = self.first.saturating_sub(PAGE),
            PressedKey::Down => self.first += 1,
            PressedKey::PageDown => self.first += PAGE,
            PressedKey::Char(_) | PressedKey::Enter | PressedKey::Backspace => {}
        }
        KeyAction::Nothing
    }

    fn type_filter(&mut self, key: PressedKey) {
        match key {
            PressedKey::Char(c) => self.filter.push(c),
            PressedKey::Backspace => drop(self.filter.pop()),
            PressedKey::Enter => self.is_typing = false,
            PressedKey::Escape => (self.is_typing, self.filter) = (false, String::new()),
            _ => {}
        }
        self.first = 0;
    }

    /// Rows that are asked for, in the order that is.
    pub(super) fn arrange(&self, rows: &mut Vec<SwitchRow>) {
        rows.retain(|row| row.name.contains(&self.filter));
        self.sort.sort(rows);
    }
}
