// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a plan cannot be followed.
use weir_arrivals::PatternError;

/// The most clients of a peer.
pub(crate) const CLIENTS: usize = 16;

/// Why a plan cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The text is not a valid plan.
    #[error("the plan: {0}")]
    Form(#[from] serde_json::Error),
    /// A pattern of the plan is not valid.
    #[error("the plan: {0}")]
    Pattern(#[from] PatternError),
    /// The frames of the flood have an impossible length.
    #[error("the plan: such a frame of a flood has from {0} to {1} bytes, not {2}")]
    Length(usize, usize, usize),
    /// A flood or the measurement would end before it begins.
    #[error("the plan: the {0} begins at {1} ns and ends at {2} ns: the end is to be later")]
    Order(&'static str, u64, u64),
    /// A line of the interrupt controller has more than one pattern.
    #[error("the plan: the line {0} has two patterns: give it one, a trace for example")]
    TwoPatterns(u16),
    /// There are too many clients.
    #[error("the plan: {CLIENTS} clients have ports of their own, not {0}: let one ask more often")]
    Clients(usize),
    /// A variable has an impossible size.
    #[error("the plan: the variable `{0}` has {1} bytes: 1, 2, 4 and 8 are possible")]
    Size(String, u8),
    /// The number of a pin's bit is too large for a word.
    #[error(
        "the plan: the output `{0}` is bit {1} of the word at {2:#x}: the bits are 0 to 31, and words are at multiples of 4"
    )]
    Output(String, u8, u32),
}
