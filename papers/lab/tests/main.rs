// SPDX-License-Identifier: GPL-3.0-or-later
//! `weir-lab` as its users see it: one program, which is linked once.
mod common;

mod area;
mod bounds;
mod limits;
mod reproduce;
mod search;
mod simulation;
