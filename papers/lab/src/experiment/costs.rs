// SPDX-License-Identifier: GPL-3.0-or-later
//! Reads and writes `boards/atmega128/costs.toml`, the costs measured on the board for each
//! compiler.
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde::Deserialize;
use weir_model::CompilerVersion;

use super::error::ExperimentError;
use super::place::{COSTS_FILE, Checkout};

/// Costs in cycles, by `FLAVOUR.POLICY.TIMING` and then by the event's name.
pub(super) type CostTable = BTreeMap<String, BTreeMap<&'static str, u64>>;

/// The measured worst costs.
#[derive(Debug, Clone, Default)]
pub(super) struct WorstCosts {
    /// The worst costs of all channels.
    pub any: CostTable,
    /// The worst costs by channel.
    pub by_channel: BTreeMap<String, CostTable>,
}

impl WorstCosts {
    /// Adds a measured cost. The largest of several costs with the same name is kept.
    pub fn add(&mut self, id: &str, channel: Option<&str>, name: &'static str, cycles: u64) {
        let of_channel =
            channel.map(|channel| self.by_channel.entry(channel.to_owned()).or_default());
        for costs in [Some(&mut self.any), of_channel].into_iter().flatten() {
            let most = costs
                .entry(id.to_owned())
                .or_default()
                .entry(name)
                .or_insert(0);
            *most = cycles.max(*most);
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CostsFile {
    #[serde(rename = "compilers")]
    _compilers: Vec<String>,
    cycles: BTreeMap<String, BTreeMap<String, BTreeMap<String, f64>>>,
    #[serde(default, rename = "limiter")]
    _limiter: toml::Table,
    #[serde(default, rename = "channel")]
    _channel: toml::Table,
}

/// The columns of the new file: the measured column of one compiler, and the other compilers'
/// columns of `before`, the old file.
struct Columns<'a> {
    before: Option<toml::Table>,
    version: &'a CompilerVersion,
}

impl Columns<'_> {
    /// The compilers that have a column in the new file, in ascending order of their versions.
    fn compilers(&self) -> Vec<CompilerVersion> {
        let before = self
            .before
            .as_ref()
            .and_then(|table| table.get("compilers"));
        let names = before.and_then(toml::Value::as_array).into_iter().flatten();
        let mut all: Vec<CompilerVersion> = names
            .filter_map(|name| CompilerVersion::parse(name.as_str()?))
            .chain([self.version.clone()])
            .collect();
        all.sort();
        all.dedup();
        all
    }

    /// The line of a value, with a column for each compiler.
    fn line(&self, path: &[&str], name: &str, value: &str) -> String {
        let before = self.before.as_ref().and_then(|table| {
            let mut table = table;
            for part in path {
                table = table.get(*part)?.as_table()?;
            }
            table.get(name)?.as_table()
        });
        let columns: Vec<String> = self
            .compilers()
            .iter()
            .filter_map(|compiler| {
                let cell = if compiler == self.version {
                    value.to_owned()
                } else {
                    before?.get(&compiler.number())?.to_string()
                };
                Some(format!("{:?} = {cell}", compiler.number()))
            })
            .collect();
        format!("{name} = {{ {} }}\n", columns.join(", "))
    }
}

const MEANS: &str = "
# Means, named as in Table 2.
";

const LIMITERS: &str = "
# The worst of every interrupt that a limiter causes, by flavour, policy and timing, in whole cycles
# from its taking (the 4 cycles of the response included, not the 4 more when a sleeping processor
# is woken) to the end of its RETI:
#   request_served   the line's interrupt that runs the handler
#   request_refused  the line's that does not; missing where the policy never refuses
#   expiry_served    the timer's that runs the handler for a request which waited
#   expiry_empty     the timer's that does not
#   expiry_base      a shared timer's without the sources
#   clear_empty      what each source adds to that; a request that waits then takes its own
#                    interrupt
# The body of the handler is not included: an interrupt that runs it takes the cost and the body.
# The registers that the body needs, up to 4 cycles each on the stack, are a part of the body; in
# the flavour c (not in fast) the compiler saves them in every interrupt of the line and of its
# timer, also in one that does not run the body. What the user's own switching and changes need is
# not included. Without the record (WEIR_LIMIT_RECORD=0). off is an ordinary handler, poll a timer
# that looks at the line. These are the worst of all channels:
";

const CHANNELS: &str = "
# And these where the channel is known.
";

fn write_limiters(text: &mut String, columns: &Columns, prefix: &str, costs: &CostTable) {
    for (id, events) in costs {
        // Writing to a String cannot fail.
        let _ = write!(text, "\n[{prefix}.{id}]\n");
        let path: Vec<&str> = prefix.split('.').chain(id.split('.')).collect();
        for (name, cycles) in events {
            text.push_str(&columns.line(&path, name, &cycles.to_string()));
        }
    }
}

/// The text of the new file. It contains the mean cycles by flavour and constant, and the worst
/// cycles of a limiter's interrupts, as measured with the compiler `version`. The columns of other
/// compilers are copied from `before`, the old file.
pub(super) fn to_toml(
    before: Option<&str>,
    version: &CompilerVersion,
    cycles: &BTreeMap<String, BTreeMap<String, f64>>,
    worst: &WorstCosts,
) -> String {
    let columns = Columns {
        before: before.and_then(|text| toml::from_str(text).ok()),
        version,
    };
    let compilers: Vec<String> = columns
        .compilers()
        .iter()
        .map(ToString::to_string)
        .collect();
    let mut text = format!(
        "# SPDX-License-Identifier: MIT OR Apache-2.0\n\
         # What limiting an interrupt costs on the ATmega128, in cycles, by flavour and compiler. Measured,\n\
         # not edited: weir reproduce regehr2005/table2 writes the column of the compiler that is installed;\n\
         # papers/experiments/regehr2005/table2.toml says how each is measured. It holds for these compilers.\n\
         # The analysis takes the worst of them, and warns of any other.\n\
         compilers = {compilers:?}\n{MEANS}"
    );
    for (flavour, constants) in cycles {
        // Writing to a String cannot fail.
        let _ = write!(text, "\n[cycles.{flavour}]\n");
        for (name, value) in constants {
            // Values are rounded to a hundredth: the mean of many interrupts is not exact to the
            // last binary digit.
            let value = (value * 100.0).round() / 100.0;
            text.push_str(&columns.line(&["cycles", flavour], name, &format!("{value:?}")));
        }
    }
    if !worst.any.is_empty() {
        text.push_str(LIMITERS);
        write_limiters(&mut text, &columns, "limiter", &worst.any);
        text.push_str(CHANNELS);
        for (channel, costs) in &worst.by_channel {
            write_limiters(&mut text, &columns, &format!("channel.{channel}"), costs);
        }
    }
    text
}

/// Reads the constants of one flavour for the compiler `version`, in cycles.
pub(super) fn read(
    place: &Checkout,
    flavour: &str,
    version: &CompilerVersion,
) -> Result<BTreeMap<String, f64>, ExperimentError> {
    let wrong = |what: String| ExperimentError::Costs {
        path: Path::new(COSTS_FILE).to_owned(),
        what,
    };
    let path = place.costs_file();
    let text = std::fs::read_to_string(&path).map_err(|error| wrong(error.to_string()))?;
    let mut written: CostsFile =
        toml::from_str(&text).map_err(|error| wrong(error.message().to_owned()))?;
    let cycles = written
        .cycles
        .remove(flavour)
        .ok_or_else(|| wrong(format!("there are no costs of the flavour `{flavour}`")))?;
    let of_version = |(name, of): (String, BTreeMap<String, f64>)| {
        let cycles = of.get(&version.number()).copied().ok_or_else(|| {
            wrong(format!(
                "there is no `{name}` of the flavour `{flavour}` for {version}"
            ))
        })?;
        Ok((name, cycles))
    };
    cycles.into_iter().map(of_version).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place_with(costs: Option<&str>) -> (tempfile::TempDir, Checkout) {
        let folder = tempfile::tempdir().unwrap();
        for name in ["papers/experiments", "core", "boards/atmega128"] {
            std::fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        if let Some(costs) = costs {
            std::fs::write(folder.path().join(COSTS_FILE), costs).unwrap();
        }
        let place = Checkout::find(folder.path()).unwrap();
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
        let worst = WorstCosts {
            any: costs.clone(),
            by_channel: BTreeMap::from([("TIMER1A".to_owned(), costs)]),
        };
        let older = CompilerVersion::parse("avr-gcc (GCC) 5.4.0").unwrap();
        let newer = CompilerVersion::parse("avr-gcc (GCC) 14.2.0").unwrap();
        let first = to_toml(None, &newer, &cycles, &worst);
        let mut quicker = worst.clone();
        for costs in [
            &mut quicker.any,
            quicker.by_channel.get_mut("TIMER1A").unwrap(),
        ] {
            costs
                .get_mut("c.strict.lazy")
                .unwrap()
                .insert("request_served", 41);
        }
        // Writing replaces the column of the same compiler and keeps that of the other.
        let both = to_toml(Some(&first), &older, &cycles, &quicker);
        assert_eq!(to_toml(Some(&both), &older, &cycles, &quicker), both);
        let table: toml::Table = toml::from_str(&both).unwrap();
        let names = table["compilers"].as_array().unwrap();
        assert_eq!(names[0].as_str(), Some("avr-gcc 5.4.0"));
        assert_eq!(names[1].as_str(), Some("avr-gcc 14.2.0"));
        for place in [&table["limiter"], &table["channel"]["TIMER1A"]] {
            let cell = &place["c"]["strict"]["lazy"]["request_served"];
            assert_eq!(cell["14.2.0"].as_integer(), Some(53));
            assert_eq!(cell["5.4.0"].as_integer(), Some(41));
        }
        let (_folder, place) = place_with(Some(&both));
        let read = read(&place, "paper", &newer).unwrap();
        assert!((read["t_int"], read["t_clear"]) == (1.0, 7.0), "{read:?}");
    }

    #[test]
    fn missing_costs_are_named_with_what_measures_them() {
        let version = CompilerVersion::parse("cc 1.0").unwrap();
        for text in [
            None,
            Some(""),
            Some("compilers = []\n[cycles.paper]\nt_int = { \"1.0\" = 1.0 }\n"),
        ] {
            let (_folder, place) = place_with(text);
            let error = miette::Report::new(read(&place, "paper", &version).unwrap_err());
            let shown = format!("{error:?}");
            assert!(
                shown.contains("costs.toml") && shown.contains("table2"),
                "{shown}"
            );
        }
    }

    #[test]
    fn the_worst_of_all_channels_counts() {
        let mut worst = WorstCosts::default();
        worst.add("c.strict.lazy", Some("TIMER1A"), "request_served", 53);
        worst.add("c.strict.lazy", Some("TIMER3A"), "request_served", 59);
        worst.add("c.strict.lazy", Some("TIMER1A"), "request_served", 50);
        worst.add("c.off", None, "request_served", 26);
        assert_eq!(worst.any["c.strict.lazy"]["request_served"], 59);
        assert_eq!(
            worst.by_channel["TIMER1A"]["c.strict.lazy"]["request_served"],
            53
        );
        assert_eq!(worst.any["c.off"]["request_served"], 26);
        assert_eq!(worst.by_channel.len(), 2);
    }
}
