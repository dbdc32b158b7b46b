// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a peer does.
use std::net::Ipv4Addr;

use serde::Deserialize;
use weir_arrivals::Pattern;

use crate::CLOCK_HZ;
use crate::client::ClientPlan;
use crate::dhcp::DhcpPlan;
use crate::error::{CLIENTS, PlanError};
use crate::frame::FloodPlan;
use crate::outputs::OutputPlan;
use crate::pins::PinPlan;
use crate::spans::SpanPlan;
use crate::times::{some_time, time};

/// What a peer does. In JSON; every text is a quantity or a pattern as all of Weir writes them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The id of the hub's port (`-netdev hubport,id=ID,hubid=0`) that the guest's card is on.
    #[serde(default = "netdev")]
    pub netdev: String,
    /// The peer's address.
    #[serde(default = "address")]
    pub address: Ipv4Addr,
    /// The guest's address.
    #[serde(default = "guest")]
    pub guest: Ipv4Addr,
    /// The hardware address of the guest's card: floods ask nobody for it.
    #[serde(default = "guest_ethernet")]
    pub guest_ethernet: [u8; 6],
    /// The time at which the peer ends the run, in nanoseconds.
    #[serde(deserialize_with = "time")]
    pub end: u64,
    /// Echo requests of the TCP/IP stack.
    pub pings: Option<PingPlan>,
    /// A DHCP server that gives the guest its address.
    pub dhcp: Option<DhcpPlan>,
    /// Those who ask the guest something.
    #[serde(default)]
    pub clients: Vec<ClientPlan>,
    /// A flood of frames that are ready-made.
    pub flood: Option<FloodPlan>,
    /// What moves the input lines of the guest's interrupt controller.
    #[serde(default)]
    pub pins: Vec<PinPlan>,
    /// The output pins whose edges are noted.
    #[serde(default)]
    pub outputs: Vec<OutputPlan>,
    /// What is measured of the guest's processor.
    pub measure: Option<MeasurePlan>,
}

/// A measurement.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasurePlan {
    /// The time from which everything is counted, that of floods and pins included, in nanoseconds.
    #[serde(default, deserialize_with = "time")]
    pub begin: u64,
    /// The time up to which everything is counted, in nanoseconds; else the end of the run.
    #[serde(default, deserialize_with = "some_time")]
    pub end: Option<u64>,
    /// Variables of the guest whose growth is told.
    #[serde(default)]
    pub watch: Vec<Variable>,
    /// The address of the word by which the guest's operating system tells threads apart
    /// (FreeRTOS: `pxCurrentTCB`); without it there is one thread.
    pub thread: Option<u32>,
    /// Spans of the code whose instructions are counted.
    #[serde(default)]
    pub spans: Vec<SpanPlan>,
}

/// A variable of the guest: an unsigned number, the least significant byte first.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variable {
    /// Its name in the report.
    pub name: String,
    /// Its address.
    pub address: u32,
    /// Its size: 1, 2, 4 or 8 bytes.
    pub bytes: u8,
}

/// Echo requests of the TCP/IP stack, each with its own round trip in the report.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PingPlan {
    /// When they are asked for, in the language of `weir-arrivals`.
    pub pattern: String,
    /// How many there are.
    pub count: u16,
    /// The time from which the pattern counts, in nanoseconds.
    #[serde(deserialize_with = "time")]
    pub begin: u64,
}

impl Plan {
    /// Reads a plan.
    ///
    /// # Errors
    /// The text is no plan, or one of its patterns, times or lengths is impossible.
    pub fn parse(text: &str) -> Result<Self, PlanError> {
        let plan: Self = serde_json::from_str(text)?;
        if let Some(pings) = &plan.pings {
            Pattern::parse(&pings.pattern, CLOCK_HZ)?;
        }
        if plan.clients.len() > CLIENTS {
            return Err(PlanError::Clients(plan.clients.len()));
        }
        for client in &plan.clients {
            Pattern::parse(&client.pattern, CLOCK_HZ)?;
        }
        if let Some(flood) = &plan.flood {
            Pattern::parse(&flood.pattern, CLOCK_HZ)?;
            flood.frames.length(flood)?;
            in_order("flood", flood.begin, flood.end)?;
        }
        if let Some(measure) = &plan.measure {
            in_order(
                "measurement",
                measure.begin,
                measure.end.unwrap_or(plan.end),
            )?;
        }
        for variable in plan.measure.iter().flat_map(|measure| &measure.watch) {
            if !matches!(variable.bytes, 1 | 2 | 4 | 8) {
                return Err(PlanError::Size(variable.name.clone(), variable.bytes));
            }
        }
        let is_none = |output: &&OutputPlan| output.bit > 31 || output.address % 4 != 0;
        if let Some(output) = plan.outputs.iter().find(is_none) {
            let name = output.name.clone();
            return Err(PlanError::Output(name, output.bit, output.address));
        }
        Ok(plan)
    }
}

fn in_order(what: &'static str, begin: u64, end: u64) -> Result<(), PlanError> {
    if begin < end {
        Ok(())
    } else {
        Err(PlanError::Order(what, begin, end))
    }
}

fn netdev() -> String {
    "net".to_owned()
}

fn address() -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, 1)
}

fn guest() -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, 2)
}

/// The address that QEMU gives to the first card.
fn guest_ethernet() -> [u8; 6] {
    [0x52, 0x54, 0x00, 0x12, 0x34, 0x56]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::FrameKind;

    #[test]
    fn a_plan_is_read_with_its_defaults() {
        let plan = Plan::parse(
            r#"{"end": "20ms", "flood": {"pattern": "poisson:50kHz", "begin": "1ms", "end": "2ms"}}"#,
        )
        .unwrap();
        assert_eq!(plan.end, 20_000_000);
        assert_eq!(plan.netdev, "net");
        assert_eq!(plan.flood.unwrap().frames, FrameKind::Echo);
        assert!(plan.pings.is_none());
    }

    #[test]
    fn what_cannot_be_is_refused_with_a_reason() {
        for (text, reason) in [
            ("", "EOF"),
            ("{}", "missing field `end`"),
            (r#"{"end": "soon"}"#, "soon"),
            (r#"{"end": "1s", "ping": 1}"#, "unknown field `ping`"),
            (
                r#"{"end": "1s", "pings": {"pattern": "often", "count": 1, "begin": "1ms"}}"#,
                "there is no pattern `often`",
            ),
            (
                r#"{"end": "1s", "flood": {"pattern": "1kHz", "begin": "1ms", "end": "2ms", "length": 59}}"#,
                "from 60 to 1514 bytes, not 59",
            ),
            (
                r#"{"end": "1s", "flood": {"pattern": "1kHz", "begin": "2ms", "end": "1ms"}}"#,
                "the flood begins at 2000000 ns and ends at 1000000 ns",
            ),
            (
                r#"{"end": "1s", "measure": {"begin": "1s"}}"#,
                "the measurement begins at 1000000000 ns and ends at 1000000000 ns",
            ),
            (
                r#"{"end": "1s", "pins": [{"line": 3}]}"#,
                "unknown field `line`",
            ),
            (
                r#"{"end": "1s", "measure": {"watch": [{"name": "a", "address": 0, "bytes": 3}]}}"#,
                "`a` has 3 bytes",
            ),
            (
                r#"{"end": "1s", "outputs": [{"name": "led", "address": 8, "bit": 32}]}"#,
                "`led` is bit 32",
            ),
            (
                r#"{"end": "1s", "outputs": [{"name": "led", "address": 9, "bit": 0}]}"#,
                "the word at 0x9",
            ),
        ] {
            let message = Plan::parse(text).unwrap_err().to_string();
            assert!(message.contains(reason), "{text}: {message}");
        }
    }
}
