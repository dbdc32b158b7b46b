// SPDX-License-Identifier: MIT OR Apache-2.0
//! All integration tests of this crate. They are one program, so that it is linked only once.
mod account;
mod actor;
mod card;
mod cpus;
mod emulated;
mod exact_delivery;
mod exact_frames;
mod ground;
mod guest;
mod inspect;
mod install;
mod machine;
mod modes;
mod namespaces;
mod others;
mod plan_and_check;
mod predicted;
mod receivers;
mod restoring;
mod run;
mod service;
mod skipped;
mod state;
mod system;
mod turn;
