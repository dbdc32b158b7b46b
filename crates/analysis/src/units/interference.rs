// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the work that keeps a unit waiting: more urgent work, and less urgent work that has
//! already begun (docs/analysis.md, "Units and ranks").

use weir_model::{Policy, Source, System, Timing};

use super::{Part, TaskViews, Unit, Units, level_of_timer, place_of_receiver};
use crate::limiter::{Interrupt, Tasks};
use crate::rank::PreemptionRank;
use crate::rta::Demand;

/// The more urgent work that delays a unit, grouped by whether it can also preempt the unit.
#[derive(Debug, Default)]
pub struct Interference<'a> {
    until_start: Vec<&'a Demand>,
    /// The instructions that run between two runs of the unit's own interrupt, if any.
    own_gaps: Option<Demand>,
    /// The demands that can also preempt the unit.
    pub throughout: Vec<&'a Demand>,
}

impl<'a> Interference<'a> {
    /// The demands that can delay the unit's start, but cannot preempt it.
    #[must_use]
    pub fn until_start(&self) -> Vec<&Demand> {
        let all = self.until_start.iter().copied();
        all.chain(&self.own_gaps).collect()
    }

    fn add(&mut self, unit: &Unit, place: &PreemptionRank, demand: &'a Demand) {
        if unit.place.is_preempted_by(place) {
            self.throughout.push(demand);
        } else if unit.place.is_delayed_by(place) {
            self.until_start.push(demand);
        }
    }

    fn add_source(
        &mut self,
        unit: &Unit,
        index: usize,
        tasks: &'a Tasks,
        request: Option<(&'a Interrupt, PreemptionRank)>,
        expiry: Option<(&'a Interrupt, PreemptionRank)>,
    ) {
        if unit.part == Part::Request(index) || unit.part == Part::Expiry(index) {
            // Of the source's own two interrupts, this adds the one that is not `unit` itself.
            // Refused requests delay the requests that are served.
            if let Some((interrupt, place)) = request {
                if unit.part == Part::Request(index) {
                    self.until_start.extend(&interrupt.other);
                } else {
                    interrupt
                        .demands()
                        .for_each(|demand| self.add(unit, &place, demand));
                }
            }
            if let Some((interrupt, place)) = expiry.filter(|_| unit.part == Part::Request(index)) {
                interrupt
                    .demands()
                    .for_each(|demand| self.add(unit, &place, demand));
            }
            return;
        }
        let delays = |of: &Option<(&Interrupt, PreemptionRank)>| {
            of.as_ref().map(|(_, place)| {
                (
                    unit.place.is_delayed_by(place),
                    unit.place.is_preempted_by(place),
                )
            })
        };
        match (delays(&request), delays(&expiry)) {
            (Some(line), Some(timer)) if line == timer && line.0 => {
                let place = request.map(|(_, place)| place);
                for demand in &tasks.together {
                    if let Some(place) = &place {
                        self.add(unit, place, demand);
                    }
                }
            }
            _ => {
                for (interrupt, place) in request.into_iter().chain(expiry) {
                    interrupt
                        .demands()
                        .for_each(|demand| self.add(unit, &place, demand));
                }
            }
        }
    }
}

impl Units<'_> {
    /// The more urgent work that delays `unit`. On failure, returns the units that have no bound.
    pub fn interference(&self, unit: &Unit) -> Result<Interference<'_>, Vec<Part>> {
        self.interference_if(unit, None)
    }

    /// Like [`Self::interference`], but for other tasks of one source.
    pub(crate) fn interference_if<'b>(
        &'b self,
        unit: &Unit,
        changed: Option<(usize, &'b TaskViews)>,
    ) -> Result<Interference<'b>, Vec<Part>> {
        let mut found = Interference::default();
        let mut unbounded = Vec::new();
        let is_interrupt = unit.part.is_interrupt();
        for (index, seen) in self.seen.iter().enumerate() {
            let seen = changed
                .filter(|&(source, _)| source == index)
                .map_or(seen, |(_, seen)| seen);
            let (Some(source), Some(request_place)) =
                (self.system.sources.get(index), self.place_of_request(index))
            else {
                continue;
            };
            let timer_place = level_of_timer(self.system, source);
            let is_below_timer = timer_place
                .as_ref()
                .is_some_and(|timer| unit.place.is_delayed_by(timer));
            let tasks = match (is_interrupt, is_below_timer) {
                (false, _) => &seen.by_tasks,
                (true, true) => &seen.below_timer,
                (true, false) => &seen.above_timer,
            };
            if tasks.serves.is_none() {
                if unit.part != Part::Request(index) && unit.place.is_delayed_by(&request_place) {
                    unbounded.push(Part::Request(index));
                }
                continue;
            }
            let request = tasks.request.as_ref().map(|of| (of, request_place));
            let expiry = tasks.expiry.as_ref().zip(timer_place);
            found.add_source(unit, index, tasks, request, expiry);
        }
        for (index, demands) in self.timers.iter().enumerate() {
            let Some(timer) = self.system.timers.get(index) else {
                continue;
            };
            let place = PreemptionRank::of_interrupt(&self.system.cpu, &timer.level);
            if unit.part != Part::Timer(index) {
                let demand = if is_interrupt {
                    &demands.by_interrupts
                } else {
                    &demands.by_tasks
                };
                found.add(unit, &place, demand);
            }
        }
        if !is_interrupt {
            for other in &self.units {
                if other.part.is_interrupt()
                    || other.part == unit.part
                    || !unit.place.is_delayed_by(&other.place)
                {
                    continue;
                }
                match &other.own {
                    Some(demand) => found.add(unit, &other.place, demand),
                    None => unbounded.push(other.part),
                }
            }
            for (place, switch) in &self.switches {
                found.add(unit, place, switch);
            }
        }
        if is_interrupt && self.system.cpu.longest_instruction > 0 {
            found.own_gaps = unit.own.as_ref().map(|own| Demand {
                cost: self.system.cpu.longest_instruction,
                curve: own.curve.less_one(),
            });
        }
        if unbounded.is_empty() {
            Ok(found)
        } else {
            Err(unbounded)
        }
    }

    /// The unit whose work `demand` is; `demand` must come from an [`Interference`]. `None` for
    /// context switches and for the instruction between two interrupts.
    pub(crate) fn owner(&self, demand: &Demand) -> Option<Part> {
        let is = |other: &Demand| std::ptr::eq(other, demand);
        let of_source = self.seen.iter().position(|seen| {
            seen.views().into_iter().any(|tasks| {
                let interrupts = tasks.request.iter().chain(&tasks.expiry);
                interrupts.flat_map(Interrupt::demands).any(is) || tasks.together.iter().any(is)
            })
        });
        let of_timer = || {
            let timers = &mut self.timers.iter();
            timers.position(|of| is(&of.by_tasks) || is(&of.by_interrupts))
        };
        let of_unit = || {
            let unit = self
                .units
                .iter()
                .find(|unit| unit.own.as_ref().is_some_and(is));
            unit.map(|unit| unit.part)
        };
        of_source
            .map(Part::Request)
            .or_else(|| of_timer().map(Part::Timer))
            .or_else(of_unit)
    }

    fn place_of_request(&self, source: usize) -> Option<PreemptionRank> {
        let of = self.system.sources.get(source)?;
        Some(PreemptionRank::of_interrupt(&self.system.cpu, &of.level))
    }

    /// The cycles for which less urgent work can keep `unit` waiting, once that work has begun.
    #[must_use]
    pub fn blocking(&self, unit: &Unit) -> u64 {
        let system = self.system;
        // A blocking unit has begun before this unit's release. It therefore blocks for one cycle
        // less than its longest run.
        let by_units = self
            .units
            .iter()
            .filter(|other| {
                unit.place.is_blocked_by(&other.place)
                    || (other.part == unit.part && self.queues_behind_itself(unit))
            })
            .map(|other| other.longest.saturating_sub(1))
            .fold(0, u64::max);
        let by_sections = system
            .receivers
            .iter()
            .enumerate()
            .filter(|&(index, _)| {
                unit.place.rank > place_of_receiver(system, index).rank
                    && unit.part != Part::Task(index)
            })
            .map(|(_, receiver)| receiver.critical_section.cycles)
            .fold(system.cpu.critical_section.cycles, u64::max);
        let between = system.cpu.longest_instruction;
        // Interrupts wait for the instruction that runs when they are requested, and for the one
        // after a critical section. The tasks below them wait as long.
        let by_code = by_sections.saturating_add(between).saturating_sub(1);
        let longest = by_units.max(by_code);
        match unit.part {
            // The instruction that runs between two interrupts can itself be the one that disables
            // interrupts.
            Part::Request(_) | Part::Expiry(_) | Part::Timer(_) => {
                by_units.saturating_add(by_sections).saturating_add(between)
            }
            Part::Task(_) | Part::BottomHalf(_) | Part::Delivered(_) => {
                let worker = unit
                    .part
                    .worker(system)
                    .or_else(|| locked(system, unit.part));
                let waits = worker.and_then(|index| system.receivers.get(index));
                longest.saturating_add(waits.map_or(0, |receiver| receiver.blocking.cycles))
            }
        }
    }

    /// Whether a request of a limited source can come while the one before it is being served, and
    /// can also be served. This is only so if the request has to wait for the limiter, and only if
    /// the line stays enabled. The curve distinguishes interrupts by their start and does not
    /// include that wait.
    fn queues_behind_itself(&self, unit: &Unit) -> bool {
        let Part::Request(index) = unit.part else {
            return false;
        };
        let is_lazy = |source: &Source| {
            source.limit.policy != Policy::Off
                && source.limit.place == weir_model::Place::Software
                && source.limit.timing == Timing::Lazy
        };
        self.system.sources.get(index).is_some_and(is_lazy) && !self.is_counted_on(index)
    }
}

/// The receiver whose `blocking` also applies to a bottom half: on FreeRTOS the receiver's worker
/// takes the stack's lock.
fn locked(system: &System, part: Part) -> Option<usize> {
    let Part::BottomHalf(index) = part else {
        return None;
    };
    let flow = system.flows.get(index)?;
    system.frame_buffers(flow).map(|_| flow.receiver)
}
