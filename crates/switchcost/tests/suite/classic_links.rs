//! `switchcost classic install`, and the program called by the originals' names.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::common::{Home, PROGRAM, Said};

pub(crate) const NAMES: [&str; 9] = [
    "pipeline",
    "getrusage",
    "times",
    "simsyscall",
    "simsig",
    "twosig",
    "test_cycles",
    "primes",
    "malloc_stats",
];

fn install(home: &Home, more: &[&str]) -> Said {
    let folder = home.path().to_str().expect("UTF-8").to_string();
    home.run(&[&["classic", "install", &folder], more].concat())
}

fn leads_here(link: &Path) -> bool {
    let is_link = fs::symlink_metadata(link).is_ok_and(|found| found.is_symlink());
    let program = fs::canonicalize(PROGRAM).expect("the program");
    is_link && fs::canonicalize(link).is_ok_and(|file| file == program)
}

fn files(folder: &Path) -> Vec<String> {
    let all = fs::read_dir(folder).expect("a folder").flatten();
    let mut names: Vec<String> =
        all.map(|f| f.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn install_makes_a_link_of_each_name_and_says_so() {
    let home = Home::new();
    let said = install(&home, &[]);
    assert_eq!((said.code, &*said.err), (Some(0), ""));
    assert_eq!(said.out.lines().count(), NAMES.len(), "{}", said.out);
    for (name, line) in NAMES.iter().zip(said.out.lines()) {
        assert!(leads_here(&home.path().join(name)), "{name}");
        let made = format!("/{name}: made (a link to ");
        assert!(line.contains(&made), "{line}");
    }
    // Again: nothing changes.
    let said = install(&home, &[]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.out.lines().all(|line| line.contains(": is there (")), "{}", said.out);
    assert_eq!(files(home.path()).len(), NAMES.len());
}

#[test]
fn each_link_acts_as_its_program() {
    let home = Home::new();
    install(&home, &[]);
    for name in NAMES {
        let link = home.path().join(name);
        let by_link = Said::of(home.command(link.to_str().expect("UTF-8")).arg("--help").arg(""));
        let by_name = home.run(&["classic", name, "--", "--help", ""]);
        // What it is called by is its name in its own messages.
        let own_name = |text: &str| text.replace(link.to_str().expect("UTF-8"), name);
        let shape = |text: &str| own_name(text).replace(|c: char| c.is_ascii_digit(), "");
        assert_eq!(by_link.code, by_name.code, "{name}: {} {}", by_link.err, by_name.err);
        assert!(!by_link.err.is_empty(), "{name} takes no --help");
        let first = |text: &str| shape(text).lines().next().map(str::to_string);
        if name != "getrusage" && name != "times" {
            assert_eq!(first(&by_link.err), first(&by_name.err), "{name}");
        }
    }
    let link = |name: &str| home.path().join(name).to_str().expect("UTF-8").to_string();
    let said = Said::of(home.command(&link("pipeline")).args(["20", "3"]));
    assert_eq!((said.code, &*said.out, &*said.err), (Some(0), "", ""));
    // One program runs the other, as in the paper.
    let said = Said::of(home.command(&link("getrusage")).args([&link("pipeline"), "20", "3"]));
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.err.contains(": nvcsw          "), "{}", said.err);
    let said = Said::of(&mut home.command(&link("pipeline")));
    assert_eq!(said.err, format!("usage: {} chars count\n", link("pipeline")));
}

#[test]
fn what_is_not_ours_is_not_overwritten_unless_forced() {
    let home = Home::new();
    fs::write(home.path().join("times"), "mine\n").expect("a file");
    symlink("/bin/true", home.path().join("primes")).expect("a link");
    symlink("/nowhere", home.path().join("simsig")).expect("a link");
    let said = install(&home, &[]);
    assert_eq!((said.code, &*said.out), (Some(2), ""));
    for words in [
        "/times is a file",
        "/primes is a link to /bin/true",
        "/simsig is a link to /nowhere",
        "nothing was done",
        "--force",
    ] {
        assert!(said.error().contains(words), "no {words:?} in {}", said.err);
    }
    assert_eq!(files(home.path()), ["primes", "simsig", "times"]);
    assert_eq!(fs::read_to_string(home.path().join("times")).expect("a file"), "mine\n");

    let said = install(&home, &["--force"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(said.out.matches(": replaced (").count(), 3, "{}", said.out);
    assert!(NAMES.iter().all(|name| leads_here(&home.path().join(name))));
    assert_eq!(files(home.path()).len(), NAMES.len());
}

#[test]
fn a_folder_in_the_way_is_never_replaced() {
    let home = Home::new();
    fs::create_dir(home.path().join("twosig")).expect("a folder");
    for more in [&[][..], &["--force"]] {
        let said = install(&home, more);
        assert_eq!((said.code, &*said.out), (Some(2), ""));
        assert!(said.error().contains("/twosig is a folder: nothing was done (choose another"));
        assert_eq!(files(home.path()), ["twosig"]);
    }
}

#[test]
fn without_a_folder_nothing_is_made() {
    let home = Home::new();
    let missing = home.path().join("missing").to_str().expect("UTF-8").to_string();
    let said = home.run(&["classic", "install", &missing]);
    assert_eq!(said.code, Some(2));
    assert!(said.error().contains("/missing: not a folder"), "{}", said.err);
    assert_eq!(files(home.path()).len(), 0);
}

#[test]
fn install_makes_all_links_though_nobody_can_read_of_them() {
    let home = Home::new();
    let folder = home.path().display().to_string();
    let script = "exec \"$0\" classic install \"$1\" >/dev/full";
    let said = Said::of(home.command("sh").args(["-c", script, PROGRAM, &folder]));
    assert_eq!(said.code, Some(1), "{}", said.err);
    assert_eq!(files(home.path()).len(), NAMES.len());
}
