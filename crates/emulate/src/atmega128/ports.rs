// SPDX-License-Identifier: GPL-3.0-or-later
//! The ports, and the external interrupts on their pins (data sheet, "I/O Ports" and "External
//! Interrupts").
//!
//! A pin that the program drives can request an interrupt, too, as on the chip. An input that
//! nothing drives reads high. An edge sets the pending bit in the cycle of the edge. The
//! synchroniser's delay of the sampled lines and requests caused by a change of EICRn are not
//! modelled.
use super::pins::Move;
use super::registers::port_of_line;
use crate::line::Line;

/// The condition under which a line requests an interrupt: the bits ISCn1 and ISCn0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sense {
    /// The line requests while the pin is low.
    Low,
    /// Any change of the pin requests. Only sampled lines have this condition.
    Change,
    /// A falling edge requests.
    Falling,
    /// A rising edge requests.
    Rising,
}

/// The effect of an edge on the line's pin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// The edge sets the pending bit.
    Edge,
    /// The pin went low. The line has no pending bit.
    Low,
}

#[derive(Debug, Clone, Copy)]
struct ExternalLevel {
    level: bool,
    /// Whether a stimulus of requests drives the pin. Such a pin rests at the level from which the
    /// program's edge starts.
    pulsed: bool,
    in_pulse: bool,
}

/// The state of the ports: PORT, DDR and the levels of external drivers.
#[derive(Debug, Clone)]
pub struct Ports {
    port: [u8; 7],
    ddr: [u8; 7],
    sense: [Sense; Line::COUNT],
    outside: [ExternalLevel; Line::COUNT],
}

impl Ports {
    /// Makes the ports in their state after a reset: all pins are inputs.
    pub fn new() -> Self {
        Self {
            port: [0; 7],
            ddr: [0; 7],
            sense: [Sense::Low; Line::COUNT],
            outside: [ExternalLevel {
                level: true,
                pulsed: false,
                in_pulse: false,
            }; Line::COUNT],
        }
    }

    /// Returns the value of the register PIN.
    pub fn pins(&self, port: usize) -> u8 {
        let mut outside = 0xff;
        for line in Line::all().filter(|line| port_of_line(line.number()) == port) {
            if !self.outside[line.number()].level {
                outside &= !(1 << line.number());
            }
        }
        (self.port[port] & self.ddr[port]) | (outside & !self.ddr[port])
    }

    /// Writes PORT, and appends the requests that the write causes.
    pub fn set_port(&mut self, port: usize, value: u8, requests: &mut Vec<(Line, Request)>) {
        self.change(port, requests, |ports| ports.port[port] = value);
    }

    /// Writes DDR, and appends the requests that the write causes.
    pub fn set_direction(&mut self, port: usize, value: u8, requests: &mut Vec<(Line, Request)>) {
        self.change(port, requests, |ports| ports.ddr[port] = value);
    }

    /// Returns whether a line's pin is high.
    pub fn level(&self, line: Line) -> bool {
        self.pins(port_of_line(line.number())) & (1 << line.number()) != 0
    }

    /// Returns the condition under which a line requests an interrupt.
    pub fn sense(&self, line: Line) -> Sense {
        self.sense[line.number()]
    }

    /// Sets a line's interrupt condition. A stimulus of requests moves its pin to the new idle
    /// level.
    pub fn set_sense(&mut self, line: Line, sense: Sense) {
        self.sense[line.number()] = sense;
        let outside = &mut self.outside[line.number()];
        if outside.pulsed && !outside.in_pulse && sense != Sense::Change {
            outside.level = sense != Sense::Rising;
        }
    }

    /// Moves the pin of a line from outside.
    pub fn drive(&mut self, line: Line, movement: Move, requests: &mut Vec<(Line, Request)>) {
        let index = line.number();
        let sense = self.sense[index];
        let rest = sense != Sense::Rising;
        match movement {
            Move::Level(level) => self.set_outside(line, level, requests),
            Move::Rest => {
                self.outside[index].in_pulse = false;
                if sense != Sense::Change {
                    self.set_outside(line, rest, requests);
                }
            }
            Move::Request => {
                self.outside[index].pulsed = true;
                let level = if sense == Sense::Change {
                    !self.outside[index].level
                } else {
                    !rest
                };
                if self.outside[index].level == level {
                    // The pin is not at the idle level: the previous pulse has not ended, or the
                    // program has just chosen its edge.
                    self.outside[index].level = !level;
                }
                self.outside[index].in_pulse = true;
                self.set_outside(line, level, requests);
            }
        }
    }

    fn set_outside(&mut self, line: Line, level: bool, requests: &mut Vec<(Line, Request)>) {
        self.change(port_of_line(line.number()), requests, |ports| {
            ports.outside[line.number()].level = level
        });
    }

    fn change(
        &mut self,
        port: usize,
        requests: &mut Vec<(Line, Request)>,
        change: impl FnOnce(&mut Self),
    ) {
        let before = self.pins(port);
        change(self);
        let after = self.pins(port);
        if before == after {
            return;
        }
        for line in Line::all().filter(|line| port_of_line(line.number()) == port) {
            let bit = 1 << line.number();
            if (before ^ after) & bit == 0 {
                continue;
            }
            let rose = after & bit != 0;
            match self.sense[line.number()] {
                Sense::Low if !rose => requests.push((line, Request::Low)),
                Sense::Change => requests.push((line, Request::Edge)),
                Sense::Falling if !rose => requests.push((line, Request::Edge)),
                Sense::Rising if rose => requests.push((line, Request::Edge)),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PORT_D: usize = 3;

    fn requests(
        act: impl FnOnce(&mut Ports, &mut Vec<(Line, Request)>),
        ports: &mut Ports,
    ) -> Vec<(Line, Request)> {
        let mut requests = Vec::new();
        act(ports, &mut requests);
        requests
    }

    #[test]
    fn a_request_is_an_edge_of_the_direction_that_the_program_chose() {
        for (sense, active) in [(Sense::Rising, true), (Sense::Falling, false)] {
            let mut ports = Ports::new();
            ports.set_sense(Line::INT0, sense);
            let first = requests(|p, r| p.drive(Line::INT0, Move::Request, r), &mut ports);
            assert_eq!(first, [(Line::INT0, Request::Edge)]);
            assert_eq!(ports.level(Line::INT0), active);
            assert_eq!(
                requests(|p, r| p.drive(Line::INT0, Move::Rest, r), &mut ports),
                []
            );
            assert_eq!(ports.level(Line::INT0), !active);
        }
    }

    #[test]
    fn on_any_change_every_request_is_one_edge() {
        let mut ports = Ports::new();
        ports.set_sense(Line::INT7, Sense::Change);
        for _ in 0..3 {
            let edges = requests(|p, r| p.drive(Line::INT7, Move::Request, r), &mut ports);
            assert_eq!(edges, [(Line::INT7, Request::Edge)]);
            assert_eq!(
                requests(|p, r| p.drive(Line::INT7, Move::Rest, r), &mut ports),
                []
            );
        }
    }

    #[test]
    fn a_low_level_has_no_pending_bit() {
        let mut ports = Ports::new();
        let low = requests(
            |p, r| p.drive(Line::INT1, Move::Level(false), r),
            &mut ports,
        );
        assert_eq!(low, [(Line::INT1, Request::Low)]);
        assert!(!ports.level(Line::INT1));
    }

    #[test]
    fn the_program_can_request_an_interrupt_through_its_own_pin() {
        let mut ports = Ports::new();
        ports.set_sense(Line::INT0, Sense::Rising);
        assert_eq!(
            requests(|p, r| p.set_direction(PORT_D, 1, r), &mut ports),
            []
        );
        let edges = requests(|p, r| p.set_port(PORT_D, 1, r), &mut ports);
        assert_eq!(edges, [(Line::INT0, Request::Edge)]);
        assert_eq!(ports.pins(PORT_D) & 1, 1);
    }
}
