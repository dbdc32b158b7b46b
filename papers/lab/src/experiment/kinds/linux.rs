// SPDX-License-Identifier: GPL-3.0-or-later
//! Experiments on stock Linux in an emulated machine (boards/linux): real processes, real kernels,
//! packets at exact times of the guest's own clock.
//!
//! The guest is started anew for every variant, point and seed, so that no run inherits state from
//! another. An instruction takes one nanosecond of the guest's clock. A repeated run gives the same
//! numbers, however busy the host is; results vary only with the seed of the flood or of the
//! commands.
mod floods;
mod guest;
mod job;
mod spec;
mod system;
mod values;
mod variants;

use std::collections::{BTreeMap, BTreeSet};

use toml::Spanned;
use weir_arrivals::Pattern;

use crate::experiment::batch::carry_out;
use crate::experiment::error::ExperimentError;
use crate::experiment::findings::{Detail, Measurements};
use crate::experiment::kind::{Ids, Kind, KindEntry};
use crate::experiment::place::Checkout;
use crate::experiment::search::{self, SearchSpec};
use crate::experiment::series;
use crate::experiment::series::{RunKey, SeriesPlan, Values};
use crate::experiment::setup::{CurveSpec, Setup};
use guest::{Cards, Guest};
use spec::{Linux, VariantSpec};
use system::GuestSystem;

pub(super) const KIND: KindEntry = KindEntry::of::<Linux>("linux");

/// The name of a value that every experiment of this kind has: the largest difference of any number
/// between the last run and its repetition, in percent of the larger number.
const REPEATED: &str = "repeated";

impl Kind for Linux {
    fn remark(&self) -> Option<&'static str> {
        Some("Linux in an emulated machine")
    }

    fn known(&self, _: &Setup) -> Ids {
        let mut known = series::known(&self.series());
        known.claims.insert(REPEATED.to_owned());
        let searched = self.searches().into_iter().map(|search| search.id);
        known.claims.extend(searched);
        known
    }

    fn curves(&self, series: &Spanned<String>) -> Vec<CurveSpec> {
        let of = |of: &VariantSpec| {
            CurveSpec::of_variant(
                series,
                &of.id,
                self.named(&of.label),
                (of.colour, of.stroke),
            )
        };
        self.variant.iter().map(of).collect()
    }

    fn shorten(&mut self) -> bool {
        let Some(quick) = self.quick.clone() else {
            return false;
        };
        self.x.shorten(quick.values);
        self.seeds = quick.seeds;
        search::shorten(&mut self.search);
        true
    }

    fn measure(&self, place: &Checkout, _: &Setup) -> Result<Measurements, ExperimentError> {
        let plan = SeriesPlan {
            x: self.x.clone(),
            seeds: self.seeds.clone(),
            series: self.series(),
            variants: self.variant.iter().map(|of| of.id.clone()).collect(),
            constants: Values::new(),
        };
        plan.check(|name| values::is_known(self, name))?;
        let searches = self.searches();
        self.check_searches(&searches, &plan)?;
        let mut runs = runs(place, self)?;
        if self.seeds.len() > 1 && !do_seeds_differ(&runs) {
            return Err(ExperimentError::Evaluation(
            "the seeds make no difference, so all runs would be the same: use a random pattern, or `$seed` in a command".to_owned(),
        ));
        }
        let Some(last) = runs.last().map(|run| run.key.clone()) else {
            return Err(ExperimentError::Evaluation(
                "there is nothing to run: no variant, no point or no seed".to_owned(),
            ));
        };
        // The repetition's key has an empty variant, which no variant's id is.
        let repeated = RunKey {
            variant: String::new(),
            ..last.clone()
        };
        runs.extend(runs.last().cloned().map(|run| GuestRun {
            key: repeated.clone(),
            ..run
        }));
        let guests: BTreeMap<String, Guest> = self
            .variant
            .iter()
            .map(|variant| self.kernel_of(variant))
            .collect::<BTreeSet<_>>()
            .into_iter()
            .map(|kernel| Guest::build(place, &kernel).map(|guest| (kernel, guest)))
            .collect::<Result<_, ExperimentError>>()?;
        let mut results = carry_out(runs, |run| {
            let values = self.values_of(&guests, run.variant, &run.job, &run.floods)?;
            Ok((run.key, values))
        })?;
        let again = results.remove(&repeated);
        let mut measured = plan.measure(&results)?;
        if let (Some(once), Some(twice)) = (results.get(&last), again) {
            measured
                .values
                .insert(REPEATED.to_owned(), values::difference(once, &twice));
        }
        if searches.is_empty() {
            measured.detail = Some(kernels(self, &guests));
        } else {
            let (worst, floods) = self.search(place, (&searches, &plan), &guests, &results)?;
            measured.values.extend(worst);
            measured.detail = Some(floods);
        }
        Ok(measured)
    }
}

impl Linux {
    fn check_searches(
        &self,
        searches: &[SearchSpec],
        plan: &SeriesPlan,
    ) -> Result<(), ExperimentError> {
        let first = self.x.values.first().copied().unwrap_or_default();
        let mut taken = series::known(&plan.series).claims;
        taken.insert(REPEATED.to_owned());
        search::check(
            searches,
            plan,
            (&taken, &[]),
            |variant, name| match plan.has_series(variant, name, first)? {
                true => Ok(()),
                false => values::is_known(self, name),
            },
            |flood| Pattern::parse(flood, floods::CLOCK_HZ),
        )?;
        let feeds = self.feed.iter().filter(|feed| feed.pattern.depends_on_x());
        match (searches.first(), feeds.count()) {
            (Some(search), feeds) if feeds != 1 => Err(search.wrong(&format!(
                "its pattern takes the place of the feed that depends on x, and there are {feeds}"
            ))),
            _ => Ok(()),
        }
    }

    /// Carries out all searches. Returns the worst value of each search, and the floods.
    fn search(
        &self,
        place: &Checkout,
        (searches, plan): (&[SearchSpec], &SeriesPlan),
        guests: &BTreeMap<String, Guest>,
        base: &BTreeMap<RunKey, Values>,
    ) -> Result<(BTreeMap<String, f64>, Detail), ExperimentError> {
        let named = self.variant.iter().map(|of| (of.id.as_str(), of));
        let variants: Vec<_> = named.collect();
        search::over_series(
            (searches, plan),
            base,
            &variants,
            floods::CLOCK_HZ,
            |variant, _, flood, (seed, x)| {
                let system = system::of(place, self, variant, x)?;
                let searched = Some(flood.pattern.as_str());
                let (job, floods) = job_and_floods(self, variant, &system, (x, searched), seed)?;
                self.values_of(guests, variant, &job, &floods)
            },
        )
    }

    /// Runs the guest, and returns the values of the run.
    fn values_of(
        &self,
        guests: &BTreeMap<String, Guest>,
        variant: &VariantSpec,
        job: &str,
        floods: &[u8],
    ) -> Result<Values, ExperimentError> {
        let guest = &guests[&self.kernel_of(variant)];
        let cards = Cards {
            wire: self.wire_of(variant),
            ring: variant.ring,
        };
        let answer = guest.run(job, floods, cards)?;
        Ok(values::values(&answer))
    }
}

/// A run of the guest that has not started yet.
#[derive(Clone)]
struct GuestRun<'a> {
    key: RunKey,
    variant: &'a VariantSpec,
    job: String,
    floods: Vec<u8>,
}

fn runs<'a>(place: &Checkout, spec: &'a Linux) -> Result<Vec<GuestRun<'a>>, ExperimentError> {
    let mut runs = Vec::new();
    for variant in &spec.variant {
        for (index, &x) in spec.x.values.iter().enumerate() {
            let system = system::of(place, spec, variant, x)?;
            for &seed in &spec.seeds {
                let (job, floods) = job_and_floods(spec, variant, &system, (x, None), seed)?;
                runs.push(GuestRun {
                    key: RunKey {
                        variant: variant.id.clone(),
                        index,
                        seed,
                    },
                    variant,
                    job,
                    floods,
                });
            }
        }
    }
    Ok(runs)
}

/// The script and the packets of a run. If `searched` is given, that pattern replaces the pattern
/// of the feed that depends on x.
fn job_and_floods(
    spec: &Linux,
    variant: &VariantSpec,
    system: &GuestSystem,
    (x, searched): (f64, Option<&str>),
    seed: u64,
) -> Result<(String, Vec<u8>), ExperimentError> {
    let job = job::script(spec, variant, (x, seed), system).map_err(ExperimentError::Evaluation)?;
    let floods = floods::flood(spec, variant.ip, (x, searched), seed).map_err(|what| {
        ExperimentError::Evaluation(match searched {
            Some(pattern) => format!("the flood {pattern}: {what}"),
            None => format!("the feed at x = {x}: {what}"),
        })
    })?;
    Ok((job, floods))
}

/// Whether any two runs at the same point, which have different seeds, have different scripts or
/// packets.
fn do_seeds_differ(runs: &[GuestRun<'_>]) -> bool {
    runs.windows(2).any(|pair| match pair {
        [one, other] => {
            (&one.key.variant, one.key.index) == (&other.key.variant, other.key.index)
                && (&one.job, &one.floods) != (&other.job, &other.floods)
        }
        _ => false,
    })
}

/// The table of the kernels that the variants ran.
fn kernels(spec: &Linux, guests: &BTreeMap<String, Guest>) -> Detail {
    let row = |variant: &VariantSpec| {
        let version = guests[&spec.kernel_of(variant)].version().to_owned();
        vec![variant.id.clone(), version]
    };
    Detail::new(&["variant", "kernel"], spec.variant.iter().map(row))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const EXPERIMENT: &str = r#"
        kernel = "6.1"
        seeds = [1, 2]
        feed = [{ flow = 0, bytes = 512, pattern = "{x}Hz" }]
        feed-for = "10ms"
        x = { title = "x", values = [0, 1000] }
        series = []
        process = [{ id = "cpu", command = "spin", awaited = true }]
        variant = [
            { id = "one", label = "one", colour = "blue" },
            { id = "two", label = "two", colour = "black" },
        ]
    "#;

    #[test]
    fn seeds_differ_by_a_pattern_or_by_a_command() {
        let place = Checkout::find(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap();
        let differ = |text: &str| {
            let spec: Linux = toml::from_str(text).unwrap();
            do_seeds_differ(&runs(&place, &spec).unwrap())
        };
        assert!(!differ(EXPERIMENT));
        assert!(differ(&EXPERIMENT.replace("{x}Hz", "poisson:{x}Hz")));
        assert!(differ(&EXPERIMENT.replace("\"spin\"", "\"spin $seed\"")));
    }
}
