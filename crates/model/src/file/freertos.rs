// SPDX-License-Identifier: MIT OR Apache-2.0
//! The section of the system file for `weir generate --rtos freertos`. Its comments, defaults and
//! examples are the reference (docs/generated/system-file.md).

use super::leaf::{StatedCost, UrgencyNumber, Whole};
use super::value::section;
use crate::exact::ExactRate;

section! {
    /// The FreeRTOS that the code of `weir generate --rtos freertos` is for (docs/generate.md), and
    /// what becomes of the frames that are for no receiver. With it, urgencies are FreeRTOS's
    /// priorities.
    Freertos "[freertos]" {
        /// `configMAX_PRIORITIES`: every urgency of the file is below it.
        required priorities: Whole<2, 256>, default "", example "25";
        /// `configTICK_RATE_HZ`, in whole hertz: a receiver's budget begins anew at each tick.
        optional tick_rate: ExactRate, default "\"1kHz\"", example "\"250Hz\"";
        /// Bytes of each worker's stack, in whole words: the stack of protocols runs on it.
        optional stack: Whole<512, 262_140>, default "3072", example "4096";
        /// Frames without a port: ARP, ICMP and the like.
        required common: FrameLane, default "", example "{ urgency = 2, queue = 8 }";
        /// Frames for ports that no flow has.
        optional orphans: FrameLane, default "they are dropped", example "{ urgency = 1, queue = 8 }";
        /// Fragments, whomever they are for.
        optional fragments: FrameLane, default "they are dropped", example "{ urgency = 2, queue = 8 }";
    }
}

section! {
    /// Where frames without a receiver wait.
    FrameLane "[freertos.LANE]" {
        /// How urgent the task is that hands them to the stack.
        required urgency: UrgencyNumber, default "", example "2";
        /// How many of them can be in the system at once. Frames of one urgency share their
        /// buffers.
        required queue: Whole<1, 65_535>, default "", example "8";
        /// What handing one of them to the stack costs at worst, with all that the stack then does.
        optional bottom_half: StatedCost, default "none: only where all deadlines are more urgent", example "\"9000 cycles\"";
    }
}
