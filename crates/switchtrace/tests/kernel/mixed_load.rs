//! A ring of 64, a web server with its clients and compilations, at once: what was traced of each
//! of their threads is what the kernel counts, until all of them were switched and the ring often
//! enough, or over as many seconds as `SWITCHTRACE_TEST_SECONDS` says.

use super::*;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use switchtrace::{SwitchPair, ThreadKey};

const SECONDS: &str = "SWITCHTRACE_TEST_SECONDS";
/// Runs the load, in this folder.
const LOAD: &str = "SWITCHTRACE_TEST_LOAD";
const NAME: &str = "mixed_load::counts_are_the_kernels";
const RING: usize = 64;
const CLIENTS: usize = 8;
/// The ring, servers and clients, who runs make.
const THREADS: usize = RING + 2 * CLIENTS + 1;

fn spawn(name: &str, mut work: impl FnMut() + Send + 'static) {
    let forever = move || loop {
        work();
    };
    thread::Builder::new().name(name.to_owned()).spawn(forever).unwrap();
}

fn ring() {
    let (first, mut back_to_first) = pipe();
    back_to_first.write_all(&[0]).unwrap();
    let (mut from, mut last) = (first, Some(back_to_first));
    for number in 1..=RING {
        let (next, to) = pipe();
        let mut to = if number < RING { to } else { last.take().unwrap() };
        let mut own = std::mem::replace(&mut from, next);
        let mut token = [0];
        spawn("ring", move || {
            own.read_exact(&mut token).unwrap();
            to.write_all(&token).unwrap();
        });
    }
}

/// A request and its answer end with an empty line; an answer's body has the 512 bytes behind it.
fn skip_head(from: &mut BufReader<TcpStream>) -> bool {
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        if from.read_line(&mut line).unwrap_or(0) == 0 {
            return false;
        }
    }
    true
}

fn web() {
    let listener = Arc::new(TcpListener::bind("127.0.0.1:0").unwrap());
    let address = listener.local_addr().unwrap();
    for _ in 0..CLIENTS {
        let listener = listener.clone();
        spawn("server", move || {
            let mut from = BufReader::new(listener.accept().unwrap().0);
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: 512\r\n\r\n{:512}", "");
            while skip_head(&mut from) && from.get_mut().write_all(answer.as_bytes()).is_ok() {}
        });
        spawn("client", move || {
            let mut to = BufReader::new(TcpStream::connect(address).unwrap());
            for _ in 0..1_000 {
                to.get_mut().write_all(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n").unwrap();
                assert!(skip_head(&mut to));
                to.read_exact(&mut [0; 512]).unwrap();
            }
        });
    }
}

fn compilations(folder: PathBuf) {
    let targets: Vec<String> = (0..8).map(|number| format!("part{number}.o")).collect();
    let rule = "\techo 'int part;' | cc -O2 -x c -c -o $@ -";
    let targets = targets.join(" ");
    fs::write(folder.join("Makefile"), format!("all: {targets}\n{targets}:\n{rule}\n")).unwrap();
    spawn("make", move || {
        let made = Command::new("make").args(["-j4", "-B", "-s", "-C"]).arg(&folder).status();
        // Without make or a compiler the others are load enough.
        if !made.is_ok_and(|status| status.success()) {
            thread::sleep(Duration::from_millis(100));
        }
    });
}

/// Ends with its parent, or after a while, whatever happens.
fn run_load(folder: PathBuf) -> ! {
    // SAFETY: plain numbers.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::alarm((seconds().unwrap_or(0) + 3 * PATIENCE.as_secs()) as u32);
    }
    ring();
    web();
    compilations(folder);
    loop {
        thread::park();
    }
}

/// The load: a process group.
struct Load(Child);

impl Load {
    fn start(folder: &Path) -> Self {
        let mut command = again(NAME, LOAD, folder.to_str().unwrap());
        let load = Self(command.process_group(0).stdout(Stdio::null()).spawn().unwrap());
        wait_for("start of the load", || (load.threads().len() >= THREADS).then_some(()));
        load
    }

    /// Thread ids and names.
    fn threads(&self) -> Vec<(u32, String)> {
        let folder = fs::read_dir(format!("/proc/{}/task", self.0.id())).unwrap();
        let tids = folder.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let name = |tid: &String| fs::read_to_string(format!("/proc/{tid}/comm")).unwrap();
        let threads = tids.map(|tid| (tid.parse().unwrap(), name(&tid).trim().to_owned()));
        threads
            .filter(|(_, name)| ["ring", "server", "client", "make"].contains(&&**name))
            .collect()
    }

    fn signal(&self, signal: i32) {
        // SAFETY: a group that we have made, and have not waited for.
        unsafe { libc::kill(-(self.0.id() as i32), signal) };
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.signal(libc::SIGKILL);
        let _ = self.0.wait();
    }
}

fn seconds() -> Option<u64> {
    std::env::var(SECONDS).ok()?.parse().ok()
}

/// Waits until each thread but those who run make was switched, and all of them so often.
fn until_switched(tids: &[u32], since: &[KernelFigures]) {
    const MANY: u64 = 30_000;
    wait_for("switches of the load", || {
        let switches = tids.iter().zip(since).map(|(tid, was)| {
            let is = kernel_figures(*tid);
            is.voluntary + is.involuntary - was.voluntary - was.involuntary
        });
        let switches: Vec<u64> = switches.collect();
        let moved = switches.iter().filter(|count| **count > 0).count();
        (moved >= THREADS - 1 && switches.iter().sum::<u64>() > MANY).then_some(())
    });
}

/// Returns the voluntary and involuntary switches of a thread to any other.
fn sum_of_pairs(pairs: &[SwitchPair], key: ThreadKey) -> [u64; 2] {
    let mut sums = [0, 0];
    for pair in pairs {
        if pair.prev == key {
            sums = [sums[0] + pair.voluntary, sums[1] + pair.involuntary];
        }
    }
    sums
}

#[test]
fn counts_are_the_kernels() {
    if let Some(folder) = std::env::var_os(LOAD) {
        run_load(folder.into());
    }
    let options = Options { pairs: 1 << 19, ..Options::default() };
    let Some(tracer) = tracer(&options) else { return };
    let times = tracer.thread_times().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let load = Load::start(folder.path());
    let threads = load.threads();
    let tids: Vec<u32> = threads.iter().map(|(tid, _)| *tid).collect();
    // Stopped, no thread is switched: all readings are of one moment.
    let stopped = || {
        load.signal(libc::SIGSTOP);
        let kernels = at_rest(&tids);
        let ours: Vec<_> = tids.iter().map(|tid| times.read(*tid).unwrap()).collect();
        (kernels, ours, tracer.pairs())
    };
    let (first, began, pairs_before) = stopped();
    load.signal(libc::SIGCONT);
    match seconds() {
        Some(seconds) => thread::sleep(Duration::from_secs(seconds)),
        None => until_switched(&tids, &first),
    }
    let (last, ended, pairs_after) = stopped();

    let known = by_tid(&tracer);
    // By name: threads, counts, CPU time by the kernel and by us.
    let mut table: BTreeMap<&str, [u64; 6]> = BTreeMap::new();
    let mut wrong = Vec::new();
    for (at, (tid, name)) in threads.iter().enumerate() {
        let (was, is, time) = (first[at], last[at], ended[at]);
        let migrations = is.migrations.unwrap_or(time.migrations.into());
        let counts = [
            is.voluntary - was.voluntary,
            is.involuntary - was.involuntary,
            migrations - was.migrations.unwrap_or(began[at].migrations.into()),
        ];
        let traced = [
            time.voluntary - began[at].voluntary,
            time.involuntary - began[at].involuntary,
            (time.migrations - began[at].migrations).into(),
        ];
        // Counted one by one, by cause: they are not the kernel's figures.
        let key = known[tid].key;
        let (pairs, before) = (sum_of_pairs(&pairs_after, key), sum_of_pairs(&pairs_before, key));
        let pairs = [pairs[0] - before[0], pairs[1] - before[1]];
        if traced != counts || pairs != counts[..2] {
            wrong.push(format!("{name} {tid}: {counts:?}, traced {traced:?}, pairs {pairs:?}"));
        }
        let cpu_ns = [is.cpu_ns - was.cpu_ns, time.cpu_ns - began[at].cpu_ns];
        let row = [1, counts[0], counts[1], counts[2], cpu_ns[0], cpu_ns[1]];
        let sums = &mut table.entry(name).or_default();
        (0..row.len()).for_each(|column| sums[column] += row[column]);
    }
    println!(
        "threads, voluntary, involuntary, migrations, CPU ns by the kernel, by us: {:?} s",
        seconds()
    );
    table.iter().for_each(|(name, sums)| println!("{name:8} {sums:?}"));
    println!("{:?}, {} threads wrong", tracer.lost(), wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let sum = |column: usize| table.values().map(|sums| sums[column]).sum::<u64>();
    // Each reading of each is as far ahead as it may be at a switch, at most.
    let most_ns = threads.len() as u64 * MAX_AHEAD_NS;
    assert!(sum(4).abs_diff(sum(5)) <= most_ns, "{} {}", sum(4), sum(5));
    assert_eq!((tracer.lost().threads, tracer.lost().pairs), (0, 0));
}
