// SPDX-License-Identifier: MIT OR Apache-2.0
//! The common base of Weir's programs: quantities with units, and the description of systems.
//!
//! [`load`] reads a system file (docs/generated/system-file.md). It returns the [`System`] that the
//! file describes, or every error of the file, each with its place in the text.
mod compiler;
mod diagnostics;
mod exact;
mod file;
mod freertos;
mod linux;
mod load;
pub mod quantity;
pub mod reference;
mod resolve;
mod section;
mod silicon;
pub mod system;
pub mod worst_rates;

pub use compiler::{CompilerVersion, board_compilers};
pub use diagnostics::{Diagnostics, LoadError, Problem, did_you_mean};
pub use freertos::{FRAME_UNITS, FrameBudget, FrameBuffers, FrameLane, Freertos, TickBudget};
pub use linux::{
    Accounting, CAP, DEADLINE_URGENCY, INTERRUPT_URGENCY, Interface, InterfaceThread, LONGEST_TICK,
    Linux, LinuxBoundError, LinuxContradiction, LinuxMode, MOST_OF_POLL, Match, ModeFacts, Predict,
    TopHalf,
};
pub use load::{FILE_BYTES_MOST, load, parse, parse_to_be_limited, read_text};
pub use quantity::{Duration, QuantityError, Rate};
pub use resolve::{Hardware, HardwareChannel, LimiterShape, TickRange, with_hardware};
pub use section::Section;
pub use silicon::{Misfit, SILICON_SOURCES_MOST, Silicon, SiliconForm, SiliconLimit, SiliconReset};
pub use system::*;
