//! Members run under the policy that was asked for. These tests stand apart as their real-time
//! rings take the CPU from all others.

use crate::common::{Home, switches_per_hop};
use testing::{Need, skip, wait_for};

const SMALL: [&str; 8] = ["--members", "2,4", "--rounds", "2", "--laps", "200", "--csv", "-"];

/// Asks the kernel under which policy and priority the members run.
fn assert_policy(name: &str, number: u64, priority: u64) {
    let home = Home::new();
    let mut child =
        home.start(&["ring", "--members", "2", "--laps", "20000", "--policy", name, "--quiet"]);
    let pid = child.id() as i32;
    // All at one look: a ring is there for a moment only. A member is born with its leader's policy.
    let policies = wait_for("leader and member, and the controller", || {
        let all = home.processes();
        let leader = all.iter().find(|p| p.is_worker && p.parent == pid)?;
        let member = all.iter().find(|p| p.is_worker && p.parent == leader.pid)?;
        let controller = all.iter().find(|p| p.pid == pid)?;
        Some([leader.try_policy()?, member.try_policy()?, controller.try_policy()?])
    });
    let own = (number, priority);
    assert_eq!(policies, [own, own, (0, 0)], "{name}: the controller is none of them");
    child.kill().expect("the controller is killed");
    child.wait().expect("the controller has ended");
}

#[test]
fn the_normal_policies_are_kept() {
    assert_policy("other", 0, 0);
    assert_policy("batch", 3, 0);
    let rows = Home::new().measure(&[&SMALL[..], &["--policy", "batch"]].concat()).rows();
    assert_eq!(rows.rings().len(), 6);
    assert!(rows.rows.iter().all(|row| row.text("policy") == "batch"));
}

/// Under a real-time policy a woken member never preempts the writer: one switch a hop at any size.
fn assert_realtime(policy: &str, number: u64) {
    let args =
        [&["ring", "--verbose", "--wide", "--budget", "60s"], &SMALL[..], &["--policy", policy]]
            .concat();
    let said = Home::new().run(&args);
    if said.code == Some(1) && said.error().contains("CAP_SYS_NICE") {
        return skip(Need::RealTime, format_args!("policy {policy} is refused here"));
    }
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.rows().rows.iter().all(|row| row.text("policy") == policy));
    if let Some([four]) = switches_per_hop([4], &[&SMALL[..], &["--policy", policy]].concat()) {
        assert!((four - 1.0).abs() <= 0.05, "{policy}: {four} switches per hop of four");
    }
    assert_policy(policy, number, 1);
}

#[test]
fn the_fifo_policy_is_kept() {
    assert_realtime("fifo", 1);
}

#[test]
fn the_round_robin_policy_is_kept() {
    assert_realtime("rr", 2);
}
