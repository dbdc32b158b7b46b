// SPDX-License-Identifier: MIT OR Apache-2.0
//! An independent scheduler that explores everything that can happen: all releases that a system
//! allows in each cycle, all orders of units of equal rank, and all sections with interrupts
//! disabled, until no state is new. It follows from the behaviour of processors and not from the
//! analysis.

use std::collections::HashSet;

/// The kind of a unit on the processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Interrupt { group: u8, order: u8 },
    Task { urgency: u8 },
}

/// A unit of a small system. Its times are in cycles.
#[derive(Debug, Clone, Copy)]
pub struct Unit {
    pub kind: Kind,
    pub cost: u8,
    pub period: u8,
    pub jitter: u8,
    /// The longest time for which a task disables interrupts and keeps other tasks waiting.
    pub section: u8,
}

/// A small system.
#[derive(Debug, Clone)]
pub struct Small {
    pub units: Vec<Unit>,
    /// Whether interrupts of a higher group preempt those of a lower one.
    pub nested: bool,
    /// Whether tasks preempt each other.
    pub preemptive: bool,
    /// The longest time for which any code outside interrupts, including an idle loop, may disable
    /// interrupts.
    pub section: u8,
}

/// The most units of a system, and the most pending jobs of one unit, that are explored.
pub const MOST_UNITS: usize = 4;
pub const MOST_JOBS: usize = 5;

/// The jobs of one unit in one state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Jobs {
    /// The cycles until the nominal time of the next release, which may come up to `jitter` cycles
    /// earlier.
    nominal: u8,
    /// The cycles that the oldest job still needs.
    left: u8,
    /// The cycles for which each job has waited, the oldest job first.
    ages: [u8; MOST_JOBS],
    count: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct State {
    jobs: [Jobs; MOST_UNITS],
    /// The cycles for which interrupts are still disabled, and the unit that disabled them. The
    /// unit is `None` for the idle loop.
    section: u8,
    holder: Option<u8>,
}

/// The result of an exploration.
#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    /// The longest response of each unit, and the number of states.
    All(Vec<u8>, usize),
    /// A job of this unit waited for longer than its bound.
    Beyond(usize),
    /// There are more states than the limit.
    TooMany,
}

impl Jobs {
    /// Adds a job.
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
    /// The interrupt that has to run now; `None` if there is none.
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
        // The running group is that of the last interrupt to have begun, which is the highest.
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

    /// The tasks that may run now if no interrupt does. They are the most urgent ones, of which any
    /// may run.
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

    /// The units that may run in this cycle, each with the cycles for which it disables interrupts
    /// from now on.
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

    /// Explores everything that can happen from the state in which nothing has been released.
    /// `bounds` are the most cycles that a job of each unit may wait.
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

    /// All releases that are possible in one cycle. Each unit releases no job, or as many as may
    /// come at once.
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

    /// Lets one cycle pass. Returns the unit whose job ended in it, and the job's response time.
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
