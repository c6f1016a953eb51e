//! `switchcost fleet` becomes the program of the Python package, or says where it comes from.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::common::{Home, PROGRAM, Said, copy_program};

/// Prints which one it is, the program to use, and its arguments one a line; exits with 3.
fn put_script(folder: &Path, name: &str) {
    fs::create_dir_all(folder).expect("a folder");
    let path = folder.join("switchcost-fleet");
    let script = format!("#!/bin/sh\nprintf '%s\\n' {name} \"$SWITCHCOST\" \"$@\"\nexit 3\n");
    let written = folder.join("script");
    fs::write(&written, script).expect("a script");
    copy_program(&written, &path);
    fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("a script that can be run");
}

#[test]
fn without_the_package_it_is_said_where_fleet_comes_from() {
    let home = Home::new();
    let said = Said::of(home.command(PROGRAM).args(["fleet", "status"]).env("PATH", home.path()));
    assert_eq!((said.code, &*said.out), (Some(1), ""));
    assert!(said.error().contains("pip install 'switchcost[fleet]'"), "{}", said.err);
}

#[test]
fn arguments_and_exit_code_are_those_of_the_packages_program() {
    let home = Home::new();
    put_script(home.path(), "path");
    let arguments = ["--limit", "5", "-h", "--version", "--", "two words", "--color", "x"];
    let mut command = home.command(PROGRAM);
    command.arg("fleet").args(arguments).env("PATH", home.path()).env_remove("SWITCHCOST");
    let said = Said::of(&mut command);
    let lines: Vec<_> = said.out.lines().collect();
    assert_eq!(said.code, Some(3), "{said:?}");
    assert_eq!(lines, [&["path", PROGRAM], &arguments[..]].concat());

    let said = Said::of(command.env("SWITCHCOST", "/chosen"));
    assert_eq!(said.out.lines().nth(1), Some("/chosen"));
}

#[test]
fn the_one_beside_the_program_comes_first() {
    let home = Home::new();
    let bin = home.path().join("bin");
    put_script(home.path(), "path");
    put_script(&bin, "beside");
    let program = bin.join("switchcost");
    copy_program(PROGRAM.as_ref(), &program);
    let program = program.to_str().expect("a path in UTF-8");
    let said = Said::of(home.command(program).arg("fleet").env("PATH", home.path()));
    assert_eq!(said.out.lines().next(), Some("beside"), "{said:?}");
}

#[test]
fn one_that_cannot_be_run_is_named() {
    let home = Home::new();
    put_script(home.path(), "path");
    let path = home.path().join("switchcost-fleet");
    fs::write(&path, "no script").expect("a file");
    fs::set_permissions(&path, Permissions::from_mode(0o644)).expect("a mode");
    let said = Said::of(home.command(PROGRAM).arg("fleet").env("PATH", home.path()));
    assert_eq!(said.code, Some(1));
    assert!(said.error().contains("cannot run switchcost-fleet: "), "{}", said.err);
}
