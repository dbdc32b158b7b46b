// SPDX-License-Identifier: MIT OR Apache-2.0
//! An adversary that raises requests and releases tasks at the worst times that the system allows.

use rand::Rng;
use rand_chacha::ChaCha8Rng;
use weir_model::System;

use super::processor::Processor;

/// The behaviour of a source during an episode.
#[derive(Debug, Clone, Copy)]
enum Plan {
    Silent,
    /// The source requests as fast as it can, in these cycles.
    Flood {
        from: u64,
        until: u64,
    },
    /// The source requests in each cycle with a probability of one in this number.
    Random(u32),
    /// The source requests twice as fast as it can, and then pauses for this number of cycles.
    Pairs {
        next: u64,
        pause: u64,
        second: bool,
    },
    /// The source requests as fast as it can for this number of times. It begins `lead` cycles
    /// before each expiry of its timer.
    AroundExpiry {
        lead: u64,
        burst: u32,
        left: u32,
    },
}

/// The adversary. It keeps to the worst rates that the system states.
pub struct Adversary<'a> {
    system: &'a System,
    rng: ChaCha8Rng,
    /// The least cycles between two requests of each source.
    interarrival: Vec<u64>,
    last: Vec<Option<u64>>,
    plans: Vec<Plan>,
    /// For each task, the cycle from which it may be released again, and the cycle in which it will
    /// be.
    tasks: Vec<(u64, u64)>,
    section: u64,
    episode: u64,
}

impl<'a> Adversary<'a> {
    /// Makes an adversary. `interarrival` is the least time between two requests of each source,
    /// from its worst rate; 1 if it has none.
    pub fn new(system: &'a System, interarrival: Vec<u64>, rng: ChaCha8Rng) -> Self {
        Self {
            rng,
            last: vec![None; interarrival.len()],
            plans: vec![Plan::Silent; interarrival.len()],
            interarrival,
            tasks: vec![(0, u64::MAX); system.receivers.len()],
            section: u64::MAX,
            episode: 0,
            system,
        }
    }

    /// Runs `episodes` of `length` cycles. In each episode everything happens around one instant,
    /// which is often an expiry.
    pub fn run(&mut self, processor: &mut Processor, episodes: u64, length: u64) {
        while !processor.is_started() {
            processor.cycle();
        }
        for _ in 0..episodes {
            self.plan(processor, length);
            while processor.now < self.episode {
                self.act(processor);
                processor.cycle();
            }
        }
        // The requests that still wait are served.
        self.plans.fill(Plan::Silent);
        for _ in 0..20 * length {
            if processor.is_quiet() {
                break;
            }
            processor.cycle();
        }
    }

    fn plan(&mut self, processor: &Processor, length: u64) {
        let rng = &mut self.rng;
        let begin = processor.now;
        let quiet = [0, 1, length / 3, length / 2][rng.random_range(0..4)];
        // The instant is the expiry of one of the timers, if that is in the episode.
        let expiry = rng.random_range(0..self.plans.len().max(1));
        let anchor = match processor.until_expiry(expiry.min(self.plans.len().saturating_sub(1))) {
            Some(until) if rng.random_bool(0.7) && until < length / 2 => begin + until,
            _ => begin + quiet,
        };
        let spread = [0, 1, 3, 10, 40][rng.random_range(0..5)];
        let near = |rng: &mut ChaCha8Rng| {
            (anchor + rng.random_range(0..=spread)).saturating_sub(rng.random_range(0..=spread))
        };
        for (source, plan) in self.plans.iter_mut().enumerate() {
            let burst = self.system.sources[source].limit.burst;
            *plan = match rng.random_range(0..10) {
                0 => Plan::Silent,
                1 => Plan::Random([2, 5, 20][rng.random_range(0..3)]),
                2 => Plan::Pairs {
                    next: near(rng),
                    pause: rng.random_range(1..=length / 4),
                    second: false,
                },
                3 | 4 => Plan::AroundExpiry {
                    lead: rng.random_range(0..=length / 8),
                    burst: rng.random_range(1..=2 * burst + 1),
                    left: 0,
                },
                _ => Plan::Flood {
                    from: near(rng),
                    until: match rng.random_range(0..3) {
                        0 => anchor + rng.random_range(0..=length / 4),
                        _ => u64::MAX,
                    },
                },
            };
        }
        for (earliest, release) in &mut self.tasks {
            *release = near(rng).max(*earliest).max(begin);
        }
        self.section = if rng.random_bool(0.5) {
            near(rng)
        } else {
            u64::MAX
        };
        self.episode = begin + length;
    }

    fn act(&mut self, processor: &mut Processor) {
        let now = processor.now;
        for source in 0..self.plans.len() {
            let may = self.last[source].is_none_or(|last| now - last >= self.interarrival[source]);
            if may && self.wants(source, processor) {
                self.last[source] = Some(now);
                processor.raise(source);
            }
        }
        for (task, (earliest, release)) in self.tasks.iter_mut().enumerate() {
            if *release <= now && *earliest <= now {
                processor.release(task);
                let period = self.system.receivers[task].period.unwrap_or(1);
                *earliest = now + period;
                *release = now + period;
            }
        }
        if self.section <= now {
            self.section = u64::MAX;
            processor.want_section();
        }
    }

    fn wants(&mut self, source: usize, processor: &Processor) -> bool {
        let now = processor.now;
        match &mut self.plans[source] {
            Plan::Silent => false,
            Plan::Flood { from, until } => *from <= now && now < *until,
            Plan::Random(of) => self.rng.random_ratio(1, *of),
            Plan::Pairs {
                next,
                pause,
                second,
            } => {
                let wants = *next <= now;
                if wants {
                    *next = if *second { now + *pause } else { now };
                    *second = !*second;
                }
                wants
            }
            Plan::AroundExpiry { lead, burst, left } => {
                if processor.until_expiry(source) == Some(*lead) {
                    *left = *burst;
                }
                let wants = *left > 0;
                *left = left.saturating_sub(1);
                wants
            }
        }
    }
}
