// SPDX-License-Identifier: GPL-3.0-or-later
//! Tests ports/cortex-m under FreeRTOS 11 on the board mps2-an385. One group has handlers that call
//! FreeRTOS; FreeRTOS never delays the other group (ports/cortex-m/tests/rtos). Both are compared
//! with the limiter of core/, event by event.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cortex::events::{
    Event, INTERVALS, Kind, judge_curve, judge_expiries, latest, parse, replay, told,
};
use crate::cortex::{Elf, Limit, can_run, compile_with, flood, root, spec, storm};
use rayon::prelude::*;
use weir_core_sys::{Bare, W32};
use weir_emulate::firmware::FirmwareError;
use weir_emulate::run::run;

/// The most instructions for which a critical section delays the group, without its loop of a
/// thousand iterations of at most ten instructions.
const KERNEL: u64 = 2000;
const CRITICAL: u64 = 10_000 + KERNEL;

/// Returns the kernel's folder in the crate that contains it.
fn kernel() -> PathBuf {
    let script = root().join("ports/freertos/sources/find.sh");
    let output = Command::new(script).arg("freertos-next").output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    PathBuf::from(said.trim_end()).join("FreeRTOS-Kernel")
}

fn build(kernel: &Path, limit: &Limit, more: &[&str]) -> Result<Elf, FirmwareError> {
    let tests = root().join("ports/cortex-m/tests/rtos");
    let port = kernel.join("portable/GCC/ARM_CM3");
    let sources = [
        tests.join("rtos.c"),
        tests.join("urgent.c"),
        kernel.join("tasks.c"),
        kernel.join("list.c"),
        kernel.join("portable/MemMang/heap_4.c"),
        port.join("port.c"),
    ];
    let mut defines = vec![
        limit.initialiser("LIMIT0"),
        format!("LAST={}", INTERVALS * limit.config.interval),
        "WEIR_LIMIT_RECORD=0".to_owned(),
    ];
    defines.extend(more.iter().map(ToString::to_string));
    compile_with(
        &sources,
        &[tests, kernel.join("include"), port],
        &[],
        &defines,
    )
}

#[test]
fn cortex_m_limits_what_wakes_a_task_of_freertos_and_what_never_calls_it() {
    if !can_run() {
        return;
    }
    let kernel = kernel();
    let limits: Vec<Limit> = Limit::all()
        .into_iter()
        .filter(|limit| limit.divisor == 1)
        .collect();
    limits.into_par_iter().for_each(|limit| {
        let elf = build(&kernel, &limit, &[]).unwrap_or_else(|error| panic!("{error}"));
        let cycles = limit.config.interval * limit.tick();
        let all = INTERVALS * cycles;
        let floods = [
            flood(&format!(
                "IRQ20=uniform:1cycles..{}cycles:seed=9",
                cycles / 2
            )),
            flood(&format!(
                "IRQ28=uniform:1cycles..{}cycles:seed=10",
                cycles / 2
            )),
        ];
        let storms = [
            storm("IRQ20", cycles, 11, all),
            storm("IRQ28", cycles, 12, all),
        ];
        for floods in [floods, storms] {
            let what = format!("{limit:?} {}", floods[0].stimulus);
            let counters = [
                "served",
                "woken",
                "served_urgent",
                "held",
                "held_urgent",
                "opened",
            ];
            let result = told(&elf, &floods, &counters, all + 3_000_000);
            let count = |name: &str| result.counters[name];
            let events = parse(&result.said);
            let of = |source| -> Vec<Event> {
                events
                    .iter()
                    .filter(|event| event.source == source)
                    .copied()
                    .collect()
            };
            let (inputs, urgent) = (of(0), of(8));
            // The users of the first group delay due requests.
            let served = judge(&limit, &inputs, limit.config.interval - 1, &what);
            judge_expiries(&inputs, latest(&limit, CRITICAL), &what);
            assert!(
                inputs
                    .iter()
                    .filter(|event| event.kind == Kind::Disable)
                    .count()
                    > 20
            );
            // The second group is never late, whatever FreeRTOS does.
            let late = latest(&limit, 0);
            let served_urgent = judge(&limit, &urgent, late, &what);
            judge_expiries(&urgent, late, &what);
            assert_eq!(count("served"), served, "{what}");
            assert_eq!(count("served_urgent"), served_urgent, "{what}");
            assert!(served > 30 && served_urgent > 30, "{what}");
            assert_eq!(count("woken"), served, "{what}: woken as often as served");
            // Critical sections delay only the first group, and no call of the port ends a critical
            // section.
            assert_eq!((count("held"), count("opened")), (0, 0), "{what}");
            assert!(count("held_urgent") > 5, "{what}");
        }
    });
}

fn judge(limit: &Limit, events: &[Event], jitter: u64, what: &str) -> u64 {
    replay::<Bare<W32>>(&limit.config, events, what);
    judge_curve(&limit.config, events, jitter, what) as u64
}

/// FreeRTOS's own check of its callers' priority is active. A group whose priority is too high to
/// call FreeRTOS does not compile.
#[test]
fn cortex_m_groups_that_may_not_call_freertos_are_found_out() {
    if !can_run() {
        return;
    }
    let kernel = kernel();
    let limit = Limit::all()[0];
    let elf = build(&kernel, &limit, &["WRONG"]).unwrap();
    let floods = [flood("IRQ28=10kHz")];
    let result = run(&spec(&elf, &floods, 10_000_000)).unwrap();
    assert_eq!(result.exit, Some(3), "FreeRTOS asserts");
    let error = build(&kernel, &limit, &["PRIORITY=0x20"])
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.contains("with FreeRTOS at least configMAX_SYSCALL_INTERRUPT_PRIORITY"),
        "{error}"
    );
}
