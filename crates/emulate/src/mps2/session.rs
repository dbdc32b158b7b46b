// SPDX-License-Identifier: GPL-3.0-or-later
//! Executes a [`RunSpec`] on the board mps2-an385: writes the plugin's plan and starts QEMU.
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use weir_peer::Report;
use weir_report::Temporary;

use super::answer;
use super::error::QemuError;
use super::facts::{BOARD, CYCLE_NS};
use super::qemu::Qemu;
use crate::elf::CortexImage;
use crate::emulation::RunSpec;
use crate::error::RunError;
use crate::limiter::IdealLimiter;
use crate::line::Line;
use crate::result::RunResult;
use crate::stimulus::arrivals;
use crate::stimulus::{LineStimulus, Stimulus};

/// The seconds of the host's time that a run may take in addition to the time for emulation.
const LIMIT_SECONDS: u64 = 60;
/// The most seconds of the host's time per emulated second. A guest that sleeps and is woken
/// 120,000 times a second needs about ten.
const SLOWEST: u64 = 100;
/// The most bytes of the firmware's output that are kept.
const MOST_SAID: usize = 1 << 20;

pub(super) fn run(spec: &RunSpec, qemu: &Qemu) -> Result<RunResult, RunError> {
    let image = checked(spec)?;
    let folder = Temporary::folder("weir-mps2-").map_err(|cause| QemuError::File {
        path: std::env::temp_dir(),
        cause,
    })?;
    let place = |name: &str| folder.path().join(name);
    let plan = plan(spec, &image, folder.path())?;
    write(&place("plan.json"), &plan.to_string())?;

    let end = qemu.run(
        &arguments(spec, qemu, folder.path()),
        &place("errors"),
        limit(spec),
    )?;
    let Ok(report) = std::fs::read(place("report.json")) else {
        return Err(failure(&end.said, end.signal(), &image).into());
    };
    let report: Report = serde_json::from_slice(&report).map_err(|cause| QemuError::Report {
        plugin: qemu.plugin().to_owned(),
        cause,
    })?;
    if let Some(signal) = end.signal() {
        return Err(QemuError::Ended(signal).into());
    }
    let code = end.status.code().and_then(|code| u32::try_from(code).ok());
    let exit = (!report.planned_end).then(|| code.unwrap_or(0));
    let said = said(&place("serial")) + &said(&place("semihosting"));
    Ok(answer::result(spec, report, said, exit)?)
}

/// Checks that the board can run `spec`, and returns the firmware.
pub(super) fn checked(spec: &RunSpec) -> Result<CortexImage, RunError> {
    check(spec)?;
    let image = CortexImage::load(&spec.elf, BOARD.chip())?;
    for name in &spec.counters {
        image.variable(name)?;
    }
    Ok(image)
}

/// Rejects what this board does not support.
fn check(spec: &RunSpec) -> Result<(), RunError> {
    let wrong = |message: &str| Err(RunError::Spec(message.to_owned()));
    if spec.clock_hz != BOARD.clock_hz {
        return wrong(
            "the board mps2-an385 has a clock of 125 MHz, and no other: an instruction takes 8 ns",
        );
    }
    if spec.trace || !spec.marks.is_empty() {
        return wrong("the board mps2-an385 records no trace and no marks: watch variables");
    }
    if spec
        .cycles
        .checked_add(spec.warmup_cycles)
        .is_none_or(|all| all > 1 << 50)
    {
        return wrong("the run is too long for the board mps2-an385: at most 2^50 cycles");
    }
    if !(60..=1514).contains(&spec.frames.bytes) {
        return Err(RunError::Spec(format!(
            "a frame has from 60 to 1514 bytes, not {}",
            spec.frames.bytes
        )));
    }
    let is_level = |flood: &LineStimulus| matches!(flood.stimulus, Stimulus::Level { .. });
    if spec
        .floods
        .iter()
        .any(|flood| flood.line == Line::ETH && is_level(flood))
    {
        return wrong("ETH has frames, and no level: use a flood of requests");
    }
    Ok(())
}

/// Returns the plan for the plugin.
fn plan(spec: &RunSpec, image: &CortexImage, folder: &Path) -> Result<Value, RunError> {
    let ns = |cycles: u64| format!("{}ns", cycles * CYCLE_NS);
    let end = ns(spec.warmup_cycles + spec.cycles);
    let mut watch = Vec::new();
    for name in &spec.counters {
        let symbol = image.variable(name)?;
        watch.push(json!({"name": name, "address": symbol.address, "bytes": symbol.size}));
    }
    let mut plan = json!({
        "end": end,
        "guest": spec.frames.to,
        "measure": {"watch": watch},
    });
    if spec.warmup_cycles > 0 {
        plan["measure"]["begin"] = ns(spec.warmup_cycles).into();
    }
    let mut pins = Vec::new();
    for flood in &spec.floods {
        let pattern = pattern(spec, flood, folder)?;
        if flood.line == Line::ETH {
            plan["flood"] = json!({
                "pattern": pattern, "end": end, "length": spec.frames.bytes,
            });
        } else {
            pins.push(json!({"irq": flood.line.number(), "pattern": pattern}));
        }
    }
    plan["pins"] = Value::Array(pins);
    Ok(plan)
}

/// Returns a flood's pattern in the form that the plugin reads. A pattern without a text form is
/// written to a recording.
fn pattern(spec: &RunSpec, flood: &LineStimulus, folder: &Path) -> Result<String, RunError> {
    let stimulus = |cause| RunError::Stimulus {
        line: flood.line,
        cause,
    };
    let begun = arrivals(&flood.stimulus, spec.clock_hz).map_err(stimulus)?;
    let limit = spec
        .hardware_limits
        .iter()
        .find(|limit| limit.line == flood.line);
    if limit.is_none() && !matches!(flood.stimulus, Stimulus::Trace { .. }) {
        return Ok(flood.stimulus.in_nanoseconds(CYCLE_NS));
    }
    let times = begun.map(|arrival| arrival.at);
    let times: Box<dyn Iterator<Item = u64>> = match limit {
        Some(limit) => Box::new(IdealLimiter::new(times, limit.interval_cycles)),
        None => Box::new(times),
    };
    let end = spec.warmup_cycles + spec.cycles;
    let mut text = "cycle\n".to_owned();
    for time in times.take_while(|time| *time < end) {
        writeln!(text, "{}", time * CYCLE_NS).expect("a String takes any text");
    }
    let path = folder.join(format!("{}.csv", flood.line));
    write(&path, &text)?;
    Ok(format!("trace:{}", path.display()))
}

fn arguments(spec: &RunSpec, qemu: &Qemu, folder: &Path) -> Vec<OsString> {
    let place = |name: &str| folder.join(name).display().to_string();
    let mut arguments: Vec<OsString> = [
        "-machine",
        "mps2-an385",
        "-nodefaults",
        "-no-user-config",
        "-display",
        "none",
        "-no-reboot",
        "-icount",
        "shift=3,sleep=off",
        "-seed",
        "1",
        "-netdev",
        "hubport,id=net,hubid=0",
        "-net",
        "nic,netdev=net,model=lan9118",
        "-serial",
    ]
    .map(OsString::from)
    .to_vec();
    arguments.extend([
        format!("file:{}", place("serial")).into(),
        "-chardev".into(),
        format!("file,id=console,path={}", place("semihosting")).into(),
        "-semihosting-config".into(),
        "enable=on,target=native,chardev=console".into(),
        "-plugin".into(),
        format!(
            "{},plan={},report={}",
            doubled(qemu.plugin()),
            place("plan.json"),
            place("report.json")
        )
        .into(),
        "-kernel".into(),
        spec.elf.clone().into(),
    ]);
    arguments
}

/// Formats a path for an option of QEMU, in which a comma is written as two commas.
fn doubled(path: &Path) -> String {
    path.display().to_string().replace(',', ",,")
}

fn limit(spec: &RunSpec) -> Duration {
    let seconds = (spec.warmup_cycles + spec.cycles).div_ceil(spec.clock_hz);
    Duration::from_secs(LIMIT_SECONDS + SLOWEST * seconds)
}

/// Explains why QEMU ended without a report.
fn failure(said: &str, signal: Option<i32>, image: &CortexImage) -> QemuError {
    if let Some(message) = said.split("qemu: fatal: ").nth(1) {
        let register = message.split("R15=").nth(1).and_then(|rest| rest.get(..8));
        let pc = register.and_then(|hex| u32::from_str_radix(hex, 16).ok());
        return QemuError::Lockup {
            place: pc.map_or("an unknown place".to_owned(), |pc| image.place(pc)),
            message: message.lines().next().unwrap_or_default().to_owned(),
        };
    }
    if let Some(signal) = signal {
        return QemuError::Ended(signal);
    }
    let lines = said.lines().filter(|line| !line.contains("warning:"));
    let told = lines.collect::<Vec<_>>().join("; ");
    QemuError::Refused(if told.is_empty() {
        "it ended and said nothing".to_owned()
    } else {
        told
    })
}

/// Reads the output of the firmware.
fn said(path: &Path) -> String {
    let mut bytes = std::fs::read(path).unwrap_or_default();
    bytes.truncate(MOST_SAID);
    String::from_utf8_lossy(&bytes).into_owned()
}

fn write(path: &Path, text: &str) -> Result<(), QemuError> {
    std::fs::write(path, text).map_err(|cause| QemuError::File {
        path: path.to_owned(),
        cause,
    })
}
