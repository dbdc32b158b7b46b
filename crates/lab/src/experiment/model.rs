// SPDX-License-Identifier: GPL-3.0-or-later
//! The equations of regehr2005 §5.2.
use serde::Deserialize;

/// The overheads of Table 2, in cycles.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Constants {
    /// Taking an interrupt, as opposed to polling.
    pub t_int: f64,
    /// Asking the device whether it has work.
    pub t_poll: f64,
    /// Setting a one-shot timer.
    pub t_setup: f64,
    /// Taking a timer interrupt.
    pub t_expire: f64,
    /// Setting or clearing an enable bit.
    pub t_flip: f64,
    /// Counting a request and comparing with the threshold.
    pub t_count: f64,
    /// Clearing that count.
    pub t_clear: f64,
}

/// What §5.2 models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Policy {
    Interrupts,
    Polling,
    Strict,
    Bursty,
    Hardware,
}

/// A policy with its parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Model {
    pub constants: Constants,
    pub policy: Policy,
    /// N of the bursty scheduler.
    pub burst: f64,
    /// Requests per second that may be served.
    pub limit_hz: f64,
    pub clock_hz: f64,
    /// t_work, in cycles.
    pub work: f64,
}

impl Model {
    /// The share of the processor, 0 to 1, when `offered_hz` requests come regularly. Each of C's terms in §5.2 is paid as
    /// often as its event happens: once per request served; for the bursty scheduler's timer (with §3.3's optimisation) and
    /// the two flips once per N of them.
    pub fn busy(&self, offered_hz: f64) -> f64 {
        let served = match self.policy {
            Policy::Interrupts => offered_hz,
            _ => offered_hz.min(self.limit_hz),
        };
        let c = &self.constants;
        let handling = served * (c.t_int + self.work);
        let cycles = match self.policy {
            Policy::Interrupts | Policy::Hardware => handling,
            Policy::Polling => self.limit_hz * (c.t_expire + c.t_poll) + served * self.work,
            Policy::Strict | Policy::Bursty => handling + self.clock_hz * self.overhead(served),
        };
        (cycles / self.clock_hz).min(1.0)
    }

    /// Of [`Self::busy`], what the hardware scheduler does not lose while it serves as many; in overload.
    pub fn overhead(&self, served_hz: f64) -> f64 {
        let c = &self.constants;
        let per_request = match self.policy {
            Policy::Interrupts | Policy::Hardware => 0.0,
            Policy::Polling => c.t_expire + c.t_poll - c.t_int,
            Policy::Strict => c.t_setup + c.t_flip + c.t_expire + c.t_flip,
            Policy::Bursty => {
                c.t_count + (c.t_expire + c.t_clear + c.t_flip + c.t_flip) / self.burst
            }
        };
        served_hz * per_request / self.clock_hz
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn published(policy: Policy, burst: f64) -> Model {
        Model {
            constants: Constants {
                t_int: 79.0,
                t_poll: 4.0,
                t_setup: 5.0,
                t_expire: 79.0,
                t_flip: 5.0,
                t_count: 12.0,
                t_clear: 5.0,
            },
            policy,
            burst,
            limit_hz: 4000.0,
            clock_hz: 4e6,
            work: 0.0,
        }
    }

    #[test]
    fn tables_2s_constants_give_the_curves_of_figure_1() {
        let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
        // (79 + 5 + 5) + (79 + 5) cycles per 1000.
        assert!(close(published(Policy::Strict, 1.0).busy(16e3), 0.173));
        assert!(close(published(Policy::Hardware, 1.0).busy(16e3), 0.079));
        assert!(close(published(Policy::Polling, 1.0).busy(260.0), 0.083));
        // 4 (79 + 12) + 5 and 79 + 5 + 5 cycles per 4000.
        assert!(close(
            published(Policy::Bursty, 4.0).busy(16e3),
            458.0 / 4000.0
        ));
        assert!(close(published(Policy::Interrupts, 1.0).busy(8e3), 0.158));
        assert!(close(published(Policy::Interrupts, 1.0).busy(1e6), 1.0));
    }

    #[test]
    fn below_the_limit_load_is_proportional_to_requests() {
        for policy in [Policy::Strict, Policy::Bursty, Policy::Hardware] {
            let model = published(policy, 4.0);
            assert!((model.busy(2000.0) - 2.0 * model.busy(1000.0)).abs() < 1e-12);
        }
    }
}
