// SPDX-License-Identifier: GPL-3.0-or-later
//! What the guest's shell does in a run.
use std::fmt::Write;

use super::spec::{LinuxSpec, VariantSpec};

/// What is said in vain ends the guest, and the host sees its console.
const HEAD: &str = "\
# How fast the processor works is known before anything disturbs it.
speed=$(weir-load spin --work 1ms --jobs 1 --json | sed -n 's/.*\"speed\": \\(.*\\),/\\1/p')
give_up() { cat /run/*.err >&2; echo \"$*\" >&2; exit 1; }
# A server has said that it is ready, or has failed.
await() { until grep -q ready \"/run/$1.err\"; do kill -0 \"$2\" || give_up \"$1 has ended\"; usleep 1000; done; }
";

/// The script of a variant, which prints an object with a member per process.
pub(super) fn script(spec: &LinuxSpec, variant: &VariantSpec) -> Result<String, String> {
    let (awaited, servers): (Vec<_>, Vec<_>) =
        spec.process.iter().partition(|process| process.awaited);
    let [awaited] = awaited.as_slice() else {
        return Err(format!(
            "of the processes one is awaited, not {}: give it `awaited = true`",
            awaited.len()
        ));
    };
    let mut script = format!("{HEAD}{}\n{}\n", spec.prepare, variant.prepare);
    // A string takes everything.
    for server in &servers {
        let id = &server.id;
        let _ = writeln!(
            script,
            "{} >/run/{id}.json 2>/run/{id}.err &\nservers=\"$servers $!\"\nawait {id} $!",
            server.command
        );
    }
    let id = &awaited.id;
    let _ = writeln!(
        script,
        "flood 1\n{} >/run/{id}.json 2>/run/{id}.err || give_up {id} has failed\nflood 0\nkill -TERM $servers\nwait $servers",
        awaited.command
    );
    let members: Vec<String> = spec
        .process
        .iter()
        .map(|process| format!("echo '\"{0}\":'; cat /run/{0}.json", process.id))
        .collect();
    let _ = writeln!(
        script,
        "echo '{{'; {}; echo '}}'",
        members.join("; echo ','; ")
    );
    Ok(script)
}
