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

/// What the values of `weir-linux` are called, and its files.
pub(super) const WEIR: &str = "weir";

/// The system is carried out, as a service would be, before there are servers.
const START: &str = "\
weir-linux run /run/system.toml --json OPTIONS >/run/weir.out 2>/run/weir.err &
weir=$!
until grep -q '\"event\":\"ready\"' /run/weir.out; do kill -0 $weir || give_up 'weir-linux has ended'; usleep 1000; done
";

/// The script of a variant, which prints an object with a member per process. `system` is what weir-linux carries out.
pub(super) fn script(
    spec: &LinuxSpec,
    variant: &VariantSpec,
    system: Option<&str>,
) -> Result<String, String> {
    let (awaited, servers): (Vec<_>, Vec<_>) =
        spec.process.iter().partition(|process| process.awaited);
    let [awaited] = awaited.as_slice() else {
        return Err(format!(
            "of the processes one is awaited, not {}: give it `awaited = true`",
            awaited.len()
        ));
    };
    let mut script = format!("{HEAD}{}\n{}\n", spec.prepare, variant.prepare);
    if let Some(system) = system {
        let start = START.replace("OPTIONS", &variant.options);
        // A string takes everything.
        let _ = write!(
            script,
            "cat >/run/system.toml <<'SYSTEM'\n{system}SYSTEM\n{start}"
        );
    }
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
        "flood 1\n{{ {}; }} >/run/{id}.json 2>/run/{id}.err || give_up {id} has failed\nflood 0",
        awaited.command
    );
    if system.is_some() {
        script.push_str(
            "weir-linux status --json >/run/weir.json || give_up weir-linux has no status\n",
        );
    }
    script.push_str("kill -TERM $servers\nwait $servers\n");
    if system.is_some() {
        script.push_str(
            "kill -INT $weir\nwait $weir || give_up weir-linux has put back too little\n",
        );
    }
    let all = spec.process.iter().map(|process| process.id.as_str());
    let members: Vec<String> = all
        .chain(system.map(|_| WEIR))
        .map(|id| format!("echo '\"{id}\":'; cat /run/{id}.json"))
        .collect();
    let _ = writeln!(
        script,
        "echo '{{'; {}; echo '}}'",
        members.join("; echo ','; ")
    );
    Ok(script)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXPERIMENT: &str = r#"
        kernel = "6.1"
        seeds = [1]
        feed = []
        feed-for = "1s"
        x = { title = "x", values = [0] }
        series = []
        process = [
            { id = "low", command = "receive" },
            { id = "cpu", command = "spin && usleep 1", awaited = true },
        ]
        variant = [{ id = "weir", label = "Weir", colour = "blue", options = "--quiet" }]
    "#;

    #[test]
    fn the_system_is_carried_out_before_there_are_servers_and_until_they_have_ended() {
        let spec: LinuxSpec = toml::from_str(EXPERIMENT).unwrap();
        let script = |system| script(&spec, &spec.variant[0], system).unwrap();
        let with = script(Some("schema = 1\n"));
        let order = [
            "schema = 1\nSYSTEM",
            "weir-linux run /run/system.toml --json --quiet",
            "receive >/run/low.json",
            "{ spin && usleep 1; } >/run/cpu.json",
            "weir-linux status",
            "kill -TERM $servers",
            "kill -INT $weir",
            "cat /run/weir.json",
        ];
        let places: Vec<usize> = order
            .iter()
            .map(|part| {
                with.find(part)
                    .unwrap_or_else(|| panic!("{part} is not in {with}"))
            })
            .collect();
        assert!(places.is_sorted(), "{with}");
        assert!(!script(None).contains("weir-linux"));
    }

    #[test]
    fn one_process_is_awaited() {
        let mut spec: LinuxSpec = toml::from_str(EXPERIMENT).unwrap();
        spec.process[0].awaited = true;
        let error = script(&spec, &spec.variant[0], None).unwrap_err();
        assert!(error.contains("not 2"), "{error}");
    }
}
