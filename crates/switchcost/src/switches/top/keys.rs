//! The effect of keys, without a terminal.

use analysis::program::CostProfile;

use crate::observe::live::GroupBy;
use crate::observe::live::rows::{RowOrder, SwitchRow};
use crate::programs::watch::PreemptionCost;

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

/// The program's task after a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyAction {
    Nothing,
    Quit,
    /// Rows stand for something else now.
    Regroup,
}

/// The user's choices of rows, columns and order.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ScreenState {
    pub(super) by: GroupBy,
    pub(super) sort: RowOrder,
    pub(super) filter: String,
    /// Set while the filter is being typed.
    pub(super) is_typing: bool,
    pub(super) is_frozen: bool,
    pub(super) shows_help: bool,
    /// Rows that were scrolled past, or lines of the help.
    pub(super) scrolled: usize,
    /// Number of the set of columns that is shown.
    pub(super) column_set: usize,
    /// The stored costs, or why there are none; absent before they were looked up.
    pub(super) costs: Option<Result<CostProfile, String>>,
    /// Costs of programs that were measured themselves.
    pub(super) own_costs: Vec<PreemptionCost>,
}

const GROUPS: [GroupBy; 4] = [GroupBy::Process, GroupBy::Thread, GroupBy::Cgroup, GroupBy::User];
const ORDERS: [RowOrder; 5] =
    [RowOrder::Switches, RowOrder::Preempted, RowOrder::Wait, RowOrder::Cost, RowOrder::Cpu];
/// Rows that Page Up and Page Down scroll by.
const PAGE_ROWS: usize = 10;

/// Returns the choice that follows, round and round.
fn next<T: Copy + PartialEq>(choices: &[T], current: T) -> T {
    let place = choices.iter().position(|choice| *choice == current).unwrap_or(0);
    choices[(place + 1) % choices.len()]
}

impl ScreenState {
    pub(super) fn new(by: GroupBy, sort: RowOrder, filter: String) -> Self {
        Self {
            by,
            sort,
            filter,
            is_typing: false,
            is_frozen: false,
            shows_help: false,
            scrolled: 0,
            column_set: 0,
            costs: None,
            own_costs: Vec::new(),
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
                self.by = next(&GROUPS, self.by);
                self.scrolled = 0;
                return KeyAction::Regroup;
            }
            PressedKey::Char('s') => {
                self.sort = next(&ORDERS, self.sort);
                self.scrolled = 0;
            }
            PressedKey::Char('f' | ' ') => self.is_frozen = !self.is_frozen,
            PressedKey::Char('c') => self.column_set += 1,
            PressedKey::Char('h' | '?') => {
                self.shows_help = !self.shows_help;
                self.scrolled = 0;
            }
            PressedKey::Char('/') => {
                self.is_typing = true;
                self.shows_help = false;
                self.scrolled = 0;
            }
            PressedKey::Escape => {
                self.shows_help = false;
                self.filter.clear();
            }
            PressedKey::Up => self.scrolled = self.scrolled.saturating_sub(1),
            PressedKey::PageUp => self.scrolled = self.scrolled.saturating_sub(PAGE_ROWS),
            PressedKey::Down => self.scrolled += 1,
            PressedKey::PageDown => self.scrolled += PAGE_ROWS,
            PressedKey::Char(_) | PressedKey::Enter | PressedKey::Backspace => {}
        }
        KeyAction::Nothing
    }

    fn type_filter(&mut self, key: PressedKey) {
        match key {
            PressedKey::Char(c) => self.filter.push(c),
            PressedKey::Backspace => drop(self.filter.pop()),
            PressedKey::Enter => self.is_typing = false,
            PressedKey::Escape => {
                self.is_typing = false;
                self.filter.clear();
            }
            _ => {}
        }
        self.scrolled = 0;
    }

    /// Leaves the rows that the filter keeps, in the chosen order.
    pub(super) fn arrange(&self, rows: &mut Vec<SwitchRow>) {
        rows.retain(|row| row.name.contains(&self.filter));
        self.sort.sort(rows);
    }
}
