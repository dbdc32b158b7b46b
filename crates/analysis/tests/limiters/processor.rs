// SPDX-License-Identifier: MIT OR Apache-2.0
//! Simulates a flat processor (AVR). Interrupts do not nest, the lowest order is served first, and
//! one instruction of the main program runs between two interrupts. The simulation advances cycle
//! by cycle, which keeps it simple. The limiters are the C code of core/.

use std::collections::{HashMap, VecDeque};

use weir_analysis::units::{Part, body};
use weir_core_sys::{Action, Limiter, Step, Trigger, W64};
use weir_model::{Expiry, Place, Policy, System};
use weir_sim::core_config;

/// The behaviour of a port, a program and a device, as far as the system leaves it open.
#[derive(Debug, Clone)]
pub struct Habits {
    /// For each source, the cycle of the line's interrupt and the cycle of the expiry in which the
    /// limiter reads its timer.
    pub reads: Vec<(u64, u64)>,
    /// For each source, whether an edge or a level raises its requests.
    pub triggers: Vec<Trigger>,
    /// For each source, the cycle in which its limiter is started.
    pub starts: Vec<u64>,
    /// The cycles of every instruction of the main program.
    pub instruction: u64,
}

/// One run of an interrupt that has ended.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    /// The interrupt that ran.
    pub part: Part,
    /// The cycle in which the request was pending and enabled.
    pub released: u64,
    /// The first cycle of the run.
    pub start: u64,
    /// The cycle after the last cycle of the run.
    pub end: u64,
    /// Whether the interrupt ran a handler.
    pub served: bool,
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    Wait(u64),
    Request(usize),
    Expire(usize),
}

struct Running {
    run: Run,
    script: VecDeque<Phase>,
}

/// The state of one source.
struct Line {
    limiter: Option<Limiter<W64>>,
    started: bool,
    pending: bool,
    enabled: bool,
    /// The cycle in which the pending request was enabled.
    released: Option<u64>,
    /// The cycle in which the source's own timer matches.
    armed: Option<u64>,
    watched: Option<u64>,
    /// The cycle in which the source's own timer matched.
    expired: Option<u64>,
    /// For a limiter in hardware, the first cycle in which it lets a request through again.
    gate: u64,
    body: u64,
}

struct SharedTimer {
    next: u64,
    expired: Option<u64>,
}

struct WindowJob {
    released: u64,
    left: u64,
}

/// The processor, and what was observed on it.
pub struct Processor<'a> {
    system: &'a System,
    habits: Habits,
    lines: Vec<Line>,
    timers: Vec<SharedTimer>,
    running: Option<Running>,
    /// The cycles until the main program can be interrupted again.
    busy: u64,
    in_section: bool,
    section_wanted: bool,
    jobs: Vec<VecDeque<WindowJob>>,
    /// The task that holds the processor while interrupts are disabled.
    holder: Option<usize>,
    /// The current cycle.
    pub now: u64,
    /// All interrupts that have ended, in the order of their ends.
    pub runs: Vec<Run>,
    /// The source of every handler that ran, and the first cycle of the interrupt that ran it.
    pub served: Vec<(usize, u64)>,
    /// The longest response time of each task.
    pub responses: HashMap<Part, u64>,
}

impl<'a> Processor<'a> {
    pub fn new(system: &'a System, habits: Habits) -> Self {
        let line = |index| Line {
            limiter: None,
            started: false,
            pending: false,
            enabled: false,
            released: None,
            armed: None,
            watched: None,
            expired: None,
            gate: 0,
            body: body(system, index).cycles,
        };
        Self {
            system,
            lines: (0..system.sources.len()).map(line).collect(),
            timers: system
                .timers
                .iter()
                .map(|timer| SharedTimer {
                    next: timer.period.cycles(),
                    expired: None,
                })
                .collect(),
            habits,
            running: None,
            busy: 0,
            in_section: false,
            section_wanted: false,
            jobs: system.receivers.iter().map(|_| VecDeque::new()).collect(),
            holder: None,
            now: 0,
            runs: Vec::new(),
            served: Vec::new(),
            responses: HashMap::new(),
        }
    }

    /// The cycles until the timer of a source matches, whether the timer is its own or shared.
    pub fn until_expiry(&self, source: usize) -> Option<u64> {
        let at = match self.system.sources[source].limit.expiry {
            Some(Expiry::Shared(timer)) => Some(self.timers[timer].next),
            _ => self.lines[source].armed,
        };
        Some(at?.saturating_sub(self.now))
    }

    /// Whether all limiters are started.
    pub fn is_started(&self) -> bool {
        self.lines.iter().all(|line| line.started)
    }

    /// Whether no interrupt runs or waits.
    pub fn is_quiet(&self) -> bool {
        self.running.is_none() && (0..self.lines.len()).all(|line| self.is_idle(line))
    }

    /// Releases a task in this cycle.
    pub fn release(&mut self, task: usize) {
        self.jobs[task].push_back(WindowJob {
            released: self.now,
            left: self.system.receivers[task].wcet.cycles,
        });
    }

    /// Raises a request of a source in this cycle.
    pub fn raise(&mut self, source: usize) {
        let line = &mut self.lines[source];
        let open = line.enabled && line.gate <= self.now;
        if line.pending || (self.habits.triggers[source] == Trigger::EdgeUnlatched && !open) {
            return;
        }
        line.pending = true;
        self.let_through(source);
    }

    /// Makes the main program disable interrupts with its next instruction.
    pub fn want_section(&mut self) {
        self.section_wanted = self.system.cpu.critical_section.cycles > 0;
    }

    /// Lets one cycle pass. Requests and releases of this cycle have to be made before.
    pub fn cycle(&mut self) {
        for source in 0..self.lines.len() {
            if !self.lines[source].started && self.habits.starts[source] <= self.now {
                self.start(source);
            }
        }
        for (timer, of) in self.timers.iter_mut().zip(&self.system.timers) {
            if timer.next == self.now {
                timer.expired = timer.expired.or(Some(self.now));
                timer.next += of.period.cycles();
            }
        }
        self.dispatch();
        match &mut self.running {
            Some(running) => {
                if let Some(Phase::Wait(left)) = running.script.front_mut() {
                    *left -= 1;
                }
            }
            None => self.main_program(),
        }
        self.now += 1;
    }

    fn main_program(&mut self) {
        let task = if self.in_section {
            self.holder
        } else {
            self.most_urgent()
        };
        self.busy -= 1;
        if self.busy <= self.habits.instruction {
            self.in_section = false;
        }
        let Some(task) = task else { return };
        let Some(job) = self.jobs[task].front_mut() else {
            return;
        };
        job.left -= 1;
        if job.left == 0 {
            let response = self.now + 1 - job.released;
            self.jobs[task].pop_front();
            if self.in_section {
                // A task enables interrupts again before it ends.
                self.in_section = false;
                self.busy = self.busy.min(self.habits.instruction);
            }
            let worst = self.responses.entry(Part::Task(task)).or_default();
            *worst = response.max(*worst);
        }
    }

    fn most_urgent(&self) -> Option<usize> {
        (0..self.jobs.len())
            .filter(|&task| !self.jobs[task].is_empty())
            .max_by_key(|&task| self.system.receivers[task].urgency)
    }

    fn start(&mut self, source: usize) {
        let of = &self.system.sources[source];
        self.lines[source].started = true;
        match (of.limit.policy, of.limit.place) {
            (Policy::Poll, _) => {
                self.lines[source].armed = Some(self.now + of.limit.interval.cycles())
            }
            (Policy::Off, _) | (_, Place::Hardware) => self.unmask(source),
            _ => {
                let config = core_config(&of.limit, self.habits.triggers[source]);
                let (limiter, step) = Limiter::start(&config, self.now / of.limit.interval.tick)
                    .unwrap_or_else(|error| panic!("{config:?}: {error}"));
                self.lines[source].limiter = Some(limiter);
                self.perform(source, step);
            }
        }
    }

    fn is_idle(&self, source: usize) -> bool {
        let line = &self.lines[source];
        line.released.is_none() && line.expired.is_none()
    }

    /// Makes the request that waits on the line pending, if its enable bit and the hardware permit
    /// it.
    fn let_through(&mut self, source: usize) {
        let line = &mut self.lines[source];
        if line.pending && line.enabled && line.released.is_none() && line.gate <= self.now {
            line.released = Some(self.now);
            if self.system.sources[source].limit.place == Place::Hardware {
                line.gate = self.now + self.system.sources[source].limit.interval.cycles();
            }
        }
    }

    fn unmask(&mut self, source: usize) {
        self.lines[source].enabled = true;
        self.let_through(source);
    }

    fn match_timers(&mut self) {
        for source in 0..self.lines.len() {
            self.let_through(source);
            let limit = &self.system.sources[source].limit;
            let line = &mut self.lines[source];
            if line.armed.is_some_and(|at| at <= self.now) {
                line.expired = line.expired.or(Some(self.now));
                line.armed =
                    (limit.policy == Policy::Poll).then_some(self.now + limit.interval.cycles());
            }
        }
    }

    /// Performs everything that takes no time, until a cycle has to pass.
    fn dispatch(&mut self) {
        loop {
            self.match_timers();
            if let Some(running) = &mut self.running {
                match running.script.front().copied() {
                    Some(Phase::Wait(0)) => {
                        running.script.pop_front();
                    }
                    Some(Phase::Wait(_)) => return,
                    Some(Phase::Request(source)) => {
                        running.script.pop_front();
                        self.ask(source);
                    }
                    Some(Phase::Expire(source)) => {
                        running.script.pop_front();
                        self.expire(source);
                    }
                    None => {
                        let mut run = running.run;
                        run.end = self.now;
                        self.runs.push(run);
                        self.running = None;
                        if self.habits.instruction > 0 {
                            // One instruction always runs after the return, even if an interrupt
                            // waits.
                            self.next_instruction();
                        }
                    }
                }
            } else if self.busy > 0 {
                return;
            } else if let Some(part) = self.next_interrupt() {
                self.take(part);
            } else {
                self.next_instruction();
                return;
            }
        }
    }

    fn next_instruction(&mut self) {
        self.busy = self.habits.instruction.max(1);
        if self.section_wanted {
            self.section_wanted = false;
            self.in_section = true;
            self.holder = self.most_urgent();
            // The instruction after the one that enables interrupts also runs before any interrupt.
            self.busy = self.system.cpu.critical_section.cycles + self.habits.instruction;
        }
    }

    fn next_interrupt(&self) -> Option<Part> {
        let sources = self.lines.iter().zip(&self.system.sources).enumerate();
        let lines = sources.flat_map(|(index, (line, source))| {
            let request = line
                .released
                .map(|_| (source.level.order, Part::Request(index)));
            let expiry = match &source.limit.expiry {
                Some(Expiry::Own { level, .. }) => {
                    line.expired.map(|_| (level.order, Part::Expiry(index)))
                }
                _ => None,
            };
            request.into_iter().chain(expiry)
        });
        let timers = self.timers.iter().zip(&self.system.timers).enumerate();
        let shared = timers.filter_map(|(index, (timer, of))| {
            timer.expired.map(|_| (of.level.order, Part::Timer(index)))
        });
        lines
            .chain(shared)
            .min_by_key(|&(order, _)| order)
            .map(|(_, part)| part)
    }

    fn take(&mut self, part: Part) {
        let mut script = VecDeque::new();
        let released = match part {
            Part::Request(source) => {
                script.push_back(Phase::Wait(self.habits.reads[source].0));
                script.push_back(Phase::Request(source));
                self.lines[source].pending = false;
                self.lines[source].released.take()
            }
            Part::Expiry(source) => {
                script.push_back(Phase::Wait(self.habits.reads[source].1));
                script.push_back(Phase::Expire(source));
                self.lines[source].expired.take()
            }
            Part::Timer(timer) => {
                script.push_back(Phase::Wait(self.system.timers[timer].base));
                for (source, of) in self.system.sources.iter().enumerate() {
                    if of.limit.expiry == Some(Expiry::Shared(timer)) && self.lines[source].started
                    {
                        script.push_back(Phase::Wait(self.habits.reads[source].1));
                        script.push_back(Phase::Expire(source));
                    }
                }
                self.timers[timer].expired.take()
            }
            Part::Task(_) | Part::BottomHalf(_) | Part::Delivered(_) => None,
        };
        self.running = Some(Running {
            run: Run {
                part,
                released: released.expect("it waited"),
                start: self.now,
                end: self.now,
                served: false,
            },
            script,
        });
    }

    /// Sets the rest of an interrupt's part that deals with a source.
    fn goes_on(&mut self, source: usize, cycles: u64, served: bool) {
        if let Some(running) = &mut self.running {
            running.script.push_front(Phase::Wait(cycles));
            if served {
                running.run.served = true;
                self.served.push((source, running.run.start));
            }
        }
    }

    /// The line's interrupt calls its limiter.
    fn ask(&mut self, source: usize) {
        let of = &self.system.sources[source];
        let line = &mut self.lines[source];
        let now = self.now / of.limit.interval.tick;
        let elapsed = line.watched.is_some_and(|at| at <= self.now);
        let step = line
            .limiter
            .as_mut()
            .map(|limiter| limiter.request(now, elapsed));
        let serve = step.is_none_or(|step| step.has(Action::Serve));
        let all = if serve {
            of.limit.costs.request_served + line.body
        } else {
            of.limit.costs.request_refused
        };
        if !serve && self.habits.triggers[source] == Trigger::Level {
            // The device keeps requesting.
            line.pending = true;
        }
        self.goes_on(source, all - self.habits.reads[source].0, serve);
        if let Some(step) = step {
            self.perform(source, step);
        }
    }

    /// The timer's interrupt calls the limiter, or polls the line.
    fn expire(&mut self, source: usize) {
        let of = &self.system.sources[source];
        let line = &mut self.lines[source];
        let now = self.now / of.limit.interval.tick;
        let can_serve = of.limit.costs.expiry_served > 0;
        let pending = line.pending && can_serve;
        let step = line
            .limiter
            .as_mut()
            .map(|limiter| limiter.expired(now, pending));
        let serve = step.map_or(pending, |step| step.has(Action::Serve));
        if serve && (step.is_none_or(|step| step.has(Action::Ack))) {
            line.pending = false;
        }
        let all = if serve {
            of.limit.costs.expiry_served + line.body
        } else {
            of.limit.costs.expiry_empty
        };
        self.goes_on(source, all - self.habits.reads[source].1, serve);
        if let Some(step) = step {
            self.perform(source, step);
        }
    }

    fn perform(&mut self, source: usize, step: Step) {
        let limit = &self.system.sources[source].limit;
        let own = matches!(limit.expiry, Some(Expiry::Own { .. }));
        let line = &mut self.lines[source];
        let at = step.at * limit.interval.tick;
        if step.has(Action::Mask) {
            line.enabled = false;
            line.released = None;
        }
        if own && (step.has(Action::Arm) || step.has(Action::Watch) || step.has(Action::Disarm)) {
            // A channel has only one compare register.
            line.armed = None;
            line.expired = None;
        }
        if own && step.has(Action::Arm) {
            line.armed = Some(at.max(self.now));
            line.watched = None;
        }
        if step.has(Action::Watch) {
            line.watched = Some(at);
        }
        if step.has(Action::Unmask) {
            self.unmask(source);
        }
    }
}
