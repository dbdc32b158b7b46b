// SPDX-License-Identifier: GPL-3.0-or-later
//! The kinds of experiments. Each kind is one module and one entry of the list.
mod area;
mod bounds;
mod constants;
mod firmware;
mod linux;
mod node;
mod simulation;

use super::kind::KindEntry;

/// All kinds, in the order in which messages list them.
pub(super) const KINDS: &[KindEntry] = &[
    firmware::KIND,
    constants::KIND,
    bounds::KIND,
    simulation::KIND,
    area::KIND,
    linux::KIND,
    node::KIND,
];
