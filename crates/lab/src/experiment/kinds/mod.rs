// SPDX-License-Identifier: GPL-3.0-or-later
//! The kinds of experiments. Each is one file, and one entry in the list.
mod area;
mod bounds;
mod constants;
mod linux;
mod overhead_sweep;
mod rates;
mod simulation;
mod two_sources;

use super::kind::Entry;

/// All kinds, as messages list them.
pub(super) const KINDS: &[Entry] = &[
    overhead_sweep::KIND,
    constants::KIND,
    rates::KIND,
    two_sources::KIND,
    bounds::KIND,
    simulation::KIND,
    area::KIND,
    linux::KIND,
];
