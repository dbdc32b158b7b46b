// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures how long the commands take as whole processes, on systems of known size: `cargo bench
//! -p weir-cli`. Exits with 1 if a goal is missed.
//!
//! Each result is the median of several runs, without the first one: a user's waiting time once the
//! disk cache is warm. On a loaded machine it is longer.
use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use weir_report::{Claim, Goal, claims_table};

/// Returns a system on an ATmega128 as a user would describe it, with `sources` limited lines and
/// `tasks` tasks.
fn on_board(sources: usize, tasks: usize) -> String {
    let channels = [
        "TIMER1A", "TIMER1B", "TIMER1C", "TIMER3A", "TIMER3B", "TIMER3C",
    ];
    let mut text = String::from("schema = 1\n[cpu]\nboard = \"atmega128\"\nclock = \"16MHz\"\n");
    for (index, channel) in channels.iter().enumerate().take(sources) {
        let _ = write!(
            text,
            "[[source]]\nname = \"source{index}\"\nvector = \"INT{index}\"\nhandler = \"{} cycles\"\nmax_work = 1\n\
             rate = {{ expected = \"300Hz\", tolerated = \"1kHz\", worst = \"100kHz\" }}\ndeadline = \"2ms\"\n\
             limit = {{ policy = \"bucket\", burst = 4, rate = \"600Hz\", timer = \"{channel}\" }}\n",
            80 + 10 * index,
        );
    }
    add_tasks(&mut text, tasks, 0.5);
    text
}

/// Returns a system for `weir tune`: ten sources without limits, and three timers.
fn to_tune() -> String {
    let mut text = String::from(
        "schema = 1\n[cpu]\nclock = \"16MHz\"\ninterrupts = \"flat\"\nlongest_instruction = \"4 cycles\"\n\
         [cpu.costs.off]\nrequest_served = \"26 cycles\"\n\
         [cpu.costs.shared]\nrequest_served = \"43 cycles\"\nexpiry_base = \"44 cycles\"\nclear_empty = \"12 cycles\"\n",
    );
    for policy in ["strict", "paced", "bursty", "bucket"] {
        let _ = write!(
            text,
            "[cpu.costs.{policy}.lazy]\nrequest_served = \"60 cycles\"\nrequest_refused = \"55 cycles\"\n\
             expiry_served = \"90 cycles\"\nexpiry_empty = \"60 cycles\"\n",
        );
    }
    for timer in 0..3 {
        let _ = write!(
            text,
            "[[timer]]\nname = \"timer{timer}\"\nchannel = \"CH{timer}\"\nwidth = 16\ndivisors = [1, 8, 64, 256, 1024]\nrate = \"100Hz\"\norder = {}\n",
            100 + timer,
        );
    }
    for index in 0..10 {
        let expected = 100 + 37 * index;
        let _ = write!(
            text,
            "[[source]]\nname = \"source{index}\"\nvector = \"IRQ{index}\"\norder = {index}\nhandler = \"{} cycles\"\nmax_work = 1\n\
             rate = {{ expected = \"{expected}Hz\", tolerated = \"{}Hz\", worst = \"100kHz\" }}\n",
            80 + 10 * index,
            2 * expected,
        );
    }
    add_tasks(&mut text, 10, 0.5);
    text
}

/// Returns a system on its own processor, whose sources share four timers.
fn large(sources: usize, tasks: usize) -> String {
    let mut text = String::from(
        "schema = 1\n[cpu]\nclock = \"1000MHz\"\ninterrupts = \"flat\"\nlongest_instruction = \"4 cycles\"\n\
         [cpu.costs.off]\nrequest_served = \"26 cycles\"\n\
         [cpu.costs.shared]\nrequest_served = \"60 cycles\"\nexpiry_base = \"40 cycles\"\nclear_empty = \"12 cycles\"\n",
    );
    for timer in 0..4 {
        let _ = write!(
            text,
            "[[timer]]\nname = \"timer{timer}\"\nchannel = \"CH{timer}\"\nwidth = 32\ndivisors = [1, 8, 64]\nrate = \"{}Hz\"\norder = {}\n",
            20 + 5 * timer,
            5000 + timer,
        );
    }
    for index in 0..sources {
        let _ = write!(
            text,
            "[[source]]\nname = \"source{index}\"\nvector = \"IRQ{index}\"\norder = {index}\nhandler = \"{} cycles\"\nmax_work = 1\n\
             rate = {{ expected = \"50Hz\", tolerated = \"400Hz\", worst = \"100kHz\" }}\n\
             limit = {{ policy = \"bursty\", burst = {}, timer = \"timer{}\" }}\n",
            100 + 10 * (index % 7),
            4 + index % 3,
            index % 4,
        );
    }
    add_tasks(&mut text, tasks, 0.005);
    text
}

/// Adds tasks with periods of about 20 to 70 ms, which together use about a third of the processor.
fn add_tasks(text: &mut String, tasks: usize, wcet_ms: f64) {
    for index in 0..tasks {
        let period = 20.0 + 0.5 * (index % 97) as f64;
        let _ = write!(
            text,
            "[[receiver]]\nname = \"task{index}\"\nurgency = {}\nperiod = \"{period}ms\"\ndeadline = \"{period}ms\"\nwcet = \"{wcet_ms}ms\"\n",
            255 - index * 255 / tasks,
        );
    }
}

/// Returns a system with two sources that would have to share the only timer of their board but may
/// not. `weir tune` reports that conflict.
fn denied() -> String {
    let text = include_str!("../../../examples/valve-controller/system.toml");
    let unlimited = text.lines().filter(|line| !line.starts_with("limit = "));
    let unlimited: Vec<&str> = unlimited.collect();
    unlimited
        .join("\n")
        .replacen("priority = 128", "priority = 64", 1)
}

/// Returns the median time of `runs` runs in milliseconds. The command must end with exit code
/// `code`.
fn milliseconds(arguments: &[&str], file: &Path, runs: usize, code: i32) -> f64 {
    let mut times: Vec<f64> = (0..=runs)
        .map(|_| {
            let begin = Instant::now();
            let status = Command::new(env!("CARGO_BIN_EXE_weir"))
                .args(arguments)
                .arg(file)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
            let elapsed = begin.elapsed().as_secs_f64() * 1e3;
            match status.map(|status| status.code()) {
                Ok(Some(ended)) if ended == code => elapsed,
                _ => f64::NAN,
            }
        })
        .skip(1)
        .collect();
    times.sort_by(f64::total_cmp);
    // If a run failed, the measurement fails: NaN meets no goal.
    if times.iter().any(|time| time.is_nan()) {
        return f64::NAN;
    }
    times[times.len() / 2]
}

fn main() -> ExitCode {
    let folder = match tempfile::tempdir() {
        Ok(folder) => folder,
        Err(error) => {
            eprintln!("cannot make a temporary folder: {error}");
            return ExitCode::from(2);
        }
    };
    let file = |name: &str, text: &str| -> PathBuf {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("the temporary folder can be written");
        path
    };
    let small = file("small.toml", &on_board(3, 10));
    let tuned = file("tune.toml", &to_tune());
    let denied = file("denied.toml", &denied());
    let large = file("large.toml", &large(1000, 1000));
    let claim = |id: &str, what: &str, most: f64, measured: f64| Claim {
        id: id.to_owned(),
        what: what.to_owned(),
        unit: "ms".to_owned(),
        paper: None,
        goal: Goal::AtMost(most),
        today: None,
        measured,
    };
    let claims = [
        claim(
            "check.small",
            "weir check, 3 sources and 10 tasks",
            5.0,
            milliseconds(&["check"], &small, 40, 0),
        ),
        claim(
            "check.large",
            "weir check, 1000 sources and 1000 tasks",
            2000.0,
            milliseconds(&["check"], &large, 5, 0),
        ),
        claim(
            "tune.ten",
            "weir tune, 10 sources and 10 tasks",
            5000.0,
            milliseconds(&["tune"], &tuned, 3, 0),
        ),
        claim(
            "tune.denied",
            "weir tune, 2 sources that cannot have limits",
            1000.0,
            milliseconds(&["tune"], &denied, 5, 1),
        ),
    ];
    println!("{}", claims_table(&claims, std::io::stdout().is_terminal()));
    if claims.iter().all(Claim::is_met) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
