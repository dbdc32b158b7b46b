// SPDX-License-Identifier: GPL-3.0-or-later
//! Computes what `weir check` guarantees for a variant of the node.
//!
//! The node's system file is a template ([`Node::template`]). Costs in it are formulas over
//! measured costs. Names in it stand for what differs between variants; each variant gives them
//! formulas. The resulting system files are written to `build/systems` as inputs for `weir check`.
use weir_analysis::check::Verdict;
use weir_analysis::{analyse, check};
use weir_model::{LoadError, parse};

use super::spec::{Node, NodeVariant};
use crate::experiment::error::ExperimentError;
use crate::experiment::place::Checkout;
use crate::experiment::series::Values;
use crate::experiment::series::formula::{Template, X, number};

/// The receiver whose response is bounded.
const CRITICAL: &str = "critical";
/// The names of the values that the analysis gives.
pub(super) const VALUES: [&str; 2] = ["guaranteed", "bound"];

/// The bound in milliseconds on the critical task's response at a point, and whether every deadline
/// is guaranteed. A variant without a system file has neither value.
///
/// # Errors
/// Returns an error if the template or a formula is wrong, or if the system file cannot be written.
pub(super) fn bound(
    place: &Checkout,
    node: &Node,
    variant: &NodeVariant,
    constants: &Values,
    x: f64,
) -> Result<Values, ExperimentError> {
    if node.system_of(variant).is_empty() {
        return Ok(Values::new());
    }
    let text = text(place, node, variant, constants, x)?;
    keep(place, node, &format!("{}-{x}", variant.id), &text)?;
    let system =
        parse(&node.template, &text).map_err(|problems| Box::new(LoadError::from(problems)))?;
    let analysis = analyse(&system);
    let receiver = system.receivers.iter().position(|of| of.name == CRITICAL);
    let cycles = receiver.and_then(|index| analysis.response_of(&system, index));
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52 cycles")]
    let milliseconds = cycles.map_or(f64::INFINITY, |cycles| {
        1000.0 * cycles as f64 / system.cpu.clock_hz as f64
    });
    let report = check::report(&system, &analysis, &mut |_| ());
    let is_guaranteed = report.verdict == Verdict::Guaranteed;
    let values = [f64::from(u8::from(is_guaranteed)), milliseconds];
    let named = VALUES.into_iter().zip(values);
    Ok(named
        .map(|(name, value)| (name.to_owned(), number(value)))
        .collect())
}

/// Writes a system file below `build/systems`, into a folder with the template's name.
fn keep(place: &Checkout, node: &Node, name: &str, text: &str) -> Result<(), ExperimentError> {
    let template = node.template.trim_start_matches("papers/experiments/");
    let folder = place
        .path("build/systems")
        .join(template.trim_end_matches(".template"));
    std::fs::create_dir_all(&folder)
        .and_then(|()| std::fs::write(folder.join(format!("{name}.toml")), text))
        .map_err(ExperimentError::Workspace)
}

/// The system file of a variant at a point.
fn text(
    place: &Checkout,
    node: &Node,
    variant: &NodeVariant,
    constants: &Values,
    x: f64,
) -> Result<String, ExperimentError> {
    let path = place.path(&node.template);
    let text = std::fs::read_to_string(&path).map_err(|cause| ExperimentError::Read {
        path: path.clone(),
        cause,
    })?;
    let filled = || {
        let mut names = constants.clone();
        names.insert(X.to_owned(), number(x));
        let known = names.clone();
        for (name, formula) in node.system_of(variant) {
            names.insert(name, number(formula.evaluate(&known)?));
        }
        Template::over_names(&text)?.with(&names)
    };
    filled().map_err(|what| ExperimentError::Data { path, what })
}

#[cfg(test)]
mod tests {
    use super::super::costs;
    use super::*;

    /// Experiments whose variants have system files, each with a point at which every deadline is
    /// guaranteed.
    const GUARANTEED: [(&str, f64); 3] = [
        ("papers/experiments/behnke2021/bounds.toml", 5.0),
        ("papers/experiments/behnke2021/stages-bounds.toml", 40.0),
        ("papers/experiments/regehr2005/tone.toml", 10.0),
    ];

    fn node(place: &Checkout, experiment: &str) -> Node {
        #[derive(serde::Deserialize)]
        struct File {
            node: Node,
        }
        let text = std::fs::read_to_string(place.path(experiment)).unwrap();
        toml::from_str::<File>(&text).unwrap().node
    }

    #[test]
    fn every_variant_is_guaranteed_with_the_kept_costs() {
        let place = Checkout::of_this_repository();
        // No compiler has this version, so the largest costs of all compilers are used.
        let constants = costs::for_compiler(&place, "").unwrap();
        for (experiment, x) in GUARANTEED {
            let node = node(&place, experiment);
            let has_system = |of: &&NodeVariant| !node.system_of(of).is_empty();
            let mut seen = 0;
            for variant in node.variant.iter().filter(has_system) {
                let bound = bound(&place, &node, variant, &constants, x).unwrap();
                assert_eq!(bound["guaranteed"], number(1.0), "{}", variant.id);
                seen += 1;
            }
            assert!(seen > 0, "{experiment} has variants with systems");
        }
    }

    #[test]
    fn a_cost_that_nobody_keeps_is_named_and_a_bound_grows_with_the_rate() {
        let place = Checkout::of_this_repository();
        let (experiment, x) = GUARANTEED[0];
        let mut node = node(&place, experiment);
        let constants = costs::for_compiler(&place, "").unwrap();
        let bound_at = |x| {
            let values = bound(&place, &node, &node.variant[0], &constants, x).unwrap();
            values["bound"].as_number().unwrap()
        };
        assert!(bound_at(2.0) < bound_at(5.0));
        assert!(bound_at(100.0).is_infinite());
        let without = Values::new();
        let error = bound(&place, &node, &node.variant[0], &without, x).unwrap_err();
        assert!(error.to_string().contains("costs.longest"), "{error}");
        node.system.clear();
        node.variant[0].system.clear();
        let nothing = bound(&place, &node, &node.variant[0], &constants, x).unwrap();
        assert!(nothing.is_empty());
    }
}
