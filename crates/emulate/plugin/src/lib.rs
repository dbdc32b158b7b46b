// SPDX-License-Identifier: MIT OR Apache-2.0
//! The network peer of an emulated board, as a QEMU plugin.
//!
//! QEMU loads this crate as a plugin (`-plugin libweir_peer.so,plan=FILE,report=FILE`). The peer
//! uses the guest's virtual clock. So the frames that it sends, their times and its measurements do
//! not depend on the host: the same plan always gives the identical report.
//!
//! [`Plan`] describes the peer's actions, [`Report`] the results. [`Peer`] is independent of QEMU:
//! its caller passes it the time and the frames that the guest sends, and it passes frames to a
//! [`Card`]. [`Station`] is its TCP/IP stack, [`Flood`] sends packets that need no stack, and
//! [`Cable`] computes transmission times. [`Pins`] drives the lines of a guest's interrupt
//! controller. [`Outputs`] records the edges of its output pins. [`Profile`] finds the exception in
//! which each instruction was executed. Only the modules `qemu`, `cortex`, `counting`, `stores` and
//! `plugin` call QEMU.
//!
//! docs/decisions/0022-the-peer-is-a-plugin-of-qemu.md has the reasons and the measurements.
mod block;
mod cable;
mod client;
mod cortex;
mod counting;
mod dhcp;
mod error;
mod flood;
mod frame;
mod masking;
mod outputs;
mod packet;
mod peer;
mod pins;
mod plan;
mod plugin;
mod processor;
mod profile;
mod qemu;
mod report;
mod requests;
mod spans;
mod spoof;
mod station;
mod stores;
mod stream;
mod times;
mod udp;
mod variables;
mod ways;

pub use block::{BlockEnd, Mask};
pub use cable::Cable;
pub use client::{ClientPlan, Question};
pub use dhcp::DhcpPlan;
pub use error::PlanError;
pub use flood::Flood;
pub use frame::{FloodPlan, FrameKind};
pub use outputs::{OutputPlan, Outputs};
pub use peer::{Card, Peer};
pub use pins::{Controller, PinPlan, Pins};
pub use plan::{MeasurePlan, PingPlan, Plan, Variable};
pub use processor::Processor;
pub use profile::Profile;
pub use report::{
    ClientReport, DhcpReport, ExceptionReport, FloodReport, OutputReport, PinReport, PingReport,
    ProfileReport, Report, RequestReport, RoundTrips, SpanReport,
};
pub use spans::SpanPlan;
pub use station::Station;
pub use variables::{Memory, Variables};

/// The ticks of the peer's clock per second. A tick is a nanosecond of the guest's clock.
pub const CLOCK_HZ: u64 = 1_000_000_000;
