// SPDX-License-Identifier: MIT OR Apache-2.0
//! Turns a system into the code that keeps its limits.
//!
//! [`ChipPlan::new`] decides what a chip is told, or refuses with every reason it finds. [`header`]
//! writes the plan as one C header for `ports/avr`. [`write`] puts it in place without touching a
//! file that was not generated. [`SiliconPlan`] does the same for limits in hardware: an instance
//! of rtl/limit, and the C header of its driver.
//!
//! The same system always gives the same bytes: they depend on no date, path or machine.
mod c_text;
mod chip;
mod header;
mod identifier;
mod output;
mod plan;
mod planner;
mod port;
mod refusal;
mod silicon;

pub use chip::{UnknownChip, chip, chips};
pub use header::header;
pub use identifier::{IdentifierError, c_identifier};
pub use output::{MARKER, OutputError, write, write_files};
pub use plan::{ChipPlan, LineStart, PlannedSource, PlannedTimer, SharedTimer, SoftwareLimit};
pub use refusal::{Refusal, RefusalReason};
pub use silicon::{SiliconPlan, SiliconSource, silicon_header, silicon_module};
pub use weir_target::{Board, Flavour};
