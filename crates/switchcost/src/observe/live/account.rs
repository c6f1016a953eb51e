//! What each thread did, and who took the CPU from whom, from one look at the tracer to the next.
//! Bounded, however many threads come and go: what has ended is added up by name.

use std::collections::{HashMap, HashSet};

use switchtrace::{DurationHistogram, SwitchCause, SwitchPair, ThreadKey, ThreadSnapshot};

/// Threads that have ended and are kept one by one.
const MOST_ENDED: usize = 4_096;
/// Pairs that are kept one by one where a thread of them has ended.
const MOST_PAIRS: usize = 16_384;

/// Which processes are looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum TraceScope {
    #[default]
    All,
    /// These, without their children.
    Processes(Vec<u32>),
    /// These, which run already, and all that descends from them.
    Families(Vec<u32>),
    /// A command that is started here, and all that descends from it.
    Tree(u32),
}

impl TraceScope {
    /// The processes that were asked for.
    fn roots(&self) -> &[u32] {
        match self {
            Self::All => &[],
            Self::Processes(roots) | Self::Families(roots) => roots,
            Self::Tree(root) => std::slice::from_ref(root),
        }
    }
}

/// What one thread did in some time, or several together.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ThreadUsage {
    pub(crate) voluntary: u64,
    pub(crate) involuntary: u64,
    pub(crate) yields: u64,
    pub(crate) migrations: u64,
    pub(crate) cpu_ns: u64,
    pub(crate) bursts: DurationHistogram,
    pub(crate) waits: DurationHistogram,
    pub(crate) off: [DurationHistogram; SwitchCause::ALL.len()],
}

impl ThreadUsage {
    /// What a thread did since `before`; without it, in all its life.
    fn since(now: &ThreadSnapshot, before: Option<&ThreadSnapshot>) -> Self {
        let count = |of: fn(&ThreadSnapshot) -> u64| {
            of(now).saturating_sub(before.map(of).unwrap_or_default())
        };
        let lengths = |of: &dyn Fn(&ThreadSnapshot) -> DurationHistogram| {
            of(now) - before.map(of).unwrap_or_default()
        };
        Self {
            voluntary: count(|of| of.voluntary),
            involuntary: count(|of| of.involuntary),
            yields: count(|of| of.yields),
            migrations: count(|of| of.migrations.into()),
            cpu_ns: count(|of| of.cpu_ns),
            bursts: lengths(&|of| of.bursts),
            waits: lengths(&|of| of.waits),
            off: std::array::from_fn(|cause| lengths(&|of| of.off[cause])),
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.voluntary += other.voluntary;
        self.involuntary += other.involuntary;
        self.yields += other.yields;
        self.migrations += other.migrations;
        self.cpu_ns += other.cpu_ns;
        self.bursts.add(&other.bursts);
        self.waits.add(&other.waits);
        self.off.iter_mut().zip(&other.off).for_each(|(sum, more)| sum.add(more));
    }

    pub(crate) fn switches(&self) -> u64 {
        self.voluntary + self.involuntary
    }

    /// From 0 to 1; 0 without switches.
    pub(crate) fn involuntary_share(&self) -> f64 {
        self.involuntary as f64 / self.switches().max(1) as f64
    }

    /// Switches because somebody else was to run.
    pub(crate) fn preempted(&self) -> u64 {
        self.involuntary.saturating_sub(self.yields)
    }
}

/// A thread, or several that have ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum TracedTask {
    /// Nobody: the CPU was idle.
    Idle,
    Thread(ThreadKey),
    /// Those of a process and a name that have ended; `tgid` is 0 of several processes.
    Ended {
        tgid: u32,
        name: String,
        inside: bool,
    },
}

/// What is known of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TaskRecord {
    /// Its process; 0 if it is of several.
    pub(crate) tgid: u32,
    pub(crate) name: String,
    /// Whether it is of the processes that are looked at.
    pub(crate) inside: bool,
    /// Whether it is the observer's, or that of a launcher which it started.
    pub(crate) observes: bool,
    pub(crate) used: ThreadUsage,
}

/// Counts of a pair, voluntary and involuntary.
type Counts = [u64; 2];

#[derive(Debug, Default)]
pub(crate) struct SwitchAccount {
    scope: TraceScope,
    /// The process that looks; 0 if none is known.
    observer: u32,
    /// The processes that are looked at.
    inside: HashSet<u32>,
    /// Who started a tree's root, and when: it becomes the parent of those whose own has ended.
    starter: Option<(u32, u32)>,
    last: HashMap<ThreadKey, ThreadSnapshot>,
    last_pairs: HashMap<(ThreadKey, ThreadKey), Counts>,
    /// `CLOCK_MONOTONIC` at the last look; none before the first.
    looked_ns: Option<u64>,
    pub(crate) lives: HashMap<TracedTask, TaskRecord>,
    pub(crate) pairs: HashMap<(TracedTask, TracedTask), Counts>,
    /// The most threads that ended between two looks, of those that were seen.
    pub(crate) most_ended: usize,
}

impl SwitchAccount {
    pub(crate) fn new(scope: TraceScope) -> Self {
        let mut account = Self::default();
        account.set_scope(scope);
        account
    }

    /// The same, by process `observer`: what it does to those that it looks at is told apart.
    pub(crate) fn by_observer(self, observer: u32) -> Self {
        Self { observer, ..self }
    }

    /// Looks from now on at what this process is the root of.
    pub(crate) fn set_scope(&mut self, scope: TraceScope) {
        self.inside = scope.roots().iter().copied().collect();
        self.scope = scope;
    }

    /// Takes a look at `now_ns` into account; the first is what others are compared with. Gives the
    /// pairs that will not be counted again.
    pub(crate) fn see(
        &mut self,
        now_ns: u64,
        threads: Vec<ThreadSnapshot>,
        pairs: &[SwitchPair],
    ) -> Vec<(ThreadKey, ThreadKey)> {
        self.grow(&threads);
        let mut ended = 0;
        for thread in &threads {
            let before = self.last.get(&thread.key);
            ended += usize::from(thread.ended && before.is_none_or(|before| !before.ended));
            // One that is older than the last look and was not seen then had no room: its past is
            // not of now.
            let is_news =
                before.is_some() || self.looked_ns.is_some_and(|at| is_younger(thread, at, now_ns));
            let used = is_news.then(|| ThreadUsage::since(thread, before));
            if let Some(used) = used.filter(|used| *used != ThreadUsage::default()) {
                let (tgid, inside) = (thread.tgid, self.is_inside(thread.tgid));
                let new = TaskRecord {
                    tgid,
                    inside,
                    observes: self.observes(thread),
                    ..TaskRecord::default()
                };
                let life = self.lives.entry(TracedTask::Thread(thread.key)).or_insert(new);
                life.name.clone_from(&thread.comm);
                life.used.add(&used);
            }
        }
        self.most_ended = self.most_ended.max(ended);
        self.last = threads.into_iter().map(|thread| (thread.key, thread)).collect();
        let settled = self.see_pairs(pairs);
        self.looked_ns = Some(now_ns);
        self.fold();
        settled
    }

    fn see_pairs(&mut self, pairs: &[SwitchPair]) -> Vec<(ThreadKey, ThreadKey)> {
        let mut settled = Vec::new();
        let mut now = HashMap::with_capacity(pairs.len());
        let is_over = |name: ThreadKey| {
            name.tid != 0 && self.last.get(&name).is_none_or(|thread| thread.ended)
        };
        for pair in pairs {
            let (key, counts) = ((pair.prev, pair.next), [pair.voluntary, pair.involuntary]);
            let before = self.last_pairs.get(&key).copied();
            let since = [0, 1].map(|at| counts[at].saturating_sub(before.unwrap_or_default()[at]));
            if since != [0, 0] && self.looked_ns.is_some() {
                add(self.pairs.entry((who(pair.prev), who(pair.next))).or_default(), since);
            } else if before.is_some() && (is_over(pair.prev) || is_over(pair.next)) {
                settled.push(key);
            }
            now.insert(key, counts);
        }
        self.last_pairs = now;
        settled
    }

    /// Finds the descendants among processes that are new.
    fn grow(&mut self, threads: &[ThreadSnapshot]) {
        match self.scope {
            TraceScope::All | TraceScope::Processes(_) => return,
            TraceScope::Families(_) => {}
            TraceScope::Tree(root) => self.note_starter(root, threads),
        }
        let mut open: Vec<&ThreadSnapshot> =
            threads.iter().filter(|thread| !self.last.contains_key(&thread.key)).collect();
        // An id may have been given anew.
        for thread in &open {
            if thread.key.tid == thread.tgid && !self.is_root(thread.tgid) {
                self.inside.remove(&thread.tgid);
            }
        }
        loop {
            let before = self.inside.len();
            let (inside, left): (Vec<_>, Vec<_>) =
                open.into_iter().partition(|thread| self.belongs(thread));
            self.inside.extend(inside.iter().map(|thread| thread.tgid));
            open = left;
            if self.inside.len() == before {
                return;
            }
        }
    }

    /// Notes who started the command, once it is seen.
    fn note_starter(&mut self, root: u32, threads: &[ThreadSnapshot]) {
        let roots = threads.iter().filter(|of| of.key.tid == of.tgid && of.tgid == root);
        let root = roots.max_by_key(|root| root.key.born);
        self.starter = self.starter.or(root.map(|root| (root.parent, root.key.born)));
    }

    /// Whether a process that is new was asked for: those that run already are all seen in the
    /// first look, and who has the id of one later is somebody else.
    fn is_root(&self, tgid: u32) -> bool {
        let may_be_new = matches!(self.scope, TraceScope::Tree(_)) || self.looked_ns.is_none();
        may_be_new && self.scope.roots().contains(&tgid)
    }

    /// Whether a thread that is new is of a child of those that are looked at. This program is not,
    /// whoever started it.
    fn belongs(&self, thread: &ThreadSnapshot) -> bool {
        let is_orphan = || {
            // Births wrap.
            let is_later = |born: u32| thread.key.born.wrapping_sub(born) < 1 << 31;
            self.starter.is_some_and(|(pid, born)| thread.parent == pid && is_later(born))
        };
        let is_observer = self.observer != 0 && thread.tgid == self.observer;
        !is_observer && (self.inside.contains(&thread.parent) || is_orphan())
    }

    fn is_inside(&self, tgid: u32) -> bool {
        self.scope == TraceScope::All || self.inside.contains(&tgid)
    }

    /// Processes that belong to those that were asked for, beside them, those that have ended among
    /// them.
    pub(crate) fn children(&self) -> usize {
        let roots = self.scope.roots();
        self.inside.iter().filter(|tgid| !roots.contains(tgid)).count()
    }

    /// What the processes did that were asked for, without their children.
    pub(crate) fn total_of_roots(&self) -> ThreadUsage {
        let roots = self.scope.roots();
        let mut sum = ThreadUsage::default();
        let lives = self.lives.values().filter(|life| roots.contains(&life.tgid));
        lives.for_each(|life| sum.add(&life.used));
        sum
    }

    /// CPU time of one process of those that are looked at, in nanoseconds.
    pub(crate) fn cpu_ns_of(&self, tgid: u32) -> u64 {
        let lives = self.lives.values().filter(|life| life.inside && life.tgid == tgid);
        lives.map(|life| life.used.cpu_ns).sum()
    }

    /// The living process of those that are looked at that used the most CPU time.
    pub(crate) fn busiest(&self) -> Option<u32> {
        let living = self.last.values().filter(|of| !of.ended && self.is_inside(of.tgid));
        let living: HashSet<u32> = living.map(|thread| thread.tgid).collect();
        living.into_iter().max_by_key(|tgid| (self.cpu_ns_of(*tgid), *tgid))
    }

    /// The children of the processes that were asked for, where they are left out: how many there
    /// are, and what they did.
    pub(crate) fn left_out(&self) -> Option<(usize, ThreadUsage)> {
        let TraceScope::Processes(roots) = &self.scope else { return None };
        let mut family = Self::new(TraceScope::Families(roots.clone())).by_observer(self.observer);
        family.grow(&Vec::from_iter(self.last.values().cloned()));
        let is_child = |tgid: &u32| family.inside.contains(tgid) && !roots.contains(tgid);
        let mut sum = ThreadUsage::default();
        let lives = self.lives.values().filter(|life| is_child(&life.tgid));
        lives.for_each(|life| sum.add(&life.used));
        Some((family.children(), sum)).filter(|(count, _)| *count > 0)
    }

    fn observes(&self, thread: &ThreadSnapshot) -> bool {
        let is_started = || thread.parent == self.observer && !self.inside.contains(&thread.tgid);
        self.observer != 0 && (thread.tgid == self.observer || is_started())
    }

    /// Whether a thread that is looked at lives.
    pub(crate) fn is_alive(&self) -> bool {
        self.last.values().any(|thread| !thread.ended && self.is_inside(thread.tgid))
    }

    /// The process of a living thread, and the thread's name, as of the last look.
    pub(crate) fn process_of(&self, tid: u32) -> Option<(u32, String)> {
        let mut living = self.last.values().filter(|thread| !thread.ended);
        let found = living.find(|thread| thread.key.tid == tid)?;
        Some((found.tgid, found.comm.clone()))
    }

    /// Adds up by name what has ended, where that has become much: first within processes, then
    /// over them, then all.
    fn fold(&mut self) {
        for level in 0..3 {
            let lives = self.lives.len().saturating_sub(self.last.len());
            if lives <= MOST_ENDED && self.pairs.len() <= MOST_PAIRS {
                return;
            }
            let names = self.lives.iter();
            let names: HashMap<TracedTask, TracedTask> =
                names.map(|(who, life)| (who.clone(), self.folded(who, life, level))).collect();
            for (old, mut life) in std::mem::take(&mut self.lives) {
                let new = names.get(&old).unwrap_or(&old).clone();
                if let TracedTask::Ended { tgid, name, .. } = &new {
                    (life.tgid, life.name) = (*tgid, name.clone());
                }
                match self.lives.get_mut(&new) {
                    Some(sum) => sum.used.add(&life.used),
                    None => drop(self.lives.insert(new, life)),
                }
            }
            for ((prev, next), counts) in std::mem::take(&mut self.pairs) {
                let [prev, next] = [prev, next].map(|who| names.get(&who).cloned().unwrap_or(who));
                add(self.pairs.entry((prev, next)).or_default(), counts);
            }
        }
    }

    fn folded(&self, who: &TracedTask, life: &TaskRecord, level: u32) -> TracedTask {
        let lives = |name: &ThreadKey| self.last.get(name).is_some_and(|thread| !thread.ended);
        // A process that was asked for keeps its row, whatever else has ended.
        let is_root =
            |name: &ThreadKey| name.tid == life.tgid && self.scope.roots().contains(&life.tgid);
        match who {
            TracedTask::Thread(of) if lives(of) || life.observes || is_root(of) => who.clone(),
            TracedTask::Idle => TracedTask::Idle,
            TracedTask::Thread(_) | TracedTask::Ended { .. } => TracedTask::Ended {
                tgid: if level == 0 { life.tgid } else { 0 },
                name: if level < 2 { life.name.clone() } else { OTHERS.to_string() },
                inside: life.inside,
            },
        }
    }

    /// Forgets what was added up; what comes is compared with the last look.
    pub(crate) fn forget(&mut self) {
        self.lives.clear();
        self.pairs.clear();
        self.most_ended = 0;
    }

    /// All threads of the last look.
    pub(crate) fn threads(&self) -> impl Iterator<Item = &ThreadSnapshot> {
        self.last.values()
    }

    /// All that those did who are looked at.
    pub(crate) fn total(&self) -> ThreadUsage {
        let mut sum = ThreadUsage::default();
        self.lives.values().filter(|life| life.inside).for_each(|life| sum.add(&life.used));
        sum
    }

    /// How often each took the CPU from those who are looked at while they could have run on, of
    /// pairs that `counts` (who had the CPU, who got it) takes.
    pub(crate) fn preempters(
        &self,
        counts: impl Fn(&TaskRecord, &TaskRecord) -> bool,
    ) -> HashMap<&TracedTask, u64> {
        let mut sums = HashMap::new();
        for ((prev, next), [_, involuntary]) in &self.pairs {
            let Some((from, to)) = self.life(prev).zip(self.life(next)) else { continue };
            if from.inside && *involuntary > 0 && counts(from, to) {
                *sums.entry(next).or_default() += involuntary;
            }
        }
        sums
    }

    /// How often the observer did.
    pub(crate) fn preempted_by_observer(&self) -> u64 {
        self.preempters(|from, to| to.observes && !from.observes).values().sum()
    }

    /// Switches of the whole machine, those away from idle CPUs among them.
    pub(crate) fn switches_of_all(&self) -> u64 {
        let of_threads: u64 = self.lives.values().map(|life| life.used.switches()).sum();
        let to_idle = self.pairs.iter().filter(|((_, next), _)| *next == TracedTask::Idle);
        of_threads + to_idle.map(|(_, counts)| counts[0] + counts[1]).sum::<u64>()
    }

    /// A thread's name and process, as it is called in tables.
    pub(crate) fn life(&self, who: &TracedTask) -> Option<&TaskRecord> {
        self.lives.get(who)
    }
}

/// What those are called that are too many for names.
const OTHERS: &str = "(others)";

fn add(sum: &mut Counts, more: Counts) {
    *sum = [sum[0] + more[0], sum[1] + more[1]];
}

fn who(name: ThreadKey) -> TracedTask {
    if name.tid == 0 { TracedTask::Idle } else { TracedTask::Thread(name) }
}

/// Age of a thread at a look that had room and was not seen: it was just being forked, or came
/// while the table was read.
const MAX_UNSEEN_AGE_NS: u64 = 1_000_000_000;

/// Whether a thread was created too late to be seen in the look at `at_ns`, both by a clock that
/// wraps.
fn is_younger(thread: &ThreadSnapshot, at_ns: u64, now_ns: u64) -> bool {
    let age = ((now_ns >> 10) as u32).wrapping_sub(thread.key.born);
    let max_age_ns = now_ns.saturating_sub(at_ns) + MAX_UNSEEN_AGE_NS;
    u64::from(age) <= max_age_ns >> 10
}
