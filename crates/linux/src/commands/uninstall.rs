// SPDX-License-Identifier: MIT OR Apache-2.0
//! `weir linux uninstall` removes what `weir linux install` has put on the machine.
use weir_report::terminal::{Outcome, print, printable};

use super::install::PrefixArgs;

/// Take away what `install` has put, but not what was edited since
#[derive(Debug, clap::Args)]
#[command(
    after_long_help = "The exit code is 0 if nothing of it is left, 1 if files stay because somebody has edited them, and 2 if it cannot be taken away."
)]
pub(super) struct Args {
    #[command(flatten)]
    from: PrefixArgs,
}

/// Executes the command.
///
/// # Errors
/// Fails if a file may not be removed, or if systemd uses the unit.
pub(super) fn execute(arguments: &Args) -> miette::Result<Outcome> {
    let paths = arguments.from.paths()?;
    let Some(removal) = paths.remove()? else {
        print("nothing is installed there")?;
        return Ok(Outcome::Good);
    };
    let lines = |what: &str, paths_of: &[std::path::PathBuf], why: &str| {
        let line = |path| format!("{what} {}{why}", printable(paths.staged(path)));
        paths_of.iter().map(|path| line(path)).collect::<Vec<_>>()
    };
    let mut text = lines("removed", &removal.removed, "");
    let edited = ": it was edited since it was installed";
    text.extend(lines("left", &removal.changed, edited));
    print(&text.join("\n"))?;
    Ok(Outcome::good_if(removal.changed.is_empty()))
}
