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
//! each of its instructions was executed in. Only the modules `qemu`, `processor`, `stores` and
//! `plugin` speak to QEMU.
//!
//! docs/decisions/0022-the-peer-is-a-plugin-of-qemu.md has the reasons and what was measured.
mod block;
mod cable;
mod client;
mod dhcp;
mod flood;
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
mod spans;
mod spoof;
mod station;
mod stores;
mod stream;
mod udp;
mod variables;
mod ways;

pub use block::{BlockEnd, Mask};
pub use cable::Cable;
pub use client::{ClientPlan, Question};
pub use dhcp::DhcpPlan;
pub use flood::Flood;
pub use outputs::{OutputPlan, Outputs};
pub use packet::FrameKind;
pub use peer::{Card, Peer};
pub use pins::{Controller, PinPlan, Pins};
pub use plan::{FloodPlan, MeasurePlan, PingPlan, Plan, PlanError, Variable};
pub use profile::{Processor, Profile};
pub use report::{
    ClientReport, DhcpReport, ExceptionReport, FloodReport, OutputReport, PinReport, PingReport,
    ProfileReport, Report, RequestReport, RoundTrips, SpanReport,
};
pub use spans::SpanPlan;
pub use station::Station;
pub use variables::{Memory, Variables};

/// Ticks of the peer's clock in a second: its times are nanoseconds of the guest's clock.
pub const CLOCK_HZ: u64 = 1_000_000_000;
