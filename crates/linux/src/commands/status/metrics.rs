// SPDX-License-Identifier: MIT OR Apache-2.0
//! The status of the runs as metrics in the text format of Prometheus (version 0.0.4). The textfile
//! collector of the node exporter reads that format.
use std::collections::BTreeMap;

use prometheus::core::Collector as _;
use prometheus::{CounterVec, GaugeVec, Opts, Result, TextEncoder};
use serde_json::Value;

use super::Shown;
use crate::account::AccountReport;
use crate::parts::exact::Status as Exact;

/// Prefix of the names of all metrics.
const PREFIX: &str = "weir_linux";

/// Metrics of all systems. A metric whose name ends with `_total` is a counter; any other is a
/// gauge.
#[derive(Default)]
struct Metrics {
    /// Name of the system for which metrics are added now.
    system: String,
    counters: BTreeMap<&'static str, CounterVec>,
    gauges: BTreeMap<&'static str, GaugeVec>,
}

impl Metrics {
    /// Adds `value` to the metric with these labels. Values are added, since two systems may have
    /// the same name, and interfaces of different network namespaces the same number.
    fn add(
        &mut self,
        name: &'static str,
        help: &str,
        labels: &[(&str, &str)],
        value: f64,
    ) -> Result<()> {
        let all = [("system", &*self.system)].into_iter();
        let (labels, texts): (Vec<_>, Vec<_>) = all.chain(labels.iter().copied()).unzip();
        let options = Opts::new(format!("{PREFIX}_{name}"), help);
        if name.ends_with("_total") {
            let new = CounterVec::new(options, &labels)?;
            let counters = self.counters.entry(name).or_insert(new);
            counters.get_metric_with_label_values(&texts)?.inc_by(value);
        } else {
            let new = GaugeVec::new(options, &labels)?;
            let gauges = self.gauges.entry(name).or_insert(new);
            gauges.get_metric_with_label_values(&texts)?.add(value);
        }
        Ok(())
    }

    /// Adds a time in ns, converted to seconds.
    fn add_time(
        &mut self,
        name: &'static str,
        help: &str,
        labels: &[(&str, &str)],
        ns: u64,
    ) -> Result<()> {
        self.add(name, help, labels, ns as f64 / 1e9)
    }

    fn text(&self) -> Result<String> {
        let counters = self.counters.values().flat_map(CounterVec::collect);
        let gauges = self.gauges.values().flat_map(GaugeVec::collect);
        TextEncoder::new().encode_to_string(&counters.chain(gauges).collect::<Vec<_>>())
    }
}

/// Formats the metrics of `systems`. A part that the status lacks yields no metrics, so the status
/// of an older version can be read, too.
pub(super) fn text(systems: &[Shown]) -> Result<String> {
    let mut metrics = Metrics::default();
    for Shown { run, running } in systems {
        metrics.system.clone_from(&run.system);
        metrics.add(
            "running",
            "1 if the system runs, 0 if it crashed and its changes are to be put back.",
            &[("mode", &run.mode)],
            f64::from(u8::from(*running)),
        )?;
        if *running {
            add_run(&mut metrics, &run.status)?;
        }
    }
    metrics.text()
}

fn add_run(metrics: &mut Metrics, status: &Value) -> Result<()> {
    let mut of_whole = |name, help, value: &Value| match value.as_f64() {
        Some(value) => metrics.add(name, help, &[], value),
        None => Ok(()),
    };
    of_whole(
        "settings_changed_total",
        "Settings that were changed.",
        &status["changes"],
    )?;
    of_whole(
        "followed_sockets",
        "Sockets whose processes are followed.",
        &status["receivers"]["sockets"],
    )?;
    of_whole(
        "lost_events_total",
        "Events of sockets and processes that were lost; each led to a scan.",
        &status["receivers"]["lost_events"],
    )?;
    of_whole(
        "urgency_changes_total",
        "Changes of the urgency of interfaces' threads, in the mode predicted.",
        &status["predicted"]["changes"],
    )?;
    for interface in status["predicted"]["interfaces"]
        .as_array()
        .into_iter()
        .flatten()
    {
        add_interface(metrics, interface)?;
    }
    if let Ok(status) = serde_json::from_value(status["exact"].clone()) {
        add_exact(metrics, &status)?;
    }
    let left = status["exact"]["left"].as_object();
    for (reason, packets) in left.into_iter().flatten() {
        metrics.add(
            "left_packets_total",
            "Packets that were left to the kernel.",
            &[("reason", reason)],
            packets.as_f64().unwrap_or_default(),
        )?;
    }
    let account = &status["account"];
    if let Ok(report) = serde_json::from_value(account.clone()) {
        add_account(metrics, &report)?;
        metrics.add(
            "overload",
            "1 while interrupts overload the machine, else 0.",
            &[],
            f64::from(u8::from(account["overload"].is_string())),
        )?;
    }
    Ok(())
}

/// Adds the metrics of an interface in mode predicted.
fn add_interface(metrics: &mut Metrics, status: &Value) -> Result<()> {
    let labels = [("interface", status["name"].as_str().unwrap_or("?"))];
    let mut add = |name, help, key: &str| match status[key].as_f64() {
        Some(value) => metrics.add(name, help, &labels, value),
        None => Ok(()),
    };
    add(
        "interface_urgency",
        "Urgency of the interface's threads now.",
        "urgency",
    )?;
    add(
        "interface_most_urgency",
        "Urgency that the interface's threads have at most.",
        "most",
    )?;
    add(
        "interface_waiting_threads",
        "Threads of receivers that wait for packets of the interface.",
        "waiting",
    )
}

/// Adds the metrics of the classes, and of the ports whose packets are given to them.
fn add_exact(metrics: &mut Metrics, status: &Exact) -> Result<()> {
    for (number, class) in status.classes.iter().enumerate() {
        let number = number.to_string();
        let mut add = |name, help, value| metrics.add(name, help, &[("class", &number)], value);
        add(
            "class_urgency",
            "Urgency of the class's receivers.",
            f64::from(class.urgency.get()),
        )?;
        add(
            "class_packets_total",
            "Packets that were given to the class's threads.",
            class.given as f64,
        )?;
        add(
            "class_dropped_packets_total",
            "Packets of these that were dropped since a queue was full.",
            class.dropped as f64,
        )?;
    }
    metrics.add(
        "bound_ports",
        "Ports whose packets are given to a class.",
        &[],
        status.sockets as f64,
    )?;
    metrics.add(
        "unbound_ports",
        "Ports whose packets are left to the kernel since the table is full.",
        &[],
        status.without_room as f64,
    )
}

/// Adds the metrics of the account: for whom interrupts were handled since it began.
fn add_account(metrics: &mut Metrics, report: &AccountReport) -> Result<()> {
    metrics.add_time(
        "account_seconds_total",
        "Time since the account began.",
        &[],
        report.elapsed_ns,
    )?;
    let measured = &report.measured;
    for (part, ns) in [
        ("device", measured.device_ns),
        ("other_devices", measured.other_devices_ns),
        ("receive", measured.receive_ns),
        ("other_soft", measured.other_soft_ns),
        ("overhead", measured.overhead_ns),
        ("threads", measured.threads_ns),
        ("lost", measured.lost_ns),
    ] {
        let help = "Time of interrupts, by what took it.";
        metrics.add_time("interrupt_seconds_total", help, &[("part", part)], ns)?;
    }
    for (to, ns) in [
        ("processes", report.received_ns),
        ("nobody", report.orphans_ns),
        ("unknown", report.unattributed_ns),
    ] {
        let help = "Time of interrupts, by whom it was for.";
        metrics.add_time("attributed_seconds_total", help, &[("to", to)], ns)?;
    }
    for (to, packets) in [
        ("processes", report.packets),
        ("nobody", report.orphan_packets),
        ("unknown", report.lost_packets),
    ] {
        let help = "Packets, by whom they were for.";
        metrics.add("packets_total", help, &[("to", to)], packets as f64)?;
    }
    metrics.add(
        "device_interrupts_total",
        "Handlers of devices that ran.",
        &[],
        report.interrupts as f64,
    )?;
    for cpu in &report.cpus {
        metrics.add_time(
            "cpu_interrupt_seconds_total",
            "Time of interrupts, and of threads that do their work, by CPU.",
            &[("cpu", &cpu.cpu.to_string())],
            cpu.interrupts_ns,
        )?;
    }
    for thread in &report.threads {
        metrics.add_time(
            "thread_seconds_total",
            "Time of kernel threads that do the work of interrupts.",
            &[("thread", &thread.name), ("tid", &thread.tid.to_string())],
            thread.ran_ns,
        )?;
    }
    for process in &report.processes {
        let pid = process.pid.to_string();
        let labels = [
            ("receiver", &*process.command),
            ("pid", &pid),
            ("cgroup", &process.cgroup),
        ];
        metrics.add_time(
            "receiver_used_seconds_total",
            "Processor time of the process since its start.",
            &labels,
            process.used_ns,
        )?;
        let times = [process.charged_ns, process.own_ns, process.taken_ns];
        add_receiver(metrics, &labels, times, process.packets)?;
    }
    let ended = &report.ended;
    let labels = [("receiver", ""), ("pid", ""), ("cgroup", "")];
    let times = [ended.charged_ns, ended.own_ns, ended.taken_ns];
    add_receiver(metrics, &labels, times, ended.packets)?;
    for flow in &report.flows {
        let port = flow.port.to_string();
        let protocol = flow
            .protocol
            .map_or_else(String::new, |protocol| protocol.to_string());
        let labels = [
            ("interface", flow.interface.as_deref().unwrap_or_default()),
            ("protocol", &*protocol),
            ("port", &port),
        ];
        metrics.add_time(
            "flow_interrupt_seconds_total",
            "Time of interrupts for the flow.",
            &labels,
            flow.interrupts_ns,
        )?;
        metrics.add(
            "flow_packets_total",
            "Packets of the flow that sockets received.",
            &labels,
            flow.packets as f64,
        )?;
    }
    Ok(())
}

/// Adds the metrics of a process, or of all ended processes together. `times` are the charged, own
/// and taken times.
fn add_receiver(
    metrics: &mut Metrics,
    labels: &[(&str, &str)],
    times: [u64; 3],
    packets: u64,
) -> Result<()> {
    let [charged, own, taken] = times;
    metrics.add_time(
        "receiver_charged_seconds_total",
        "Time of interrupts for the process while others ran, or nobody.",
        labels,
        charged,
    )?;
    metrics.add_time(
        "receiver_own_seconds_total",
        "Time of interrupts for the process in its own time.",
        labels,
        own,
    )?;
    metrics.add_time(
        "receiver_taken_seconds_total",
        "Time of interrupts in the process's time that was not for it.",
        labels,
        taken,
    )?;
    metrics.add(
        "receiver_packets_total",
        "Packets that the process's sockets received.",
        labels,
        packets as f64,
    )
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use serde_json::json;

    use super::*;
    use crate::account::{Cpu, FlowReport, KernelThread, Process};
    use crate::instance::Run;
    use crate::threads::Thread;

    /// A run whose status has all possible parts.
    fn shown(system: &str) -> Shown {
        let report = AccountReport {
            elapsed_ns: 1_500_000_000,
            cpus: vec![Cpu::default()],
            threads: vec![KernelThread::default()],
            processes: vec![Process {
                pid: 7,
                command: "a\"b\\c\n".to_owned(),
                charged_ns: 1_000,
                ..Process::default()
            }],
            flows: vec![
                FlowReport {
                    interface: Some("#3".to_owned()),
                    packets: 2,
                    ..FlowReport::default()
                };
                2
            ],
            ..AccountReport::default()
        };
        let interface = json!({ "name": "eth0", "urgency": 50, "most": 98, "waiting": 3 });
        let class = json!({ "urgency": 5, "given": 12, "dropped": 1, "threads": [] });
        let status = json!({
            "changes": 4,
            "receivers": { "sockets": 9, "lost_events": 0 },
            "predicted": { "changes": 6, "interfaces": [interface] },
            "exact": {
                "interfaces": [], "classes": [class], "left": { "arp": 8 }, "sockets": 1,
                "without_room": 0,
            },
            "account": report,
        });
        let run = Run {
            system: system.to_owned(),
            file: PathBuf::new(),
            mode: "exact".to_owned(),
            interfaces: Vec::new(),
            process: Thread { tid: 1, started: 1 },
            status,
        };
        Shown { run, running: true }
    }

    #[test]
    fn a_status_is_told_in_base_units_by_its_labels() {
        let text = text(&[shown("a"), shown("b")]).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        for line in [
            "# HELP weir_linux_account_seconds_total Time since the account began.",
            "# TYPE weir_linux_account_seconds_total counter",
            "weir_linux_account_seconds_total{system=\"a\"} 1.5",
            "weir_linux_account_seconds_total{system=\"b\"} 1.5",
            "# TYPE weir_linux_class_urgency gauge",
            "weir_linux_class_urgency{class=\"0\",system=\"a\"} 5",
            "weir_linux_left_packets_total{reason=\"arp\",system=\"a\"} 8",
            "weir_linux_interface_urgency{interface=\"eth0\",system=\"a\"} 50",
            "weir_linux_receiver_charged_seconds_total{cgroup=\"\",pid=\"7\",receiver=\"a\\\"b\\\\c\\n\",system=\"a\"} 0.000001",
            // Two interfaces of different network namespaces both have the number 3.
            "weir_linux_flow_packets_total{interface=\"#3\",port=\"0\",protocol=\"\",system=\"b\"} 4",
        ] {
            assert!(lines.contains(&line), "{line} is missing:\n{text}");
        }
    }

    #[test]
    fn the_documentation_lists_each_name_with_its_labels() {
        let text = text(&[shown("a")]).unwrap();
        let mut all: BTreeMap<&str, String> = BTreeMap::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (name, rest) = line.split_once('{').unwrap();
            let labels = rest.split(',').filter_map(|one| one.split_once("=\""));
            let labels = labels
                .map(|(label, _)| label)
                .filter(|label| *label != "system");
            all.insert(name, labels.collect::<Vec<_>>().join(", "));
        }
        let pages = include_str!("../../../../../docs/linux.md");
        let rows = pages
            .lines()
            .filter(|line| line.starts_with("| `weir_linux_"));
        let listed: BTreeMap<&str, String> = rows
            .map(|row| {
                let cells: Vec<&str> = row.split('|').map(str::trim).collect();
                (cells[1].trim_matches('`'), cells[2].replace('`', ""))
            })
            .collect();
        assert_eq!(listed, all);
    }
}
