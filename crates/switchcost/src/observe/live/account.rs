//! Adds up what each thread did, and who took the CPU from whom, from one look at the tracer to the
//! next. Bounded, however many threads come and go: those that have ended are added up by name.

use std::collections::{HashMap, HashSet};

use switchtrace::{
    DurationHistogram, SwitchCause, SwitchPair, ThreadKey, ThreadSnapshot, WaitHistogram,
};

/// Threads that have ended and are kept one by one.
const MAX_ENDED: usize = 4_096;
/// Pairs that are kept one by one where a thread of them has ended.
const MAX_PAIRS: usize = 16_384;

/// The processes that are looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum TraceScope {
    #[default]
    All,
    /// Processes without their children.
    Processes(Vec<u32>),
    /// Processes that run already, and all that descends from them.
    Families(Vec<u32>),
    /// A command that is started here, and all that descends from it.
    Tree(u32),
}

impl TraceScope {
    /// Returns the processes that were asked for.
    fn roots(&self) -> &[u32] {
        match self {
            Self::All => &[],
            Self::Processes(roots) | Self::Families(roots) => roots,
            Self::Tree(root) => std::slice::from_ref(root),
        }
    }
}

/// Counts and times of one thread, or of several together.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ThreadUsage {
    pub(crate) voluntary: u64,
    pub(crate) involuntary: u64,
    pub(crate) yields: u64,
    pub(crate) migrations: u64,
    pub(crate) cpu_ns: u64,
    pub(crate) bursts: DurationHistogram,
    pub(crate) waits: WaitHistogram,
    /// Times off the CPU, by cause.
    pub(crate) off: [DurationHistogram; SwitchCause::ALL.len()],
}

impl ThreadUsage {
    /// Returns what a thread did in all its life.
    fn of_life(thread: &ThreadSnapshot) -> Self {
        Self {
            voluntary: thread.voluntary,
            involuntary: thread.involuntary,
            yields: thread.yields,
            migrations: thread.migrations.into(),
            cpu_ns: thread.cpu_ns,
            bursts: thread.bursts,
            waits: thread.waits,
            off: thread.off,
        }
    }

    /// Returns what was done since `before`.
    pub(crate) fn since(&self, before: &Self) -> Self {
        Self {
            voluntary: self.voluntary.saturating_sub(before.voluntary),
            involuntary: self.involuntary.saturating_sub(before.involuntary),
            yields: self.yields.saturating_sub(before.yields),
            migrations: self.migrations.saturating_sub(before.migrations),
            cpu_ns: self.cpu_ns.saturating_sub(before.cpu_ns),
            bursts: self.bursts - before.bursts,
            waits: self.waits - before.waits,
            off: std::array::from_fn(|cause| self.off[cause] - before.off[cause]),
        }
    }

    pub(crate) fn add(&mut self, more: &Self) {
        self.voluntary += more.voluntary;
        self.involuntary += more.involuntary;
        self.yields += more.yields;
        self.migrations += more.migrations;
        self.cpu_ns += more.cpu_ns;
        self.bursts.add(&more.bursts);
        self.waits.add(&more.waits);
        for (sum, more) in self.off.iter_mut().zip(&more.off) {
            sum.add(more);
        }
    }

    pub(crate) fn switches(&self) -> u64 {
        self.voluntary + self.involuntary
    }

    /// Returns the involuntary share of the switches, from 0 to 1; 0 without switches.
    pub(crate) fn involuntary_share(&self) -> f64 {
        self.involuntary as f64 / self.switches().max(1) as f64
    }

    /// Returns the switches that happened because another task was to run.
    pub(crate) fn preempted(&self) -> u64 {
        self.involuntary.saturating_sub(self.yields)
    }
}

/// A thread, or several that have ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum TracedTask {
    /// No task: the CPU was idle.
    Idle,
    Thread(ThreadKey),
    /// Ended threads of a process and a name; `tgid` is 0 for those of several processes.
    Ended {
        tgid: u32,
        name: String,
        in_scope: bool,
    },
}

impl TracedTask {
    fn new(key: ThreadKey) -> Self {
        if key.tid == 0 { Self::Idle } else { Self::Thread(key) }
    }
}

/// The facts of a task, and its usage.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TaskRecord {
    /// The process; 0 for tasks of several.
    pub(crate) tgid: u32,
    pub(crate) name: String,
    /// Set if the process is in scope.
    pub(crate) in_scope: bool,
    /// Set for threads of the observer, and of a launcher which that started.
    pub(crate) is_observer: bool,
    pub(crate) used: ThreadUsage,
}

/// Switches from one task to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PairCounts {
    /// The first one slept.
    pub(crate) voluntary: u64,
    /// The first one could have run on.
    pub(crate) involuntary: u64,
}

impl PairCounts {
    fn since(self, before: Self) -> Self {
        Self {
            voluntary: self.voluntary.saturating_sub(before.voluntary),
            involuntary: self.involuntary.saturating_sub(before.involuntary),
        }
    }

    pub(crate) fn add(&mut self, more: Self) {
        self.voluntary += more.voluntary;
        self.involuntary += more.involuntary;
    }

    pub(crate) fn total(self) -> u64 {
        self.voluntary + self.involuntary
    }
}

/// The process that started the command, and when the command began.
#[derive(Clone, Copy, Debug)]
struct CommandStart {
    starter: u32,
    born: u32,
}

#[derive(Debug, Default)]
pub(crate) struct SwitchAccount {
    scope: TraceScope,
    /// The process that looks; 0 if none is known.
    observer: u32,
    /// The processes in scope.
    in_scope: HashSet<u32>,
    /// Set for a command: its starter becomes the parent of processes whose own parent has ended.
    command_start: Option<CommandStart>,
    last: HashMap<ThreadKey, ThreadSnapshot>,
    /// Those of `last` that the last look has not read.
    unread: HashSet<ThreadKey>,
    last_pairs: HashMap<(ThreadKey, ThreadKey), PairCounts>,
    /// `CLOCK_MONOTONIC` at the last look; none before the first.
    looked_ns: Option<u64>,
    /// The same of the look before.
    looked_before_ns: Option<u64>,
    pub(crate) tasks: HashMap<TracedTask, TaskRecord>,
    pub(crate) pairs: HashMap<(TracedTask, TracedTask), PairCounts>,
    /// The most threads that ended between two looks, of those that were seen.
    pub(crate) most_ended: usize,
}

impl SwitchAccount {
    pub(crate) fn new(scope: TraceScope) -> Self {
        let mut account = Self::default();
        account.set_scope(scope);
        account
    }

    /// Returns the account with `observer` as the process that looks: what it does to tasks in
    /// scope is told apart.
    pub(crate) fn by_observer(self, observer: u32) -> Self {
        Self { observer, ..self }
    }

    /// Changes the scope from now on.
    pub(crate) fn set_scope(&mut self, scope: TraceScope) {
        self.in_scope = HashSet::from_iter(scope.roots().iter().copied());
        self.scope = scope;
    }

    /// Adds what a look at `now_ns` has seen; later looks are compared with the first one. Returns
    /// the pairs that will not be counted again.
    pub(crate) fn add_look(
        &mut self,
        now_ns: u64,
        threads: Vec<ThreadSnapshot>,
        pairs: &[SwitchPair],
    ) -> Vec<(ThreadKey, ThreadKey)> {
        self.find_descendants(&threads);
        let mut ended = 0;
        for thread in &threads {
            let before = self.last.get(&thread.key);
            if thread.ended && before.is_none_or(|before| !before.ended) {
                ended += 1;
            }
            self.add_thread(thread, now_ns);
        }
        self.most_ended = self.most_ended.max(ended);
        let mut read = HashMap::with_capacity(threads.len());
        for thread in threads {
            read.insert(thread.key, thread);
        }
        self.replace_last(read);
        let settled = self.add_pairs(pairs);
        self.looked_before_ns = self.looked_ns.replace(now_ns);
        self.fold_ended();
        settled
    }

    /// Replaces the threads of the last look by those that were read in this one. A thread whose
    /// switches changed its record each time that it was read stays as it was for one more look: what
    /// it does meanwhile is counted then.
    fn replace_last(&mut self, mut read: HashMap<ThreadKey, ThreadSnapshot>) {
        let mut unread = HashSet::new();
        for (key, thread) in std::mem::take(&mut self.last) {
            let is_gone = thread.ended || self.unread.contains(&key);
            if !is_gone && !read.contains_key(&key) {
                unread.insert(key);
                read.insert(key, thread);
            }
        }
        self.unread = unread;
        self.last = read;
    }

    /// Adds what a thread did since the last look.
    fn add_thread(&mut self, thread: &ThreadSnapshot, now_ns: u64) {
        let life = ThreadUsage::of_life(thread);
        // The last look may not have read a thread that was there.
        let looked_ns = self.looked_before_ns.or(self.looked_ns);
        let used = match (self.last.get(&thread.key), looked_ns) {
            (Some(before), _) => life.since(&ThreadUsage::of_life(before)),
            (None, Some(looked_ns)) if is_younger(thread, looked_ns, now_ns) => life,
            // It is older than the last two looks and was not seen then, as there was no room: its
            // past is not of now.
            (None, _) => return,
        };
        if used == ThreadUsage::default() {
            return;
        }
        let new = TaskRecord {
            tgid: thread.tgid,
            in_scope: self.is_in_scope(thread.tgid),
            is_observer: self.is_observer(thread),
            ..TaskRecord::default()
        };
        let task = self.tasks.entry(TracedTask::Thread(thread.key)).or_insert(new);
        task.name.clone_from(&thread.comm);
        task.used.add(&used);
    }

    fn add_pairs(&mut self, pairs: &[SwitchPair]) -> Vec<(ThreadKey, ThreadKey)> {
        let mut settled = Vec::new();
        let mut now = HashMap::with_capacity(pairs.len());
        for pair in pairs {
            let key = (pair.prev, pair.next);
            let counts = PairCounts { voluntary: pair.voluntary, involuntary: pair.involuntary };
            let before = self.last_pairs.get(&key).copied();
            let since = counts.since(before.unwrap_or_default());
            if since != PairCounts::default() && self.looked_ns.is_some() {
                let tasks = (TracedTask::new(pair.prev), TracedTask::new(pair.next));
                self.pairs.entry(tasks).or_default().add(since);
            } else if before.is_some() && (self.is_over(pair.prev) || self.is_over(pair.next)) {
                settled.push(key);
            }
            now.insert(key, counts);
        }
        self.last_pairs = now;
        settled
    }

    /// Returns whether a thread has ended; the idle one never does.
    fn is_over(&self, key: ThreadKey) -> bool {
        key.tid != 0 && self.last.get(&key).is_none_or(|thread| thread.ended)
    }

    /// Adds to the scope the descendants among processes that are new.
    fn find_descendants(&mut self, threads: &[ThreadSnapshot]) {
        match self.scope {
            TraceScope::All | TraceScope::Processes(_) => return,
            TraceScope::Families(_) => {}
            TraceScope::Tree(root) => self.note_start(root, threads),
        }
        let mut unplaced = Vec::new();
        for thread in threads {
            if self.last.contains_key(&thread.key) {
                continue;
            }
            unplaced.push(thread);
            // An id may have been given anew.
            if thread.key.tid == thread.tgid && !self.is_root(thread.tgid) {
                self.in_scope.remove(&thread.tgid);
            }
        }
        // A grandchild may come before its parent: until nobody is found any more.
        loop {
            let (found, left): (Vec<_>, Vec<_>) =
                unplaced.into_iter().partition(|thread| self.is_descendant(thread));
            let count_before = self.in_scope.len();
            for thread in found {
                self.in_scope.insert(thread.tgid);
            }
            unplaced = left;
            if self.in_scope.len() == count_before {
                return;
            }
        }
    }

    /// Notes who started the command, once it is seen.
    fn note_start(&mut self, root: u32, threads: &[ThreadSnapshot]) {
        if self.command_start.is_some() {
            return;
        }
        let roots = threads.iter().filter(|thread| thread.key.tid == root && thread.tgid == root);
        if let Some(root) = roots.max_by_key(|root| root.key.born) {
            self.command_start = Some(CommandStart { starter: root.parent, born: root.key.born });
        }
    }

    /// Returns whether a process that is new was asked for: those that run already are all seen in
    /// the first look, and a process that has the id of one later is another.
    fn is_root(&self, tgid: u32) -> bool {
        let may_be_new = matches!(self.scope, TraceScope::Tree(_)) || self.looked_ns.is_none();
        may_be_new && self.scope.roots().contains(&tgid)
    }

    /// Returns whether a thread that is new is of a child of a process in scope. This program is
    /// not, whoever started it.
    fn is_descendant(&self, thread: &ThreadSnapshot) -> bool {
        if self.observer != 0 && thread.tgid == self.observer {
            return false;
        }
        self.in_scope.contains(&thread.parent) || self.is_orphan(thread)
    }

    /// Returns whether a process was started by the command, but its own parent has ended.
    fn is_orphan(&self, thread: &ThreadSnapshot) -> bool {
        let Some(start) = self.command_start else { return false };
        // Births wrap.
        let is_later = thread.key.born.wrapping_sub(start.born) < 1 << 31;
        thread.parent == start.starter && is_later
    }

    fn is_in_scope(&self, tgid: u32) -> bool {
        self.scope == TraceScope::All || self.in_scope.contains(&tgid)
    }

    /// Returns the number of processes in scope beside those that were asked for, those that have
    /// ended among them.
    pub(crate) fn children(&self) -> usize {
        let roots = self.scope.roots();
        self.in_scope.iter().filter(|tgid| !roots.contains(tgid)).count()
    }

    /// Returns what the processes did that were asked for, without their children.
    pub(crate) fn total_of_roots(&self) -> ThreadUsage {
        let roots = self.scope.roots();
        self.sum(|task| roots.contains(&task.tgid))
    }

    /// Returns the CPU time of one process in scope, in nanoseconds.
    pub(crate) fn cpu_ns_of(&self, tgid: u32) -> u64 {
        let mut cpu_ns = 0;
        for task in self.tasks.values() {
            if task.in_scope && task.tgid == tgid {
                cpu_ns += task.used.cpu_ns;
            }
        }
        cpu_ns
    }

    /// Adds up what some tasks did.
    fn sum(&self, is_counted: impl Fn(&TaskRecord) -> bool) -> ThreadUsage {
        let mut sum = ThreadUsage::default();
        for task in self.tasks.values() {
            if is_counted(task) {
                sum.add(&task.used);
            }
        }
        sum
    }

    /// Returns the living process in scope that used the most CPU time.
    pub(crate) fn busiest(&self) -> Option<u32> {
        let mut living = HashSet::new();
        for thread in self.last.values() {
            if !thread.ended && self.is_in_scope(thread.tgid) {
                living.insert(thread.tgid);
            }
        }
        living.into_iter().max_by_key(|tgid| (self.cpu_ns_of(*tgid), *tgid))
    }

    /// Returns the number of children of the processes that were asked for, and what they did,
    /// where the scope leaves them out.
    pub(crate) fn left_out(&self) -> Option<(usize, ThreadUsage)> {
        let TraceScope::Processes(roots) = &self.scope else { return None };
        let mut family = Self::new(TraceScope::Families(roots.clone())).by_observer(self.observer);
        family.find_descendants(&Vec::from_iter(self.last.values().cloned()));
        let count = family.children();
        if count == 0 {
            return None;
        }
        let used =
            self.sum(|task| family.in_scope.contains(&task.tgid) && !roots.contains(&task.tgid));
        Some((count, used))
    }

    fn is_observer(&self, thread: &ThreadSnapshot) -> bool {
        if self.observer == 0 {
            return false;
        }
        let is_launcher = thread.parent == self.observer && !self.in_scope.contains(&thread.tgid);
        thread.tgid == self.observer || is_launcher
    }

    /// Returns the processes in scope that have a living thread, each once for each such thread.
    pub(crate) fn living_processes(&self) -> impl Iterator<Item = u32> + '_ {
        let living = self.last.values().filter(|thread| !thread.ended);
        living.map(|thread| thread.tgid).filter(|tgid| self.is_in_scope(*tgid))
    }

    /// Returns a living thread, as of the last look.
    pub(crate) fn living_thread(&self, tid: u32) -> Option<&ThreadSnapshot> {
        self.last.values().find(|thread| !thread.ended && thread.key.tid == tid)
    }

    /// Adds up by name the tasks that have ended, where these have become many: first within
    /// processes, then over them, then all.
    fn fold_ended(&mut self) {
        for level in [FoldLevel::Process, FoldLevel::Name, FoldLevel::All] {
            let ended = self.tasks.len().saturating_sub(self.last.len());
            if ended <= MAX_ENDED && self.pairs.len() <= MAX_PAIRS {
                return;
            }
            let mut folded = HashMap::with_capacity(self.tasks.len());
            for (task, record) in &self.tasks {
                folded.insert(task.clone(), self.folded(task, record, level));
            }
            self.replace_tasks(&folded);
        }
    }

    /// Adds up all tasks and pairs under other names.
    fn replace_tasks(&mut self, folded: &HashMap<TracedTask, TracedTask>) {
        for (old, mut record) in std::mem::take(&mut self.tasks) {
            let new = folded.get(&old).unwrap_or(&old).clone();
            if let TracedTask::Ended { tgid, name, .. } = &new {
                record.tgid = *tgid;
                record.name.clone_from(name);
            }
            match self.tasks.get_mut(&new) {
                Some(sum) => sum.used.add(&record.used),
                None => drop(self.tasks.insert(new, record)),
            }
        }
        for ((prev, next), counts) in std::mem::take(&mut self.pairs) {
            let prev = folded.get(&prev).cloned().unwrap_or(prev);
            let next = folded.get(&next).cloned().unwrap_or(next);
            self.pairs.entry((prev, next)).or_default().add(counts);
        }
    }

    /// Returns the task under which another one is added up: itself as long as it lives, is the
    /// observer, or is a process that was asked for, which keeps its row.
    fn folded(&self, task: &TracedTask, record: &TaskRecord, level: FoldLevel) -> TracedTask {
        match task {
            TracedTask::Idle => return TracedTask::Idle,
            TracedTask::Thread(key) => {
                let is_root = key.tid == record.tgid && self.scope.roots().contains(&record.tgid);
                let lives = self.last.get(key).is_some_and(|thread| !thread.ended);
                if lives || is_root || record.is_observer {
                    return task.clone();
                }
            }
            TracedTask::Ended { .. } => {}
        }
        let (tgid, name) = match level {
            FoldLevel::Process => (record.tgid, record.name.clone()),
            FoldLevel::Name => (0, record.name.clone()),
            FoldLevel::All => (0, OTHERS.to_string()),
        };
        TracedTask::Ended { tgid, name, in_scope: record.in_scope }
    }

    /// Forgets what was added up; what comes is compared with the last look.
    pub(crate) fn forget(&mut self) {
        self.tasks.clear();
        self.pairs.clear();
        self.most_ended = 0;
    }

    /// Returns all threads of the last look.
    pub(crate) fn threads(&self) -> impl Iterator<Item = &ThreadSnapshot> {
        self.last.values()
    }

    /// Returns what all tasks in scope did.
    pub(crate) fn total(&self) -> ThreadUsage {
        self.sum(|task| task.in_scope)
    }

    /// Returns how often each task took the CPU from those in scope while they could have run on,
    /// of pairs that `is_counted` (who had the CPU, who got it) takes.
    pub(crate) fn preempters(
        &self,
        is_counted: impl Fn(&TaskRecord, &TaskRecord) -> bool,
    ) -> HashMap<&TracedTask, u64> {
        let mut sums = HashMap::new();
        for ((prev, next), counts) in &self.pairs {
            let (Some(from), Some(to)) = (self.task(prev), self.task(next)) else { continue };
            if from.in_scope && counts.involuntary > 0 && is_counted(from, to) {
                *sums.entry(next).or_default() += counts.involuntary;
            }
        }
        sums
    }

    /// Returns how often the observer took the CPU from tasks in scope.
    pub(crate) fn preempted_by_observer(&self) -> u64 {
        self.preempters(|from, to| to.is_observer && !from.is_observer).values().sum()
    }

    /// Returns the switches of the whole machine, those away from idle CPUs among them.
    pub(crate) fn switches_of_all(&self) -> u64 {
        let mut switches = 0;
        for task in self.tasks.values() {
            switches += task.used.switches();
        }
        for ((_, next), counts) in &self.pairs {
            // As many lead away from an idle CPU as to it.
            if *next == TracedTask::Idle {
                switches += counts.total();
            }
        }
        switches
    }

    /// Returns what is known of a task.
    pub(crate) fn task(&self, task: &TracedTask) -> Option<&TaskRecord> {
        self.tasks.get(task)
    }
}

/// Levels at which tasks that have ended are added up.
#[derive(Clone, Copy)]
enum FoldLevel {
    /// Threads of one name in one process.
    Process,
    /// Threads of one name.
    Name,
    All,
}

/// Name of the tasks that are too many for names.
const OTHERS: &str = "(others)";

/// Age of a thread at a look that had room and did not see it: it was just being forked, or came
/// while the table was read.
const MAX_UNSEEN_AGE_NS: u64 = 1_000_000_000;

/// Returns whether a thread was created too late to be seen in the look at `looked_ns`. Births are
/// in units of 1,024 ns, and wrap.
fn is_younger(thread: &ThreadSnapshot, looked_ns: u64, now_ns: u64) -> bool {
    let age = ((now_ns >> 10) as u32).wrapping_sub(thread.key.born);
    let max_age_ns = now_ns.saturating_sub(looked_ns) + MAX_UNSEEN_AGE_NS;
    u64::from(age) <= max_age_ns >> 10
}
