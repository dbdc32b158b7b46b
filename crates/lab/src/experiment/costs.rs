// SPDX-License-Identifier: GPL-3.0-or-later
//! `boards/atmega128/costs.toml`: the costs measured on the board.
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde::Deserialize;

use super::model::Constants;
use super::worst::{Costs, Worst};
use super::{ExperimentError, Place};

/// The file, relative to the repository's root.
pub(super) const COSTS_FILE: &str = "boards/atmega128/costs.toml";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(rename = "compiler")]
    _compiler: String,
    cycles: BTreeMap<String, BTreeMap<String, f64>>,
    #[serde(default, rename = "limiter")]
    _limiter: toml::Table,
    #[serde(default, rename = "channel")]
    _channel: toml::Table,
}

const MEANS: &str = "
# Means, named as in Table 2.
";

const LIMITERS: &str = "
# The worst of every interrupt that a limiter causes, by flavour, policy and timing, in whole cycles from its taking (the 4 cycles of the response
# included, not the 4 more when a sleeping processor is woken) to the end of its RETI:
#   request_served   the line's interrupt that runs the handler
#   request_refused  the line's that does not; missing where the policy never refuses
#   expiry_served    the timer's that runs the handler for a request which waited
#   expiry_empty     the timer's that does not
#   expiry_base      a shared timer's without the sources
#   clear_empty      what each source adds to that; a request that waits then takes its own interrupt
# The body of the handler is not included: an interrupt that runs it takes the cost and the body. The registers that the body needs, up to 4 cycles
# each on the stack, are a part of the body; in the flavour c (not in fast) the compiler saves them in every interrupt of the line and of its timer, also
# in one that does not run the body. What the user's own switching and changes need is not included. Without the record (WEIR_LIMIT_RECORD=0).
# off is an ordinary handler, poll a timer that looks at the line. These are the worst of all channels:
";

const CHANNELS: &str = "
# And these where the channel is known.
";

fn write_limiters(text: &mut String, prefix: &str, costs: &Costs) {
    for (id, events) in costs {
        // Writing to a String cannot fail.
        let _ = write!(text, "\n[{prefix}.{id}]\n");
        for (name, cycles) in events {
            let _ = writeln!(text, "{name} = {cycles}");
        }
    }
}

/// The file's text: mean cycles by flavour and constant, and the worst of a limiter's interrupts.
pub(super) fn to_toml(
    compiler: &str,
    cycles: &BTreeMap<String, BTreeMap<String, f64>>,
    worst: &Worst,
) -> String {
    let mut text = format!(
        "# SPDX-License-Identifier: MIT OR Apache-2.0\n\
         # What limiting an interrupt costs on the ATmega128, in cycles, by flavour. Measured, not edited: weir reproduce regehr2005/table2\n\
         # writes it, and experiments/regehr2005/table2.toml says how each is measured.\n\
         compiler = {compiler:?}\n{MEANS}"
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
    if !worst.any.is_empty() {
        text.push_str(LIMITERS);
        write_limiters(&mut text, "limiter", &worst.any);
        text.push_str(CHANNELS);
        for (channel, costs) in &worst.by_channel {
            write_limiters(&mut text, &format!("channel.{channel}"), costs);
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
        let costs = BTreeMap::from([(
            "c.strict.lazy".to_owned(),
            BTreeMap::from([("request_served", 53)]),
        )]);
        let worst = Worst {
            any: costs.clone(),
            by_channel: BTreeMap::from([("TIMER1A".to_owned(), costs)]),
        };
        let text = to_toml("avr-gcc \"5.4\"", &cycles, &worst);
        let table: toml::Table = toml::from_str(&text).unwrap();
        for place in [&table["limiter"], &table["channel"]["TIMER1A"]] {
            assert_eq!(
                place["c"]["strict"]["lazy"]["request_served"].as_integer(),
                Some(53)
            );
        }
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
