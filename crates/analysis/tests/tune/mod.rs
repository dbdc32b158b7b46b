// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests the limits that the tuner chooses, its reasons if there are none, and the files that it
//! writes.
mod advice;
mod denial;
mod files;
