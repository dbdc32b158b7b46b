// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decides the configuration of a chip, and finds everything that the chip cannot provide.
use std::collections::BTreeMap;

use weir_boards::{Board, Channel, Flavour, Port, TimerCode, TimerFacts};
use weir_model::{Expiry, Nesting, Place, Policy, Section, Source, System};

use crate::groups;
use crate::identifier::{c_identifier, is_made_of, is_of_c};
use crate::plan::{ChipPlan, LineStart, PlannedSource, PlannedTimer, SharedTimer, SoftwareLimit};
use crate::port::{ChipPort, Lack};
use crate::refusal::{Refusal, RefusalReason};
use crate::rtos::{self, RtosPlan};

impl<'a> ChipPlan<'a> {
    /// Decides the configuration with which `chip` keeps the system's limits.
    ///
    /// # Errors
    /// Returns every reason why the chip or its port cannot keep them, not only the first.
    pub fn new(system: &'a System, chip: &'a Board) -> Result<Self, Refusal> {
        Self::decided(system, chip, false)
    }

    /// Decides the configuration as [`Self::new`] does, and adds the receivers of frames on
    /// FreeRTOS.
    ///
    /// # Errors
    /// Returns everything that the chip or its ports lack, and everything that the system does not
    /// state.
    pub fn with_freertos(system: &'a System, chip: &'a Board) -> Result<Self, Refusal> {
        Self::decided(system, chip, true)
    }

    fn decided(system: &'a System, chip: &'a Board, on_freertos: bool) -> Result<Self, Refusal> {
        let mut planner = Planner {
            system,
            chip,
            on_freertos,
            reasons: Vec::new(),
        };
        let plan = planner.plan();
        match plan {
            Some(plan) if planner.reasons.is_empty() => Ok(plan),
            _ => Err(Refusal::new(&system.name, chip.chip(), planner.reasons)),
        }
    }
}

/// The code of a timer, and the address of its registers.
fn driver(timer: &TimerFacts) -> Option<(TimerCode<'_>, u32)> {
    timer.driver.as_ref()?.code().zip(timer.registers)
}

struct Planner<'a> {
    system: &'a System,
    chip: &'a Board,
    on_freertos: bool,
    reasons: Vec<RefusalReason>,
}

/// The users of resources that each can have only one user.
#[derive(Default)]
struct Users<K>(BTreeMap<K, String>);

impl<K: Ord> Users<K> {
    /// Returns the user that already has the resource. If there is none, `user` gets it.
    fn claim(&mut self, key: K, user: &str) -> Option<&str> {
        use std::collections::btree_map::Entry;
        match self.0.entry(key) {
            Entry::Occupied(entry) => Some(entry.into_mut()),
            Entry::Vacant(entry) => {
                entry.insert(user.to_owned());
                None
            }
        }
    }
}

impl<'a> Planner<'a> {
    fn refuse(&mut self, place: &Section, lack: Lack) {
        self.reasons
            .push(RefusalReason::new(place.clone(), lack.what, lack.right));
    }

    /// Makes the plan. Returns `None` only after a refusal.
    fn plan(&mut self) -> Option<ChipPlan<'a>> {
        let port = self.port()?;
        let sources: Vec<PlannedSource<'a>> = self
            .system
            .sources
            .iter()
            .filter_map(|source| self.source(port, source))
            .collect();
        let shared_timer = self.shared_timer(port, &sources);
        let timers = self.timers(&sources);
        for (source, lack) in groups::lacks(self.chip, port.rules, &sources) {
            self.refuse(&Section::Source(source.to_owned()), lack);
        }
        self.find_collisions(&sources);
        self.find_shared_vectors(port, &sources, shared_timer.as_ref());
        if port.flavour == Flavour::Fast {
            self.find_excess_of_fast(&sources);
        }
        let freertos = self.freertos(&sources);
        Some(ChipPlan {
            system: &self.system.name,
            sha256: &self.system.sha256,
            chip: self.chip.chip(),
            port: self.chip.port,
            flavour: port.flavour,
            clock_hz: self.system.cpu.clock_hz,
            sources,
            timers,
            shared_timer,
            freertos,
        })
    }

    fn port(&mut self) -> Option<ChipPort<'a>> {
        let cpu = &self.system.cpu;
        let chip = self.chip;
        if cpu.board.as_deref() != Some(&chip.name) {
            let what = cpu.board.as_ref().map_or_else(
                || "the processor is the file's own".to_owned(),
                |board| format!("the board is `{board}`"),
            );
            let right = format!(
                "write board = \"{}\", whose costs were measured with this code",
                chip.name
            );
            self.refuse(&Section::Cpu, Lack::new(what, right));
        } else if chip.priorities.is_none() && cpu.nesting != Nesting::Flat {
            self.refuse(
                &Section::Cpu,
                Lack::new(
                    "the interrupts nest",
                    format!(
                        "write interrupts = \"flat\": no interrupt of the {} preempts another",
                        chip.chip()
                    ),
                ),
            );
        } else if chip.priorities.is_some() && cpu.nesting != Nesting::Grouped {
            self.refuse(
                &Section::Cpu,
                Lack::new(
                    "the interrupts do not nest",
                    format!(
                        "leave `interrupts` out: on the {} the more urgent one preempts the other",
                        chip.chip()
                    ),
                ),
            );
        }
        let name = cpu.flavour.as_deref().unwrap_or("c");
        let of_port = Flavour::named(name).and_then(|flavour| {
            Some(ChipPort {
                chip,
                flavour,
                rules: chip.rules(flavour)?,
            })
        });
        if of_port.is_none() {
            let what = format!("the port has no flavour `{name}`");
            let known: Vec<String> = Flavour::ALL
                .into_iter()
                .filter(|&flavour| chip.rules(flavour).is_some())
                .map(|flavour| format!("flavour = \"{}\"", flavour.name()))
                .collect();
            let right = format!("write {}", known.join(" or "));
            self.refuse(&Section::Cpu, Lack::new(what, right));
        }
        of_port.filter(|_| self.reasons.is_empty())
    }

    fn source(&mut self, port: ChipPort<'a>, source: &'a Source) -> Option<PlannedSource<'a>> {
        let place = Section::Source(source.name.to_owned());
        let vector = source.level.vector.as_str();
        let known = self.reasons.len();
        let identifier = self.identifier(&place, &source.name);
        let is_line = self.chip.is_line(vector);
        if self.chip.vector(vector).is_none() {
            let what = format!("the {} has no vector `{vector}`", self.chip.chip());
            let right = format!("its vectors are {}", self.chip.vectors.join(", "));
            self.refuse(&place, Lack::new(what, right));
        } else if source.limit.policy != Policy::Off && !is_line {
            let lines = self.chip.line_names();
            let right = format!(
                "limit one of {}, or write policy = \"off\"",
                lines.join(", ")
            );
            let what = format!("{vector} is no external line, and the port limits no other");
            self.refuse(&place, Lack::new(what, right));
        }
        let limit = match source.limit.policy {
            Policy::Off => None,
            Policy::Poll => {
                self.refuse(
                    &place,
                    Lack::new(
                        "no code is generated for polling",
                        "a strict limit with the same interval serves no more, and takes no time while nothing asks: write policy = \"strict\"",
                    ),
                );
                None
            }
            // The block in front of the line keeps this limit; --rtl writes the block.
            _ if source.limit.place == Place::Hardware => None,
            _ => self.limit(port, &place, source),
        };
        let start = match limit {
            Some(_) => LineStart::Limiter,
            None if is_line => LineStart::Line,
            None => LineStart::Device,
        };
        (self.reasons.len() == known).then(|| PlannedSource {
            name: &source.name,
            identifier: identifier.unwrap_or_default(),
            vector,
            number: self.chip.vector(vector).unwrap_or_default(),
            priority: self.priority(source.level.group),
            limit,
            start,
            source,
        })
    }

    /// The priority of a preemption group; `None` if the chip's interrupts have no priorities.
    fn priority(&self, group: u32) -> Option<u32> {
        self.chip.priorities?.of_group(group)
    }

    fn identifier(&mut self, place: &Section, name: &str) -> Option<String> {
        c_identifier(name)
            .map_err(|error| {
                let lack = Lack::new(
                    format!("the name `{name}` cannot be one in C: {error}"),
                    "rename it in the system file",
                );
                self.refuse(place, lack);
            })
            .ok()
    }

    fn limit(
        &mut self,
        port: ChipPort<'a>,
        place: &Section,
        source: &'a Source,
    ) -> Option<SoftwareLimit> {
        let limit = &source.limit;
        // A shared timer measures the interval of all its sources.
        let (name, shared, interval) = match &limit.expiry {
            Some(Expiry::Own { channel, .. }) => (channel, false, limit.interval),
            Some(Expiry::Shared(index)) if self.system.timers.get(*index).is_some() => {
                let timer = self.system.timers.get(*index)?;
                (&timer.channel, true, timer.period)
            }
            _ => {
                let lack = Lack::new("the limit has no timer", "name a channel with timer = …");
                self.refuse(place, lack);
                return None;
            }
        };
        let channel = self.channel(port, place, name, shared)?;
        if let Some(lack) = port.prescaler(&channel, shared, interval.tick) {
            self.refuse(place, lack);
            return None;
        }
        #[expect(clippy::cast_precision_loss, reason = "cycles are far below 2^52")]
        let per_second = self.system.cpu.clock_hz as f64 / interval.cycles().max(1) as f64;
        let planned = SoftwareLimit {
            policy: limit.policy,
            timing: limit.timing,
            channel: channel.name(),
            shared,
            prescaler: channel.prescaler(interval.tick),
            tick_cycles: interval.tick,
            interval_ticks: interval.ticks,
            burst: limit.burst,
            lag_ticks: limit.lag,
            limit_hz: match limit.policy {
                Policy::Bursty => per_second * f64::from(limit.burst),
                _ => per_second,
            },
        };
        let lacks = if shared {
            port.shared_limit(&source.level.vector, &planned)
        } else {
            port.own_limit(&planned)
        };
        for lack in lacks {
            self.refuse(place, lack);
        }
        Some(planned)
    }

    fn channel(
        &mut self,
        port: ChipPort<'a>,
        place: &Section,
        name: &str,
        shared: bool,
    ) -> Option<Channel<'a>> {
        port.channel(name, shared)
            .map_err(|lack| self.refuse(place, lack))
            .ok()
    }

    /// The shared timer that sources use. The port supports only one, for all of them.
    fn shared_timer(
        &mut self,
        port: ChipPort<'a>,
        sources: &[PlannedSource<'a>],
    ) -> Option<SharedTimer<'a>> {
        let users = |index: usize| {
            let uses = move |source: &&PlannedSource<'a>| {
                source.source.limit.expiry == Some(Expiry::Shared(index))
            };
            sources
                .iter()
                .filter(|source| source.limit.is_some())
                .filter(uses)
                .map(|source| source.identifier.clone())
                .collect::<Vec<_>>()
        };
        let system = self.system;
        let mut used = system
            .timers
            .iter()
            .enumerate()
            .map(|(index, timer)| (timer, users(index)))
            .filter(|(_, clears)| !clears.is_empty());
        let (timer, clears) = used.next()?;
        let place = Section::Timer(timer.name.to_owned());
        if let Some((other, _)) = used.next() {
            let what = format!(
                "`{}` is shared, too, and the port has one shared timer",
                other.name
            );
            let right = "put all sources on one of them, or give them channels of their own";
            self.refuse(&place, Lack::new(what, right));
        }
        let channel = self.channel(port, &place, &timer.channel, true)?;
        Some(SharedTimer {
            name: &timer.name,
            identifier: self.identifier(&place, &timer.name)?,
            channel: channel.name(),
            period_ticks: timer.period.ticks,
            clears,
        })
    }

    /// The timers, each only once. The channels of a timer share a prescaler.
    fn timers(&mut self, sources: &[PlannedSource<'a>]) -> Vec<PlannedTimer<'a>> {
        let mut timers: BTreeMap<String, (PlannedTimer<'a>, &str)> = BTreeMap::new();
        for source in sources {
            let Some((limit, channel)) = source
                .limit
                .as_ref()
                .and_then(|limit| Some((limit, self.chip.channel(&limit.channel)?)))
            else {
                continue;
            };
            let name = channel.timer.name.clone();
            let (timer, first) = timers.entry(name.clone()).or_insert_with(|| {
                let timer = PlannedTimer {
                    name,
                    channel: limit.channel.clone(),
                    vector: channel.vector,
                    number: self.chip.vector(channel.vector).unwrap_or_default(),
                    priority: source.priority,
                    prescaler: limit.prescaler,
                    tick_cycles: limit.tick_cycles,
                    driver: driver(channel.timer),
                    sources: Vec::new(),
                };
                (timer, source.name)
            });
            timer.sources.push(source.identifier.clone());
            if timer.tick_cycles != limit.tick_cycles {
                let lack = Lack::new(
                    format!(
                        "{} has ticks of {} cycles for `{first}` and cannot have ticks of {} as well",
                        timer.name, timer.tick_cycles, limit.tick_cycles
                    ),
                    "give both the same prescaler, or one of them another timer",
                );
                self.refuse(&Section::Source(source.name.to_owned()), lack);
            }
        }
        timers.into_values().map(|(timer, _)| timer).collect()
    }

    /// The receivers of frames; `None` if they are not requested, or after a refusal.
    fn freertos(&mut self, sources: &[PlannedSource<'a>]) -> Option<RtosPlan<'a>> {
        if !self.on_freertos {
            return None;
        }
        if self.chip.port != Port::CortexM {
            let what = format!(
                "ports/freertos has no call that starts it on the {}",
                self.chip.chip()
            );
            self.refuse(
                &Section::Cpu,
                Lack::new(what, "write --chip cortex-m3, or leave --rtos out"),
            );
            return None;
        }
        rtos::plan(self.system, sources)
            .map_err(|wrong| {
                for (place, lack) in wrong {
                    self.refuse(&place, lack);
                }
            })
            .ok()
    }

    /// Refuses names that are the same in C, and names that are used otherwise there.
    fn find_collisions(&mut self, sources: &[PlannedSource<'a>]) {
        let mut names = Users::default();
        for source in sources {
            let name = source.identifier.as_str();
            let origin = sources.iter().find(|of| is_made_of(name, &of.identifier));
            let like = if let Some(first) = names.claim(name, source.name) {
                format!("`{first}`")
            } else if let Some(of) = origin {
                format!("what is made of `{}`", of.name)
            } else if is_of_c(name) {
                "what a header of C itself defines".to_owned()
            } else {
                continue;
            };
            let lack = Lack::new(
                format!("in C it is called `{name}`, like {like}"),
                "rename it in the system file",
            );
            self.refuse(&Section::Source(source.name.to_owned()), lack);
        }
    }

    /// Refuses two handlers for one interrupt.
    fn find_shared_vectors(
        &mut self,
        port: ChipPort<'a>,
        sources: &[PlannedSource<'a>],
        shared: Option<&SharedTimer<'a>>,
    ) {
        let mut claims: Vec<(&str, Section)> = Vec::new();
        let mut alarms = Vec::new();
        for source in sources {
            let user = Section::Source(source.name.to_owned());
            claims.push((source.vector, user.clone()));
            let own = source.limit.as_ref().filter(|limit| !limit.shared);
            let Some((limit, channel)) =
                own.and_then(|limit| Some((limit, self.chip.channel(&limit.channel)?)))
            else {
                continue;
            };
            // The sources of a group have one interrupt in common, which may occur again.
            if port.rules.group > 1 {
                if alarms.contains(&channel.vector) {
                    continue;
                }
                alarms.push(channel.vector);
            }
            claims.push((channel.vector, user.clone()));
            if (port.rules.spills)(limit.policy, limit.timing) {
                let next = self.chip.vector_behind(channel.vector);
                claims.extend(next.map(|next| (next, user)));
            }
        }
        if let Some(timer) = shared {
            let vector = self
                .chip
                .channel(&timer.channel)
                .map(|channel| channel.vector);
            claims.extend(vector.map(|vector| (vector, Section::Timer(timer.name.to_owned()))));
        }
        let mut vectors = Users::default();
        for (vector, user) in claims {
            if let Some(first) = vectors.claim(vector, &user.to_string()) {
                let what = format!("the interrupt {vector} is used by {first} already");
                let lack = Lack::new(what, "give one of them another line or channel");
                self.refuse(&user, lack);
            }
        }
    }

    /// Refuses more limits than `fast` has registers for. It supports one source, or the sources of
    /// the one shared timer.
    fn find_excess_of_fast(&mut self, sources: &[PlannedSource<'a>]) {
        let limited = || {
            sources
                .iter()
                .filter_map(|source| Some((source, source.limit.as_ref()?)))
        };
        let own = limited().filter(|(_, limit)| !limit.shared).count();
        if own > 1 || (own == 1 && limited().count() > 1) {
            let names: Vec<String> = limited()
                .map(|(source, _)| format!("`{}`", source.name))
                .collect();
            let lack = Lack::new(
                format!(
                    "the flavour `fast` cannot limit {} at once",
                    names.join(", ")
                ),
                "it has one limited source, or up to four that share a timer; the flavour `c` has no such bound",
            );
            self.refuse(&Section::Cpu, lack);
        }
    }
}
