//! `compare --ab-setting`: two values of a setting of the machine, which is as it was afterwards.
//!
//! The setting is one that nothing here depends on: how many messages the kernel prints in a burst.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Child;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::common::{Home, Said, lines_of, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use testing::{Need, lacks, skip};

const FILE: &str = "/proc/sys/kernel/printk_ratelimit_burst";

/// More precise than it can be: it goes on until it is ended.
const LONG: [&str; 6] = ["--members", "2", "--budget", "600s", "--precision", "0.01%"];

/// The setting, which one test at a time changes.
struct Setting {
    old: String,
    _alone: MutexGuard<'static, ()>,
}

impl Setting {
    /// Returns the setting; `None`, with a skip, where it cannot be written.
    fn take() -> Option<Self> {
        static ALONE: Mutex<()> = Mutex::new(());
        if lacks([Need::Root]) {
            return None;
        }
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let old = fs::read_to_string(FILE).unwrap_or_default().trim().to_string();
        if fs::write(FILE, format!("{old}\n")).is_err() {
            skip(Need::Root, "settings of the machine cannot be written");
            return None;
        }
        Some(Self { old, _alone: alone })
    }

    fn now() -> String {
        fs::read_to_string(FILE).expect("the setting").trim().to_string()
    }

    /// Returns two values that the setting does not have.
    fn others(&self) -> [String; 2] {
        let old: u32 = self.old.parse().expect("a number");
        [old + 1, old + 2].map(|value| value.to_string())
    }

    /// Starts a session that goes on, and waits until one of its values is set while it measures.
    fn session(&self, home: &Home) -> Child {
        let [a, b] = self.others();
        let started = home.start(&[&["compare", "--ab-setting", FILE, &a, &b], &LONG[..]].concat());
        home.wait_for_sample();
        started
    }

    fn wait_until_old(&self) {
        wait_for("the old value", || (Self::now() == self.old).then_some(()));
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        // A test that fails leaves nothing changed either.
        let _ = fs::write(FILE, format!("{}\n", self.old));
    }
}

fn notes(home: &Home) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(home.path().join("state/switchcost/settings")) else {
        return Vec::new();
    };
    entries.flatten().map(|entry| entry.path()).collect()
}

/// Kills the guard of a session.
fn kill_guard(session: &Child) {
    let children = format!("/proc/{0}/task/{0}/children", session.id());
    let guard = wait_for("the guard", || {
        let children = fs::read_to_string(&children).ok()?;
        children.split_whitespace().map(str::to_string).find(|pid| {
            fs::read_to_string(format!("/proc/{pid}/comm"))
                .is_ok_and(|name| name.trim() == "switchcost-set")
        })
    });
    let guard = Pid::from_raw(guard.parse().expect("a number")).expect("a process id");
    kill_process(guard, Signal::KILL).expect("the guard is killed");
}

fn ended(child: Child) -> Said {
    Said::at_end(child)
}

#[test]
fn both_values_are_measured_and_the_old_one_is_back() {
    let Some(setting) = Setting::take() else { return };
    let home = Home::new();
    let [a, b] = setting.others();
    let few = ["--members", "2", "--rounds", "2", "--laps", "50", "--budget", "600s"];
    let said = home.run(&[&["compare", "--ab-setting", FILE, &a, &b], &few[..]].concat());
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(Setting::now(), setting.old);
    assert_eq!(notes(&home), Vec::<PathBuf>::new());
    let words = [format!("printk_ratelimit_burst={a}"), format!("printk_ratelimit_burst={b}")];
    assert!(words.iter().all(|word| said.out.contains(word.as_str())), "{}", said.out);
    for (file, value) in home.run_files().iter().zip([&a, &b]) {
        let session = &lines_of(file)[0]["header"]["session"];
        assert_eq!(session["setting"]["file"], FILE);
        assert_eq!(&session["setting"]["value"], value);
    }
}

#[test]
fn the_old_value_comes_back_whoever_is_killed() {
    let Some(setting) = Setting::take() else { return };
    // The program alone, by any signal: its guard hears no more of it.
    for signal in [Signal::KILL, Signal::INT, Signal::TERM] {
        let home = Home::new();
        let session = setting.session(&home);
        let pid = Pid::from_child(&session);
        kill_process(pid, signal).expect("the program is told to end");
        let _ = ended(session);
        setting.wait_until_old();
        wait_for("no note", || notes(&home).is_empty().then_some(()));
    }
    // The guard alone: the session ends with an error, the program puts the value back.
    let home = Home::new();
    let session = setting.session(&home);
    kill_guard(&session);
    let said = ended(session);
    assert_ne!(said.code, Some(0), "{}", said.out);
    assert!(said.err.contains("the guard of the setting"), "{}", said.err);
    assert_eq!((Setting::now(), notes(&home).len()), (setting.old.clone(), 0));
}

#[test]
fn the_next_start_puts_the_old_value_back_if_nobody_survives() {
    let Some(setting) = Setting::take() else { return };
    let home = Home::new();
    let session = setting.session(&home);
    // Stopped, it does not notice that its guard is gone.
    let pid = Pid::from_child(&session);
    kill_process(pid, Signal::STOP).expect("the program stops");
    kill_guard(&session);
    kill_process(pid, Signal::KILL).expect("the program is killed");
    let _ = ended(session);
    if Setting::now() == setting.old {
        // Between two values of the session it has neither.
        return;
    }
    assert_eq!(notes(&home).len(), 1);
    let said = home.run(&["runs", "list"]);
    let words = format!("{FILE} is {} again", setting.old);
    assert!(said.err.contains(&words), "{}", said.err);
    assert_eq!((Setting::now(), notes(&home).len()), (setting.old.clone(), 0));
    assert!(!home.run(&["runs", "list"]).err.contains(FILE), "it is said once");
}

#[test]
fn what_cannot_be_set_is_refused_before_anything_is_changed() {
    let Some(setting) = Setting::take() else { return };
    let home = Home::new();
    let link = home.path().join("link");
    symlink("/etc/hostname", &link).expect("a link");
    let link = link.to_str().expect("UTF-8").to_string();
    let cases: [(&str, &str, &str); 7] = [
        (&link, "1", "which is no setting of the machine"),
        ("/etc/passwd", "1", "accepted: files below /proc/sys or /sys"),
        ("/proc/sys/kernel", "1", "is not a regular file"),
        ("/proc/sys/kernel/no_such", "1", "No such file"),
        ("/proc/sys/kernel/osrelease", "1", "/proc/sys/kernel/osrelease: cannot be opened"),
        (FILE, "many", "does not take 'many'"),
        (FILE, " ", "an empty value"),
    ];
    for (file, value, words) in cases {
        let said = home.run(&["compare", "--ab-setting", file, value, value, "--members", "2"]);
        assert_eq!(said.code, Some(2), "{file} {value}: {}", said.err);
        assert!(said.err.contains(words), "{file} {value}: {}", said.err);
        assert_eq!(Setting::now(), setting.old);
        assert_eq!((home.run_files().len(), notes(&home).len()), (0, 0));
    }
}

#[test]
fn a_second_session_on_one_setting_is_refused() {
    let Some(setting) = Setting::take() else { return };
    let (first, second) = (Home::new(), Home::new());
    let session = setting.session(&first);
    let [a, b] = setting.others();
    let said = second.run(&["compare", "--ab-setting", FILE, &a, &b, "--members", "2"]);
    assert_eq!(said.code, Some(2), "{}", said.err);
    assert!(said.err.contains("another session of switchcost is changing it"), "{}", said.err);
    kill_process(Pid::from_child(&session), Signal::INT).expect("the program is told to end");
    let _ = ended(session);
    setting.wait_until_old();
}
