// SPDX-License-Identifier: MIT OR Apache-2.0
//! The plan of a peer.
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

/// The plan of a peer, in JSON. Every text is a quantity or a pattern in the forms that all of Weir
/// uses.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The id of the hub port (`-netdev hubport,id=ID,hubid=0`) to which the guest's card is
    /// connected.
    #[serde(default = "netdev")]
    pub netdev: String,
    /// The peer's IP address.
    #[serde(default = "address")]
    pub address: Ipv4Addr,
    /// The guest's IP address.
    #[serde(default = "guest")]
    pub guest: Ipv4Addr,
    /// The MAC address of the guest's card. Floods use it without asking by ARP.
    #[serde(default = "guest_ethernet")]
    pub guest_ethernet: [u8; 6],
    /// The time at which the peer ends the run, in nanoseconds.
    #[serde(deserialize_with = "time")]
    pub end: u64,
    /// Echo requests of the peer's TCP/IP stack. `None` if there are none.
    pub pings: Option<PingPlan>,
    /// A DHCP server that assigns the guest's address. `None` if there is none.
    pub dhcp: Option<DhcpPlan>,
    /// The clients that send requests to the guest.
    #[serde(default)]
    pub clients: Vec<ClientPlan>,
    /// A flood of prepared frames. `None` if there is none.
    pub flood: Option<FloodPlan>,
    /// The patterns of the input lines of the guest's interrupt controller.
    #[serde(default)]
    pub pins: Vec<PinPlan>,
    /// The output pins whose edges are recorded.
    #[serde(default)]
    pub outputs: Vec<OutputPlan>,
    /// The measurement of the guest's processor. `None` if nothing is measured.
    pub measure: Option<MeasurePlan>,
}

/// A measurement.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasurePlan {
    /// The start time of all counts in nanoseconds, including those of floods and pins.
    #[serde(default, deserialize_with = "time")]
    pub begin: u64,
    /// The end time of all counts in nanoseconds. `None` means the end of the run.
    #[serde(default, deserialize_with = "some_time")]
    pub end: Option<u64>,
    /// The variables of the guest whose increase is reported.
    #[serde(default)]
    pub watch: Vec<Variable>,
    /// The address of the word by which the guest's operating system identifies the running thread
    /// (FreeRTOS: `pxCurrentTCB`). `None` means that there is only one thread.
    pub thread: Option<u32>,
    /// The code spans whose instructions are counted.
    #[serde(default)]
    pub spans: Vec<SpanPlan>,
}

/// A variable of the guest: an unsigned little-endian number.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variable {
    /// The variable's name in the report.
    pub name: String,
    /// The variable's address.
    pub address: u32,
    /// The variable's size: 1, 2, 4 or 8 bytes.
    pub bytes: u8,
}

/// Echo requests of the TCP/IP stack. The report contains the round trip of each.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PingPlan {
    /// The times of the requests, as a pattern of `weir-arrivals`.
    pub pattern: String,
    /// The number of requests.
    pub count: u16,
    /// The start time of the pattern, in nanoseconds.
    #[serde(deserialize_with = "time")]
    pub begin: u64,
}

impl Plan {
    /// Parses a plan.
    ///
    /// # Errors
    /// Fails if the text is not a plan, or if a pattern, time or length is impossible.
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

/// Returns the MAC address that QEMU assigns to the first card.
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
