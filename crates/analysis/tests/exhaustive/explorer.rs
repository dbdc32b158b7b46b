// SPDX-License-Identifier: MIT OR Apache-2.0
//! A scheduler of its own, and everything that can happen on it: all releases that a system allows
//! in each cycle, all orders of equals, all sections without interrupts, until no state is new.
//! Written from what processors do, not from the analysis.

use std::collections::HashSet;

/// What a unit is to the processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Interrupt { group: u8, order: u8 },
    Task { urgency: u8 },
}

/// A unit of a small system; times in cycles.
#[derive(Debug, Clone, Copy)]
pub struct Unit {
    pub kind: Kind,
    pub cost: u8,
    pub period: u8,
    pub jitter: u8,
    /// The longest time for which a task keeps interrupts off, and other tasks out.
    pub section: u8,
}

/// A small system.
#[derive(Debug, Clone)]
pub struct Small {
    pub units: Vec<Unit>,
    /// Do interrupts of a higher group preempt those of a lower one?
    pub nested: bool,
    /// Do tasks preempt each other?
    pub preemptive: bool,
    /// Any code that is not an interrupt, an idle loop too, may keep interrupts off for so long.
    pub section: u8,
}

/// More units, and more jobs of one, than these are not looked at.
pub const MOST_UNITS: usize = 4;
pub const MOST_JOBS: usize = 5;

/// One unit in one state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Jobs {
    /// Cycles until its next release would be on its nominal time: it may come `jitter` before.
    nominal: u8,
    /// Cycles that the oldest job still needs.
    left: u8,
    /// How long each has waited, the oldest first.
    ages: [u8; MOST_JOBS],
    count: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct State {
    jobs: [Jobs; MOST_UNITS],
    /// Cycles for which interrupts are still off, and who keeps them off (none: the idle loop).
    section: u8,
    holder: Option<u8>,
}

/// What came out.
#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    /// The longest response of each unit, and how many states there are.
    All(Vec<u8>, usize),
    /// A job of this unit waited longer than its bound.
    Beyond(usize),
    /// More states than were to be looked at.
    TooMany,
}

impl Jobs {
    /// One more comes.
    fn add(&mut self, unit: &Unit) {
        let free = self.ages.get_mut(usize::from(self.count));
        *free.expect("as many jobs as wait at once") = 0;
        if self.count == 0 {
            self.left = unit.cost;
        }
        self.nominal += unit.period;
        self.count += 1;
    }
}

impl Unit {
    fn is_interrupt(&self) -> bool {
        matches!(self.kind, Kind::Interrupt { .. })
    }

    fn has_begun(&self, jobs: &Jobs) -> bool {
        jobs.count > 0 && jobs.left < self.cost
    }
}

impl Small {
    /// The interrupts that may run now: one, or none.
    fn interrupt(&self, state: &State) -> Option<usize> {
        let ready = || {
            self.units
                .iter()
                .zip(&state.jobs)
                .enumerate()
                .filter(|(_, (unit, jobs))| unit.is_interrupt() && jobs.count > 0)
        };
        let place = |unit: &Unit| match unit.kind {
            Kind::Interrupt { group, order } => (if self.nested { group } else { 0 }, order),
            Kind::Task { .. } => unreachable!("only interrupts are ready here"),
        };
        // The group that runs: that of the latest to have begun, which is the highest.
        let running = ready()
            .filter(|(_, (unit, jobs))| unit.has_begun(jobs))
            .max_by_key(|(_, (unit, _))| place(unit).0);
        let next = ready()
            .filter(|(_, (unit, jobs))| !unit.has_begun(jobs))
            .max_by_key(|(_, (unit, _))| (place(unit).0, std::cmp::Reverse(place(unit).1)));
        match (running, next) {
            (Some((_, (old, _))), Some((index, (new, _)))) if place(new).0 > place(old).0 => {
                Some(index)
            }
            (Some((index, _)), _) | (None, Some((index, _))) => Some(index),
            (None, None) => None,
        }
    }

    /// The tasks that may run now if no interrupt does: the most urgent, and of equals any.
    fn tasks(&self, state: &State) -> Vec<usize> {
        let urgency = |index: usize| match self.units[index].kind {
            Kind::Task { urgency } if state.jobs[index].count > 0 => Some(urgency),
            _ => None,
        };
        let tasks = || (0..self.units.len()).filter(|&index| urgency(index).is_some());
        let begun = tasks().find(|&index| self.units[index].has_begun(&state.jobs[index]));
        if let (false, Some(begun)) = (self.preemptive, begun) {
            return vec![begun];
        }
        let most = tasks().filter_map(urgency).max();
        tasks().filter(|&index| urgency(index) == most).collect()
    }

    /// Who may run in this cycle, each with how long it keeps interrupts off from here.
    fn choices(&self, state: &State) -> Vec<(Option<usize>, u8)> {
        if state.section > 0 {
            return vec![(state.holder.map(usize::from), state.section)];
        }
        if let Some(index) = self.interrupt(state) {
            return vec![(Some(index), 0)];
        }
        let tasks = self.tasks(state);
        if tasks.is_empty() {
            return vec![(None, 0), (None, self.section)];
        }
        let section = |index: usize| {
            let longest = self.section.max(self.units[index].section);
            longest.min(state.jobs[index].left)
        };
        tasks
            .into_iter()
            .flat_map(|index| [(Some(index), 0), (Some(index), section(index))])
            .collect()
    }

    /// Everything that can happen from the state in which nothing has ever come. `bounds`: the most
    /// cycles that a job of each unit may wait.
    pub fn explore(&self, bounds: &[u64], most_states: usize) -> Found {
        let mut seen = HashSet::from([State::default()]);
        let mut open = vec![State::default()];
        let mut worst = vec![0; self.units.len()];
        while let Some(state) = open.pop() {
            for released in self.releases(&state) {
                for (runs, section) in self.choices(&released) {
                    let (next, done) = self.cycle(released, runs, section);
                    if let Some((unit, response)) = done {
                        worst[unit] = response.max(worst[unit]);
                    }
                    let waits = |unit: usize| next.jobs[unit].ages[0];
                    let beyond = (0..self.units.len()).find(|&unit| {
                        let waits = if next.jobs[unit].count > 0 {
                            waits(unit)
                        } else {
                            0
                        };
                        u64::from(worst[unit].max(waits)) > bounds[unit]
                    });
                    if let Some(unit) = beyond {
                        return Found::Beyond(unit);
                    }
                    if seen.insert(next) {
                        open.push(next);
                    }
                }
            }
            if seen.len() > most_states {
                return Found::TooMany;
            }
        }
        Found::All(worst, seen.len())
    }

    /// What can be released in a cycle: of each unit nothing, or as many jobs as may come at once.
    fn releases(&self, state: &State) -> Vec<State> {
        let mut all = vec![*state];
        for (index, unit) in self.units.iter().enumerate() {
            let mut first = 0;
            while first < all.len() {
                let last = all.len();
                for more in first..last {
                    let mut state = all[more];
                    let jobs = &mut state.jobs[index];
                    if jobs.nominal <= unit.jitter {
                        jobs.add(unit);
                        all.push(state);
                    }
                }
                first = last;
            }
        }
        all
    }

    /// One cycle goes by; who ended in it, and its response time.
    fn cycle(
        &self,
        mut state: State,
        runs: Option<usize>,
        section: u8,
    ) -> (State, Option<(usize, u8)>) {
        state.section = section.saturating_sub(1);
        state.holder = runs
            .filter(|_| state.section > 0)
            .and_then(|runs| u8::try_from(runs).ok());
        for jobs in &mut state.jobs {
            jobs.nominal = jobs.nominal.saturating_sub(1);
            for age in &mut jobs.ages[..usize::from(jobs.count)] {
                *age += 1;
            }
        }
        let mut done = None;
        if let Some(index) = runs {
            let jobs = &mut state.jobs[index];
            jobs.left -= 1;
            if jobs.left == 0 {
                done = Some((index, jobs.ages[0]));
                jobs.ages.rotate_left(1);
                jobs.ages[MOST_JOBS - 1] = 0;
                jobs.count -= 1;
                if jobs.count > 0 {
                    jobs.left = self.units[index].cost;
                }
            }
        }
        (state, done)
    }
}
