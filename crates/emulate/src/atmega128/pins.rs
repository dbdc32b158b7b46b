// SPDX-License-Identifier: GPL-3.0-or-later
//! The external drivers of pins, and the cycles of the pins' moves.
use std::collections::VecDeque;
use std::iter::Peekable;

use crate::limiter::IdealLimiter;
use crate::stimulus::{Stimulus, StimulusError, arrivals, level};

/// The length in cycles of the pulse that makes a request. The pulse is shorter if the next request
/// follows soon: at most half of the time until then.
pub const PULSE_CYCLES: u64 = 8;

/// A move of a pin by its driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Move {
    /// A request: the pin moves from the idle level to the other level. The idle level depends on
    /// the edge that the program has chosen for the line, so that a stimulus works for every
    /// program.
    Request,
    /// The pin returns to the idle level.
    Rest,
    /// The pin moves to this level.
    Level(bool),
}

/// The driver of a line's pin.
pub enum Driver {
    /// Pulses that make requests.
    Requests {
        /// The cycles of the requests, in ascending order.
        edges: Peekable<Box<dyn Iterator<Item = u64> + Send>>,
        /// The cycle at which the current pulse ends. `None` if there is no pulse.
        rest_at: Option<u64>,
    },
    /// A waveform: cycles and levels.
    Levels(Peekable<Box<dyn Iterator<Item = (u64, bool)> + Send>>),
    /// The pin of another chip, whose moves are appended when they happen.
    Wire(VecDeque<(u64, bool)>),
}

impl Driver {
    /// Makes a driver from a stimulus. With a limit (in cycles), the ideal filter of regehr2005
    /// §3.4 is between the stimulus and the pin.
    ///
    /// # Errors
    /// Fails if the stimulus cannot be run.
    pub fn new(
        stimulus: &Stimulus,
        clock_hz: u64,
        limit: Option<u64>,
    ) -> Result<Self, StimulusError> {
        let arrivals = arrivals(stimulus, clock_hz)?;
        if matches!(stimulus, Stimulus::Level { .. }) {
            let moves: Box<dyn Iterator<Item = (u64, bool)> + Send> =
                Box::new(arrivals.filter_map(|moved| Some((moved.at, level(moved.what)?))));
            return Ok(Self::Levels(moves.peekable()));
        }
        let edges = arrivals.map(|edge| edge.at);
        let edges: Box<dyn Iterator<Item = u64> + Send> = match limit {
            Some(interval) => Box::new(IdealLimiter::new(edges, interval)),
            None => Box::new(edges),
        };
        Ok(Self::Requests {
            edges: edges.peekable(),
            rest_at: None,
        })
    }

    /// Returns the cycle of the pin's next move. `None` if the pin does not move any more.
    pub fn next_move(&mut self) -> Option<u64> {
        match self {
            Self::Requests { edges, rest_at } => match (*rest_at, edges.peek().copied()) {
                (Some(rest), Some(edge)) => Some(rest.min(edge)),
                (rest, edge) => rest.or(edge),
            },
            Self::Levels(moves) => moves.peek().map(|(cycle, _)| *cycle),
            Self::Wire(moves) => moves.front().map(|(cycle, _)| *cycle),
        }
    }

    /// Removes and returns the move of [`Self::next_move`].
    pub fn take(&mut self) -> Option<Move> {
        match self {
            Self::Requests { edges, rest_at } => {
                let edge = edges.peek().copied();
                if rest_at.is_some() && rest_at.zip(edge).is_none_or(|(rest, edge)| rest <= edge) {
                    *rest_at = None;
                    return Some(Move::Rest);
                }
                let now = edges.next()?;
                let gap = edges.peek().map_or(u64::MAX, |next| next - now);
                *rest_at = Some(now + (gap / 2).clamp(1, PULSE_CYCLES));
                Some(Move::Request)
            }
            Self::Levels(moves) => moves.next().map(|(_, level)| Move::Level(level)),
            Self::Wire(moves) => moves.pop_front().map(|(_, level)| Move::Level(level)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::EmulatedBoard;

    fn moves(text: &str, limit: Option<u64>, count: usize) -> Vec<(u64, Move)> {
        let flood = EmulatedBoard::ATMEGA128.stimulus(text, 4_000_000).unwrap();
        let mut driver = Driver::new(&flood.stimulus, 4_000_000, limit).unwrap();
        (0..count)
            .map(|_| (driver.next_move().unwrap(), driver.take().unwrap()))
            .collect()
    }

    #[test]
    fn a_pulse_ends_before_the_next_begins() {
        assert_eq!(
            moves("INT0=pairs:100cycles:gap=6cycles", None, 5),
            [
                (0, Move::Request),
                (3, Move::Rest),
                (6, Move::Request),
                (14, Move::Rest),
                (100, Move::Request)
            ]
        );
    }

    #[test]
    fn a_limit_holds_requests_back() {
        assert_eq!(
            moves("INT0=pairs:1000cycles:gap=6cycles", Some(50), 3),
            [(0, Move::Request), (8, Move::Rest), (50, Move::Request)]
        );
    }

    #[test]
    fn a_level_moves_the_pin_itself() {
        assert_eq!(
            moves("INT0=level:low=10cycles:high=20cycles", None, 3),
            [
                (0, Move::Level(false)),
                (10, Move::Level(true)),
                (30, Move::Level(false))
            ]
        );
    }
}
