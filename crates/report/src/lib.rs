// SPDX-License-Identifier: MIT OR Apache-2.0
//! Presents results: claims as tables, data as JSON, curves as SVG. Files are replaced atomically.
//! This crate also parses a program's command line, prints its text and sets its exit code.
//!
//! This crate does not depend on the subject of Weir: interrupts, boards or experiments.
mod arguments;
mod claim;
mod files;
mod grid;
mod number;
mod output;
mod plot;
mod ranges;
mod table;
mod temporary;
pub mod terminal;

pub use arguments::{arguments, arguments_from, faults};
pub use claim::{Claim, ClaimVerdict, Goal};
pub use files::{Place, UnfinishedFile, WriteError, write_all};
pub use grid::{Align, Emphasis, Grid};
pub use number::{count, percent, plural, rate, short, significant, time};
pub use output::{OutputError, Outputs, PICTURE_MARK, RESULTS_MARK, checksum, marked};
pub use plot::{
    Area, Colour, Curve, CurveKind, Drawn, FONT, Panel, Plot, PlotError, Scale, Stroke, TEXT,
    stroke,
};
pub use ranges::{RangeRow, Ranges, Span};
pub use table::claims_table;
pub use temporary::{
    Temporary, clean_up_when_interrupted, give_way_to_interruption, run_to_end, uninterrupted,
};
