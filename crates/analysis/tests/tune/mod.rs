// SPDX-License-Identifier: MIT OR Apache-2.0
//! The limits that are chosen, what is said of those that are not, and the files that come of it.
mod advice;
mod denial;
mod files;
