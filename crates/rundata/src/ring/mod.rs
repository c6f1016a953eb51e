//! The ring, on which the cost of a switch rests: members that pass a token round, and how a worker
//! makes samples of it.
//!
//! Each of 4 members waits for the token, does its work and sends the token on. In one lap the
//! token passes every member once: 4 hops, and on one CPU 4 switches. A ring of one member, the
//! solo, does the same without a switch, so that ring less solo is what the switches cost.

mod burden;
mod event;
mod flight;
mod pieces;
mod sample;
mod triples;
mod turns;

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bounds::{
    MAX_COUNT, MAX_DURATION_NS, MAX_LAPS, MAX_MEMBERS, MAX_PRIORITY, MAX_RINGS, check_known_within,
    check_within,
};
use crate::experiment::named;
use crate::words;

use crate::placement::Placement;
pub use burden::Burden;
pub use event::CountedEvent;
pub use flight::{Flight, MAX_FLIGHT, fewest_laps};
pub use pieces::PieceFigures;
pub use sample::*;
pub use triples::was_alone_in_slice;

/// Kind of the members: processes or threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MemberKind {
    /// Each member is a process of its own: a switch changes the address space.
    Process,
    /// The members are threads of one process.
    Thread,
}

/// Access to each element of the working set.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum AccessKind {
    /// Load each element.
    Read,
    /// Store each element.
    Write,
    /// Load, add and store each element.
    Rmw,
}

/// Elements of the working set that a member touches in a hop, and their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Walk {
    /// Every element: each stride-th from the first, then each stride-th from the second, and so
    /// on.
    #[default]
    Whole,
    /// Every line of 64 bytes once, in one random cycle: each line holds the place of the next, so
    /// that the machine can fetch none ahead and waits for each. The stride is the line.
    Chase,
    /// An element in every stride, each a cache line further into its stride than the one before,
    /// so that they do not all fall into one set of the cache. With a stride of a page it is a line
    /// a page.
    Sparse,
}

/// Bytes of an element of the working set: the double of Li, Ding and Shen (2007).
pub const ELEMENT_BYTES: u64 = 8;

/// Bytes of the lines over which walks go. No smaller cache line is built any more, and a larger
/// one only makes neighbours share it.
pub const LINE_BYTES: u64 = 64;

/// The memory that a member touches in every hop, private to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Work {
    /// Size of the array in bytes, a multiple of [`ELEMENT_BYTES`].
    pub bytes: u64,
    /// Distance between successive accesses in bytes, a multiple of [`ELEMENT_BYTES`].
    pub stride_bytes: u64,
    /// Access to each element.
    pub op: AccessKind,
    /// Elements that are touched.
    #[schemars(default)]
    pub walk: Walk,
    /// `true` where the array asks for transparent huge pages (madvise(2)); otherwise it refuses
    /// them.
    #[schemars(default)]
    pub huge_pages: bool,
}

/// Reason why a working set cannot be walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkError {
    /// The array is empty or ends within an element.
    #[error("{}", self.describe("--work"))]
    PartialArray {
        /// Size of the array in bytes.
        bytes: u64,
    },
    /// The stride is zero or ends within an element.
    #[error("{}", self.describe("--work"))]
    PartialStride {
        /// The stride in bytes.
        stride_bytes: u64,
    },
    /// A single step leaves the array.
    #[error("{}", self.describe("--work"))]
    StrideBeyondArray {
        /// The stride in bytes.
        stride_bytes: u64,
        /// Size of the array in bytes.
        bytes: u64,
    },
}

impl WorkError {
    /// Returns the message for a command whose option for the size of the array is `array_option`.
    pub fn describe(&self, array_option: &str) -> String {
        match self {
            Self::PartialArray { bytes } => format!(
                "{array_option} {bytes}: the array must be a multiple of {ELEMENT_BYTES} bytes and \
                 not empty (0 is no work)"
            ),
            Self::PartialStride { stride_bytes } => format!(
                "--stride {stride_bytes}: the stride must be a multiple of {ELEMENT_BYTES} bytes \
                 and above 0"
            ),
            Self::StrideBeyondArray { stride_bytes, bytes } => format!(
                "--stride {stride_bytes}: larger than the array of {bytes} bytes ({array_option})"
            ),
        }
    }
}

impl Work {
    /// Builds a working set; an error says which of its figures forbids the walk.
    pub fn new(bytes: u64, stride_bytes: u64, op: AccessKind) -> Result<Self, WorkError> {
        if bytes == 0 || bytes % ELEMENT_BYTES != 0 {
            return Err(WorkError::PartialArray { bytes });
        }
        Self::check_stride(stride_bytes)?;
        if stride_bytes > bytes {
            return Err(WorkError::StrideBeyondArray { stride_bytes, bytes });
        }
        Ok(Self { bytes, stride_bytes, op, walk: Walk::Whole, huge_pages: false })
    }

    /// Checks that it can be walked.
    pub fn check(&self) -> Result<(), String> {
        Self::new(self.bytes, self.stride_bytes, self.op).map_err(|error| error.to_string())?;
        check_within("number of elements", self.touches(), 1..=u64::MAX)
    }

    /// Describes the working set, for progress and failures: `rmw of 256 KiB by 128 B`.
    pub fn in_words(&self) -> String {
        let (bytes, stride) = (words::bytes(self.bytes), words::bytes(self.stride_bytes));
        let sparse = match self.walk {
            Walk::Whole => "",
            Walk::Chase => ", line by line at random",
            Walk::Sparse => ", one line each",
        };
        let huge = if self.huge_pages { ", huge pages" } else { "" };
        format!("{} of {bytes} by {stride}{sparse}{huge}", self.op)
    }

    /// Describes the walk without the size: `rmw by 128 B`.
    pub fn walk_in_words(&self) -> String {
        let (op, stride) = (self.op, words::bytes(self.stride_bytes));
        match self.walk {
            Walk::Whole => format!("{op} by {stride}"),
            Walk::Chase => format!("{op} of lines at random"),
            Walk::Sparse => format!("{op} of one line in each {stride}"),
        }
    }

    /// Returns the number of elements that a hop touches.
    pub fn touches(&self) -> u64 {
        match self.walk {
            Walk::Whole => self.bytes / ELEMENT_BYTES,
            Walk::Chase => self.bytes / LINE_BYTES,
            Walk::Sparse => self.bytes / self.stride_bytes,
        }
    }

    /// Returns the bytes of the lines that a hop touches: they have to fit into a cache.
    pub fn fetched_bytes(&self) -> u64 {
        match self.walk {
            Walk::Whole | Walk::Chase => self.bytes,
            Walk::Sparse => self.touches().saturating_mul(LINE_BYTES),
        }
    }

    /// Returns the size of the pages on which the array lies, in bytes, provided that huge pages
    /// are given where they are asked for.
    pub fn page_bytes(&self) -> u64 {
        if self.huge_pages { 2 << 20 } else { 4 << 10 }
    }

    /// Returns the number of pages that a hop touches: they have to fit into a TLB.
    pub fn pages(&self) -> u64 {
        let all = self.bytes.div_ceil(self.page_bytes());
        match self.walk {
            Walk::Whole | Walk::Chase => all,
            Walk::Sparse => all.min(self.touches()),
        }
    }

    /// Checks that an array could be walked by this stride.
    pub fn check_stride(stride_bytes: u64) -> Result<(), WorkError> {
        if stride_bytes == 0 || stride_bytes % ELEMENT_BYTES != 0 {
            return Err(WorkError::PartialStride { stride_bytes });
        }
        Ok(())
    }
}

/// The scheduling policy of every member (sched(7)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// SCHED_OTHER.
    Other,
    /// SCHED_BATCH: normal, without wake-up preemption.
    Batch,
    /// SCHED_FIFO at the lowest real-time priority, which already outranks all normal tasks.
    Fifo,
    /// SCHED_RR at the lowest real-time priority.
    Rr,
}

impl Policy {
    /// Returns the real-time priority asked of the kernel; 0 for the normal policies.
    pub fn priority(self) -> i32 {
        i32::from(self.is_realtime())
    }

    /// Returns whether the kernel asks for a privilege before it grants the policy.
    pub fn is_realtime(self) -> bool {
        matches!(self, Self::Fifo | Self::Rr)
    }
}

/// The vector registers that each member writes in every hop, before it passes the token on, so
/// that the kernel has to save and restore them with each switch. All others are in their initial
/// configuration (Intel SDM volume 1, section 13.6), which it need not save.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum RegisterState {
    /// No registers: the others are compared with this state.
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

impl RegisterState {
    /// Describes the registers that are written, for reports.
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

named!(MemberKind, "kind of member", Process => "process", Thread => "thread");
named!(AccessKind, "kind of access", Read => "read", Write => "write", Rmw => "rmw");
named!(Policy, "policy", Other => "other", Fifo => "fifo", Rr => "rr", Batch => "batch");
named!(Walk, "walk", Whole => "whole", Chase => "chase", Sparse => "sparse");
named!(RegisterState, "state of the registers", None => "none", Sse => "sse", Avx => "avx",
    Vzeroupper => "vzeroupper", Avx512 => "avx512", Neon => "neon");

/// A ring of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RingCase {
    /// Ring size; 1 is the solo, a member that passes the token to itself.
    pub members: u32,
    /// Kind of the members.
    pub kind: MemberKind,
    /// Name of the link that carries the token, in the registry of links.
    pub link: String,
    /// Memory that each member touches in a hop; absent where it touches none.
    pub work: Option<Work>,
    /// CPUs of the members.
    pub placement: Placement,
    /// Scheduling policy of the members.
    pub policy: Policy,
    /// The real-time priority, where it is not the policy's own (the lowest).
    pub priority: Option<u32>,
    /// Registers that each member writes in every hop; absent where none are touched on purpose.
    pub state: Option<RegisterState>,
    /// Load that is put on the switches on purpose; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burden: Option<Burden>,
    /// Items that are under way at once; absent where it is one, the token of the ring.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flight: Option<Flight>,
    /// Placements of the rings that run at the same time beside this one, which are like it in all
    /// else; empty for a ring by itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<Placement>,
}

impl RingCase {
    /// Builds a ring of processes by pipe under the normal policy, without work.
    pub fn of_processes(members: u32, placement: Placement) -> Self {
        Self {
            members,
            kind: MemberKind::Process,
            link: "pipe".to_string(),
            work: None,
            placement,
            policy: Policy::Other,
            priority: None,
            state: None,
            burden: None,
            flight: None,
            beside: Vec::new(),
        }
    }

    /// Returns the number of rings that run at the same time.
    pub fn rings(&self) -> u32 {
        u32::try_from(self.beside.len()).unwrap_or(u32::MAX).saturating_add(1)
    }

    /// Returns whether several rings run at the same time.
    pub fn has_several_rings(&self) -> bool {
        !self.beside.is_empty()
    }

    /// Iterates over the placements of all its rings.
    pub fn placements(&self) -> impl Iterator<Item = &Placement> {
        std::iter::once(&self.placement).chain(&self.beside)
    }

    /// Returns each of its rings as a ring by itself.
    pub fn single_rings(&self) -> Vec<RingCase> {
        let (single, mut rings) = (self.single_ring(), Vec::new());
        for placement in self.placements() {
            rings.push(RingCase { placement: placement.clone(), ..single.clone() });
        }
        rings
    }

    /// Returns the first of its rings by itself: the single ring with which several are compared.
    pub fn single_ring(&self) -> RingCase {
        RingCase { beside: Vec::new(), ..self.clone() }
    }

    /// Returns the members of all its rings.
    pub fn members_of_all(&self) -> u32 {
        self.members.saturating_mul(self.rings())
    }

    /// Returns every CPU that some member of some ring may run on, sorted, each once.
    pub fn cpus(&self) -> Vec<u32> {
        let mut cpus = BTreeSet::new();
        for placement in self.placements() {
            cpus.extend(placement.cpus());
        }
        cpus.into_iter().collect()
    }

    /// Returns whether all members of all rings share one CPU.
    pub fn is_one_cpu(&self) -> bool {
        self.cpus().len() == 1
    }

    /// Tells for each ring whether it has CPUs that no ring before it has. Of rings that the
    /// scheduler places these are as many as there are CPUs.
    pub fn are_first_on_their_cpus(&self) -> Vec<bool> {
        let (mut used, mut are_first) = (BTreeSet::new(), Vec::new());
        for (ring, placement) in self.placements().enumerate() {
            are_first.push(match placement {
                Placement::Free { cpus } => ring < cpus.len(),
                _ => used.insert(placement.cpus()),
            });
        }
        are_first
    }

    /// Returns whether several rings run on the same CPUs, or may: the scheduler then shares these
    /// out among them.
    pub fn shares_cpus(&self) -> bool {
        let is_free = matches!(self.placement, Placement::Free { .. });
        self.has_several_rings() && (is_free || self.are_first_on_their_cpus().contains(&false))
    }

    /// Names the placement of all rings: that of one ring if it is that of each, `spread` for rings
    /// on CPUs of their own, else the relation of each ring's pair of CPUs.
    pub fn placement_name(&self) -> String {
        if self.beside.iter().all(|placement| *placement == self.placement) {
            return self.placement.to_string();
        }
        match self.placement.relation() {
            Some(relation) => format!("pairs:{relation}"),
            None => "spread".to_string(),
        }
    }

    /// Checks that all numbers are in range.
    pub fn check(&self) -> Result<(), String> {
        check_within("members", self.members, 1..=MAX_MEMBERS)?;
        check_within("rings", self.rings(), 1..=MAX_RINGS)?;
        check_within("members of all rings", self.members_of_all(), 1..=MAX_MEMBERS)?;
        check_known_within("priority", self.priority, 0..=MAX_PRIORITY)?;
        if let Some(work) = self.work {
            work.check()?;
        }
        if let Some(flight) = self.flight {
            flight.check(self.members)?;
        }
        self.placements().try_for_each(Placement::check)
    }

    /// Returns the real-time priority asked of the kernel; 0 for the normal policies.
    pub fn priority(&self) -> i32 {
        match self.priority {
            Some(priority) if self.policy.is_realtime() => {
                i32::try_from(priority).unwrap_or(self.policy.priority())
            }
            _ => self.policy.priority(),
        }
    }

    /// Returns the solo with which this ring is compared. For a sweep's pair of CPUs it runs on the
    /// first. It has one token however many the ring has: it never waits for one.
    pub fn solo(&self) -> RingCase {
        let placement = self.placement.of_solo();
        RingCase { members: 1, placement, flight: None, beside: Vec::new(), ..self.clone() }
    }

    /// Returns the hops of a lap. In a stream over a full link an item makes one: it is sent by the
    /// leader and received by the other member.
    pub fn hops_per_lap(&self) -> u64 {
        if self.flight == Some(Flight::Full) { 1 } else { self.members.into() }
    }

    /// Returns whether `self` is the solo with which `other` is compared.
    pub fn is_solo_of(&self, other: &RingCase) -> bool {
        *self == other.solo()
    }

    /// Describes the ring, for progress and failures: `ring of 64`.
    pub fn title(&self) -> String {
        let mut title = match self.rings() {
            1 => format!("ring of {}", self.members),
            several => format!("{several} rings of {}", self.members),
        };
        // The link that goes without saying.
        if self.link != "pipe" {
            title.push_str(&format!(" by {}", self.link));
        }
        if let Some(work) = &self.work {
            title.push_str(&format!(" with {}", work.in_words()));
        }
        if self.has_several_rings() {
            title.push_str(&format!(" on {}", self.placement_name()));
        } else if self.placement.relation().is_some() {
            title.push_str(&format!(" on {}", self.placement));
        }
        if let Some(state) = self.state {
            title.push_str(&format!(" with registers {state}"));
        }
        if let Some(burden) = self.burden {
            title.push_str(&format!(" under {burden}"));
        }
        if let Some(flight) = self.flight {
            title.push_str(&format!(" with {}", flight.in_words()));
        }
        title
    }

    /// Returns whether two rings are subtracted from one another: a ring, its solo, and the same
    /// with other registers in use or under a burden.
    pub fn belongs_to(&self, other: &RingCase) -> bool {
        let [ring, other] =
            [self, other].map(|case| RingCase { state: None, burden: None, ..case.solo() });
        ring == other
    }

    /// Returns whether the ring needs at least as much of the machine as `failed`, on which the
    /// machine ran out.
    pub fn needs_as_much(&self, failed: &RingCase) -> bool {
        let [bytes, failed_bytes] =
            [self, failed].map(|case| case.work.map_or(0, |work| work.bytes));
        // All that is needed lies in members, rings and bytes; how the bytes are walked needs
        // nothing.
        let (members, work, beside) = (self.members, self.work, self.beside.clone());
        let same_kind = RingCase { members, work, beside, ..failed.clone() };
        same_kind == *self
            && self.members >= failed.members
            && self.rings() >= failed.rings()
            && bytes >= failed_bytes
    }
}

/// Rules by which a worker batches laps into samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RingBatching {
    /// Laps of every sample; calibrated in each worker when absent.
    pub laps: Option<u64>,
    /// Wanted duration of a calibrated sample, in nanoseconds.
    pub sample_ns: u64,
    /// Samples that a worker takes in one round, at most.
    pub samples_per_round: u32,
    /// A worker takes no further sample once its samples, with the counting but without waits, have
    /// lasted this long, in nanoseconds.
    pub enough_ns: u64,
    /// Wanted duration of a slice of a sample, in nanoseconds, between two reference quanta; absent
    /// in plans whose samples are not cut into slices. No slice is shorter than a lap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice_ns: Option<u64>,
    /// Most triples (each member's solo, the ring, each solo again) that a worker measures beside
    /// its samples; absent where solos are rings of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub triples: Option<u32>,
    /// Most places of its memory at which a worker tries a working set that was given huge pages.
    /// It measures at the one where a lap took least. Absent where it tries none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub places: Option<u32>,
    /// Events that are counted in each slice on the ring's one CPU; each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<CountedEvent>,
}

impl RingBatching {
    /// Checks that all numbers are in range and that no event is there twice.
    pub fn check(&self) -> Result<(), String> {
        check_known_within("laps", self.laps, 1..=MAX_LAPS)?;
        check_within("sample_ns", self.sample_ns, 1..=MAX_DURATION_NS)?;
        check_within("samples_per_round", self.samples_per_round, 1..=MAX_COUNT)?;
        check_known_within("slice_ns", self.slice_ns, 1..=MAX_DURATION_NS)?;
        check_known_within("triples", self.triples, 1..=MAX_COUNT)?;
        check_known_within("places", self.places, 1..=MAX_COUNT)?;
        for (at, event) in self.events.iter().enumerate() {
            if self.events[..at].contains(event) {
                return Err(format!("events: {event} is there twice"));
            }
        }
        Ok(())
    }
}

/// Usual length of a slice, in nanoseconds.
///
/// No quantum sees a neighbour on the core that comes for less than a slice and is gone again. On a
/// core that is shared half of the time most slices of 1 ms have had such a neighbour, and few of
/// these: launches vary by 0.4 %, not 1.6 %.
pub const SLICE_NS: u64 = 250_000;

impl Default for RingBatching {
    /// 10 ms a sample: at least one timer tick down to HZ=100, so that the kernel's user/system
    /// split has something to say, and long enough that two clock reads do not count.
    fn default() -> Self {
        Self {
            laps: None,
            sample_ns: 10_000_000,
            samples_per_round: 3,
            enough_ns: 250_000_000,
            slice_ns: Some(SLICE_NS),
            triples: None,
            places: None,
            events: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(members: u32) -> RingCase {
        RingCase::of_processes(members, Placement::Pinned { cpus: vec![3, 1], relation: None })
    }

    #[test]
    fn names_read_back() {
        for policy in Policy::ALL {
            assert_eq!(policy.name().parse(), Ok(*policy));
        }
        let error = "realtime".parse::<Policy>().unwrap_err();
        assert!(error.contains("realtime") && error.contains("fifo"), "{error}");
    }

    #[test]
    fn solo_differs_in_nothing_but_its_size() {
        assert!(case(1).is_solo_of(&case(8)));
        assert!(!case(2).is_solo_of(&case(8)));
        let other_policy = RingCase { policy: Policy::Batch, ..case(1) };
        assert!(!other_policy.is_solo_of(&case(8)));
        let other_state = RingCase { state: Some(RegisterState::Sse), ..case(1) };
        assert!(!other_state.is_solo_of(&case(8)));
    }

    #[test]
    fn rings_with_several_items_under_way_share_the_solo_of_the_ring_with_one() {
        let several = RingCase { flight: Some(Flight::Items(16)), ..case(2) };
        let full = RingCase { flight: Some(Flight::Full), ..case(2) };
        assert!(case(1).is_solo_of(&several) && case(1).is_solo_of(&full));
        assert!(case(2).belongs_to(&several) && several.belongs_to(&full));
        assert_eq!([case(2), several, full].map(|ring| ring.hops_per_lap()), [2, 2, 1]);
    }

    #[test]
    fn a_ring_with_one_item_is_stored_as_before() {
        let text = serde_json::to_string(&case(2)).unwrap();
        assert!(!text.contains("flight"), "{text}");
        for flight in [Flight::Items(16), Flight::Full] {
            let ring = RingCase { flight: Some(flight), ..case(2) };
            let text = serde_json::to_string(&ring).unwrap();
            assert_eq!(serde_json::from_str::<RingCase>(&text).unwrap(), ring);
        }
    }

    #[test]
    fn several_rings_are_compared_with_the_first_of_them_and_its_solo() {
        let [first, second] = [1, 2].map(|cpu| Placement::Same { cpu });
        let one = RingCase::of_processes(2, first.clone());
        let two = RingCase { beside: vec![second.clone()], ..one.clone() };
        assert_eq!((two.rings(), two.cpus(), two.members_of_all()), (2, vec![1, 2], 4));
        assert_eq!((two.single_ring(), two.solo()), (one.clone(), one.solo()));
        assert_eq!(two.single_rings()[1].placement, second);
        assert!(two.belongs_to(&one) && !two.is_one_cpu());
        assert_eq!(
            (two.title(), one.title()),
            ("2 rings of 2 on spread".into(), "ring of 2".into())
        );
        let on_one = RingCase { beside: vec![first], ..one.clone() };
        assert_eq!((on_one.placement_name(), on_one.is_one_cpu()), ("same".to_string(), true));
        let four = RingCase { beside: vec![second; 3], ..one.clone() };
        assert!(four.needs_as_much(&two) && !two.needs_as_much(&four) && !one.needs_as_much(&two));
    }

    #[test]
    fn rings_that_share_their_cpus_are_known() {
        let rings = |placements: &[Placement]| RingCase {
            beside: placements[1..].to_vec(),
            ..RingCase::of_processes(2, placements[0].clone())
        };
        let same = |cpu| Placement::Same { cpu };
        let spread = rings(&[same(0), same(1)]);
        assert!(!spread.shares_cpus());
        assert_eq!(spread.are_first_on_their_cpus(), [true, true]);
        let wrapped = rings(&[same(0), same(1), same(0)]);
        assert!(wrapped.shares_cpus());
        assert_eq!(wrapped.are_first_on_their_cpus(), [true, true, false]);
        let free = || Placement::Free { cpus: vec![0, 1] };
        let free = rings(&[free(), free(), free()]);
        assert!(free.shares_cpus() && !rings(&[same(0)]).shares_cpus());
        assert_eq!(free.are_first_on_their_cpus(), [true, true, false]);
    }

    /// Runs of before there were several rings are what they were.
    #[test]
    fn a_ring_by_itself_is_stored_without_rings_beside() {
        let json = serde_json::to_value(case(2)).unwrap();
        assert_eq!(json.get("beside"), None);
        assert_eq!(serde_json::from_value::<RingCase>(json).unwrap(), case(2));
    }

    #[test]
    fn the_solo_of_a_pair_of_a_sweep_is_alone_on_its_first_cpu() {
        let relation = Some(crate::machine::CpuRelation::Smt);
        let placement = Placement::Pinned { cpus: vec![3, 1], relation };
        let ring = RingCase { placement, ..case(4) };
        let solo = RingCase { placement: Placement::Same { cpu: 3 }, ..case(1) };
        assert!(solo.is_solo_of(&ring));
        assert!(!RingCase { members: 1, ..ring.clone() }.is_solo_of(&ring));
    }

    #[test]
    fn impossible_walks_are_refused_by_name() {
        assert!(Work::new(64, 8, AccessKind::Read).is_ok());
        let refused =
            |bytes, stride| Work::new(bytes, stride, AccessKind::Read).unwrap_err().to_string();
        assert!(refused(0, 8).starts_with("--work 0: the array must be a multiple of 8 bytes"));
        assert!(refused(12, 8).starts_with("--work 12: the array must be a multiple of 8 bytes"));
        assert!(refused(64, 0).starts_with("--stride 0: the stride must be a multiple of 8"));
        assert!(refused(64, 7).starts_with("--stride 7: the stride must be a multiple of 8"));
        let beyond = refused(64, 128);
        assert!(beyond.contains("128") && beyond.contains("64"), "{beyond}");
    }
}
