// SPDX-License-Identifier: GPL-3.0-or-later
//! Tests of `weir-lab` through the command line. They form one program, so that it is linked only
//! once.
mod common;

mod area;
mod bounds;
mod limits;
mod reproduce;
mod search;
mod simulation;
