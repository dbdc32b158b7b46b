// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes what delays a unit: more urgent work, and less urgent work that has already started
//! (docs/analysis.md, "Units and ranks").

use super::{Expected, Standing, Units, is_limited};
use crate::curve::Demand;
use crate::format::{Kind, Timing, Unit};

/// The work that is more urgent than a unit.
#[derive(Debug, Default)]
pub(crate) struct Urgent<'a> {
    until_start: Vec<&'a Demand>,
    /// The demand of the instructions that run between consecutive interrupts.
    gaps: Option<Demand>,
    pub(crate) throughout: Vec<&'a Demand>,
    /// The more urgent units that have no bound.
    pub(crate) unbounded: Vec<Unit>,
}

impl<'a> Urgent<'a> {
    /// Returns the demands that can delay only the start of a job.
    pub(crate) fn until_start(&self) -> impl Iterator<Item = &Demand> {
        self.until_start.iter().copied().chain(&self.gaps)
    }

    fn add(
        &mut self,
        of: &Standing,
        other: &Standing,
        demands: impl IntoIterator<Item = &'a Demand>,
    ) {
        if of.is_preempted_by(other) {
            self.throughout.extend(demands);
        } else if of.is_delayed_by(other) {
            self.until_start.extend(demands);
        }
    }
}

impl Units<'_> {
    /// Returns whether a request can arrive while the previous one is being served, wait until the
    /// limit allows it, and be served as well.
    fn queues_behind_itself(&self, unit: Unit) -> bool {
        let Unit(Kind::Request, index) = unit else {
            return false;
        };
        let source = self.system.sources.get(index);
        source.is_some_and(|of| is_limited(of) && of.limit.timing == Timing::Lazy)
            && !self.is_counted_on(index)
    }

    /// Returns B, the cycles for which less urgent work can delay the unit.
    pub(crate) fn blocking(&self, of: &Expected) -> u64 {
        let cpu = &self.system.cpu;
        let runs = self
            .list
            .iter()
            .filter(|other| {
                of.standing.is_blocked_by(&other.standing)
                    || (of.unit == other.unit && self.queues_behind_itself(of.unit))
            })
            .map(|other| other.longest);
        let sections = self
            .system
            .receivers
            .iter()
            .filter(|receiver| {
                Standing::of_task(cpu.tasks, receiver.urgency).rank < of.standing.rank
            })
            .map(|receiver| receiver.critical_section);
        let run = runs.max().unwrap_or(0).saturating_sub(1);
        let section = sections.fold(cpu.critical_section, u64::max);
        // The blocking work has already started. It is a run, or code that continues to the end of
        // its critical section and of the instruction after it. A section can also start between
        // two interrupts.
        let code = section.saturating_add(cpu.longest_instruction);
        let longest = run.max(code.saturating_sub(1));
        let more = match of.unit {
            Unit(Kind::Request | Kind::Expiry | Kind::Timer, _) => {
                return run
                    .saturating_add(section)
                    .saturating_add(cpu.longest_instruction);
            }
            Unit(Kind::Task, index) => {
                let receiver = self.system.receivers.get(index);
                receiver.map_or(0, |receiver| receiver.blocking)
            }
            Unit(kind @ (Kind::Delivered | Kind::BottomHalf), index) => {
                // A worker task of FreeRTOS waits for the lock of its stack.
                let flow = self.system.flows.get(index);
                let flow = flow.filter(|of| kind == Kind::Delivered || of.buffers.is_some());
                let receiver = flow.and_then(|flow| self.system.receivers.get(flow.receiver));
                receiver.map_or(0, |receiver| receiver.blocking)
            }
        };
        longest.saturating_add(more)
    }

    /// The work that is more urgent than `of`.
    pub(crate) fn urgent(&self, of: &Expected) -> Urgent<'_> {
        let mut found = Urgent::default();
        let me = &of.standing;
        let is_interrupt = of.unit.is_interrupt();
        let between = self.system.cpu.longest_instruction;
        let own = of.own.as_ref().filter(|_| is_interrupt && between > 0);
        found.gaps = own.map(|own| Demand::new(between, own.curve.less_one()));
        for (index, source) in self.sources.iter().enumerate() {
            let views = match &source.ends {
                _ if !is_interrupt => &source.by_tasks,
                Some(timer) if me.is_delayed_by(timer) => &source.below_timer,
                _ => &source.above_timer,
            };
            let line = Unit(Kind::Request, index);
            if views.served.is_none() {
                if of.unit != line && me.is_delayed_by(&source.line) {
                    found.unbounded.push(line);
                }
                continue;
            }
            let timer = views.expiry.as_ref().zip(source.timer);
            if of.unit == line {
                // Runs of the same interrupt that refuse a request come before the run that serves,
                // independently of the threshold.
                found.until_start.extend(views.line.iter().skip(1));
                if let Some((expiry, timer)) = timer {
                    found.add(me, &timer, [expiry]);
                }
            } else if of.unit == Unit(Kind::Expiry, index) {
                found.add(me, &source.line, &views.line);
            } else {
                match timer {
                    Some((_, timer))
                        if !views.line.is_empty() && alike(me, &source.line, &timer) =>
                    {
                        found.add(me, &timer, &views.together);
                    }
                    _ => {
                        found.add(me, &source.line, &views.line);
                        if let Some((expiry, timer)) = timer {
                            found.add(me, &timer, [expiry]);
                        }
                    }
                }
            }
        }
        for (index, timer) in self.timers.iter().enumerate() {
            if of.unit != Unit(Kind::Timer, index) {
                let demand = if is_interrupt {
                    &timer.padded
                } else {
                    &timer.plain
                };
                found.add(me, &timer.standing, [demand]);
            }
        }
        if !is_interrupt {
            for other in &self.list {
                if other.unit.is_interrupt()
                    || other.unit == of.unit
                    || !me.is_delayed_by(&other.standing)
                {
                    continue;
                }
                match &other.own {
                    Some(demand) => found.add(me, &other.standing, [demand]),
                    None => found.unbounded.push(other.unit),
                }
            }
            for (standing, switches) in &self.turns {
                found.add(me, standing, [switches]);
            }
        }
        found
    }
}

/// Returns whether both interrupts of a source delay a unit, and either both preempt it or neither
/// does.
fn alike(me: &Standing, line: &Standing, timer: &Standing) -> bool {
    me.is_delayed_by(line)
        && me.is_delayed_by(timer)
        && me.is_preempted_by(line) == me.is_preempted_by(timer)
}
