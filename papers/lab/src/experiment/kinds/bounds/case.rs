// SPDX-License-Identifier: GPL-3.0-or-later
//! A case: a system file, the firmware that `weir generate` makes from it, and the facts that are
//! known before the attack.
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::{Spanned, Table, Value};
use weir_analysis::analyse;
use weir_analysis::units::Part;
use weir_generate::{ChipPlan, chip, header};
use weir_model::{Expiry, Policy, System};

use super::attack::{AttackedLine, START};
use super::observe::{ResponseWatch, longest_run, worst};
use crate::experiment::base::lay_over;
use crate::experiment::batch::run_one;
use crate::experiment::bench::{Bench, edges, free_register, vector};
use crate::experiment::error::ExperimentError;
use crate::experiment::setup::FlavourSources;
use weir_emulate::board::EmulatedBoard;
use weir_emulate::chip::ATMEGA128;
use weir_emulate::line::Line;
use weir_emulate::run::{LineStimulus, RunSpec};

/// A case as the experiment's file states it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CaseSpec {
    /// The name of the case and of the system in its system file.
    pub name: Spanned<String>,
    /// A description of the case.
    #[serde(rename = "about")]
    pub _about: String,
    /// The flavour with which the firmware is compiled.
    pub of: String,
    /// The name of the receiver or source whose response is bounded and observed.
    pub watch: String,
    /// The keys that the case adds to the [`Template`] for its system file.
    #[serde(default)]
    cpu: Table,
    #[serde(default)]
    timer: Vec<Table>,
    #[serde(default)]
    source: Vec<Table>,
    #[serde(default)]
    receiver: Vec<Table>,
}

/// The keys that the system files of all cases share. Each source of a case is merged over
/// `source`, and each receiver over `receiver`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Template {
    schema: i64,
    #[serde(default)]
    cpu: Table,
    #[serde(default)]
    source: Table,
    #[serde(default)]
    receiver: Table,
}

/// A case, ready to be attacked.
#[derive(Debug)]
pub(super) struct Case {
    pub name: String,
    /// A description of the drawn settings. It is empty if the experiment's file states the case.
    pub drawn: String,
    pub elf: PathBuf,
    pub clock_hz: u64,
    /// The worst-case response time according to the analysis, in cycles.
    pub bound: u64,
    pub watch: ResponseWatch,
    pub lines: Vec<Line>,
    pub limits: Vec<AttackedLine>,
    /// What the user does to the first source between two jobs.
    pub user: User,
    system: System,
    part: Part,
}

impl Case {
    /// Whether the case was drawn at random rather than stated in the file.
    pub(super) fn is_drawn(&self) -> bool {
        !self.drawn.is_empty()
    }

    /// Computes the bound with other costs: the longest measured interrupts of the first source's
    /// line and of its timer, in cycles, which include the handler's body.
    pub(super) fn bound_with(&self, costs: [u64; 2]) -> Option<u64> {
        let mut system = self.system.clone();
        let source = system.sources.first_mut()?;
        let body = source.handler.cycles;
        let [request, expiry] = costs;
        source.limit.costs.request_served = request.saturating_sub(body);
        source.limit.costs.request_refused = request;
        source.limit.costs.expiry_served = expiry.saturating_sub(body);
        source.limit.costs.expiry_empty = expiry;
        response(&system, self.part)
    }

    /// The vector numbers of the first source's line, and of the timer that ends its intervals.
    pub(super) fn vectors(&self) -> [u8; 2] {
        let line = self
            .lines
            .first()
            .map_or(0, |line| number(&line.to_string()));
        let source = self.system.sources.first();
        let timer = match source.and_then(|source| source.limit.expiry.as_ref()) {
            Some(Expiry::Own { level, .. }) => number(&level.vector),
            _ => 0,
        };
        [line, timer]
    }
}

/// What the user does to the first source between two jobs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct User {
    /// The largest number of cycles for which the user switches the source off. `None` if the user
    /// does not.
    pub off: Option<u64>,
    /// Limits as pairs of an interval in ticks and a burst, including the system's own limit.
    /// Before each job the user sets the source's limit to a random one of them. If the list is
    /// empty, the limit never changes.
    pub changes: Vec<(u64, u32)>,
}

impl User {
    fn defines(&self) -> Vec<String> {
        let mut defines = Vec::new();
        if let Some(cycles) = self.off {
            defines.push(format!("BOUNDS_OFF={cycles}"));
        }
        if !self.changes.is_empty() {
            let pairs = self.changes.iter();
            let pairs: Vec<String> = pairs
                .map(|(interval, burst)| format!("{{{interval}, {burst}}}"))
                .collect();
            defines.push(format!("BOUNDS_CHANGES={}", pairs.join(", ")));
        }
        defines
    }
}

/// What is needed to build the firmware of a system.
pub(super) struct Recipe<'a> {
    pub name: &'a str,
    /// A description of the drawn settings. It is empty if the experiment's file states the case.
    pub drawn: String,
    /// The flavour with which the firmware is compiled.
    pub of: &'a str,
    /// The name of the receiver or source that is observed.
    pub watch: &'a str,
    pub user: User,
}

/// The names that bounds.c has for sources.
const SOURCES: [&str; 4] = ["a", "b", "c", "watched"];
/// The least length of a calibration run, which measures bodies and jobs, in cycles.
const CALIBRATION: u64 = 20_000;
/// The time between two requests in a calibration run, in cycles: longer than any interrupt takes.
const CALIBRATION_GAP: u64 = 3000;

impl CaseSpec {
    /// Reads the system, generates and compiles its firmware, and checks the stated execution times
    /// on the board.
    ///
    /// # Errors
    /// Returns an error if the system file is invalid, if the firmware cannot represent the system,
    /// if there is no bound, or if a body or a job takes another time than stated.
    pub(super) fn prepare(
        &self,
        bench: &Bench,
        template: &Template,
    ) -> Result<Case, ExperimentError> {
        let origin = Recipe {
            name: self.name.get_ref(),
            drawn: String::new(),
            of: &self.of,
            watch: &self.watch,
            user: User::default(),
        };
        origin.prepare(bench, self.system(template)?)
    }

    /// The text of the case's system file.
    fn system_file(&self, template: &Template) -> String {
        let over = |below: &Table, own: &Table| {
            let mut all = below.clone();
            lay_over(&mut all, own.clone());
            all
        };
        let each = |below: &Table, own: &[Table]| -> Value {
            let items = own.iter().map(|own| over(below, own));
            Value::from(items.collect::<Vec<_>>())
        };
        let mut cpu = over(&template.cpu, &self.cpu);
        cpu.insert("flavour".to_owned(), Value::from(self.of.clone()));
        let mut file = Table::new();
        file.insert("schema".to_owned(), Value::from(template.schema));
        file.insert("cpu".to_owned(), Value::from(cpu));
        file.insert("timer".to_owned(), each(&Table::new(), &self.timer));
        file.insert("source".to_owned(), each(&template.source, &self.source));
        file.insert(
            "receiver".to_owned(),
            each(&template.receiver, &self.receiver),
        );
        file.to_string()
    }

    fn system(&self, template: &Template) -> Result<System, ExperimentError> {
        let name = format!("{}.toml", self.name.get_ref());
        let system = weir_model::parse(&name, &self.system_file(template))
            .map_err(|wrong| Box::new(weir_model::LoadError::from(wrong)))?;
        let source = system
            .sources
            .iter()
            .find(|source| !SOURCES.contains(&source.name.as_str()));
        if let Some(source) = source {
            return Err(wrong(
                self.name.get_ref(),
                &format!(
                    "its firmware knows no source `{}`: call it one of {}",
                    source.name,
                    SOURCES.join(", ")
                ),
            ));
        }
        if system.receivers.len() > 1 || !system.flows.is_empty() {
            return Err(wrong(
                self.name.get_ref(),
                "its firmware has one job: state one receiver at most, and no flow",
            ));
        }
        Ok(system)
    }
}

fn wrong(name: &str, what: &str) -> ExperimentError {
    ExperimentError::Evaluation(format!("the case `{name}`: {what}"))
}

/// The worst-case response time of `part`, in cycles.
fn response(system: &System, part: Part) -> Option<u64> {
    let analysis = analyse(system);
    let solution = analysis.row(part)?.outcome.as_ref().ok()?;
    Some(solution.response)
}

impl Recipe<'_> {
    /// Generates and compiles the firmware of a system, and checks the stated execution times on
    /// the board.
    ///
    /// # Errors
    /// Returns an error if the firmware cannot represent the system, if there is no bound, or if a
    /// body or a job takes another time than stated.
    pub(super) fn prepare(self, bench: &Bench, system: System) -> Result<Case, ExperimentError> {
        let name = self.name;
        let (part, watch) = self.part(&system)?;
        let bound = response(&system, part).ok_or_else(|| {
            self.wrong(&format!("the analysis has no bound for `{}`", self.watch))
        })?;
        let lines = system
            .sources
            .iter()
            .map(|source| {
                source
                    .level
                    .vector
                    .parse()
                    .map_err(|error| self.wrong(&format!("{error}")))
            })
            .collect::<Result<Vec<Line>, _>>()?;
        let mark = format!("BOUNDS_MARK={}", mark(&system).0);
        let defines = [&self.user.defines()[..], std::slice::from_ref(&mark)].concat();
        let elf = self.compile(bench, &system, name, self.of, &defines)?;
        let plain = without_limits(&system);
        let plain_elf = self.compile(bench, &plain, &format!("{name}-plain"), "c", &[mark])?;
        self.check_bodies(&plain, &plain_elf, &lines)?;
        self.check_job(&plain, &plain_elf, watch)?;
        Ok(Case {
            name: name.to_owned(),
            drawn: self.drawn,
            elf,
            clock_hz: system.cpu.clock_hz,
            bound,
            watch,
            limits: limits(&system),
            lines,
            user: self.user,
            system,
            part,
        })
    }

    fn wrong(&self, what: &str) -> ExperimentError {
        wrong(self.name, what)
    }

    /// Finds the observed receiver or source in the system, and its response in a trace.
    fn part(&self, system: &System) -> Result<(Part, ResponseWatch), ExperimentError> {
        let receiver = system
            .receivers
            .iter()
            .position(|receiver| receiver.name == self.watch);
        let source = system
            .sources
            .iter()
            .position(|source| source.name == self.watch);
        match (receiver, source) {
            (Some(index), _) => {
                let mark = mark(system).1;
                Ok((Part::Task(index), ResponseWatch::Job { mark }))
            }
            (None, Some(index)) => Ok((Part::Request(index), self.watch_line(system, index)?)),
            (None, None) => Err(self.wrong(&format!(
                "`{}` is neither a receiver nor a source of its system",
                self.watch
            ))),
        }
    }

    fn watch_line(&self, system: &System, index: usize) -> Result<ResponseWatch, ExperimentError> {
        let source = system
            .sources
            .get(index)
            .filter(|source| source.limit.policy == Policy::Off)
            .ok_or_else(|| {
                self.wrong(&format!(
                    "`{}` has a limit, which may hold its requests back: watch a source without one",
                    self.watch
                ))
            })?;
        let line = source
            .level
            .vector
            .parse()
            .map_err(|error| self.wrong(&format!("{error}")))?;
        Ok(ResponseWatch::Interrupt {
            line,
            vector: number(&line.to_string()),
        })
    }

    /// Compiles the firmware of `system`, with the limits as `weir generate` writes them.
    fn compile(
        &self,
        bench: &Bench,
        system: &System,
        name: &str,
        flavour: &str,
        more: &[String],
    ) -> Result<PathBuf, ExperimentError> {
        let chip = chip(ATMEGA128.name()).map_err(|error| self.wrong(&error.to_string()))?;
        let plan = ChipPlan::new(system, chip).map_err(Box::new)?;
        let folder = bench.folder(name)?;
        let path = folder.join("weir_system.h");
        std::fs::write(&path, header(&plan, &format!("{name}.toml")))
            .map_err(ExperimentError::Workspace)?;
        let common = bench
            .setup
            .flavour
            .get(flavour)
            .ok_or_else(|| self.wrong(&format!("the file has no flavour `{flavour}`")))?;
        let own = FlavourSources {
            includes: vec![folder.display().to_string()],
            defines: [&defines(system)[..], more].concat(),
            ..FlavourSources::default()
        };
        bench.compile_parts(&format!("{name}/firmware"), &[common, &own])
    }

    /// Checks that each handler's body takes the time that the system file states. The measured
    /// time is that of the line's interrupt without a limit, minus the overhead of such an
    /// interrupt.
    fn check_bodies(
        &self,
        plain: &System,
        elf: &Path,
        lines: &[Line],
    ) -> Result<(), ExperimentError> {
        let mut spec = traced(elf, plain.cpu.clock_hz, CALIBRATION);
        spec.floods = (1_u64..)
            .zip(lines)
            .map(|(place, line)| edges(self.name, *line, vec![CALIBRATION_GAP * place]))
            .collect();
        let result = run_one(self.name, &spec)?;
        for (source, line) in plain.sources.iter().zip(lines) {
            let longest = longest_run(&result.events, number(&line.to_string()));
            let measured = longest.saturating_sub(source.limit.costs.request_served);
            if measured != source.handler.cycles {
                return Err(self.wrong(&format!(
                    "the body of `{}` takes {measured} cycles on the board and {} in the system file",
                    source.name, source.handler.cycles
                )));
            }
        }
        Ok(())
    }

    /// Checks that an uninterrupted job takes the time that the system file states.
    fn check_job(
        &self,
        plain: &System,
        elf: &Path,
        watch: ResponseWatch,
    ) -> Result<(), ExperimentError> {
        if !matches!(watch, ResponseWatch::Job { .. }) {
            return Ok(());
        }
        let stated = job(plain);
        let mut spec = traced(elf, plain.cpu.clock_hz, CALIBRATION.max(3 * stated));
        spec.floods = vec![begin(self.name, START)];
        let measured = worst(&run_one(self.name, &spec)?.events, watch).cycles;
        if measured != stated {
            return Err(self.wrong(&format!(
                "a job takes {measured} cycles on the board and {stated} in the system file"
            )));
        }
        Ok(())
    }
}

/// The same system with ordinary handlers instead of limiters. The overhead of an ordinary handler
/// is known to the cycle.
fn without_limits(system: &System) -> System {
    let mut plain = system.clone();
    plain.cpu.flavour = Some("c".to_owned());
    plain.timers.clear();
    let costs = plain.cpu.unlimited;
    for source in &mut plain.sources {
        source.limit.policy = Policy::Off;
        source.limit.expiry = None;
        source.limit.costs = costs;
    }
    plain
}

/// The cycles of the main loop's job, or 0 if the system has no job.
fn job(system: &System) -> u64 {
    system
        .receivers
        .first()
        .map_or(0, |receiver| receiver.wcet.cycles)
}

/// A run with a trace and without a flood.
pub(super) fn traced(elf: &Path, clock_hz: u64, cycles: u64) -> RunSpec {
    RunSpec {
        trace: true,
        ..EmulatedBoard::ATMEGA128.spec(elf, clock_hz, cycles)
    }
}

/// The edge at cycle `at` that starts the main loop.
pub(super) fn begin(name: &str, at: u64) -> LineStimulus {
    edges(name, Line::INT7, vec![at])
}

/// The vector number of an interrupt, or 0 if the chip does not have the interrupt.
fn number(name: &str) -> u8 {
    vector(name).unwrap_or(0)
}

/// The first compare register that no limiter of the system uses: its name and address.
fn mark(system: &System) -> (&'static str, u16) {
    let mut channels = system
        .sources
        .iter()
        .filter_map(|source| match &source.limit.expiry {
            Some(Expiry::Own { channel, .. }) => Some(channel.as_str()),
            _ => None,
        });
    let on_timer2 = channels.find(|channel| channel.starts_with("TIMER2"));
    free_register(on_timer2.unwrap_or_default())
}

fn defines(system: &System) -> Vec<String> {
    let clock = system.cpu.clock_hz;
    let mut defines = vec![format!("F_CPU={clock}UL")];
    for source in &system.sources {
        defines.push(format!(
            "BOUNDS_CYCLES_{}={}",
            source.name, source.handler.cycles
        ));
    }
    let critical = system.cpu.critical_section.cycles;
    defines.push(if critical > 0 {
        format!("BOUNDS_CRITICAL={critical}")
    } else {
        format!("BOUNDS_TASK={}", job(system))
    });
    defines
}

fn limits(system: &System) -> Vec<AttackedLine> {
    system
        .sources
        .iter()
        .map(|source| {
            let apart = source.rates.worst.map_or(0, |rate| {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "a period is positive; beyond 2^64 cycles it saturates"
                )]
                let cycles = rate.period_cycles(system.cpu.clock_hz).ceil() as u64;
                cycles
            });
            let interval = match &source.limit.expiry {
                _ if source.limit.policy == Policy::Off => apart,
                Some(Expiry::Shared(timer)) => system
                    .timers
                    .get(*timer)
                    .map_or(1, |timer| timer.period.cycles()),
                _ => source.limit.interval.cycles(),
            };
            AttackedLine {
                interval: interval.max(1),
                burst: u64::from(source.limit.burst.max(1)),
                apart,
            }
        })
        .collect()
}
