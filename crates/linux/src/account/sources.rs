// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the account reads from the kernel without BPF: the run times of threads and processes, the
//! interrupts of network devices, and whether run times include interrupts.
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::Struct;
use nix::time::ClockId;
use nix::unistd::Pid;

use crate::sched::Tid;

/// Processor time that a process or a kernel thread has used so far, in ns. `None` if it has ended.
///
/// The kernel includes the time since its last tick, so the value is exact even while the thread
/// runs.
pub(super) fn run_time(pid: Tid) -> Option<u64> {
    let clock = ClockId::pid_cpu_clock_id(Pid::from_raw(pid)).ok()?;
    let time = clock.now().ok()?;
    let seconds = u64::try_from(time.tv_sec()).ok()?;
    let part = u64::try_from(time.tv_nsec()).ok()?;
    Some(seconds * 1_000_000_000 + part)
}

/// Whether the run times of processes exclude the interrupts during them
/// (CONFIG_IRQ_TIME_ACCOUNTING). Only a kernel with that option has the type `struct irqtime`.
pub(super) fn is_without_interrupts() -> bool {
    Btf::from_vmlinux().is_ok_and(|types| types.type_by_name::<Struct<'_>>("irqtime").is_some())
}

/// Numbers of the interrupts of the network devices in this process's network namespace.
pub(super) fn network_interrupts() -> BTreeSet<u32> {
    let mut numbers = BTreeSet::new();
    let mut names = Vec::new();
    for interface in entries(Path::new("/sys/class/net")) {
        let folder = Path::new("/sys/class/net").join(&interface);
        let Ok(device) = fs::canonicalize(folder.join("device")) else {
            continue;
        };
        // The interrupts of a virtio device belong to the bus device behind it.
        for holder in [Some(&*device), device.parent()].into_iter().flatten() {
            let listed = entries(&holder.join("msi_irqs"));
            numbers.extend(listed.iter().filter_map(|name| name.parse::<u32>().ok()));
        }
        names.push(interface);
        names.extend(
            device
                .file_name()
                .map(|name| name.to_string_lossy().into_owned()),
        );
    }
    const INTERRUPTS: &str = "/sys/kernel/irq";
    for number in entries(Path::new(INTERRUPTS)) {
        let path = Path::new(INTERRUPTS).join(&number).join("actions");
        let actions = fs::read_to_string(path).unwrap_or_default();
        let is_one = actions
            .trim()
            .split(',')
            .any(|action| names.iter().any(|name| is_of(action, name)));
        numbers.extend(number.parse::<u32>().ok().filter(|_| is_one));
    }
    numbers
}

/// Whether an interrupt handler named `action` serves the device `name`: `eth0`, `eth0-rx-1`,
/// `virtio0-input.0`.
fn is_of(action: &str, name: &str) -> bool {
    let rest = action.strip_prefix(name);
    rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
}

/// Names of the entries of a folder. The list is empty if there is no such folder.
fn entries(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handlers_are_known_by_their_devices_names() {
        for action in ["eth1", "eth1-TxRx-0", "eth1:rx"] {
            assert!(is_of(action, "eth1"), "{action}");
        }
        for action in ["eth10", "eth", "i2c", "eth1a-0"] {
            assert!(!is_of(action, "eth1"), "{action}");
        }
    }

    #[test]
    fn a_process_has_run_for_a_time_that_grows() {
        let own = nix::unistd::getpid().as_raw();
        let before = run_time(own).unwrap();
        while run_time(own).unwrap() == before {}
        // No process can have this number, which is above the largest that Linux uses.
        assert_eq!(run_time(4_194_305), None);
    }
}
