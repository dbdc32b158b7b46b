// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares the installed compiler with the one for which the costs of interrupts were measured.
use std::process::Command;

use weir_model::{CompilerVersion, System, board_compilers};

/// Prints a warning on standard error if the board's costs do not hold for the compiler in this
/// machine's PATH.
pub(crate) fn warn_of_another(system: &System) {
    let Some(measured) = system.cpu.board.as_deref().and_then(board_compilers) else {
        return;
    };
    let Some(here) = measured.first().and_then(installed) else {
        return;
    };
    if let Some(warning) = warning(&measured, &here) {
        eprintln!("warning: {warning}");
    }
}

/// Returns the version of the compiler in the PATH. `None` if there is no compiler, for example on
/// a machine that only analyses.
fn installed(like: &CompilerVersion) -> Option<CompilerVersion> {
    let output = Command::new(like.command())
        .arg("--version")
        .output()
        .ok()?;
    CompilerVersion::parse(String::from_utf8_lossy(&output.stdout).lines().next()?)
}

fn warning(measured: &[CompilerVersion], here: &CompilerVersion) -> Option<String> {
    if measured.iter().any(|one| one.is_of_the_series_of(here)) {
        return None;
    }
    let measured: Vec<String> = measured.iter().map(ToString::to_string).collect();
    Some(format!(
        "the costs of interrupts were measured with {}, and this machine has {here}; what it compiles may take longer. \
         State your own costs in [cpu.costs], or have boards/*/costs.toml measured with it",
        measured.join(" and ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_another_series_is_warned_of() {
        let of = |line| CompilerVersion::parse(line).unwrap();
        let measured = [of("avr-gcc 5.4.0"), of("avr-gcc 14.2.0")];
        assert_eq!(warning(&measured, &of("avr-gcc (GCC) 14.2.1")), None);
        let said = warning(&measured, &of("avr-gcc (GCC) 7.3.0")).unwrap();
        assert!(
            said.contains("avr-gcc 5.4.0 and avr-gcc 14.2.0") && said.contains("has avr-gcc 7.3.0"),
            "{said}"
        );
    }
}
