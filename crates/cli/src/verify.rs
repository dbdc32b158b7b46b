// SPDX-License-Identifier: MIT OR Apache-2.0
//! `weir verify`: checks a certificate of `weir check --json`.
use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use clap::ValueHint;
use miette::{IntoDiagnostic, WrapErr};
use serde::Serialize;
use serde_json::Value;
use weir_analysis::certificate;
use weir_model::System;
use weir_report::terminal::{Outcome, print_answer, wrapped};
use weir_verify::{Rejection, Report};

use crate::check;
use crate::input;
use crate::words::{list, plural};

/// Check a certificate of `weir check --json` without believing the analysis
#[derive(Debug, clap::Args)]
#[command(after_long_help = AFTER)]
pub(crate) struct Args {
    /// The certificate, or all that `weir check --json` printed; `-` reads standard input
    #[arg(value_name = "CERT.json", value_hint = ValueHint::FilePath)]
    certificate: PathBuf,

    /// Check, too, that the certificate is about this file as it is now
    #[arg(long, value_name = "SYSTEM.toml", value_hint = ValueHint::FilePath)]
    system: Option<PathBuf>,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

const AFTER: &str = "\
Examples:
  weir check system.toml --json | weir verify - --system system.toml
  weir verify proof.json --system system.toml

The exit code is 0 if the certificate is valid and about the file that --system names, whatever it \
says of it, 1 if it is rejected, 2 if it is none, and 3 if it is valid but no file was named: then \
it may be about another system. What `weir check --json` prints around the certificate is held \
against it and against the file; what was observed follows from neither, and makes the exit code 3. \
docs/certificate.md tells what is checked.";

/// The most rejections that are printed. The JSON contains all.
const MOST_SHOWN: usize = 10;

#[derive(Serialize)]
struct Answer<'a> {
    verify: u32,
    valid: bool,
    #[serde(flatten)]
    report: &'a Report,
}

/// The version of the JSON form. It is increased when a key is removed or changes its meaning. New
/// keys do not change it.
const VERSION: u32 = 1;

/// Executes the command.
///
/// # Errors
/// Fails if a file cannot be read, or does not contain a certificate or a valid system.
pub(crate) fn execute(arguments: &Args) -> miette::Result<Outcome> {
    let name = match arguments.certificate.to_str() {
        Some("-") => "standard input".to_owned(),
        _ => arguments.certificate.display().to_string(),
    };
    let text =
        input::read(&arguments.certificate).wrap_err_with(|| format!("cannot read {name}"))?;
    let named = arguments.system.as_deref().map(NamedSystem::new);
    let named = named.transpose()?;
    let report = judge(&text, named.as_ref())
        .wrap_err_with(|| format!("{name} is no certificate that can be verified"))?;
    let answer = Answer {
        verify: VERSION,
        valid: report.is_valid(),
        report: &report,
    };
    print_answer(&answer, arguments.json, || {
        summary(&report, arguments.system.as_deref())
    })?;
    Ok(match (report.is_valid(), &arguments.system) {
        (false, _) => Outcome::Bad,
        (true, Some(_)) if report.unchecked.is_empty() => Outcome::Good,
        (true, _) => Outcome::Partial,
    })
}

/// The file that the certificate should be about, with the answer of this version of Weir.
struct NamedSystem<'a> {
    path: &'a Path,
    description: Value,
    /// The answer of `weir check` about the file, computed on first use.
    told: OnceCell<Value>,
    system: System,
}

impl<'a> NamedSystem<'a> {
    fn new(path: &'a Path) -> miette::Result<Self> {
        let system = weir_model::load(path)?.with_kernel_work()?;
        let description = certificate::description(&system);
        Ok(Self {
            path,
            description: serde_json::to_value(description).into_diagnostic()?,
            told: OnceCell::new(),
            system,
        })
    }

    fn told(&self) -> miette::Result<&Value> {
        if let Some(told) = self.told.get() {
            return Ok(told);
        }
        let told = check::answer(&self.system)?;
        Ok(self.told.get_or_init(|| told))
    }
}

/// Checks the certificate in `text` and the keys beside it. Compares them with the `named` file, if
/// there is one.
fn judge(text: &[u8], named: Option<&NamedSystem>) -> miette::Result<Report> {
    let mut report = weir_verify::verify(text).into_diagnostic()?;
    let Some(named) = named else {
        return Ok(report);
    };
    let stated = weir_verify::description(text).into_diagnostic()?;
    let different = compare(&stated, &named.description, named.path);
    report.rejections.extend(different);
    let answer: Value = serde_json::from_slice(text).into_diagnostic()?;
    // An answer about another system is not compared further.
    if report.is_valid() && answer["certificate"].is_object() {
        let different = compare_answers(&answer, named.told()?, named.path);
        report.rejections.extend(different);
        // The observations of a running system are not in its file.
        report.unchecked.retain(|key| key == OBSERVED);
    }
    Ok(report)
}

/// Returns the first statement of the certificate about the system that the file at `path`
/// contradicts. `None` if there is none.
fn compare(stated: &Value, actual: &Value, path: &Path) -> Option<Rejection> {
    let file = path.display();
    if stated.get("sha256") != actual.get("sha256") {
        let hash = |of: &Value| of.get("sha256").and_then(Value::as_str).map(str::to_owned);
        return Some(Rejection {
            place: "system.sha256".to_owned(),
            what: format!(
                "{} is not that of {file}, which is {}: the certificate is about another file",
                hash(stated).unwrap_or_default(),
                hash(actual).unwrap_or_default()
            ),
        });
    }
    let place = first_difference(stated, actual, "system")?;
    Some(Rejection {
        what: format!(
            "not what {file} says: it was changed, or made by a Weir that knew other costs of the board"
        ),
        place,
    })
}

/// The key of an answer that contains observations of the running system.
const OBSERVED: &str = "observed";

/// Returns the differences between `answer` and the answer of `weir check` about the file at
/// `path`.
fn compare_answers(answer: &Value, told: &Value, path: &Path) -> Vec<Rejection> {
    let keys = answer.as_object().into_iter().flatten();
    let others = keys.filter(|(key, _)| !["certificate", OBSERVED].contains(&key.as_str()));
    let none = &Value::Null;
    let different = others.filter_map(|(key, value)| {
        let told = told.get(key).unwrap_or(none);
        // The values are compared in both directions, so that a key that only one of them has
        // counts, too.
        first_difference(value, told, key).or_else(|| first_difference(told, value, key))
    });
    let of_place = |place| Rejection {
        place: format!("beside the certificate, {place}"),
        what: format!("not what weir check says of {}", path.display()),
    };
    different.map(of_place).collect()
}

/// Returns the key of the first value that differs. `None` if all are equal.
fn first_difference(stated: &Value, actual: &Value, place: &str) -> Option<String> {
    match (stated, actual) {
        (Value::Object(left), Value::Object(right)) => right
            .iter()
            // A missing key equals null.
            .find_map(|(key, right)| {
                let left = left.get(key).unwrap_or(&Value::Null);
                first_difference(left, right, &format!("{place}.{key}"))
            }),
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => left
            .iter()
            .zip(right)
            .enumerate()
            .find_map(|(index, (left, right))| {
                first_difference(left, right, &format!("{place}[{index}]"))
            }),
        _ => (stated != actual).then(|| place.to_owned()),
    }
}

fn summary(report: &Report, system: Option<&Path>) -> String {
    let Report { name, verdict, .. } = report;
    let found = match (report.is_valid(), system) {
        (true, None) => format!(
            "valid, of an unnamed system: what the certificate describes as `{name}` is {verdict}"
        ),
        (true, Some(_)) => format!("valid: `{name}` is {verdict}"),
        (false, _) => format!("rejected: the certificate of `{name}` claims what is not so"),
    };
    let units = plural(report.units, "unit");
    let points = plural(report.fixed_points, "fixed point");
    let mut checked = format!("checked {units}, {points}");
    let mut lines = vec![found];
    match system {
        Some(path) => checked += &format!(" and the description against {}", path.display()),
        None => lines.push(format!(
            "for the system file with SHA-256 {}: --system FILE compares the two",
            report.sha256
        )),
    }
    lines.insert(1, checked);
    let mut lines: Vec<String> = lines.iter().map(|line| wrapped(line, "", "  ")).collect();
    if report.is_valid() && !report.unchecked.is_empty() {
        let text = format!(
            "not checked, since it does not follow from the certificate{}: {}",
            match system {
                Some(_) => " nor from the file",
                None => "",
            },
            list(&report.unchecked)
        );
        lines.push(wrapped(&text, "", "  "));
    }
    for rejection in report.rejections.iter().take(MOST_SHOWN) {
        let text = format!("{}: {}", rejection.place, rejection.what);
        lines.push(wrapped(&text, "  ", "    "));
    }
    if let Some(more) = report.rejections.len().checked_sub(MOST_SHOWN + 1) {
        lines.push(format!("  and {} more (--json shows all)", more + 1));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lists all places in `value`, as keys and indices from the root.
    fn places(value: &Value, here: &str, all: &mut Vec<String>) {
        let each: Vec<(String, &Value)> = match value {
            Value::Object(of) => of.iter().map(|(key, value)| (key.clone(), value)).collect(),
            Value::Array(of) => (0..).map(|at: usize| at.to_string()).zip(of).collect(),
            _ => Vec::new(),
        };
        for (key, value) in each {
            let place = format!("{here}/{key}");
            places(value, &place, all);
            all.push(place);
        }
    }

    /// Returns the changes to try at a place: another value of the same type, null, or the removal
    /// of the place.
    fn changed(value: &Value) -> Vec<Value> {
        let mut all = match value {
            Value::Number(of) if of.is_u64() => {
                let of = of.as_u64().unwrap();
                vec![(of + 1).into(), of.saturating_sub(1).into(), 0.into()]
            }
            Value::Number(of) => vec![(of.as_f64().unwrap() + 1.0).into()],
            Value::String(of) => vec![format!("{of}x").into(), "guaranteed".into(), "ok".into()],
            Value::Bool(of) => vec![(!of).into()],
            Value::Null => vec![1.into(), "x".into()],
            Value::Array(of) => {
                let (mut shorter, mut longer) = (of.clone(), of.clone());
                shorter.pop();
                longer.extend(of.last().cloned());
                let reversed: Vec<Value> = of.iter().rev().cloned().collect();
                vec![shorter.into(), longer.into(), reversed.into()]
            }
            Value::Object(of) => {
                let mut more = of.clone();
                more.insert("more".to_owned(), 1.into());
                vec![more.into()]
            }
        };
        all.push(Value::Null);
        all.retain(|other| other != value);
        all
    }

    /// Returns everything that a reader takes from an answer: all keys except the windows that
    /// prove the response times.
    fn claims(answer: &Value) -> Value {
        let mut claims = answer.clone();
        let certificate = &mut claims["certificate"];
        certificate["latencies"] = Value::Null;
        for row in certificate["rows"].as_array_mut().into_iter().flatten() {
            if let Some(bound) = row.pointer_mut("/outcome/bound") {
                for key in ["busy_window", "jobs", "start_delay"] {
                    bound[key] = Value::Null;
                }
            }
        }
        // The order of rows does not matter, and a missing key is the same as null.
        if let Some(rows) = claims["certificate"]["rows"].as_array_mut() {
            rows.sort_by_key(|row| row["unit"].to_string());
        }
        claims
    }

    fn without_nulls(value: &Value) -> Value {
        match value {
            Value::Object(of) => of
                .iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(key, value)| (key.clone(), without_nulls(value)))
                .collect(),
            Value::Array(of) => of.iter().map(without_nulls).collect(),
            other => other.clone(),
        }
    }

    #[test]
    fn whatever_is_changed_is_refused_or_changes_nothing_that_is_claimed() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let node = root.join("crates/cli/tests/data/node.toml");
        let examples = ["flight-controller", "network-node"];
        let examples = examples.map(|name| root.join(format!("examples/{name}/system.toml")));
        for path in examples.iter().chain([&node]) {
            let named = NamedSystem::new(path).unwrap();
            let mut whole = check::answer(&named.system).unwrap();
            let text = whole.to_string();
            let report = judge(text.as_bytes(), Some(&named)).unwrap();
            assert!(
                report.is_valid() && report.unchecked.is_empty(),
                "{report:?}"
            );
            let claimed = without_nulls(&claims(&whole));
            let mut all = Vec::new();
            places(&whole, "", &mut all);
            let mut accepted = 0;
            // The short form tries every place of the smallest file, and every ninth place of the
            // others.
            let is_long = std::env::var_os("WEIR_LONG").is_some_and(|value| value == "1");
            let each = if is_long || path == &node { 1 } else { 9 };
            let tried: Vec<&String> = all.iter().step_by(each).collect();
            for &place in &tried {
                let before = whole.pointer(place).unwrap().clone();
                for other in changed(&before) {
                    *whole.pointer_mut(place).unwrap() = other.clone();
                    let text = whole.to_string();
                    let report = judge(text.as_bytes(), Some(&named));
                    let is_whole =
                        |report: Report| report.is_valid() && report.unchecked.is_empty();
                    if report.is_ok_and(is_whole) {
                        accepted += 1;
                        // An answer that leaves out a part claims nothing about it.
                        let is_left_out = other.is_null() && place.matches('/').count() == 1;
                        let same = without_nulls(&claims(&whole)) == claimed;
                        assert!(same || is_left_out, "{place}: {before} became {other}");
                    }
                }
                *whole.pointer_mut(place).unwrap() = before;
            }
            assert!(accepted < tried.len(), "{accepted} of {}", tried.len());
        }
    }

    #[test]
    fn what_was_observed_follows_from_no_file() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/node.toml");
        let named = NamedSystem::new(&path).unwrap();
        let mut whole = check::answer(&named.system).unwrap();
        whole["observed"] = serde_json::json!({ "exceeded": [] });
        let report = judge(whole.to_string().as_bytes(), Some(&named)).unwrap();
        assert!(report.is_valid(), "{report:?}");
        assert_eq!(report.unchecked, [OBSERVED]);
    }
}
