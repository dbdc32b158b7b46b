// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the rule for all files that commands write. A command never overwrites an input. It
//! overwrites files that Weir did not write only with `--force`. It creates only folders that the
//! user named.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::common::{Printed, run, weir};
use tempfile::TempDir;

/// A command with an option that names an output.
struct Writes {
    option: &'static str,
    /// The command line. OUT stands for the value of the option.
    command: &'static str,
    /// The files that the command reads.
    inputs: &'static [&'static str],
    /// The name of a file in OUT if OUT is a folder.
    file: Option<&'static str>,
}

const fn of(
    option: &'static str,
    command: &'static str,
    inputs: &'static [&'static str],
) -> Writes {
    Writes {
        option,
        command,
        inputs,
        file: None,
    }
}

/// All options of all commands that name outputs.
const ALL: [Writes; 9] = [
    of(
        "tune --output",
        "tune node.toml --output OUT",
        &["node.toml"],
    ),
    of("tune --plot", "tune node.toml --plot OUT", &["node.toml"]),
    of(
        "simulate --plot",
        "simulate flight.toml --duration 10ms --flood ignition=trace:flood.csv --plot OUT",
        &["flight.toml", "flood.csv"],
    ),
    of(
        "simulate --trace",
        "simulate flight.toml --duration 10ms --flood ignition=trace:flood.csv --trace OUT",
        &["flight.toml", "flood.csv"],
    ),
    of(
        "sweep --out",
        "sweep flight.toml --duration 10ms --vary flood.ignition=2kHz,trace:flood.csv --out OUT",
        &["flight.toml", "flood.csv"],
    ),
    // Only the first part of a table has column names.
    of(
        "sweep --out",
        "sweep flight.toml --duration 10ms --vary seed=1,2 --shard 2/2 --out OUT",
        &["flight.toml"],
    ),
    // This part has no rows.
    of(
        "sweep --out",
        "sweep flight.toml --duration 10ms --vary seed=1,2 --shard 2/9 --out OUT",
        &["flight.toml"],
    ),
    of(
        "generate --output",
        "generate node.toml --chip atmega128 --output OUT",
        &["node.toml"],
    ),
    Writes {
        option: "generate --output",
        command: "generate silicon.toml --rtl --output OUT",
        inputs: &["silicon.toml"],
        file: Some("limit_in_silicon_limits.sv"),
    },
];

/// Value names of options that do not name outputs.
const NO_OUTPUTS: [&str; 17] = [
    "AIM",
    "CHIP",
    "COMPENSATION",
    "DEFER",
    "I/N",
    "KEY=VALUES",
    "KIND=SPREAD",
    "N",
    "PERCENT",
    "PERIOD[:COST]",
    "RATE",
    "RECEIVER=TIME",
    "RTOS",
    "SPREAD",
    "TARGET[=PATTERN]",
    "TIES",
    "TIME",
];
/// Options whose values are input files.
const READ: [&str; 2] = ["check --observed", "verify --system"];
/// Options whose values are not files.
const NEITHER: [&str; 1] = ["sweep --seeds"];
/// Commands of other programs, which test their own options.
const FORWARDED: [&str; 3] = ["run", "linux", "reproduce"];

#[test]
fn every_option_that_names_a_file_to_write_is_held_against_the_rule() {
    let help = |arguments: &[&str]| run(weir().args(arguments)).out;
    let all = help(&["--help"]);
    let commands = all.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands = commands.take_while(|line| !line.is_empty());
    let commands = commands.filter_map(|line| line.split_whitespace().next());
    let mut found = BTreeSet::new();
    for command in commands.filter(|command| !FORWARDED.contains(command) && *command != "help") {
        let text = help(&[command, "--help"]);
        let options = text.lines().map(str::trim_start);
        for line in options.filter(|line| line.starts_with('-')) {
            let Some((names, value)) = line.split_once(" <") else {
                continue;
            };
            let name = names.split_whitespace().last().unwrap();
            let (option, value) = (
                format!("{command} {name}"),
                value.split('>').next().unwrap(),
            );
            let known = [&READ[..], &NEITHER].concat().contains(&option.as_str());
            if !known && !NO_OUTPUTS.contains(&value) {
                assert!(text.contains("--force"), "{command} has no --force");
                found.insert(option);
            }
        }
    }
    let tested = ALL.iter().map(|of| of.option.to_owned());
    assert_eq!(
        found,
        tested.collect(),
        "an option is not in one of the lists"
    );
}

/// Returns a folder with all inputs.
fn inputs() -> TempDir {
    let folder = TempDir::new().unwrap();
    for (name, example) in [
        ("node.toml", "shared-timer"),
        ("flight.toml", "flight-controller"),
        ("silicon.toml", "limit-in-silicon"),
    ] {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let from = root.join(format!("../../examples/{example}/system.toml"));
        std::fs::copy(from, folder.path().join(name)).unwrap();
    }
    std::fs::write(folder.path().join("flood.csv"), "time_us\n100\n400\n").unwrap();
    folder
}

impl Writes {
    fn run(&self, folder: &Path, out: &str, more: &[&str]) -> Printed {
        let words = self.command.split(' ');
        let words = words.map(|word| if word == "OUT" { out } else { word });
        run(weir().current_dir(folder).args(words).args(more))
    }

    /// Returns whether the file has a mark. System files have none, because people edit them. Later
    /// parts of a table have none, because they have no column names.
    fn is_marked(&self) -> bool {
        self.option != "tune --output" && !self.command.contains("--shard 2/")
    }

    /// Returns the path of the output file if the option's value is `out`.
    fn file(&self, folder: &Path, out: &str) -> PathBuf {
        let out = folder.join(out);
        self.file.map_or(out.clone(), |file| out.join(file))
    }

    fn refuses(&self, folder: &Path, out: &str, more: &[&str], says: &str) {
        let before = content(folder);
        let printed = self.run(folder, out, more);
        let said = printed.err.split_whitespace().collect::<Vec<_>>().join(" ");
        let said = said.replace("│ ", "");
        assert_eq!(printed.code, Some(2), "{}: {out}: {said}", self.command);
        assert!(said.contains(says), "{}: {out}: {said}", self.command);
        assert!(content(folder) == before, "{}: {out}", self.command);
    }
}

/// Returns the paths and contents of all files below `folder`.
fn content(folder: &Path) -> BTreeSet<(PathBuf, Vec<u8>)> {
    let mut all = BTreeSet::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(content(&path));
            all.insert((path, Vec::new()));
        } else {
            let bytes = std::fs::read(&path).unwrap();
            all.insert((path, bytes));
        }
    }
    all
}

#[test]
fn an_input_is_never_written() {
    let folder = inputs();
    let here = folder.path();
    std::fs::create_dir(here.join("sub")).unwrap();
    // A folder as output is never an input file.
    for of in ALL.iter().filter(|of| of.file.is_none()) {
        for input in of.inputs {
            let mut names = vec![
                (*input).to_owned(),
                format!("./sub/../{input}"),
                here.join(input).to_str().unwrap().to_owned(),
            ];
            #[cfg(unix)]
            for (name, link) in [
                (
                    "soft",
                    (|from, to| std::os::unix::fs::symlink(from, to)) as fn(&Path, &Path) -> _,
                ),
                ("hard", |from, to| std::fs::hard_link(from, to)),
            ] {
                let link_name = here.join(format!("{name}.{input}"));
                if !link_name.exists() {
                    link(&here.join(input), &link_name).unwrap();
                }
                names.push(format!("{name}.{input}"));
            }
            for name in names {
                of.refuses(here, &name, &["--force"], "the same command reads it");
            }
        }
    }
}

#[test]
fn two_outputs_of_a_command_are_two_files() {
    let folder = inputs();
    for of in &ALL {
        let other = match of.option {
            "tune --output" | "simulate --trace" => "--plot",
            _ => continue,
        };
        let more = [other, "./new", "--force"];
        of.refuses(
            folder.path(),
            "new",
            &more,
            "the same command writes something else to it",
        );
    }
}

#[test]
fn a_file_of_somebody_else_is_replaced_only_by_force() {
    let folder = inputs();
    let here = folder.path();
    for (index, of) in ALL.iter().enumerate() {
        for (which, theirs) in ["", "\n", "mine,and,not\nyours,or,is it\n"]
            .iter()
            .enumerate()
        {
            let out = format!("{index}.{which}");
            let file = of.file(here, &out);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, theirs).unwrap();
            of.refuses(here, &out, &[], "it is there already");
            let forced = of.run(here, &out, &["--force"]);
            assert_eq!(forced.code, Some(0), "{}: {}", of.command, forced.err);
            let is_empty = of.command.contains("2/9");
            let kept = std::fs::read(&file).unwrap() == theirs.as_bytes();
            assert_eq!(kept, is_empty && theirs.is_empty(), "{}", of.command);
        }
    }
}

#[test]
fn the_same_command_again_replaces_what_it_wrote() {
    let folder = inputs();
    let here = folder.path();
    for (index, of) in ALL.iter().enumerate() {
        let out = format!("out.{index}");
        let mut written = Vec::new();
        for again in [false, true] {
            let more: &[&str] = if again && !of.is_marked() {
                of.refuses(here, &out, &[], "it is there already");
                &["--force"]
            } else {
                &[]
            };
            let printed = of.run(here, &out, more);
            assert_eq!(printed.code, Some(0), "{}: {}", of.command, printed.err);
            written.push(std::fs::read(of.file(here, &out)).unwrap());
        }
        assert!(written[0] == written[1], "{}", of.command);
    }
    let names = std::fs::read_dir(here).unwrap();
    assert_eq!(names.count(), 4 + ALL.len(), "something else is left");
}

#[test]
fn no_folder_is_made_by_surprise() {
    let folder = inputs();
    for of in &ALL {
        of.refuses(folder.path(), "no/such/out", &[], "does not exist");
        if of.file.is_none() {
            of.refuses(
                folder.path(),
                "none/out",
                &[],
                "the folder none does not exist",
            );
            of.refuses(folder.path(), ".", &["--force"], "it names a folder");
            of.refuses(
                folder.path(),
                "flood.csv/out",
                &["--force"],
                "Not a directory",
            );
        }
    }
}
