//! The reasons why bpf(2) may be refused, read from /proc and /sys.

use std::fmt;
use std::fs;
use std::path::Path;

/// Numbers of capabilities (include/uapi/linux/capability.h).
const SYS_ADMIN: u32 = 21;
const PERFMON: u32 = 38;
const BPF: u32 = 39;

/// The reasons why bpf(2) may be refused, as far as /proc and /sys show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BpfRefusal {
    /// Capabilities that are missing: `CAP_BPF`, `CAP_PERFMON`.
    pub missing: Vec<&'static str>,
    /// The caller is in a user namespace, whose capabilities do not count.
    pub in_user_namespace: bool,
    /// The kernel's lockdown mode, if it is one that forbids reading kernel memory.
    pub lockdown: Option<String>,
    /// The process is under a seccomp filter.
    pub seccomp: bool,
    /// Bytes of RLIMIT_MEMLOCK, if it is limited and the kernel counts maps by it (before Linux
    /// 5.11).
    pub memlock_bytes: Option<u64>,
    /// The kernel does not know the call.
    pub not_in_kernel: bool,
}

impl BpfRefusal {
    /// Collects what may have refused the call, from the file system at `root` (`/`).
    pub(crate) fn explain(root: &Path, errno: Option<i32>) -> Self {
        let status = read_text(root, "proc/self/status");
        let seccomp = status_field(&status, "Seccomp:");
        let lockdown = read_text(root, "sys/kernel/security/lockdown");
        let release = read_text(root, "proc/sys/kernel/osrelease");
        let limits = read_text(root, "proc/self/limits");
        Self {
            missing: missing_capabilities(&status),
            in_user_namespace: is_user_namespace(&read_text(root, "proc/self/uid_map")),
            lockdown: lockdown.contains("[confidentiality]").then(|| "confidentiality".to_owned()),
            seccomp: seccomp.is_some_and(|mode| mode != "0"),
            memlock_bytes: memlock_bytes(&release, &limits),
            not_in_kernel: errno == Some(libc::ENOSYS),
        }
    }

    /// Returns what the user can do, a phrase for each reason.
    fn advice(&self) -> Vec<String> {
        let mut advice = Vec::new();
        if !self.missing.is_empty() {
            advice.push(format!(
                "{} missing: run as root, or `setcap cap_bpf,cap_perfmon+ep PROGRAM` once",
                self.missing.join(" and ")
            ));
        }
        if self.in_user_namespace {
            advice.push(
                "capabilities of a user namespace (rootless container) do not count".to_owned(),
            );
        }
        if let Some(mode) = &self.lockdown {
            advice.push(format!("kernel lockdown is in {mode} mode, which forbids tracing"));
        }
        if self.seccomp {
            advice.push(
                "a seccomp filter may forbid bpf(2): allow it in the container's profile"
                    .to_owned(),
            );
        }
        if let Some(bytes) = self.memlock_bytes {
            advice.push(format!(
                "before Linux 5.11 maps count as locked memory, limited to {bytes} bytes: \
                 `ulimit -l unlimited`"
            ));
        }
        if self.not_in_kernel {
            advice.push(
                "the kernel was built without CONFIG_BPF_SYSCALL, or a filter hides it".to_owned(),
            );
        }
        if advice.is_empty() {
            advice.push("a security module may forbid it".to_owned());
        }
        advice
    }
}

impl fmt::Display for BpfRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.advice().join("; "))
    }
}

/// Returns the content of a file, or nothing if it cannot be read.
fn read_text(root: &Path, path: &str) -> String {
    fs::read_to_string(root.join(path)).unwrap_or_default()
}

/// Returns the value of a line of /proc/self/status.
fn status_field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    let value = status.lines().find_map(|line| line.strip_prefix(name))?;
    Some(value.trim())
}

/// Returns the names of the capabilities that the caller lacks; CAP_SYS_ADMIN includes both.
fn missing_capabilities(status: &str) -> Vec<&'static str> {
    let effective = status_field(status, "CapEff:");
    let Some(Ok(set)) = effective.map(|hex| u64::from_str_radix(hex, 16)) else {
        return Vec::new();
    };
    let mut missing = Vec::new();
    for (number, name) in [(BPF, "CAP_BPF"), (PERFMON, "CAP_PERFMON")] {
        if set >> number & 1 == 0 && set >> SYS_ADMIN & 1 == 0 {
            missing.push(name);
        }
    }
    missing
}

/// Returns whether user ids are mapped, as they are in a user namespace. The initial namespace maps
/// 0 to 0 and so on for all 2^32 - 1 ids.
fn is_user_namespace(uid_map: &str) -> bool {
    let words = uid_map.split_whitespace();
    let numbers: Vec<u64> = words.filter_map(|word| word.parse().ok()).collect();
    !numbers.is_empty() && numbers != [0, 0, u64::from(u32::MAX)]
}

/// Returns the limit of locked memory, if it is limited and this kernel counts maps by it.
fn memlock_bytes(release: &str, limits: &str) -> Option<u64> {
    let mut numbers = release.split(['.', '-']).map(|number| number.trim().parse::<u32>());
    let version = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    let limit = limits.lines().find_map(|line| line.strip_prefix("Max locked memory"))?;
    // `unlimited` is no number.
    let bytes = limit.split_whitespace().next()?.parse().ok()?;
    (version < (5, 11)).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    fn said(files: &[(&str, &str)], errno: i32) -> (BpfRefusal, String) {
        let refusal = BpfRefusal::explain(tree(files).path(), Some(errno));
        let text = refusal.to_string();
        (refusal, text)
    }

    const IDENTITY: (&str, &str) = ("proc/self/uid_map", "         0          0 4294967295\n");

    #[test]
    fn a_user_without_capabilities() {
        let status = ("proc/self/status", "CapEff:\t0000000000000000\nSeccomp:\t0\n");
        let (refusal, text) = said(&[status, IDENTITY], libc::EPERM);
        assert_eq!(refusal.missing, ["CAP_BPF", "CAP_PERFMON"]);
        assert!(text.starts_with("CAP_BPF and CAP_PERFMON missing: run as root"), "{text}");
    }

    #[test]
    fn one_of_two() {
        let status = ("proc/self/status", "CapEff:\t0000008000000000\nSeccomp:\t0\n");
        assert_eq!(said(&[status, IDENTITY], libc::EPERM).0.missing, ["CAP_PERFMON"]);
        let admin = ("proc/self/status", "CapEff:\t0000000000200000\nSeccomp:\t0\n");
        assert!(said(&[admin, IDENTITY], libc::EPERM).0.missing.is_empty());
    }

    #[test]
    fn a_container() {
        let files = [
            ("proc/self/status", "CapEff:\t000001ffffffffff\nSeccomp:\t2\n"),
            ("proc/self/uid_map", "0 100000 65536\n"),
        ];
        let (refusal, text) = said(&files, libc::EPERM);
        assert!(refusal.seccomp && refusal.in_user_namespace && refusal.missing.is_empty());
        assert!(text.contains("user namespace") && text.contains("seccomp"), "{text}");
    }

    #[test]
    fn locked_memory_of_old_kernels() {
        let limit = "Limit  Soft  Hard  Units\nMax locked memory   65536   65536   bytes\n";
        let status = ("proc/self/status", "CapEff:\t000001ffffffffff\nSeccomp:\t0\n");
        let old = ("proc/sys/kernel/osrelease", "5.10.0-30-amd64\n");
        let files = [status, IDENTITY, old, ("proc/self/limits", limit)];
        let (refusal, text) = said(&files, libc::EPERM);
        assert_eq!(refusal.memlock_bytes, Some(65_536));
        assert!(text.contains("limited to 65536 bytes: `ulimit -l unlimited`"), "{text}");
        for (release, limits) in [
            ("5.11.0", limit),
            ("6.1.0", limit),
            ("5.10.1", "Max locked memory  unlimited  unlimited  bytes"),
            ("", limit),
            ("5", ""),
        ] {
            assert_eq!(memlock_bytes(release, limits), None, "{release} {limits}");
        }
    }

    #[test]
    fn lockdown_and_a_kernel_without_bpf() {
        let files = [
            ("proc/self/status", "CapEff:\t000001ffffffffff\nSeccomp:\t0\n"),
            ("sys/kernel/security/lockdown", "none integrity [confidentiality]\n"),
            IDENTITY,
        ];
        assert!(said(&files, libc::EPERM).1.contains("confidentiality mode"));
        assert!(said(&files[..1], libc::ENOSYS).1.contains("CONFIG_BPF_SYSCALL"));
        let (_, text) = said(&[], libc::EPERM);
        assert_eq!(text, "a security module may forbid it");
    }
}
