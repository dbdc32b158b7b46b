// SPDX-License-Identifier: GPL-3.0-or-later
//! The external drivers of pins, and the cycles of their moves.
use std::collections::VecDeque;
use std::iter::Peekable;

use crate::limiter::IdealLimiter;
use crate::stimulus::{Stimulus, StimulusError, arrivals, level};

/// The length of a request's pulse; half the time to the next request if that is shorter.
pub const PULSE_CYCLES: u64 = 8;

/// A driver's move of its pin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Move {
    /// A request: from the idle level to the other one. The idle level depends on the edge that the
    /// program has chosen for the line at that time, so that one stimulus serves every program.
    Request,
    /// The return to the idle level.
    Rest,
    /// A move to this level.
    Level(bool),
}

/// A driver of one line's pin.
pub enum Driver {
    /// A stimulus of pulses.
    Requests {
        /// The cycles of the requests, in ascending order.
        edges: Peekable<Box<dyn Iterator<Item = u64> + Send>>,
        /// The end of the current pulse, if one is running.
        rest_at: Option<u64>,
    },
    /// A waveform.
    Levels(Peekable<Box<dyn Iterator<Item = (u64, bool)> + Send>>),
    /// Another chip's pin, whose moves are appended as they happen.
    Wire(VecDeque<(u64, bool)>),
}

impl Driver {
    /// Makes a driver from a stimulus, behind the ideal filter of regehr2005 §3.4 if there is a
    /// limit (in cycles).
    ///
    /// # Errors
    /// The stimulus cannot be run.
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

    /// The cycle of the pin's next move.
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

    /// Takes the move at [`Self::next_move`].
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
