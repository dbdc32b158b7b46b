// SPDX-License-Identifier: MIT OR Apache-2.0
//! The other end of an emulated board's wire.
//!
//! QEMU loads this crate as a plugin (`-plugin libweir_peer.so,plan=FILE,report=FILE`). Its clock
//! is the guest's own (virtual) clock, so what it sends, when, and what it measures do not depend
//! on the host: the same plan gives the same report to the bit.
//!
//! [`Plan`] says what the peer does, [`Report`] what came of it. [`Peer`] is the peer itself, and
//! knows nothing of QEMU: it is told the time and the frames that the guest sends, and hands frames
//! to a [`Card`]. [`Station`] is its TCP/IP stack, [`Flood`] the packets that need none, and
//! [`Cable`] says how long a frame takes. [`Pins`] moves the lines of a guest's interrupt
//! controller, [`Outputs`] notes the edges of its output pins, and [`Profile`] says which exception
//! each of its instructions was executed in. Only the modules `qemu`, `cortex`, `counting`,
//! `stores` and `plugin` speak to QEMU.
//!
//! docs/decisions/0022-the-peer-is-a-plugin-of-qemu.md has the reasons and what was measured.
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

/// Ticks of the peer's clock in a second: its times are nanoseconds of the guest's clock.
pub const CLOCK_HZ: u64 = 1_000_000_000;
