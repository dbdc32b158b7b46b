// SPDX-License-Identifier: MIT OR Apache-2.0
//! The plugin's functions that QEMU calls.
//!
//! A panic in a function that QEMU calls ends the process, because it must not unwind into C.
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::PathBuf;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{fs, process, slice};

use crate::cortex::Cortex;
use crate::counting::{begin_counting, begin_noting, with_profile};
use crate::peer::{Card, Peer};
use crate::pins::Pins;
use crate::plan::Plan;
use crate::profile::Profile;
use crate::qemu::{Client, Qemu, plugin_version};
use crate::report::{ProfileReport, Report};
use crate::stores;
use crate::variables::Variables;

/// The version of the plugin interface. QEMU from 9.0 on rejects version 1, and earlier versions
/// reject 2. The functions that this plugin uses are the same in both. QEMU reads the variable
/// after it has loaded the library, so that [`SET_VERSION`] has already set it.
#[unsafe(no_mangle)]
pub static qemu_plugin_version: AtomicI32 = AtomicI32::new(1);

// SAFETY: the loader calls what is in this section, with arguments that the function may ignore.
#[used]
#[unsafe(link_section = ".init_array")]
static SET_VERSION: extern "C" fn() = {
    extern "C" fn set() {
        qemu_plugin_version.store(plugin_version(), Ordering::Relaxed);
    }
    set
};

/// The state of the plugin after its installation. Timers, frames of the card and the exit of QEMU
/// are handled one at a time, under QEMU's big lock.
static RUN: Mutex<Option<Run>> = Mutex::new(None);

struct Run {
    peer: Peer,
    pins: Pins,
    measurement: Option<Measurement>,
    qemu: Qemu,
    cortex: Option<Cortex>,
    netdev: CString,
    report: PathBuf,
    is_connected: bool,
}

/// The measurement of the guest's processor.
struct Measurement {
    variables: Variables,
    begin: u64,
    has_begun: bool,
    /// The time at which the measurement ends before the end of the run. `None` if it lasts until
    /// that end, or if it has ended.
    end: Option<u64>,
    /// The result, once the measurement has ended.
    found: Option<ProfileReport>,
}

impl Measurement {
    /// Returns the result up to now, or up to the end of the measurement.
    fn report(&mut self, now: u64, cortex: &Cortex) -> Option<ProfileReport> {
        if self.found.is_some() {
            return self.found.clone();
        }
        self.variables.look(cortex);
        with_profile(|profile, executed| ProfileReport {
            elapsed_ns: now.saturating_sub(self.begin),
            watched: self.variables.growth(),
            ..profile.report(executed)
        })
    }
}

impl Card for Qemu {
    fn receive(&mut self, frame: &[u8]) -> bool {
        self.send(frame)
    }
}

impl Run {
    fn advance(&mut self) {
        let now = self.qemu.now();
        if !self.is_connected {
            self.connect();
        }
        if let (Some(measurement), Some(cortex)) = (&mut self.measurement, &self.cortex) {
            measurement.variables.look_if_due(now, cortex);
            if !measurement.has_begun && now >= measurement.begin {
                measurement.has_begun = true;
                measurement.variables.clear();
                with_profile(Profile::clear);
                self.pins.clear();
                self.peer.clear_flood();
            }
            if measurement.end.is_some_and(|end| now >= end) {
                measurement.end = None;
                measurement.found = measurement.report(now, cortex);
            }
        }
        if let Some(cortex) = &mut self.cortex {
            self.pins.advance(now, cortex);
        }
        if self.peer.advance(now, &mut self.qemu) {
            self.write_report();
            self.qemu.end();
        }
        self.set_timer();
    }

    fn connect(&mut self) {
        if let Err(error) = self.qemu.connect(&self.netdev, frame_sent) {
            fail(&error);
        }
        if let Some(cortex) = &mut self.cortex {
            if let Err(error) = cortex.connect() {
                fail(&error);
            }
            if let Some(irq) = self.pins.irqs().find(|irq| !cortex.has_line(*irq)) {
                fail(&format!(
                    "the guest's interrupt controller has no line {irq}"
                ));
            }
        }
        self.is_connected = true;
    }

    fn set_timer(&self) {
        let due = self.peer.next().map(|peer| {
            let measurement = self.measurement.as_ref();
            let look = measurement.and_then(|all| all.variables.next());
            let end = measurement.and_then(|all| all.end);
            let others = [self.pins.next(), look, end];
            others.into_iter().flatten().fold(peer, u64::min)
        });
        self.qemu.set_timer(due);
    }

    fn report(&mut self) -> Report {
        let mut report = self.peer.report();
        report.pins = self.pins.report();
        report.outputs = stores::report();
        if let (Some(measurement), Some(cortex)) = (&mut self.measurement, &self.cortex) {
            report.profile = measurement.report(self.qemu.now(), cortex);
        }
        report
    }

    fn write_report(&mut self) {
        let report = serde_json::to_string_pretty(&self.report())
            .expect("numbers and texts can be written as JSON");
        if let Err(error) = fs::write(&self.report, report + "\n") {
            fail(&format!("{}: {error}", self.report.display()));
        }
    }
}

fn run() -> MutexGuard<'static, Option<Run>> {
    RUN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn fail(message: &dyn std::fmt::Display) -> ! {
    eprintln!("weir-peer: {message}");
    // `exit` would deadlock: QEMU's exit handlers would take locks that this thread holds. SAFETY:
    // nothing of this process is used afterwards.
    unsafe { libc::_exit(2) }
}

/// Reads the options and the plan. QEMU calls this function once, before it creates the machine.
///
/// # Safety
/// `arguments` must point to `count` zero-terminated strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    plugin: u64,
    _info: *const c_void,
    count: c_int,
    arguments: *const *const c_char,
) -> c_int {
    let count = usize::try_from(count).unwrap_or(0);
    let texts: Vec<&str> = match count {
        0 => Vec::new(),
        // SAFETY: QEMU promises it.
        _ => unsafe { slice::from_raw_parts(arguments, count) }
            .iter()
            // SAFETY: as above.
            .map(|text| unsafe { CStr::from_ptr(*text) }.to_str().unwrap_or(""))
            .collect(),
    };
    match install(plugin, &texts) {
        Ok(()) => 0,
        Err(message) => {
            eprintln!("weir-peer: {message}");
            process::exit(2);
        }
    }
}

fn install(plugin: u64, texts: &[&str]) -> Result<(), String> {
    let (plan, report) = options(texts)?;
    let text = fs::read_to_string(&plan).map_err(|error| format!("{}: {error}", plan.display()))?;
    let plan = Plan::parse(&text).map_err(|error| error.to_string())?;
    let missing = |name: &str| {
        format!("this QEMU exports no function {name}; versions 7.2 and 10.0 are known to work")
    };
    let mut qemu = Qemu::find().map_err(missing)?;
    let peer = Peer::new(&plan).map_err(|error| error.to_string())?;
    let pins = Pins::new(&plan.pins, plan.end).map_err(|error| error.to_string())?;
    let cortex = if plan.pins.is_empty() && plan.measure.is_none() {
        None
    } else {
        Some(Cortex::find().map_err(missing)?)
    };
    if let Some(measure) = &plan.measure {
        begin_counting(plugin, measure).map_err(missing)?;
    }
    if !plan.outputs.is_empty() {
        begin_noting(plugin, &plan.outputs).map_err(missing)?;
    }
    let measurement = plan.measure.map(|measure| Measurement {
        variables: Variables::new(&measure.watch, measure.begin),
        begin: measure.begin,
        has_begun: false,
        end: measure.end,
        found: None,
    });
    let netdev = CString::new(plan.netdev).map_err(|_| "a netdev's name has no zero".to_owned())?;
    qemu.on_exit(plugin, qemu_ends);
    // The network does not exist yet. A timer at guest time 0 is called once the machine exists,
    // before the first instruction. The timer is set here, because QEMU would try to wake up a
    // processor if it were set while processors are created.
    qemu.make_timer(timer_due);
    qemu.set_timer(Some(0));
    *run() = Some(Run {
        peer,
        pins,
        measurement,
        qemu,
        cortex,
        netdev,
        report,
        is_connected: false,
    });
    Ok(())
}

/// Returns the paths of the plan and of the report.
fn options(texts: &[&str]) -> Result<(PathBuf, PathBuf), String> {
    const FORM: &str = "the options are plan=FILE and report=FILE";
    let (mut plan, mut report) = (None, None);
    for text in texts {
        match text.split_once('=') {
            Some(("plan", path)) => plan = Some(PathBuf::from(path)),
            Some(("report", path)) => report = Some(PathBuf::from(path)),
            _ => return Err(format!("`{text}` is no option; {FORM}")),
        }
    }
    plan.zip(report).ok_or_else(|| FORM.to_owned())
}

unsafe extern "C" fn timer_due(_data: *mut c_void) {
    if let Some(run) = run().as_mut() {
        run.advance();
    }
}

unsafe extern "C" fn frame_sent(_client: *mut Client, frame: *const u8, length: usize) -> isize {
    let bytes = match length {
        0 => &[],
        // SAFETY: QEMU promises that many bytes during the call.
        _ => unsafe { slice::from_raw_parts(frame, length) },
    };
    if let Some(run) = run().as_mut() {
        let now = run.qemu.now();
        run.peer.receive(now, bytes);
        run.set_timer();
    }
    isize::try_from(length).unwrap_or(isize::MAX)
}

unsafe extern "C" fn qemu_ends(_plugin: u64, _data: *mut c_void) {
    // If the run ended as planned, the peer has already written the report, and the guest may have
    // continued after it.
    if let Some(run) = run().as_mut().filter(|run| run.peer.next().is_some()) {
        run.write_report();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_others_refused() {
        let (plan, report) = options(&["report=b", "plan=a=c"]).unwrap();
        assert_eq!((plan, report), (PathBuf::from("a=c"), PathBuf::from("b")));
        assert!(options(&["plan=a"]).is_err());
        assert!(options(&["plan=a", "report=b", "c=d"]).is_err());
        assert!(options(&[]).is_err());
    }

    #[test]
    fn outside_of_qemu_nothing_is_found() {
        assert_eq!(qemu_plugin_version.load(Ordering::Relaxed), 1);
        assert!(Qemu::find().is_err());
    }
}
