// SPDX-License-Identifier: GPL-3.0-or-later
//! A timer/counter in normal and CTC mode, exact to the cycle (ATmega128 data sheet, chapters 15
//! and 16).
//!
//! The model does no work per cycle. Between two changes of its registers the counter is a function
//! of the cycle. The counter takes its next value at an edge of the timer's clock. A compare flag
//! is set at the edge after the match, and TOV at the edge from MAX to 0 (figures "Timer/Counter
//! Timing Diagram").

/// The flags of one timer, as masks in a word that all timers share. 0 if the timer does not have
/// the flag.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FlagMasks {
    pub overflow: u16,
    pub compare: [u16; 3],
    pub capture: u16,
}

/// The condition under which the counter returns to 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountMode {
    /// The counter returns to 0 after MAX.
    Normal,
    /// The counter returns to 0 after a match with OCRnA (with an 8-bit timer, its only OCR).
    ClearOnCompare,
    /// The counter returns to 0 after a match with ICRn, which sets ICFn.
    ClearOnCapture,
}

/// A timer/counter.
#[derive(Debug, Clone)]
pub struct TimerCounter {
    max: u16,
    masks: FlagMasks,
    mode: CountMode,
    compare: [u16; 3],
    capture: u16,
    /// The cycles per edge of the timer's clock. `None` if the timer is stopped.
    divisor: Option<u64>,
    /// A cycle at which the prescaler was 0. The edges of a divided clock are at multiples of the
    /// divisor from here.
    prescaler_origin: u64,
    /// Whether TSM holds the prescaler in reset, which also stops the timer.
    held: bool,
    /// The counter's value since the cycle `since`.
    value: u16,
    since: u64,
    /// Whether the program has just written the counter, so that the next edge causes no match.
    blocked: bool,
}

impl TimerCounter {
    /// Makes a timer that is stopped at 0.
    pub fn new(bits: u32, masks: FlagMasks) -> Self {
        Self {
            max: if bits == 8 { 0xff } else { 0xffff },
            masks,
            mode: CountMode::Normal,
            compare: [0; 3],
            capture: 0,
            divisor: None,
            prescaler_origin: 0,
            held: false,
            value: 0,
            since: 0,
            blocked: false,
        }
    }

    /// Advances to `cycle` and returns the flags that were set on the way. The caller must do so
    /// before each change of a register.
    pub fn advance(&mut self, cycle: u64) -> u16 {
        let mut edges = self.edges_until(cycle);
        self.since = self.since.max(cycle);
        let mut flags = 0;
        if self.blocked && edges > 0 {
            flags |= self.pass_blocked_edge();
            edges -= 1;
        }
        for (value, mask) in self.matches() {
            if mask != 0
                && self
                    .edges_to_match(value)
                    .is_some_and(|needed| needed <= edges)
            {
                flags |= mask;
            }
        }
        self.value = self.value_after(edges);
        flags
    }

    /// Returns the cycle at which the first of the `wanted` flags will be set if no register
    /// changes. The caller must call [`Self::advance`] first.
    pub fn next_event(&self, wanted: u16) -> Option<u64> {
        let divisor = self.divisor.filter(|_| !self.held)?;
        let mut after = self.clone();
        let mut before = 0;
        if self.blocked {
            if after.pass_blocked_edge() & wanted != 0 {
                return Some(self.edge(divisor, 1));
            }
            before = 1;
        }
        let edges = after
            .matches()
            .into_iter()
            .filter(|(_, mask)| mask & wanted != 0)
            .filter_map(|(value, _)| after.edges_to_match(value))
            .min()?;
        Some(self.edge(divisor, before + edges))
    }

    /// Returns the counter's value. The caller must call [`Self::advance`] first.
    pub fn value(&self) -> u16 {
        self.value
    }

    /// Writes the counter. This blocks the match at the next edge ("Compare Match Blocking by TCNTn
    /// Write").
    pub fn set_value(&mut self, value: u16) {
        self.value = value;
        self.blocked = true;
    }

    pub fn set_compare(&mut self, channel: usize, value: u16) {
        self.compare[channel] = value;
    }

    pub fn capture(&self) -> u16 {
        self.capture
    }

    pub fn set_capture(&mut self, value: u16) {
        self.capture = value;
    }

    pub fn set_mode(&mut self, mode: CountMode) {
        self.mode = mode;
    }

    /// Sets the timer's clock to the processor's clock divided by `divisor`. `None` stops the
    /// timer.
    pub fn set_divisor(&mut self, divisor: Option<u64>) {
        self.divisor = divisor;
    }

    /// Resets the prescaler at `cycle`. With `held` it stays in reset.
    pub fn reset_prescaler(&mut self, cycle: u64, held: bool) {
        self.prescaler_origin = cycle;
        self.held = held;
    }

    /// Ends the reset by TSM. The prescaler starts from 0 at `cycle`.
    pub fn release_prescaler(&mut self, cycle: u64) {
        if self.held {
            self.reset_prescaler(cycle, false);
        }
    }

    fn edges_until(&self, cycle: u64) -> u64 {
        match self.divisor {
            Some(divisor) if !self.held && cycle > self.since => {
                (cycle - self.prescaler_origin) / divisor
                    - (self.since - self.prescaler_origin) / divisor
            }
            _ => 0,
        }
    }

    /// Returns the cycle of the `number`-th edge from now.
    fn edge(&self, divisor: u64, number: u64) -> u64 {
        let passed = (self.since - self.prescaler_origin) / divisor;
        self.prescaler_origin + (passed + number) * divisor
    }

    fn top(&self) -> u16 {
        match self.mode {
            CountMode::Normal => self.max,
            CountMode::ClearOnCompare => self.compare[0],
            CountMode::ClearOnCapture => self.capture,
        }
    }

    fn matches(&self) -> [(u16, u16); 5] {
        let [a, b, c] = self.masks.compare;
        let capture = if self.mode == CountMode::ClearOnCapture {
            self.masks.capture
        } else {
            0
        };
        [
            (self.max, self.masks.overflow),
            (self.compare[0], a),
            (self.compare[1], b),
            (self.compare[2], c),
            (self.capture, capture),
        ]
    }

    /// Passes the first edge after a write of the counter. This edge causes no match, not even one
    /// that would clear the counter.
    fn pass_blocked_edge(&mut self) -> u16 {
        self.blocked = false;
        if self.value == self.max {
            self.value = 0;
            self.masks.overflow
        } else {
            self.value += 1;
            0
        }
    }

    fn value_after(&self, edges: u64) -> u16 {
        let (value, top, max) = (
            u64::from(self.value),
            u64::from(self.top()),
            u64::from(self.max),
        );
        let after = if value <= top {
            (value + edges) % (top + 1)
        } else if edges <= max - value {
            value + edges
        } else {
            (edges - (max - value + 1)) % (top + 1)
        };
        u16::try_from(after).unwrap_or(self.max)
    }

    /// Returns the number of edges until the edge after the match with `wanted`. `None` if the
    /// counter never reaches that value.
    fn edges_to_match(&self, wanted: u16) -> Option<u64> {
        let (value, top, max) = (
            u64::from(self.value),
            u64::from(self.top()),
            u64::from(self.max),
        );
        let wanted = u64::from(wanted);
        if value <= top {
            (wanted <= top).then(|| (wanted + top + 1 - value) % (top + 1) + 1)
        } else if wanted >= value {
            (wanted <= max).then(|| wanted - value + 1)
        } else {
            (wanted <= top).then(|| (max - value + 1) + wanted + 1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MASKS: FlagMasks = FlagMasks {
        overflow: 1,
        compare: [2, 4, 8],
        capture: 16,
    };

    /// A model of the data sheet's counter that steps from edge to edge.
    struct Counted {
        timer: TimerCounter,
    }

    impl Counted {
        fn step_to(&mut self, cycle: u64) -> u16 {
            let mut flags = 0;
            let timer = &mut self.timer;
            while timer.since < cycle {
                timer.since += 1;
                let Some(divisor) = timer.divisor else {
                    continue;
                };
                if timer.held || (timer.since - timer.prescaler_origin) % divisor != 0 {
                    continue;
                }
                let blocked = std::mem::take(&mut timer.blocked);
                let value = timer.value;
                if value == timer.max {
                    flags |= MASKS.overflow;
                }
                if !blocked {
                    for channel in 0..3 {
                        if value == timer.compare[channel] {
                            flags |= MASKS.compare[channel];
                        }
                    }
                    if timer.mode == CountMode::ClearOnCapture && value == timer.capture {
                        flags |= MASKS.capture;
                    }
                }
                let clear = !blocked && value == timer.top() || value == timer.max;
                timer.value = if clear { 0 } else { value + 1 };
            }
            flags
        }
    }

    #[derive(Debug, Clone)]
    enum Change {
        Value(u16),
        Compare(usize, u16),
        Capture(u16),
        Mode(CountMode),
        Divisor(Option<u64>),
        Reset,
    }

    fn changes() -> impl Strategy<Value = Change> {
        let near = prop_oneof![0_u16..20, 236_u16..=255];
        prop_oneof![
            near.clone().prop_map(Change::Value),
            (0_usize..3, near.clone()).prop_map(|(channel, value)| Change::Compare(channel, value)),
            near.prop_map(Change::Capture),
            prop_oneof![
                Just(CountMode::Normal),
                Just(CountMode::ClearOnCompare),
                Just(CountMode::ClearOnCapture)
            ]
            .prop_map(Change::Mode),
            prop_oneof![Just(None), Just(Some(1)), Just(Some(8)), Just(Some(32))]
                .prop_map(Change::Divisor),
            Just(Change::Reset),
        ]
    }

    fn apply(timer: &mut TimerCounter, change: &Change, cycle: u64) {
        match *change {
            Change::Value(value) => timer.set_value(value),
            Change::Compare(channel, value) => timer.set_compare(channel, value),
            Change::Capture(value) => timer.set_capture(value),
            Change::Mode(mode) => timer.set_mode(mode),
            Change::Divisor(divisor) => timer.set_divisor(divisor),
            Change::Reset => timer.reset_prescaler(cycle, false),
        }
    }

    proptest! {
        #[test]
        fn it_counts_as_the_data_sheet_counts(steps in proptest::collection::vec((changes(), 0_u64..3000), 1..20)) {
            let mut lazy = TimerCounter::new(8, MASKS);
            let mut counted = Counted { timer: TimerCounter::new(8, MASKS) };
            let mut cycle = 0;
            for (change, wait) in steps {
                apply(&mut lazy, &change, cycle);
                apply(&mut counted.timer, &change, cycle);
                let wanted = 0b1_1111;
                if let Some(event) = lazy.next_event(wanted).filter(|event| *event <= cycle + wait) {
                    // No flag is set before the predicted event, and one is set at the event.
                    prop_assert_eq!(lazy.clone().advance(event - 1), 0);
                    prop_assert_ne!(lazy.clone().advance(event), 0);
                    prop_assert_eq!(counted.timer.clone().advance(event - 1), 0);
                }
                cycle += wait;
                prop_assert_eq!(lazy.advance(cycle), counted.step_to(cycle), "flags after {:?}", change);
                prop_assert_eq!(lazy.value(), counted.timer.value);
            }
        }
    }
}
