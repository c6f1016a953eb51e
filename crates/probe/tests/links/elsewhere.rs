//! The same rings where less is allowed: by an ordinary user, who has an IPC namespace by way of a
//! user namespace only, and where there are no namespaces at all.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use rundata::ring::MemberKind;
use rustix::process::Signal;

use testing::Need;

use crate::left_behind::{ENDLESS, end_of, kill, member_of, signal, until_it_turns};
use crate::{Test, skip, worker};

pub const TESTS: &[Test] = &[
    ("an_ordinary_users_killed_rings_leave_nothing", killed_of_an_ordinary_user),
    ("without_namespaces_queues_are_posix_and_say_so", no_namespaces),
];

/// Links whose objects outlive who made them: in a user namespace's, or without a name soon.
const LASTING: [&str; 3] = ["sysv-sem", "sysv-msg", "posix-mq"];

/// A command that becomes this program.
pub type Starter = Box<dyn Fn() -> Command>;

/// This program in a user namespace that allows no further one, without CAP_SYS_ADMIN.
pub fn without_namespaces() -> Option<Starter> {
    const SCRIPT: &str = "echo 0 > /proc/sys/user/max_user_namespaces && \
        exec setpriv --bounding-set=-sys_admin --inh-caps=-sys_admin \"$@\"";
    let start = |argument: std::ffi::OsString| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "sh", "-c", SCRIPT, "sh"]).arg(argument);
        command
    };
    if testing::lacks([Need::Root, Need::Program("unshare"), Need::Program("setpriv")]) {
        return None;
    }
    if !start("true".into()).status().is_ok_and(|status| status.success()) {
        skip(Need::Namespaces, "no user namespace to forbid namespaces in");
        return None;
    }
    Some(Box::new(move || start(std::env::current_exe().unwrap().into_os_string())))
}

fn no_namespaces() {
    let Some(without) = without_namespaces() else { return };
    for link in ["sysv-sem", "sysv-msg"] {
        let case = worker::case(link, MemberKind::Process, 3);
        let said = worker::finish(worker::start_by(without(), &case, 10)).unwrap_err();
        assert!(said.contains("namespace of the ring's own"), "{link}: {said}");
    }
    let case = worker::case("posix-mq", MemberKind::Process, 3);
    let sample = worker::finish(worker::start_by(without(), &case, 10)).unwrap();
    assert_eq!(sample.hops, 30);
}

fn killed_of_an_ordinary_user() {
    if testing::lacks([Need::Root, Need::Program("setpriv")]) {
        return;
    }
    // Somebody else may not look into the folder that the tests are built in.
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("program");
    // Not by this process: one that another thread forks meanwhile would have it open for writing.
    let this = std::env::current_exe().unwrap();
    assert!(Command::new("cp").arg(this).arg(&program).status().unwrap().success());
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    for link in LASTING {
        let start = |laps| {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&program);
            worker::start_by(command, &worker::case(link, MemberKind::Process, 3), laps)
        };
        match worker::finish(start(10)) {
            Ok(sample) => assert_eq!(sample.hops, 30, "{link}"),
            Err(why) => {
                assert!(why.contains("cannot be used here"), "{link}: {why}");
                skip(Need::Namespaces, format_args!("{link}: {why}"));
                continue;
            }
        }
        let child = until_it_turns(start(ENDLESS));
        signal(member_of(&child), Signal::KILL);
        let said = end_of(child);
        assert!(said.contains("was killed by signal 9"), "{link}: {said}");
        kill(until_it_turns(start(ENDLESS)));
    }
}
