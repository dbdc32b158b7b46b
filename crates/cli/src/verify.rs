// SPDX-License-Identifier: MIT OR Apache-2.0
//! `weir verify`: checks a certificate of `weir check --json`.
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::ValueHint;
use miette::{IntoDiagnostic, WrapErr, miette};
use serde::Serialize;
use serde_json::Value;
use weir_analysis::certificate;
use weir_report::terminal::{Outcome, print_answer};
use weir_verify::{Rejection, Report};

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

The exit code is 0 if the certificate is valid and about the file that --system names, whatever it
says of it, 1 if it is rejected, 2 if it is none, and 3 if it is valid but no file was named: then it
may be about another system. docs/certificate.md tells what is checked.";

/// Largest certificate that is read, in bytes.
const MOST_BYTES: u64 = 256 << 20;

/// Most rejections that are printed; the JSON has all.
const MOST_SHOWN: usize = 10;

#[derive(Serialize)]
struct Answer<'a> {
    verify: u32,
    valid: bool,
    #[serde(flatten)]
    report: &'a Report,
}

/// Increased when a key of the answer changes its meaning or is removed; keys may be added.
const VERSION: u32 = 1;

/// Carries the command out.
///
/// # Errors
/// Fails if a file cannot be read, or is no certificate or no system.
pub(crate) fn execute(arguments: &Args) -> miette::Result<Outcome> {
    let name = match arguments.certificate.to_str() {
        Some("-") => "standard input".to_owned(),
        _ => arguments.certificate.display().to_string(),
    };
    let text = read(&arguments.certificate).wrap_err_with(|| format!("cannot read {name}"))?;
    let mut report = weir_verify::verify(&text)
        .into_diagnostic()
        .wrap_err_with(|| format!("{name} is no certificate that can be verified"))?;
    if let Some(path) = &arguments.system {
        let system = weir_model::load(path)?;
        let stated = weir_verify::description(&text).into_diagnostic()?;
        let actual = serde_json::to_value(certificate::description(&system)).into_diagnostic()?;
        report.rejections.extend(compare(&stated, &actual, path));
    }
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
        (true, Some(_)) => Outcome::Good,
        (true, None) => Outcome::Partial,
    })
}

fn read(path: &Path) -> miette::Result<Vec<u8>> {
    let mut text = Vec::new();
    let from: Box<dyn Read> = if path == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        Box::new(File::open(path).into_diagnostic()?)
    };
    // Read one byte more than is allowed, to distinguish a file that is too large from one that
    // just fits.
    from.take(MOST_BYTES + 1)
        .read_to_end(&mut text)
        .into_diagnostic()?;
    if text.len() as u64 > MOST_BYTES {
        return Err(miette!("it is larger than {} MiB", MOST_BYTES >> 20));
    }
    Ok(text)
}

/// The first statement of the certificate about the system that the file at `path` contradicts.
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

/// Key of the first value that differs.
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
    let mut text = String::new();
    // Writing into a string cannot fail.
    let _ = if report.is_valid() && system.is_none() {
        write!(
            text,
            "valid, of an unnamed system: what the certificate describes as `{}` is {}",
            report.name, report.verdict
        )
    } else if report.is_valid() {
        write!(text, "valid: `{}` is {}", report.name, report.verdict)
    } else {
        write!(
            text,
            "rejected: the certificate of `{}` claims what is not so",
            report.name
        )
    };
    let _ = write!(
        text,
        "\nchecked {} units, {} fixed points",
        report.units, report.fixed_points
    );
    let _ = match system {
        Some(path) => write!(text, " and the description against {}", path.display()),
        None => write!(
            text,
            "\nfor the system file with SHA-256 {}: --system FILE compares the two",
            report.sha256
        ),
    };
    for rejection in report.rejections.iter().take(MOST_SHOWN) {
        let _ = write!(text, "\n  {}: {}", rejection.place, rejection.what);
    }
    if let Some(more) = report.rejections.len().checked_sub(MOST_SHOWN + 1) {
        let _ = write!(text, "\n  and {} more (--json shows all)", more + 1);
    }
    text
}
