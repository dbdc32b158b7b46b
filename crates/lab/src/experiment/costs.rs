// SPDX-License-Identifier: GPL-3.0-or-later
//! `boards/atmega128/costs.toml`: the costs measured on the board.
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde::Deserialize;

use super::model::Constants;
use super::{ExperimentError, Place};

/// The file, relative to the repository's root.
pub(super) const COSTS_FILE: &str = "boards/atmega128/costs.toml";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(rename = "compiler")]
    _compiler: String,
    cycles: BTreeMap<String, BTreeMap<String, f64>>,
}

/// The file's text: cycles by flavour and constant.
pub(super) fn to_toml(compiler: &str, cycles: &BTreeMap<String, BTreeMap<String, f64>>) -> String {
    let mut text = format!(
        "# SPDX-License-Identifier: MIT OR Apache-2.0\n\
         # What limiting an interrupt costs on the ATmega128, in cycles, by flavour. Measured, not edited: weir reproduce regehr2005/table2\n\
         # writes it, and experiments/regehr2005/table2.toml says how each is measured.\n\
         compiler = {compiler:?}\n"
    );
    for (flavour, constants) in cycles {
        // Writing to a String cannot fail.
        let _ = write!(text, "\n[cycles.{flavour}]\n");
        for (name, value) in constants {
            // To a hundredth: a mean of many interrupts is not exact in the last binary digit.
            let value = (value * 100.0).round() / 100.0;
            let _ = writeln!(text, "{name} = {value:?}");
        }
    }
    text
}

/// The constants of one flavour.
pub(super) fn read(place: &Place, flavour: &str) -> Result<Constants, ExperimentError> {
    let path = place.costs_file();
    let wrong = |what: String| ExperimentError::Costs {
        path: Path::new(COSTS_FILE).to_owned(),
        what,
    };
    let text = std::fs::read_to_string(&path).map_err(|error| wrong(error.to_string()))?;
    let mut written: Written =
        toml::from_str(&text).map_err(|error| wrong(error.message().to_owned()))?;
    let cycles = written
        .cycles
        .remove(flavour)
        .ok_or_else(|| wrong(format!("there are no costs of the flavour `{flavour}`")))?;
    let one = |name: &str| {
        cycles
            .get(name)
            .copied()
            .ok_or_else(|| wrong(format!("there is no `{name}` of the flavour `{flavour}`")))
    };
    Ok(Constants {
        t_int: one("t_int")?,
        t_poll: one("t_poll")?,
        t_setup: one("t_setup")?,
        t_expire: one("t_expire")?,
        t_flip: one("t_flip")?,
        t_count: one("t_count")?,
        t_clear: one("t_clear")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place_with(costs: Option<&str>) -> (tempfile::TempDir, Place) {
        let folder = tempfile::tempdir().unwrap();
        for name in ["experiments", "core", "boards/atmega128"] {
            std::fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        if let Some(costs) = costs {
            std::fs::write(folder.path().join(COSTS_FILE), costs).unwrap();
        }
        let place = Place::find(folder.path()).unwrap();
        (folder, place)
    }

    #[test]
    fn what_is_written_is_read_back() {
        let names = [
            "t_int", "t_poll", "t_setup", "t_expire", "t_flip", "t_count", "t_clear",
        ];
        let constants = names
            .iter()
            .zip(1_u8..)
            .map(|(name, n)| ((*name).to_owned(), f64::from(n)));
        let cycles = BTreeMap::from([("paper".to_owned(), constants.collect())]);
        let text = to_toml("avr-gcc \"5.4\"", &cycles);
        let (_folder, place) = place_with(Some(&text));
        let read = read(&place, "paper").unwrap();
        assert!((read.t_int, read.t_clear) == (1.0, 7.0), "{read:?}");
    }

    #[test]
    fn missing_costs_are_named_with_what_measures_them() {
        for text in [
            None,
            Some(""),
            Some("compiler = \"x\"\n[cycles.paper]\nt_int = 1.0\n"),
        ] {
            let (_folder, place) = place_with(text);
            let error = miette::Report::new(read(&place, "paper").unwrap_err());
            let shown = format!("{error:?}");
            assert!(
                shown.contains("costs.toml") && shown.contains("table2"),
                "{shown}"
            );
        }
    }
}
