// SPDX-License-Identifier: GPL-3.0-or-later
//! Builds the guest by `boards/linux/build.sh` and starts it by `boards/linux/run.sh`.
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use weir_report::{Temporary, give_way_to_interruption, run_to_end};

use super::spec::{Ring, Wire};
use crate::experiment::error::ExperimentError;
use crate::experiment::place::Checkout;

const BUILD: &str = "boards/linux/build.sh";
const RUN: &str = "boards/linux/run.sh";

/// The network cards of the guest.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cards {
    /// The type of two additional cards, which are joined by a wire. `None` if the guest has no
    /// such cards.
    pub wire: Option<Wire>,
    /// The size of the receive ring of the guest's own card, in packets. `None` means the default.
    pub ring: Option<Ring>,
}

/// A kernel and all files that are needed to start it.
#[derive(Debug)]
pub(super) struct Guest {
    run: PathBuf,
    folder: PathBuf,
    version: String,
}

/// The results of a guest's run.
#[derive(Debug)]
pub(super) struct GuestResult {
    /// The JSON that the job printed.
    pub result: Value,
    /// QEMU's counts of the flood's packets.
    pub sent: Value,
}

impl Guest {
    /// Builds the guest. The first build of a kernel downloads it.
    pub fn build(place: &Checkout, kernel: &str) -> Result<Self, ExperimentError> {
        let printed = output(Command::new(place.path(BUILD)).arg(kernel), BUILD)?;
        let folder = PathBuf::from(printed.trim_end());
        let path = folder.join("version");
        let version = std::fs::read_to_string(&path)
            .map_err(|cause| ExperimentError::Read { path, cause })?;
        Ok(Self {
            run: place.path(RUN),
            folder,
            version: version.trim_end().to_owned(),
        })
    }

    /// The name and version of the kernel's package.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Starts the guest with these cards, and waits until it shuts down.
    pub fn run(
        &self,
        job: &str,
        floods: &[u8],
        cards: Cards,
    ) -> Result<GuestResult, ExperimentError> {
        let workspace = Temporary::folder("weir-guest-").map_err(ExperimentError::Workspace)?;
        let path = |name: &str| workspace.path().join(name);
        std::fs::write(path("job"), job).map_err(ExperimentError::Workspace)?;
        std::fs::write(path("floods"), floods).map_err(ExperimentError::Workspace)?;
        let mut command = Command::new(&self.run);
        command.args([&self.folder, &path("job"), &path("floods"), &path("out")]);
        command.args(cards.wire.map(|wire| format!("wire={}", wire.name())));
        command.args(cards.ring.map(|ring| format!("ring={}", ring.packets())));
        let result = output(&mut command, RUN)?;
        let sent = std::fs::read_to_string(path("out/sent")).map_err(ExperimentError::Workspace)?;
        let read = |text: &str, whose: &str| {
            serde_json::from_str(text).map_err(|error| ExperimentError::Flow {
                program: RUN.to_owned(),
                what: format!("left output that is no JSON ({whose}: {error}):\n{text}"),
            })
        };
        Ok(GuestResult {
            result: read(&result, "the guest")?,
            sent: read(&sent, "QEMU")?,
        })
    }
}

/// Runs a script and returns its standard output. The script's messages go to this process's
/// standard error.
fn output(command: &mut Command, program: &str) -> Result<String, ExperimentError> {
    let failed = |what: String| ExperimentError::Flow {
        program: program.to_owned(),
        what,
    };
    let output =
        run_to_end(command).map_err(|error| failed(format!("cannot be started: {error}")))?;
    if !output.status.success() {
        give_way_to_interruption();
        return Err(failed(format!("failed ({})", output.status)));
    }
    String::from_utf8(output.stdout)
        .map_err(|error| failed(format!("prints bytes that are no text: {error}")))
}
