// SPDX-License-Identifier: MIT OR Apache-2.0
//! A simulated port: one source with its pending and enable bits, one timer, and a handler that
//! takes no time. The port performs a limiter's steps. It checks them against the contracts by its
//! own observations, the instants at which the handler ran.
//!
//! Time is absolute in this module and never wraps. Only the limiter sees it modulo its tick width.

pub mod model;

use weir_core_sys::{
    Action, Config, LimitPolicy, LimitTiming, Limiter, Step, Trigger, Width, curve,
};

/// How the port delivers expiries, and how it keeps the limiter's instants from becoming older than
/// half a wrap while the source is idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A compare flag records that the watched instant has passed.
    Watch,
    /// There is no compare flag; the port calls `weir_limit_age()` often enough.
    Age,
    /// There is no timer; the port calls the limiter in a periodic tick with this period.
    Tick(u64),
}

/// A run of the handler: its instant, and whether it came after the expiries due at that instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    pub at: u64,
    pub after_expiry: bool,
    /// True if the handler ran in the timer's interrupt, for a request that had waited.
    pub by_expiry: bool,
}

#[derive(Clone)]
pub struct Board<W: Width> {
    pub limiter: Limiter<W>,
    pub mode: Mode,
    pub start: u64,
    pub now: u64,
    pub pending: bool,
    pub level: bool,
    /// The source's enable bit.
    pub enabled: bool,
    pub user_on: bool,
    /// The latency from the armed instant to the expiry, for expiries that are armed from now on.
    pub latency: u64,
    /// The longest possible latency of any expiry, which is L and J of the contracts.
    pub worst_latency: u64,
    armed: Option<u64>,
    fires: Option<u64>,
    watched: Option<u64>,
    last_aged: u64,
    after_expiry: bool,
    /// Requests that the limiter took but has not served yet.
    pub held: u32,
    pub edges: u32,
    pub lost: u32,
    pub expiries: u32,
    /// Interrupts of the source that did not run the handler.
    pub refused: u32,
    pub served: Vec<Served>,
    /// The configurations, each with the instant from which it was in force.
    pub configs: Vec<(u64, Config)>,
    /// Whether each service is compared with the model, which knows no latency, user or change.
    pub exact: bool,
}

impl<W: Width> Board<W> {
    pub fn new(config: &Config, start: u64, mode: Mode) -> Self {
        let (limiter, step) =
            Limiter::start(config, start).unwrap_or_else(|error| panic!("{config:?}: {error}"));
        let mut board = Board {
            limiter,
            mode,
            start,
            now: start,
            pending: false,
            level: false,
            enabled: false,
            user_on: true,
            latency: 0,
            worst_latency: 0,
            armed: None,
            fires: None,
            watched: None,
            last_aged: start,
            after_expiry: true,
            held: 0,
            edges: 0,
            lost: 0,
            expiries: 0,
            refused: 0,
            served: Vec::with_capacity(32),
            configs: vec![(start, *config)],
            exact: false,
        };
        if let Mode::Tick(period) = mode {
            board.worst_latency = period - 1;
        }
        board.perform(step, false);
        board
    }

    pub fn config(&self) -> &Config {
        &self.configs[self.configs.len() - 1].1
    }

    pub fn armed(&self) -> Option<u64> {
        self.armed
    }

    /// Returns the number of requests that were raised and are neither served nor lost.
    pub fn waiting(&self) -> u32 {
        u32::from(self.pending || self.level) + self.held
    }

    /// The source raises a request.
    pub fn edge(&mut self) {
        self.edges += 1;
        match self.config().trigger {
            Trigger::Edge if self.pending => self.lost += 1,
            Trigger::Edge => self.pending = true,
            Trigger::EdgeUnlatched if self.enabled => self.pending = true,
            Trigger::EdgeUnlatched => self.lost += 1,
            Trigger::Level if self.level => self.lost += 1,
            Trigger::Level => self.level = true,
        }
        self.deliver();
    }

    /// Advances time to `to`. Expiries happen on the way, except those due at `to` itself, for
    /// which [`Board::expire`] is called.
    pub fn advance(&mut self, to: u64) {
        while self.now < to {
            let mut next = to;
            if let Some(fires) = self.fires {
                next = next.min(fires.max(self.now + 1));
            }
            if self.mode == Mode::Age {
                next = next.min(self.last_aged + self.ageing_period());
            }
            if let Mode::Tick(period) = self.mode {
                next = next.min(self.now - (self.now - self.start) % period + period);
            }
            self.now = next;
            self.after_expiry = false;
            if self.mode == Mode::Age && self.now == self.last_aged + self.ageing_period() {
                self.last_aged = self.now;
                self.limiter.age(W::wrap(self.now));
            }
            if self.now < to {
                self.expire();
            }
        }
    }

    /// Simulates one instant: `before` requests, then the expiries, then `after` requests.
    pub fn tick(&mut self, before: u32, after: u32) {
        self.advance(self.now + 1);
        for _ in 0..before {
            self.edge();
        }
        self.expire();
        for _ in 0..after {
            self.edge();
        }
        self.tick_ends();
    }

    /// Ends an instant at which nothing else happens.
    pub fn tick_ends(&self) {
        self.judge_waiting();
    }

    /// Delivers the expiries that are due at this instant.
    pub fn expire(&mut self) {
        self.after_expiry = true;
        if let Mode::Tick(period) = self.mode {
            if (self.now - self.start) % period == 0 {
                let step = self
                    .limiter
                    .tick(W::wrap(self.now), self.pending || self.level);
                self.expiries += 1;
                self.perform(step, true);
            }
            return;
        }
        let mut times = 0;
        while self.fires.is_some_and(|fires| fires <= self.now) {
            times += 1;
            assert!(times < 4, "the timer expires for ever at {}", self.now);
            self.fires = None;
            self.armed = None;
            self.watched = None;
            self.expiries += 1;
            let step = self
                .limiter
                .expired(W::wrap(self.now), self.pending || self.level);
            self.perform(step, true);
        }
    }

    pub fn user_disable(&mut self) {
        self.user_on = false;
        let step = self.limiter.user_disable();
        self.perform(step, false);
    }

    /// The user disables the source while a request is already on its way to the processor.
    pub fn user_disable_in_a_race(&mut self) {
        self.user_disable();
        self.race();
    }

    /// A request reaches the processor although the source is off.
    pub fn race(&mut self) {
        assert!(!self.enabled);
        self.edges += 1;
        self.tell_elapsed();
        let step = self.limiter.refused(W::wrap(self.now));
        match self.config().trigger {
            Trigger::Level => self.level = true,
            // The limiter can hold only one request, so a second one is lost.
            _ if self.held > 0 => self.lost += 1,
            _ => self.held += 1,
        }
        self.refused += 1;
        self.perform(step, false);
    }

    pub fn user_enable(&mut self) {
        self.user_on = true;
        self.tell_elapsed();
        let step = self.limiter.user_enable(W::wrap(self.now));
        assert!(!step.has(Action::Serve), "LIMIT-ENABLE-4");
        self.perform(step, false);
    }

    pub fn reconfigure(&mut self, to: &Config) {
        self.tell_elapsed();
        let step = self
            .limiter
            .reconfigure(to, W::wrap(self.now))
            .unwrap_or_else(|error| panic!("{to:?}: {error}"));
        self.configs.push((self.now, *to));
        self.perform(step, false);
    }

    fn has_elapsed(&self) -> bool {
        self.mode == Mode::Watch && self.watched.is_some_and(|watched| watched <= self.now)
    }

    fn tell_elapsed(&mut self) {
        if self.has_elapsed() {
            self.limiter.elapsed();
        }
    }

    /// Returns the longest time that `weir_limit_age()` allows between two calls.
    fn ageing_period(&self) -> u64 {
        (1 << (W::BITS - 1)) - (u64::from(self.config().burst) + 1) * self.config().interval
    }

    fn deliver(&mut self) {
        while self.enabled && (self.pending || self.level) {
            self.pending = false;
            let elapsed = self.has_elapsed();
            let step = self.limiter.request(W::wrap(self.now), elapsed);
            if !step.has(Action::Serve) {
                self.refused += 1;
                if self.config().trigger != Trigger::Level {
                    self.held += 1;
                }
                assert!(
                    step.has(Action::Mask),
                    "LIMIT-OVERLOAD-2: a refused request must mask its source"
                );
            }
            self.perform(step, false);
        }
    }

    /// Returns the absolute instant nearest to now that equals `at` modulo the width.
    fn absolute(&self, at: u64) -> u64 {
        let ahead = W::wrap(at.wrapping_sub(self.now));
        if ahead < 1 << (W::BITS - 1) {
            self.now + ahead
        } else {
            self.now - W::wrap(self.now.wrapping_sub(at))
        }
    }

    fn perform(&mut self, step: Step, expiry: bool) {
        if step.has(Action::Mask) {
            self.enabled = false;
        }
        if step.has(Action::Unmask) {
            assert!(
                self.user_on,
                "LIMIT-ENABLE-1: unmasked at {} while the user has the source off",
                self.now
            );
            self.enabled = true;
        }
        let at = self.absolute(step.at);
        assert!(
            !step.has(Action::Arm) || !(step.has(Action::Watch) || step.has(Action::Disarm)),
            "{step:?}"
        );
        if step.has(Action::Arm) {
            assert!(at + 1 >= self.now || !expiry, "armed in the past");
            self.armed = Some(at.max(self.now));
            self.fires = Some(at.max(self.now) + self.latency);
            self.watched = None;
        }
        if step.has(Action::Watch) {
            // The channel has only one compare register, so watching an instant cancels the armed
            // one.
            self.armed = None;
            self.fires = None;
            self.watched = Some(at);
        }
        if step.has(Action::Disarm) {
            self.armed = None;
            self.fires = None;
        }
        if step.has(Action::Ack) {
            assert!(self.pending || self.level, "nothing to acknowledge");
            assert!(step.has(Action::Serve));
            self.pending = false;
        }
        if step.has(Action::Serve) {
            assert!(
                self.user_on,
                "LIMIT-ENABLE-2: served at {} while the user has the source off",
                self.now
            );
            if expiry && !step.has(Action::Ack) {
                assert!(self.held > 0, "served what nobody asked for");
                self.held -= 1;
            }
            self.level = false;
            if self.exact {
                assert!(
                    model::may_serve(
                        self.config(),
                        self.start,
                        &self.served,
                        self.now,
                        self.after_expiry
                    ),
                    "served too early: {}",
                    self.story()
                );
            }
            self.served.push(Served {
                at: self.now,
                after_expiry: self.after_expiry,
                by_expiry: expiry,
            });
            self.judge_curve();
        }
        assert_eq!(
            self.enabled,
            self.limiter.is_on(),
            "LIMIT-ENABLE-1 at {}",
            self.now
        );
        assert!(
            !self.enabled || self.user_on,
            "LIMIT-ENABLE-1 at {}",
            self.now
        );
        if self.user_on && !self.enabled && !matches!(self.mode, Mode::Tick(_)) {
            let armed = self.armed.unwrap_or_else(|| {
                panic!(
                    "LIMIT-LIVE-1: masked at {} and no timer: {}",
                    self.now,
                    self.story()
                )
            });
            let longest = if self.configs.len() == 1 {
                self.config().interval
            } else {
                1 << (W::BITS - 1)
            };
            assert!(
                armed <= self.now + longest,
                "LIMIT-LIVE-1: masked until {armed}: {}",
                self.story()
            );
        }
        // A pending request of an unmasked source interrupts at once.
        if self.enabled && (self.pending || self.level) {
            self.deliver();
        }
    }

    /// Returns the most requests that the contracts allow in the window from `from` to now.
    fn most(&self, from: u64) -> Option<u64> {
        let last = self.configs.len() - 1;
        let first = (0..=last)
            .find(|&i| i == last || self.configs[i + 1].0 >= from)
            .unwrap_or(last);
        let window = self.now - from;
        match last - first {
            0 => curve::most(self.config(), window, self.worst_latency),
            1 => curve::most_across(
                &self.configs[first].1,
                self.config(),
                window,
                self.worst_latency,
            ),
            _ => {
                let configs: Vec<Config> = self.configs[first..]
                    .iter()
                    .map(|&(_, config)| config)
                    .collect();
                curve::most_across_all(&configs, window, self.worst_latency)
            }
        }
    }

    /// Checks the arrival curve in every window that ends now.
    fn judge_curve(&self) {
        for (i, first) in self.served.iter().enumerate() {
            let count = (self.served.len() - i) as u64;
            if let Some(most) = self.most(first.at) {
                assert!(
                    count <= most,
                    "{count} served in [{}, {}], the curve allows {most}: {}",
                    first.at,
                    self.now,
                    self.story()
                );
            }
        }
    }

    /// Checks LIMIT-*-2: a waiting request has been served if the policy allows it.
    fn judge_waiting(&self) {
        if self.exact && self.user_on && self.waiting() > 0 {
            assert!(
                !model::may_serve(self.config(), self.start, &self.served, self.now, true),
                "a request waits for nothing: {}",
                self.story()
            );
        }
    }

    /// Stops raising requests for `ticks` ticks. At the end all waiting requests must have been
    /// served, and the source must be unmasked.
    pub fn drain(&mut self, ticks: u64) {
        let until = self.now + ticks;
        while self.now < until && (self.waiting() > 0 || !self.enabled) {
            self.tick(0, 0);
        }
        assert!(
            self.waiting() == 0 && self.enabled,
            "LIMIT-LIVE-2: still masked or waiting after {ticks} ticks: {}",
            self.story()
        );
        let unserved = self.edges - self.lost;
        assert_eq!(
            unserved as usize,
            self.served.len(),
            "requests taken and forgotten: {}",
            self.story()
        );
    }

    /// Returns the history of events, for a failure message.
    pub fn story(&self) -> String {
        let served: Vec<u64> = self
            .served
            .iter()
            .map(|served| served.at - self.start)
            .collect();
        let configs: Vec<(u64, u64, u8)> = self
            .configs
            .iter()
            .map(|&(at, config)| (at - self.start, config.interval, config.burst))
            .collect();
        let config = self.config();
        format!(
            "{:?} {:?} {:?}, (from, interval, burst) {configs:?}, served {served:?}, now {}, pending {}, held {}, armed {:?}, latency {}",
            config.policy,
            config.timing,
            config.trigger,
            self.now - self.start,
            self.pending || self.level,
            self.held,
            self.armed.map(|at| at.wrapping_sub(self.start)),
            self.worst_latency
        )
    }
}

/// Returns all combinations of policy and timing with these intervals and bursts, for one trigger.
pub fn configs(intervals: &[u64], bursts: &[u8], trigger: Trigger) -> Vec<Config> {
    let mut all = Vec::new();
    for &interval in intervals {
        for policy in [
            LimitPolicy::Strict,
            LimitPolicy::Paced,
            LimitPolicy::Bursty,
            LimitPolicy::Bucket,
        ] {
            for timing in [LimitTiming::Eager, LimitTiming::Lazy, LimitTiming::OneShot] {
                for &burst in bursts {
                    let counts = matches!(policy, LimitPolicy::Bursty | LimitPolicy::Bucket);
                    if (counts || burst == 1)
                        && (timing != LimitTiming::OneShot || policy == LimitPolicy::Bursty)
                    {
                        all.push(Config {
                            policy,
                            timing,
                            trigger,
                            interval,
                            lag: 0,
                            burst,
                        });
                    }
                }
            }
        }
    }
    all
}
