// SPDX-License-Identifier: GPL-3.0-or-later
//! Reads the variants of an experiment on Linux. A variant with the key `like` inherits all keys
//! that it does not state, from a variant above it in the file or in `baselines.toml`.
use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use toml::{Table, Value};

use super::spec::VariantSpec;
use crate::experiment::base::lay_over;

/// The tables of variants in a file.
#[derive(Deserialize)]
struct Written {
    variant: Vec<Table>,
}

/// Reads the variants of a file.
pub(super) fn read<'de, D: Deserializer<'de>>(file: D) -> Result<Vec<VariantSpec>, D::Error> {
    let baselines: Written =
        toml::from_str(include_str!("baselines.toml")).map_err(D::Error::custom)?;
    let mut known = BTreeMap::new();
    completed(baselines.variant, &mut known).map_err(D::Error::custom)?;
    let variants = completed(Vec::deserialize(file)?, &mut known).map_err(D::Error::custom)?;
    let variants = variants.into_iter().map(|(id, variant)| {
        let read = Value::Table(variant).try_into();
        read.map_err(|error| D::Error::custom(format!("the variant `{id}`: {error}")))
    });
    variants.collect()
}

/// Completes the variants by the keys that they inherit. Adds the completed variants to `known`
/// under their ids.
fn completed(
    written: Vec<Table>,
    known: &mut BTreeMap<String, Table>,
) -> Result<Vec<(String, Table)>, String> {
    let mut all = Vec::new();
    for mut own in written {
        let mut variant = match own.remove("like") {
            None => Table::new(),
            Some(Value::String(like)) => known.get(&like).cloned().ok_or_else(|| {
                format!(
                    "`like` names `{like}`, which is no baseline and no variant above; these are {}",
                    known.keys().cloned().collect::<Vec<_>>().join(", ")
                )
            })?,
            Some(other) => return Err(format!("`like` is {other}; it names a variant")),
        };
        lay_over(&mut variant, own);
        let Some(id) = variant.get("id").and_then(Value::as_str).map(str::to_owned) else {
            return Err(
                "a variant has no `id`; give it one, or let it be `like` another".to_owned(),
            );
        };
        if all.iter().any(|(other, _)| *other == id) {
            return Err(format!(
                "two variants have the id `{id}`; give one of them another"
            ));
        }
        known.insert(id.clone(), variant.clone());
        all.push((id, variant));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variants(text: &str) -> Result<Vec<VariantSpec>, String> {
        #[derive(Deserialize)]
        struct All {
            #[serde(deserialize_with = "read")]
            variant: Vec<VariantSpec>,
        }
        let all: Result<All, _> = toml::from_str(text);
        all.map(|all| all.variant)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_variant_has_the_keys_of_the_one_that_it_is_like() {
        let text = r#"variant = [
            { like = "threaded_moderated" },
            { id = "exact", label = "Weir", colour = "blue", linux = { mode = "exact" } },
            { id = "timed", like = "exact", label = "Weir, timed", linux = { cap_timer = true } },
            { id = "plain", like = "exact", moderated = false },
        ]"#;
        let [threaded, exact, timed, plain] = &variants(text).unwrap()[..] else {
            panic!("four variants");
        };
        assert_eq!(threaded.id, "threaded_moderated");
        assert!(threaded.prepare.contains("threaded") && threaded.linux.is_none());
        assert!(threaded.is_moderated() && exact.is_moderated() && !plain.is_moderated());
        assert_eq!(
            (timed.label.as_str(), plain.label.as_str()),
            ("Weir, timed", "Weir")
        );
        let table = timed.linux.as_ref().unwrap().at(0.0).unwrap();
        assert_eq!(table.as_table().unwrap().len(), 2);
    }

    #[test]
    fn a_variant_that_cannot_be_read_is_named() {
        let wrong = |variant: &str| variants(&format!("variant = [{variant}]")).unwrap_err();
        let error = wrong(r#"{ like = "vanila" }"#);
        assert!(
            error.contains("`vanila`") && error.contains("vanilla"),
            "{error}"
        );
        let error = wrong(r#"{ like = "vanilla", shade = "red" }"#);
        assert!(
            error.contains("`vanilla`") && error.contains("shade"),
            "{error}"
        );
        let error = wrong(r#"{ like = "vanilla" }, { like = "vanilla" }"#);
        assert!(error.contains("two variants"), "{error}");
        let error = wrong(r#"{ label = "Linux" }"#);
        assert!(error.contains("no `id`"), "{error}");
        let error = wrong("{ like = 6 }");
        assert!(error.contains("`like` is 6"), "{error}");
    }
}
