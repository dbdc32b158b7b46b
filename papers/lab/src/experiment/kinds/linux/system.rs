// SPDX-License-Identifier: GPL-3.0-or-later
//! The system file of a variant's guest: that of the variant or of the experiment, with the
//! variant's table `[linux]`. If weir-linux does not run, only the file's moderation of interrupts
//! is used.
use std::fmt::Write as _;

use toml::{Table, Value};
use weir_model::Duration;

use super::floods::CLOCK_HZ;
use super::spec::{Linux, VariantSpec};
use crate::experiment::error::ExperimentError;
use crate::experiment::place::Checkout;

/// The effects of the system file on a variant's guest.
#[derive(Debug, Default)]
pub(super) struct GuestSystem {
    /// The text of the system file for weir-linux. `None` if weir-linux does not run.
    pub carried_out: Option<String>,
    /// The shell commands that let the card gather packets. They are empty if weir-linux runs,
    /// which does so itself.
    pub gathering: String,
}

/// Reads the system of a variant at a point. Checks the text for weir-linux against the model, so
/// that an error is reported before any guest starts.
pub(super) fn of(
    place: &Checkout,
    spec: &Linux,
    variant: &VariantSpec,
    x: f64,
) -> Result<GuestSystem, ExperimentError> {
    let wrong = |what: String| {
        ExperimentError::Evaluation(format!("the variant `{}` at x = {x}: {what}", variant.id))
    };
    if variant.linux.is_none() && !variant.is_moderated() {
        return Ok(GuestSystem::default());
    }
    let Some(path) = variant.system.as_ref().or(spec.system.as_ref()) else {
        return Err(wrong(
            "`linux` or `moderated` sets it up by a system file, but no `system` names one"
                .to_owned(),
        ));
    };
    let path = place.path(path);
    let text = std::fs::read_to_string(&path).map_err(|cause| ExperimentError::Read {
        path: path.clone(),
        cause,
    })?;
    let mut system: Table = toml::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    let Some(linux) = &variant.linux else {
        let gathering = gathering(&system).map_err(wrong)?;
        return Ok(GuestSystem {
            gathering,
            ..GuestSystem::default()
        });
    };
    if !variant.is_moderated() {
        for source in sources(&mut system) {
            source.remove("moderation");
        }
    }
    system.insert("linux".to_owned(), linux.at(x).map_err(wrong)?);
    let text = toml::to_string(&system).map_err(|error| wrong(error.to_string()))?;
    let name = format!("{} with [linux] of `{}`", path.display(), variant.id);
    match weir_model::parse(&name, &text) {
        Ok(_) => Ok(GuestSystem {
            carried_out: Some(text),
            ..GuestSystem::default()
        }),
        Err(problems) => Err(Box::new(weir_model::LoadError::from(problems)).into()),
    }
}

fn sources(system: &mut Table) -> impl Iterator<Item = &mut Table> {
    let all = system.get_mut("source").and_then(Value::as_array_mut);
    all.into_iter().flatten().filter_map(Value::as_table_mut)
}

/// The number of empty polls after which a card waits for an interrupt again. weir-linux sets the
/// same number (EMPTY_POLLS in its native/device.rs).
const EMPTY_POLLS: u32 = 2;

/// The shell commands that make the two writes by which weir-linux lets an interface gather
/// packets.
fn gathering(system: &Table) -> Result<String, String> {
    let mut commands = String::new();
    for source in sources(&mut system.clone()) {
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        let moderation = source.get("moderation").and_then(|of| of.get("absolute"));
        if let (Some(interface), Some(time)) = (text(source.get("interface")), text(moderation)) {
            let time: Duration = time.parse().map_err(|error| format!("{error}"))?;
            let time = time.cycles(CLOCK_HZ).map_err(|error| error.to_string())?;
            let folder = format!("/sys/class/net/{interface}");
            let _ = writeln!(
                commands,
                "echo {time} >{folder}/gro_flush_timeout\necho {EMPTY_POLLS} >{folder}/napi_defer_hard_irqs"
            );
        }
    }
    if commands.is_empty() {
        return Err("`moderated`, but no source of the system has `moderation`".to_owned());
    }
    Ok(commands)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// The system of the only variant of an experiment. `variant` is the text of the variant's
    /// keys.
    fn system(variant: &str) -> Result<GuestSystem, ExperimentError> {
        let place = Checkout::find(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap();
        let text = format!(
            r#"
            kernel = "6.1"
            seeds = [1]
            feed = []
            feed-for = "1s"
            x = {{ title = "x", values = [0] }}
            series = []
            process = []
            system = "papers/experiments/zhang2006/systems/guest.toml"
            variant = [{{ {variant} }}]
            "#
        );
        let spec: Linux = toml::from_str(&text).unwrap();
        of(&place, &spec, &spec.variant[0], 0.0)
    }

    #[test]
    fn the_system_has_the_variants_table_and_no_other() {
        let weir = r#"id = "a", label = "a", colour = "blue", linux = { mode = "predicted" }"#;
        let text = system(weir).unwrap().carried_out.unwrap();
        let read: Table = toml::from_str(&text).unwrap();
        assert_eq!(read["schema"].as_integer(), Some(1));
        let linux = read["linux"].as_table().unwrap();
        assert_eq!(linux["mode"].as_str(), Some("predicted"));
        assert_eq!(linux.len(), 1);
        assert!(text.contains("moderation"));
        let without = system(&format!("{weir}, moderated = false")).unwrap();
        assert!(!without.carried_out.unwrap().contains("moderation"));
    }

    #[test]
    fn a_card_gathers_as_with_weir_by_two_writes() {
        let moderated = system(r#"like = "moderated""#).unwrap();
        assert_eq!(moderated.carried_out, None);
        assert_eq!(
            moderated.gathering,
            "echo 1000000 >/sys/class/net/eth0/gro_flush_timeout\n\
             echo 2 >/sys/class/net/eth0/napi_defer_hard_irqs\n"
        );
        let vanilla = system(r#"like = "vanilla""#).unwrap();
        assert!(vanilla.carried_out.is_none() && vanilla.gathering.is_empty());
    }
}
