// SPDX-License-Identifier: GPL-3.0-or-later
//! Generates the script that the guest's shell runs.
use std::fmt::Write;

use super::spec::{Linux, VariantSpec};
use super::system::GuestSystem;

/// The beginning of each script. A failing command shuts the guest down, and its message appears on
/// the console, which the host reads.
const HEAD: &str = "\
# How fast the processor works is known before anything disturbs it.
speed=$(weir-load spin --work 1ms --jobs 1 --json | sed -n 's/.*\"speed\": \\(.*\\),/\\1/p')
give_up() { cat /run/*.err >&2; echo \"$*\" >&2; exit 1; }
# A server has said that it is ready, or has failed.
await() { until grep -q ready \"/run/$1.err\"; do kill -0 \"$2\" || give_up \"$1 has ended\"; usleep 1000; done; }
";

/// The prefix of the values of `weir-linux status`, and the name of their file.
pub(super) const WEIR: &str = "weir";
/// The prefix of the values of `weir-linux plan`, and the name of their file.
pub(super) const PLAN: &str = "plan";

/// Plans and sets up the system by weir-linux before the servers start, as a service would.
const START: &str = "\
weir-linux plan /run/system.toml --json >/run/plan.json 2>/run/plan.err || give_up 'weir-linux has no plan'
weir-linux run /run/system.toml --json OPTIONS >/run/weir.out 2>/run/weir.err &
weir=$!
until grep -q '\"event\":\"ready\"' /run/weir.out; do kill -0 $weir || give_up 'weir-linux has ended'; usleep 1000; done
";

/// The script of a variant at a point with a seed. It prints a JSON object with a member per
/// process.
pub(super) fn script(
    spec: &Linux,
    variant: &VariantSpec,
    (x, seed): (f64, u64),
    system: &GuestSystem,
) -> Result<String, String> {
    let (awaited, servers): (Vec<_>, Vec<_>) =
        spec.process.iter().partition(|process| process.awaited);
    if awaited.is_empty() {
        return Err("no process is awaited: give one of them `awaited = true`".to_owned());
    }
    let mut script = variables(spec, variant, (x, seed));
    let _ = write!(
        script,
        "{HEAD}{}\n{}{}\n",
        spec.prepare, system.gathering, variant.prepare
    );
    let system = system.carried_out.as_deref();
    if let Some(system) = system {
        let start = START.replace("OPTIONS", &variant.options);
        // Writing to a string cannot fail.
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
    script.push_str("flood 1\n");
    for (number, process) in awaited.iter().enumerate() {
        let (id, command) = (&process.id, &process.command);
        let _ = writeln!(
            script,
            "{{ {command}; }} >/run/{id}.json 2>/run/{id}.err &\nawaited{number}=$!"
        );
    }
    for (number, process) in awaited.iter().enumerate() {
        let id = &process.id;
        let _ = writeln!(script, "wait $awaited{number} || give_up {id} has failed");
    }
    script.push_str("flood 0\n");
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
        .chain(system.iter().flat_map(|_| [PLAN, WEIR]))
        .map(|id| format!("echo '\"{id}\":'; cat /run/{id}.json"))
        .collect();
    let _ = writeln!(
        script,
        "echo '{{'; {}; echo '}}'",
        members.join("; echo ','; ")
    );
    Ok(script)
}

/// The assignments of the shell variables that commands use. No others are made, because any change
/// of the job's text shifts the phase of the boot (boards/linux/run.sh).
fn variables(spec: &Linux, variant: &VariantSpec, (x, seed): (f64, u64)) -> String {
    let is_used = |name: &str| {
        let commands = spec.process.iter().map(|process| &process.command);
        let mut texts = commands.chain([&spec.prepare, &variant.prepare]);
        texts.any(|text| text.contains(name))
    };
    let mut lines = String::new();
    if is_used("$x") {
        let _ = writeln!(lines, "x={x}");
    }
    if is_used("$seed") {
        let _ = writeln!(lines, "seed={seed}");
    }
    if is_used("$ip") {
        let _ = writeln!(lines, "ip={}", variant.ip.version());
    }
    lines
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
        let spec: Linux = toml::from_str(EXPERIMENT).unwrap();
        let script = |carried_out: Option<&str>| {
            let system = GuestSystem {
                carried_out: carried_out.map(str::to_owned),
                gathering: "echo 1 >eth0\n".to_owned(),
            };
            script(&spec, &spec.variant[0], (0.5, 7), &system).unwrap()
        };
        let with = script(Some("schema = 1\n"));
        let order = [
            "echo 1 >eth0",
            "schema = 1\nSYSTEM",
            "weir-linux plan /run/system.toml --json",
            "weir-linux run /run/system.toml --json --quiet",
            "receive >/run/low.json",
            "flood 1",
            "{ spin && usleep 1; } >/run/cpu.json",
            "wait $awaited0",
            "flood 0",
            "weir-linux status",
            "kill -TERM $servers",
            "kill -INT $weir",
            "cat /run/plan.json",
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
    fn all_that_are_awaited_begin_before_one_is_waited_for() {
        let mut spec: Linux = toml::from_str(EXPERIMENT).unwrap();
        spec.process[0].awaited = true;
        let script = script(&spec, &spec.variant[0], (0.5, 7), &GuestSystem::default()).unwrap();
        let begun = script.find("{ spin && usleep 1; }").unwrap();
        let ended = script.find("wait $awaited0").unwrap();
        assert!(
            begun < ended && script.contains("wait $awaited1"),
            "{script}"
        );
    }

    #[test]
    fn commands_know_the_point_and_the_seed_if_they_ask_for_them() {
        let mut spec: Linux = toml::from_str(EXPERIMENT).unwrap();
        let begin = |spec: &Linux| {
            let script = script(spec, &spec.variant[0], (0.5, 7), &GuestSystem::default()).unwrap();
            script[..script.find("# How fast").unwrap()].to_owned()
        };
        assert_eq!(begin(&spec), "");
        spec.process[0].command = "receive --size $x".to_owned();
        assert_eq!(begin(&spec), "x=0.5\n");
        spec.process[1].command = "usleep $((7 * seed)); send --seed $seed".to_owned();
        assert_eq!(begin(&spec), "x=0.5\nseed=7\n");
    }

    #[test]
    fn a_process_is_awaited() {
        let mut spec: Linux = toml::from_str(EXPERIMENT).unwrap();
        spec.process[1].awaited = false;
        let error = script(&spec, &spec.variant[0], (0.5, 7), &GuestSystem::default()).unwrap_err();
        assert!(error.contains("no process is awaited"), "{error}");
    }
}
