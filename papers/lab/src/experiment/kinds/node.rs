// SPDX-License-Identifier: GPL-3.0-or-later
//! Experiments on a node with a real-time operating system and a TCP/IP stack
//! (boards/mps2-an385/node). The node is an emulated Cortex-M3, and packets arrive in virtual time.
//!
//! The variants differ in the options of a single firmware. A repeated run gives the same numbers,
//! however busy the host is; results vary only with the seed of a run's packets.
mod costs;
mod sound;
mod spec;
mod system;
mod tone;
mod values;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};
use toml::Spanned;
use weir_arrivals::Pattern;
use weir_emulate::elf;
use weir_model::Duration;
use weir_report::{Temporary, give_way_to_interruption, run_to_end};

use crate::experiment::batch::carry_out;
use crate::experiment::error::ExperimentError;
use crate::experiment::findings::{Detail, ExtraName, Measurements};
use crate::experiment::kind::{Ids, Kind, KindEntry};
use crate::experiment::place::Checkout;
use crate::experiment::search::{self, SearchSpec};
use crate::experiment::series;
use crate::experiment::series::{RunKey, SeriesPlan, Values};
use crate::experiment::setup::{CurveSpec, Setup};
use spec::{Ask, Node, NodeVariant, Packets};
use tone::Tone;

pub(super) const KIND: KindEntry = KindEntry::of::<Node>("node");

/// The board that the node runs on.
const BOARD: &str = "mps2-an385";
/// The scripts that build and run the node, relative to the repository's root.
const BUILD: &str = "boards/mps2-an385/node/build.sh";
const RUN: &str = "boards/mps2-an385/node/run.sh";
/// The frequency of the peer's clock in Hz, in which patterns are checked: a cycle is a nanosecond.
const CLOCK_HZ: u64 = 1_000_000_000;
/// The node's IP address.
const ADDRESS: &str = "10.0.0.2";
/// The interrupt lines of the node's card, and of the pin for simulated packets.
const CARD: u16 = 13;
const PIN: u16 = 16;
/// The FreeRTOS variable that points to the running task.
const RUNNING: &str = "pxCurrentTCB";
/// The time at which the first window begins.
const FIRST_WINDOW: &str = "1s";
/// The time at which the peer stops the run. A node that works ends earlier by itself.
const END: &str = "300s";

/// A range that a search varies outside its pattern: the delay, in microseconds, from the first
/// window to the beginning of the crowd's requests.
const DELAY: &str = "delay_us";

impl Kind for Node {
    fn remark(&self) -> Option<&'static str> {
        Some("FreeRTOS and lwIP on an emulated Cortex-M3")
    }

    fn known(&self, _: &Setup) -> Ids {
        let mut known = series::known(&self.series());
        let searched = self.searches().into_iter().map(|search| search.id);
        known.claims.extend(searched);
        known
    }

    fn curves(&self, series: &Spanned<String>) -> Vec<CurveSpec> {
        let of = |of: &NodeVariant| {
            CurveSpec::of_variant(series, &of.id, of.label.clone(), (of.colour, of.stroke))
        };
        self.variant.iter().map(of).collect()
    }

    fn shorten(&mut self) -> bool {
        let Some(quick) = self.quick.clone() else {
            return false;
        };
        self.x.shorten(quick.values);
        self.seeds = quick.seeds;
        self.windows = quick.windows;
        self.quick_options = quick.options;
        search::shorten(&mut self.search);
        true
    }

    fn extras(&self) -> Vec<ExtraName> {
        sound::names(self)
    }

    fn measure(&self, place: &Checkout, _: &Setup) -> Result<Measurements, ExperimentError> {
        let plan = SeriesPlan {
            x: self.x.clone(),
            seeds: self.seeds.clone(),
            series: self.series(),
            variants: self.variant.iter().map(|of| of.id.clone()).collect(),
            constants: costs::constants(place)?,
        };
        plan.check(|name| values::is_known(self, name))?;
        let searches = self.searches();
        let first = self.x.values.first().copied().unwrap_or_default();
        search::check(
            &searches,
            &plan,
            (&series::known(&plan.series).claims, &[DELAY]),
            |variant, name| match plan.has_series(variant, name, first)? {
                true => Ok(()),
                false => values::is_known(self, name),
            },
            |flood| Pattern::parse(flood, CLOCK_HZ),
        )?;
        for search in searches.iter().filter(|of| of.is_beside(DELAY)) {
            let used = plan.used_in(&search.value);
            let mut of_search = self
                .variant
                .iter()
                .filter(|of| used.contains(of.id.as_str()));
            if !of_search.any(|of| of.crowd.is_some()) {
                let what =
                    format!("the range `{DELAY}` is for a crowd, and no variant of it has one");
                return Err(search.wrong(&what));
            }
        }
        sound::check(self)?;
        let mut runs = Vec::new();
        let mut spans = BTreeMap::new();
        for variant in &self.variant {
            let measured = self.measured(place, variant)?;
            spans.insert(variant.id.as_str(), measured.clone());
            for (key, x) in plan.runs_of(&variant.id) {
                let wrong = |what| {
                    ExperimentError::Evaluation(format!(
                        "the variant `{}` at x = {x}: {what}",
                        variant.id
                    ))
                };
                let pattern = variant.pattern_at(x).map_err(wrong)?;
                let job = self
                    .job(variant, &measured, (x, pattern.as_deref()), (key.seed, 0))
                    .map_err(wrong)?;
                let bound = system::bound(place, self, variant, &plan.constants, x)?;
                runs.push((key, job, bound));
            }
        }
        let results: BTreeMap<RunKey, (Values, Option<Tone>)> =
            carry_out(runs, |(key, job, bound)| {
                let (mut values, tone) = self.values_of(place, &key.variant, &job)?;
                values.extend(bound);
                Ok((key, (values, tone)))
            })?;
        let mut values = BTreeMap::new();
        let mut tones = BTreeMap::new();
        for (key, (of_run, tone)) in results {
            tones.extend(tone.map(|tone| (key.clone(), tone)));
            values.insert(key, of_run);
        }
        let first = self.seeds.first();
        let of_variant = |variant: &str| {
            let is_its = |key: &RunKey| key.variant == variant && first == Some(&key.seed);
            let its = tones.iter().filter(|(key, _)| is_its(key));
            its.map(|(_, tone)| tone).collect()
        };
        let extras = sound::extras(self, of_variant)?;
        let mut measured = Measurements {
            extras,
            ..plan.measure(&values)?
        };
        if !searches.is_empty() {
            let (worst, floods) = self.search(place, (&searches, &plan), &spans, &values)?;
            measured.values.extend(worst);
            measured.detail = Some(floods);
        }
        Ok(measured)
    }
}

/// A run of the node that has not started yet.
struct NodeJob {
    /// The plan for the peer, which generates packets and measures.
    plan: Value,
    /// The options of the node's firmware.
    options: Vec<String>,
    /// The interrupt line on which packets are announced.
    line: u16,
    /// The base-2 logarithm of the nanoseconds per instruction.
    shift: u8,
    /// Additional options for the compiler.
    build: String,
    /// The time in nanoseconds at which the last packet has arrived.
    until: f64,
}

impl Node {
    /// The measurements that the peer makes in a variant: null if the variant does not set
    /// `profile`.
    fn measured(&self, place: &Checkout, of: &NodeVariant) -> Result<Value, ExperimentError> {
        if !of.profile {
            return Ok(Value::Null);
        }
        // End before the node prints its report, whose instructions are not part of the measured
        // code.
        let end = format!("{}ms", u64::from(self.windows) * 1000 + 990);
        let mut measured = json!({ "begin": FIRST_WINDOW, "end": end });
        if self.spans.is_empty() {
            return Ok(measured);
        }
        let node = output(place, BUILD, |build| {
            build.args(of.build.split_whitespace());
        })?;
        let node = PathBuf::from(node.trim());
        let addresses = elf::addresses(&node)
            .map_err(|error| ExperimentError::Evaluation(error.to_string()))?;
        let address = |name: &str| {
            addresses.get(name).ok_or_else(|| {
                ExperimentError::Evaluation(format!("the node has no function `{name}`"))
            })
        };
        let mut spans = Vec::new();
        for span in &self.spans {
            let mut planned = json!({ "name": span.id, "begin": address(&span.begin)? });
            if let Some(end) = &span.end {
                planned["end"] = json!(address(end)?);
            }
            let unless = span.unless.iter().map(|name| address(name));
            planned["unless"] = json!(unless.collect::<Result<Vec<_>, _>>()?);
            spans.push(planned);
        }
        measured["thread"] = json!(address(RUNNING)?);
        measured["spans"] = json!(spans);
        Ok(measured)
    }

    /// The tone that the node played in the windows. `None` if the experiment has no tone.
    fn tone(&self, peer: &Value) -> Result<Option<Tone>, String> {
        let of = |_| Tone::of(peer, cycles(FIRST_WINDOW)?, self.windows);
        self.tone.as_ref().map(of).transpose()
    }

    /// Carries out all searches. Returns the worst value of each search, and the patterns.
    fn search(
        &self,
        place: &Checkout,
        (searches, plan): (&[SearchSpec], &SeriesPlan),
        spans: &BTreeMap<&str, Value>,
        base: &BTreeMap<RunKey, Values>,
    ) -> Result<(BTreeMap<String, f64>, Detail), ExperimentError> {
        let named = self.variant.iter().map(|of| (of.id.as_str(), of));
        let variants: Vec<_> = named.collect();
        search::over_series(
            (searches, plan),
            base,
            &variants,
            CLOCK_HZ,
            |variant, search, flood, (seed, x)| {
                let delay = flood.beside(DELAY).unwrap_or_default();
                let span = &spans[variant.id.as_str()];
                let at = (x, Some(flood.pattern.as_str()));
                let job = self.job(variant, span, at, (seed, delay));
                let job = job.map_err(|what| search.wrong(&what))?;
                let (mut values, _) = self.values_of(place, &variant.id, &job)?;
                // The bound does not depend on the flood: the system file states limits, not
                // arrivals.
                values.extend(system::bound(place, self, variant, &plan.constants, x)?);
                Ok(values)
            },
        )
    }

    /// Carries out a run, and returns its values and its tone.
    fn values_of(
        &self,
        place: &Checkout,
        variant: &str,
        job: &NodeJob,
    ) -> Result<(Values, Option<Tone>), ExperimentError> {
        let answer = run(place, job)?;
        let wrong = |what| ExperimentError::Evaluation(format!("the variant `{variant}`: {what}"));
        let mut values = values::values(&answer, job.line).map_err(wrong)?;
        let of_clients =
            values::of_clients(&answer["peer"], &self.clients, job.until).map_err(wrong)?;
        values.extend(of_clients);
        let tone = self.tone(&answer["peer"]).map_err(wrong)?;
        if let (Some(tone), Some(wanted)) = (&tone, &self.tone) {
            values.extend(tone.values(wanted.hz));
        }
        Ok((values, tone))
    }

    /// Prepares the run of a variant at a point. The packets have the given pattern; without a
    /// pattern no packets arrive. The crowd begins `delay_us` microseconds after the first window.
    fn job(
        &self,
        variant: &NodeVariant,
        measured: &Value,
        (x, pattern): (f64, Option<&str>),
        (seed, delay_us): (u64, u64),
    ) -> Result<NodeJob, String> {
        let mut plan = json!({ "end": END });
        let mut asked = Vec::new();
        for client in &self.clients {
            let mut times = json!({ "pattern": client.pattern, "begin": client.from });
            if matches!(client.ask, Ask::Ping) {
                times["count"] = json!(u16::MAX);
                plan["pings"] = times;
            } else {
                times["count"] = json!(u32::MAX);
                times["ask"] = json!(client.ask);
                if let Some(port) = client.port {
                    times["port"] = json!(port);
                }
                times["patience"] = json!(format!("{}ms", client.patience_ms));
                asked.push(times);
            }
        }
        if let Some(crowd) = &variant.crowd {
            asked.extend(crowd.clients(delay_us)?);
        }
        plan["clients"] = json!(asked);
        if self.tone.is_some() {
            plan["outputs"] = tone::output();
        }
        if variant.profile {
            plan["measure"] = measured.clone();
        }
        if let Some(pattern) = pattern {
            let (from, until) = (&variant.from, variant.until.as_deref().unwrap_or(END));
            let mut times = json!({ "pattern": pattern, "seed": seed, "begin": from });
            if let Some(frames) = variant.packets.flood() {
                plan["flood"] = frames;
                times["end"] = json!(until);
                for (name, value) in times.as_object().into_iter().flatten() {
                    plan["flood"][name] = value.clone();
                }
            } else {
                times["irq"] = json!(PIN);
                plan["pins"] = json!([times]);
            }
        }
        let mut options = vec![
            format!("address={ADDRESS}"),
            format!("windows={}", self.windows),
        ];
        let mut line = CARD;
        if matches!(variant.packets, Packets::Simulated) {
            options.push("packets=simulated".to_owned());
            line = PIN;
        }
        let of_variant = variant.options.at(x)?;
        let words = [&self.options, &of_variant, &self.quick_options];
        options.extend(
            words
                .iter()
                .flat_map(|words| words.split_whitespace().map(str::to_owned)),
        );
        Ok(NodeJob {
            plan,
            options,
            line,
            shift: variant.shift,
            build: variant.build.clone(),
            until: nanoseconds(variant.until.as_deref().unwrap_or(END))?,
        })
    }
}

/// Converts a time to cycles of the peer's clock, which are nanoseconds.
fn cycles(time: &str) -> Result<u64, String> {
    let time = time.parse::<Duration>();
    let cycles = time.and_then(|time| time.cycles(CLOCK_HZ));
    cycles.map_err(|error| error.to_string())
}

#[expect(clippy::cast_precision_loss, reason = "a run has seconds")]
fn nanoseconds(time: &str) -> Result<f64, String> {
    cycles(time).map(|cycles| cycles as f64)
}

/// Runs the node, and returns the counts of the node and of the peer.
fn run(place: &Checkout, job: &NodeJob) -> Result<Value, ExperimentError> {
    let workspace = Temporary::folder("weir-node-").map_err(ExperimentError::Workspace)?;
    let plan = workspace.path().join("plan");
    std::fs::write(&plan, job.plan.to_string()).map_err(ExperimentError::Workspace)?;
    let printed = output(place, RUN, |command| {
        command
            .arg(&plan)
            .args(&job.options)
            .env("SHIFT", job.shift.to_string())
            .env("BUILD", &job.build);
    })?;
    serde_json::from_str(&printed)
        .map_err(|error| failed(RUN, format!("left output that is no JSON: {error}")))
}

/// Runs a script and returns its standard output.
fn output(
    place: &Checkout,
    script: &str,
    prepare: impl FnOnce(&mut Command),
) -> Result<String, ExperimentError> {
    let mut command = Command::new(place.path(script));
    prepare(&mut command);
    let output = run_to_end(&mut command)
        .map_err(|error| failed(script, format!("cannot be started: {error}")))?;
    // A failed node prints a report, which is a result, too. So only a failure without output is an
    // error.
    if !output.status.success() && output.stdout.is_empty() {
        give_way_to_interruption();
        return Err(failed(script, format!("failed ({})", output.status)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn failed(script: &str, what: String) -> ExperimentError {
    ExperimentError::Flow {
        program: script.to_owned(),
        what,
    }
}
