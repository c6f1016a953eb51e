//! What keys do: without a terminal.

use analysis::program::CostProfile;

use crate::observe::live::By;
use crate::observe::live::rows::{Row, Sort};
use crate::programs::watch::OwnCost;

/// A key, as far as any does something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
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
pub(super) enum Action {
    Nothing,
    Quit,
    /// Rows are of something else now.
    Regroup,
}

/// What is shown, and how.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct State {
    pub(super) by: By,
    pub(super) sort: Sort,
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

const GROUPS: [By; 4] = [By::Process, By::Thread, By::Cgroup, By::User];
const ORDERS: [Sort; 5] = [Sort::Switches, Sort::Preempted, Sort::Wait, Sort::Cost, Sort::Cpu];
const PAGE: usize = 10;

/// The one that follows, round and round.
fn next<T: Copy + PartialEq>(all: &[T], of: T) -> T {
    let at = all.iter().position(|one| *one == of).unwrap_or(0);
    all[(at + 1) % all.len()]
}

impl State {
    pub(super) fn new(by: By, sort: Sort, filter: String) -> Self {
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

    pub(super) fn press(&mut self, key: Key) -> Action {
        if self.is_typing {
            self.type_filter(key);
            return Action::Nothing;
        }
        match key {
            Key::Char('q') => return Action::Quit,
            Key::Char('g') => {
                (self.by, self.first) = (next(&GROUPS, self.by), 0);
                return Action::Regroup;
            }
            Key::Char('s') => (self.sort, self.first) = (next(&ORDERS, self.sort), 0),
            Key::Char('f' | ' ') => self.frozen = !self.frozen,
            Key::Char('c') => self.columns += 1,
            Key::Char('h' | '?') => (self.help, self.first) = (!self.help, 0),
            Key::Char('/') => (self.is_typing, self.help, self.first) = (true, false, 0),
            Key::Escape => (self.help, self.filter) = (false, String::new()),
            Key::Up => self.first = self.first.saturating_sub(1),
            Key::PageUp => self.first = self.first.saturating_sub(PAGE),
            Key::Down => self.first += 1,
            Key::PageDown => self.first += PAGE,
            Key::Char(_) | Key::Enter | Key::Backspace => {}
        }
        Action::Nothing
    }

    fn type_filter(&mut self, key: Key) {
        match key {
            Key::Char(c) => self.filter.push(c),
            Key::Backspace => drop(self.filter.pop()),
            Key::Enter => self.is_typing = false,
            Key::Escape => (self.is_typing, self.filter) = (false, String::new()),
            _ => {}
        }
        self.first = 0;
    }

    /// Rows that are asked for, in the order that is.
    pub(super) fn arrange(&self, rows: &mut Vec<Row>) {
        rows.retain(|row| row.name.contains(&self.filter));
        self.sort.sort(rows);
    }
}
