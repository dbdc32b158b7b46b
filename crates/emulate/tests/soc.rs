// SPDX-License-Identifier: GPL-3.0-or-later
//! Tests of `weir run --board soc` with a fake simulator: its arguments, the use of its answer, and
//! rejected input.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

/// A fake simulator that records its arguments and the moves of INT3, and returns an answer.
const SIMULATOR: &str = r#"#!/bin/sh
here=$(dirname "$0")
echo "$@" >"$here/arguments"
for argument; do
    case $argument in 3=*) od -An -v -t u8 -w8 "${argument#3=}" >"$here/moves" ;; esac
done
wc -c <"$2" >"$here/bytes"
cat <<'END'
{"cycles":4000,"clock_hz":4000000,"instructions":2000,
 "background":{"cycles":3000,"instructions":1500},
 "interrupts":[
  {"cause":7,"line":null,"taken":0,"cycles":0,"longest_cycles":0,"instructions":0,"longest_instructions":0},
  {"cause":11,"line":3,"taken":10,"cycles":800,"longest_cycles":80,"instructions":250,"longest_instructions":25},
  {"cause":11,"line":8,"taken":1,"cycles":200,"longest_cycles":200,"instructions":90,"longest_instructions":90}],
 "exceptions":[],
 "lines":[{"line":0,"offered":0,"requested":0,"delivered":0,"missed":0},{"line":3,"offered":20,"requested":20,"delivered":10,"missed":9}],
 "counters":{"progress":123},"marks":{},"uart":"ready\n","exit":null,"bus_errors":{"count":0,"first":null},"resets":0}
END
"#;

struct Bench {
    folder: TempDir,
}

impl Bench {
    /// Makes a test with this fake simulator.
    fn new(simulator: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("weir-soc");
        std::fs::write(&program, simulator).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        Self { folder }
    }

    /// Compiles the firmware of these tests. `flags` come after the other compiler flags.
    fn firmware(&self, flags: &[&str]) -> PathBuf {
        let output = self.folder.path().join("firmware.elf");
        compile(&output, flags);
        output
    }

    fn run(&self, arguments: &[&str]) -> std::process::Output {
        let mut command = Command::cargo_bin("weir-run").unwrap();
        command
            .env("NO_COLOR", "1")
            .env("WEIR_SOC", self.folder.path().join("weir-soc"))
            .args(["--board", "soc"])
            .args(arguments)
            .output()
            .unwrap()
    }

    /// Returns the message of an invalid call, which must exit with 2 and print nothing else.
    fn complaint(&self, arguments: &[&str]) -> String {
        complaint(&self.run(arguments))
    }

    fn noted(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).unwrap()
    }
}

fn complaint(output: &std::process::Output) -> String {
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(
        output.stdout.is_empty() && !message.contains("panicked"),
        "{message}"
    );
    let message = message.replace('│', " ");
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn compile(output: &Path, flags: &[&str]) {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/firmware");
    let firmware = weir_emulate::firmware::Firmware {
        sources: vec![sources.join("soc.c")],
        flags: [format!("-Wl,-T,{}", sources.join("soc.ld").display())]
            .into_iter()
            .chain(flags.iter().map(ToString::to_string))
            .collect(),
        ..Default::default()
    };
    let toolchain = weir_emulate::board::EmulatedBoard::SOC.toolchain();
    firmware.build_with(toolchain, output).unwrap();
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn the_simulator_is_told_the_run_and_its_answer_is_shown() {
    let bench = Bench::new(SIMULATOR);
    let elf = bench.firmware(&[]);
    let arguments = [
        text(&elf),
        "--flood",
        "INT3=40kHz:phase=50cycles",
        "--for",
        "1ms",
        "--warmup",
        "100us",
        "--counter",
        "progress",
    ];
    let output = bench.run(&arguments);
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    for part in [
        "firmware.elf for 1.000 ms at 4MHz",
        "INT3 ",
        "20.00 %",
        "25.0",
        "OVERLOAD",
        "75.00 %",
        "past the limiter",
        "123",
        "ready",
    ] {
        assert!(shown.contains(part), "{part} in\n{shown}");
    }
    assert!(
        !shown.contains("TIMER") && !shown.contains("INT0 "),
        "neither taken nor driven\n{shown}"
    );
    assert!(
        shown.lines().all(|line| line.chars().count() <= 100),
        "{shown}"
    );

    let told = bench.noted("arguments");
    for part in [
        "--cycles 4000 ",
        "--warmup 400 ",
        "--clock-hz 4000000 ",
        "--watch progress=0x",
    ] {
        assert!(told.contains(part), "{part} in {told}");
    }
    assert!(
        told.trim_end().ends_with(":4"),
        "progress has four bytes: {told}"
    );
    let moves: Vec<u64> = bench
        .noted("moves")
        .split_whitespace()
        .map(|word| word.parse().unwrap())
        .collect();
    assert_eq!(&moves[..4], [50 << 1 | 1, 58 << 1, 150 << 1 | 1, 158 << 1]);
    assert!(
        moves.last().unwrap() >> 1 < 4400,
        "nothing from the end of the run on"
    );
    assert!(
        bench.noted("bytes").trim().parse::<u64>().unwrap() < 200,
        "the image is the program alone"
    );
}

#[test]
fn json_has_the_same_run() {
    let bench = Bench::new(SIMULATOR);
    let elf = bench.firmware(&[]);
    let output = bench.run(&[
        text(&elf),
        "--flood",
        "INT3=40kHz",
        "--clock",
        "50MHz",
        "--for",
        "1ms",
        "--json",
    ]);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&json["board"], &json["clock_hz"]),
        (&"soc".into(), &50_000_000.into())
    );
    assert_eq!(json["vectors"][0]["name"], "INT3");
    assert_eq!(json["vectors"][0]["instructions"], 250);
    assert_eq!(json["lines"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&json["lines"][0]["missed"], &json["lines"][0]["delivered"]),
        (&9.into(), &10.into())
    );
    assert_eq!(json["background"]["share"], 0.75);
    assert_eq!(
        (&json["serial"], &json["exit"]),
        (&"ready\n".into(), &Value::Null)
    );
}

#[test]
fn bad_arguments_are_refused_with_what_would_be_right() {
    let bench = Bench::new(SIMULATOR);
    let elf = bench.firmware(&[]);
    for (arguments, says) in [
        (
            &["--flood=INT8=20kHz"][..],
            "there is no interrupt line `INT8`: the lines are INT0, INT1",
        ),
        (
            &["--flood=INT0=20kHz", "--flood=INT0=1kHz"],
            "INT0 has two floods",
        ),
        (&["--flood=INT0=poisson:20kHz"], "`seed=` is missing"),
        (&["--hardware-limit=INT9=4kHz"], "the lines are INT0, INT1"),
        (&["--counter=progres"], "no variable `progres`"),
        (&["--counter=progres"], "near names: progress"),
        (&["--counter=buffer"], "`buffer` has 3 bytes"),
        (
            &["--flood=INT0=1kHz", "--front=x.elf"],
            "the board soc has no second chip in front",
        ),
        (&["--for=1ns"], "less than one cycle"),
    ] {
        let mut all = vec![text(&elf)];
        all.extend(arguments);
        let message = bench.complaint(&all);
        assert!(
            message.contains(says)
                || says == "near names: progress" && message.contains("there are: progress"),
            "{arguments:?}: {message}"
        );
    }
}

#[test]
fn firmware_of_another_machine_is_refused_with_the_compiler_for_this_one() {
    let bench = Bench::new(SIMULATOR);
    let (_folder, avr) = crate::common::build("counter.c", &[]);
    let path = |name: &str| bench.folder.path().join(name);
    let (compressed, multiplying) = (path("compressed.elf"), path("multiplying.elf"));
    compile(&compressed, &["-march=rv32ic_zicsr"]);
    compile(&multiplying, &["-march=rv32im_zicsr"]);
    let wide = path("wide.elf");
    compile(
        &wide,
        &["-Wl,--defsym=far=0", "-Wl,--section-start=.text=0x20000"],
    );
    for (elf, says) in [
        (&avr, "is for the architecture Avr, not for the soc"),
        (&std::env::current_exe().unwrap(), "is for the architecture"),
        (&compressed, "a RISC-V with compressed instructions"),
        (&multiplying, "the instruction set rv32i"),
        (&wide, "bytes of RAM and the soc has 65536"),
        (&path("missing.elf"), "cannot read"),
    ] {
        let message = bench.complaint(&[text(elf)]);
        assert!(message.contains(says), "{}: {message}", elf.display());
    }
    let message = bench.complaint(&[text(&multiplying)]);
    assert!(
        message.contains("riscv64-unknown-elf-gcc -march=rv32i_zicsr"),
        "{message}"
    );
}

#[test]
fn a_simulator_that_fails_says_why() {
    for (simulator, says) in [
        (
            "#!/bin/sh\necho 'weir-soc: cycle 7: a trap without a handler at 0x40' >&2; exit 2\n",
            "stopped: cycle 7: a trap without a handler at 0x40",
        ),
        ("#!/bin/sh\nkill -9 $$\n", "ended with signal: 9"),
        (
            "#!/bin/sh\necho '{\"cycles\":1}'\n",
            "cannot be read: missing field",
        ),
    ] {
        let bench = Bench::new(simulator);
        let elf = bench.firmware(&[]);
        let message = bench.complaint(&[text(&elf)]);
        assert!(message.contains(says), "{message}");
    }
    let bench = Bench::new(SIMULATOR);
    std::fs::remove_file(bench.folder.path().join("weir-soc")).unwrap();
    let elf = bench.firmware(&[]);
    let message = bench.complaint(&[text(&elf)]);
    assert!(message.contains("cannot start the simulator"), "{message}");
}

#[test]
fn the_simulator_is_built_where_a_folder_above_has_its_script() {
    let bench = Bench::new(SIMULATOR);
    let elf = bench.firmware(&[]);
    let run = |arguments: &[&str], folder: &Path| {
        let mut command = Command::cargo_bin("weir-run").unwrap();
        command
            .env_remove("WEIR_SOC")
            .current_dir(folder)
            .args(["--board", "soc"])
            .args(arguments)
            .output()
            .unwrap()
    };
    let message = complaint(&run(&[text(&elf)], bench.folder.path()));
    assert!(
        message.contains("boards/soc/build.sh") && message.contains("WEIR_SOC=PATH"),
        "{message}"
    );

    let script = bench.folder.path().join("boards/soc/build.sh");
    std::fs::create_dir_all(script.parent().unwrap()).unwrap();
    let write = |text: String| {
        std::fs::write(&script, text).unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    let inside = bench.folder.path().join("a/b");
    std::fs::create_dir_all(&inside).unwrap();
    let program = bench.folder.path().join("weir-soc");
    write(format!(
        "#!/bin/sh\necho building >&2\necho {}\n",
        program.display()
    ));
    let output = run(&[text(&elf)], &inside);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(output.stderr, b"building\n", "its progress is seen");
    write("#!/bin/sh\necho 'g++ is missing' >&2\nexit 2\n".to_owned());
    let message = complaint(&run(&[text(&elf)], &inside));
    assert!(
        message.contains("g++ is missing") && message.contains("ended with exit status: 2"),
        "{message}"
    );
}
