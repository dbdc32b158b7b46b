// SPDX-License-Identifier: MIT OR Apache-2.0
//! Long random runs with wraps, long idle times, changes, user actions and several sources on one
//! timer, at every width.

use crate::board::{Board, Mode, configs};
use crate::is_long;
use proptest::prelude::*;
use weir_core_sys::{
    Action, Bare, Config, LimitPolicy, Limiter, Step, Trigger, W16, W32, W64, Width,
};

#[derive(Clone, Copy, Debug)]
enum Event {
    /// This many ticks pass.
    Wait(u64),
    /// Time passes, more than half a wrap of 16-bit ticks or more than a whole one.
    Idle(u64),
    Requests(u32),
    Disable,
    DisableInRace,
    Enable,
    Change {
        interval: u64,
        burst: u8,
    },
    Latency(u64),
}

fn policies() -> impl Strategy<Value = Config> {
    let triggers = prop_oneof![
        Just(Trigger::Edge),
        Just(Trigger::EdgeUnlatched),
        Just(Trigger::Level)
    ];
    (triggers, 1_u64..200, 1_u8..20, any::<prop::sample::Index>()).prop_map(
        |(trigger, interval, burst, index)| *index.get(&configs(&[interval], &[1, burst], trigger)),
    )
}

fn events(changes: bool) -> impl Strategy<Value = Vec<Event>> {
    let change = if changes { 1 } else { 0 };
    let event = prop_oneof![
        6 => (1_u64..40).prop_map(Event::Wait),
        2 => (40_u64..600).prop_map(Event::Wait),
        1 => (0x7000_u64..0x2_4000).prop_map(Event::Idle),
        8 => (1_u32..12).prop_map(Event::Requests),
        1 => Just(Event::Disable),
        1 => Just(Event::DisableInRace),
        3 => Just(Event::Enable),
        1 => (0_u64..8).prop_map(Event::Latency),
        change => (1_u64..200, 1_u8..20).prop_map(|(interval, burst)| Event::Change { interval, burst }),
    ];
    prop::collection::vec(event, 1..120)
}

fn mode() -> impl Strategy<Value = Mode> {
    prop_oneof![
        Just(Mode::Watch),
        Just(Mode::Age),
        (1_u64..60).prop_map(Mode::Tick)
    ]
}

fn happen<W: Width>(board: &mut Board<W>, event: Event) {
    match event {
        Event::Wait(ticks) | Event::Idle(ticks) => {
            board.advance(board.now + ticks);
            board.expire();
        }
        Event::Requests(count) => (0..count).for_each(|_| board.edge()),
        Event::Disable => board.user_disable(),
        Event::DisableInRace if board.enabled => board.user_disable_in_a_race(),
        Event::DisableInRace => board.user_disable(),
        Event::Enable => board.user_enable(),
        Event::Latency(latency) => board.latency = latency,
        Event::Change { interval, burst } => {
            let counts = matches!(
                board.config().policy,
                LimitPolicy::Bursty | LimitPolicy::Bucket
            );
            let to = Config {
                interval,
                burst: if counts { burst } else { 1 },
                ..*board.config()
            };
            board.reconfigure(&to);
        }
    }
}

fn play<W: Width>(config: &Config, start: u64, mode: Mode, events: &[Event]) -> Board<W> {
    let mut board: Board<W> = Board::new(config, start, mode);
    board.worst_latency = match mode {
        // The user delays paced services by less than one interval. The curve allows no larger
        // delay.
        _ if config.policy == LimitPolicy::Paced => 1 << 20,
        Mode::Tick(period) => period,
        _ => 7,
    };
    for &event in events {
        happen(&mut board, event);
    }
    board.latency = 0;
    if !board.user_on {
        board.user_enable();
    }
    board.drain(0x8000 + 3_000);
    board
}

proptest! {
    #![proptest_config(crate::cases(400, 3_000))]

    /// LIMIT-*-1, LIMIT-ENABLE-*, LIMIT-LIVE-*, LIMIT-TIME-*, LIMIT-TIMERLESS-1: at 16 bits, across
    /// wraps and long idle times.
    #[test]
    fn a_policy_keeps_its_contracts(config in policies(), start in 0xff00_u64..0x1_0100, mode in mode(), events in events(false)) {
        play::<W16>(&config, start, mode, &events);
    }

    /// LIMIT-CHANGE-*: the same contracts hold while rate and burst change.
    #[test]
    fn a_changing_policy_keeps_its_contracts(config in policies(), start in 0xff00_u64..0x1_0100, mode in mode(), events in events(true)) {
        play::<W16>(&config, start, mode, &events);
    }

    /// LIMIT-TIME-1: the tick width makes no difference, wherever the ticks wrap. LIMIT-RECORD-2:
    /// neither does the record.
    #[test]
    fn every_width_serves_at_the_same_instants(config in policies(), before in 0_u64..300, mode in mode(), events in events(true)) {
        fn served<W: Width>(config: &Config, before: u64, mode: Mode, events: &[Event]) -> Vec<u64> {
            // Each run starts shortly before the wrap of its width, or, at 64 bits, as late as the
            // test's own arithmetic allows.
            let start = if W::BITS == 64 { 1 << 40 } else { (1_u64 << W::BITS) - before };
            play::<W>(config, start, mode, events).served.iter().map(|served| served.at - start).collect()
        }
        // Ageing happens at different instants at different widths. Only state older than half a
        // wrap may depend on it.
        let events: Vec<Event> = events.into_iter().filter(|event| !matches!(event, Event::Idle(_))).collect();
        let narrow = served::<W16>(&config, before, mode, &events);
        prop_assert_eq!(&narrow, &served::<W32>(&config, before, mode, &events));
        prop_assert_eq!(&narrow, &served::<W64>(&config, before, mode, &events));
        prop_assert_eq!(&narrow, &served::<Bare<W16>>(&config, before, mode, &events));
        prop_assert_eq!(&narrow, &served::<Bare<W32>>(&config, before, mode, &events));
        prop_assert_eq!(&narrow, &served::<Bare<W64>>(&config, before, mode, &events));
    }

    /// LIMIT-RECORD-1: the record agrees with the observations of the simulated port.
    #[test]
    fn the_record_tells_what_happened(config in policies(), events in events(false)) {
        let board = play::<W32>(&config, 0xffff_ff00, Mode::Age, &events);
        let record = board.limiter.record().expect("W32 keeps a record");
        prop_assert_eq!(record.served as usize, board.served.len());
        prop_assert!(record.taken >= record.served);
        prop_assert!(record.overloads <= record.taken);
        if record.masked_intervals == 0 {
            prop_assert_eq!(record.longest_masked, 0);
        }
    }

    /// LIMIT-TIMERLESS-1: with a tick of period D, no request waits longer than the interval plus
    /// D.
    #[test]
    fn a_tick_serves_within_its_period(config in policies(), period in 1_u64..60, gaps in prop::collection::vec(0_u64..300, 1..60)) {
        let mut board: Board<W16> = Board::new(&config, 0xfff0, Mode::Tick(period));
        board.worst_latency = period;
        for gap in gaps {
            board.advance(board.now + gap);
            board.expire();
            let (edge, before) = (board.now, board.served.len());
            board.edge();
            let longest = config.interval + period;
            while board.served.len() == before && board.waiting() > 0 && board.now <= edge + longest {
                board.tick(0, 0);
            }
            prop_assert!(board.now <= edge + longest, "waited from {} to {}: {}", edge, board.now, board.story());
        }
    }
}

/// Several limiters that share one compare channel. An expiry goes to each limiter that is due.
struct Shared {
    sources: Vec<Source>,
    now: u64,
    armed: Option<u64>,
}

struct Source {
    limiter: Limiter<W16>,
    config: Config,
    pending: bool,
    enabled: bool,
    waiting: u32,
    due: Option<u64>,
    served: Vec<u64>,
}

impl Shared {
    fn new(configs: &[Config], start: u64) -> Self {
        let sources = configs
            .iter()
            .map(|config| {
                let (limiter, step) = Limiter::start(config, start).expect("valid");
                let due = step
                    .has(Action::Arm)
                    .then(|| start + W16::wrap(step.at.wrapping_sub(start)));
                Source {
                    limiter,
                    config: *config,
                    pending: false,
                    enabled: true,
                    waiting: 0,
                    due,
                    served: Vec::new(),
                }
            })
            .collect();
        let mut shared = Shared {
            sources,
            now: start,
            armed: None,
        };
        shared.arm();
        shared
    }

    /// Sets the channel to the earliest instant of all limiters. The port does so after each step.
    fn arm(&mut self) {
        let limiters: Vec<&Limiter<W16>> =
            self.sources.iter().map(|source| &source.limiter).collect();
        self.armed = Limiter::next(&limiters, W16::wrap(self.now))
            .map(|at| self.now + W16::wrap(at.wrapping_sub(self.now)));
        let earliest = self
            .sources
            .iter()
            .filter_map(|source| source.due)
            .min()
            .map(|due| due.max(self.now));
        assert_eq!(self.armed, earliest, "LIMIT-SHARED-1");
    }

    fn perform(&mut self, i: usize, step: Step) {
        let now = self.now;
        let source = &mut self.sources[i];
        source.enabled = (source.enabled && !step.has(Action::Mask)) || step.has(Action::Unmask);
        source.pending &= !step.has(Action::Ack);
        if step.has(Action::Arm) {
            let ahead = W16::wrap(step.at.wrapping_sub(now));
            source.due = Some(if ahead < 0x8000 { now + ahead } else { now });
        }
        if step.has(Action::Disarm) || step.has(Action::Watch) {
            source.due = None;
        }
        if step.has(Action::Serve) {
            source.waiting -= 1;
            source.served.push(now);
            for (k, first) in source.served.iter().enumerate() {
                let most =
                    weir_core_sys::curve::most(&source.config, now - first, 0).expect("limited");
                assert!(
                    (source.served.len() - k) as u64 <= most,
                    "LIMIT-SHARED-2: {:?} {:?}",
                    source.config,
                    source.served
                );
            }
        }
    }

    fn deliver(&mut self, i: usize) {
        while self.sources[i].enabled && self.sources[i].pending {
            self.sources[i].pending = false;
            let step = self.sources[i].limiter.request(W16::wrap(self.now), false);
            self.perform(i, step);
        }
    }

    fn edge(&mut self, i: usize) {
        if !self.sources[i].pending {
            self.sources[i].pending = true;
            self.sources[i].waiting += 1;
        }
        self.deliver(i);
        self.arm();
    }

    fn tick(&mut self) {
        self.now += 1;
        if self.now % 0x4000 == 0 {
            self.sources
                .iter_mut()
                .for_each(|source| source.limiter.age(W16::wrap(self.now)));
        }
        if self.armed.is_some_and(|armed| armed <= self.now) {
            for i in 0..self.sources.len() {
                if self.sources[i].due.is_some_and(|due| due <= self.now) {
                    self.sources[i].due = None;
                    let pending = self.sources[i].pending;
                    let step = self.sources[i]
                        .limiter
                        .expired(W16::wrap(self.now), pending);
                    self.perform(i, step);
                    self.deliver(i);
                }
            }
            self.arm();
        }
    }
}

proptest! {
    #![proptest_config(crate::cases(60, 300))]

    /// LIMIT-SHARED-1, -2 (regehr2005 §3.5): on a shared channel each source keeps its own curve,
    /// and all waiting requests are served.
    #[test]
    fn sources_on_one_timer_keep_their_own_curves(
        configs in prop::collection::vec(policies().prop_map(|config| Config { trigger: Trigger::Edge, ..config }), 1..5),
        start in 0xf000_u64..0x1_0000,
        edges in prop::collection::vec((0_u64..60, any::<prop::sample::Index>(), 1_u32..6), 1..150),
    ) {
        let mut shared = Shared::new(&configs, start);
        for (gap, index, count) in edges {
            (0..gap).for_each(|_| shared.tick());
            (0..count).for_each(|_| shared.edge(index.index(configs.len())));
        }
        (0..1_000).for_each(|_| shared.tick());
        for source in &shared.sources {
            prop_assert_eq!(source.waiting, 0, "{:?}", source.config);
            prop_assert!(source.enabled);
        }
    }
}

/// LIMIT-TIME-2: a source keeps its whole burst, and is not refused, however long it was idle.
#[test]
fn an_idle_source_is_not_refused_however_long_it_was_idle() {
    for config in configs(&[1, 100, 1_000], &[1, 5], Trigger::Edge) {
        for mode in [Mode::Watch, Mode::Age] {
            for idle in (0..0x3_0000)
                .step_by(if is_long() { 0x3fd } else { 0x2ffd })
                .chain([0x7fff, 0x8000, 0x8001, 0xffff, 0x1_0000])
            {
                if idle < config.interval * (u64::from(config.burst) + 2) {
                    continue;
                }
                let mut board: Board<W16> = Board::new(&config, 0x1234, mode);
                board.tick(0, 2 * u32::from(config.burst));
                board.drain(4 * config.interval * u64::from(config.burst));
                board.advance(board.now + idle);
                board.expire();
                let before = board.served.len();
                (0..config.burst).for_each(|_| board.edge());
                let served = board.served.len() - before;
                assert!(
                    served == usize::from(config.burst),
                    "{served} served after {idle} idle ticks: {}",
                    board.story()
                );
            }
        }
    }
}
