// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recorded packets are assigned to their flows.

use std::io::Write;

use crate::common::{feed, flat, options, run};
use weir_sim::{Loss, SimulationError, simulate};

const PLAIN: &str = r#"
[[source]]
name = "eth"
vector = "ETH"
order = 1
handler = "20 cycles"
max_work = 4
[[receiver]]
name = "control"
urgency = 20
[[receiver]]
name = "rest"
urgency = 10
[[flow]]
name = "modbus"
source = "eth"
receiver = "control"
selector = { protocol = "tcp", port = 502 }
[[flow]]
name = "names"
source = "eth"
receiver = "rest"
selector = { port = 53 }
"#;

/// Returns the text of a pattern that plays these rows.
fn recording(rows: &str) -> (tempfile::NamedTempFile, String) {
    let mut file = tempfile::Builder::new()
        .suffix(".csv")
        .tempfile()
        .expect("a file");
    file.write_all(rows.as_bytes())
        .expect("it takes a few bytes");
    let pattern = format!("trace:{}", file.path().display());
    (file, pattern)
}

#[test]
fn packets_go_by_port_and_what_is_for_nobody_is_an_orphan() {
    let system = flat(PLAIN);
    let (_file, pattern) = recording("time_us,port\n100,502\n200,53\n300,53\n400,9\n");
    let mut options = options(1000);
    options.feeds = vec![feed(&system, "eth", &pattern)];
    let (tally, _) = run(&system, &options);
    assert_eq!([0, 1].map(|flow| tally.flows[flow].delivered), [1, 2]);
    assert_eq!(tally.sources[0].arrived, 4);
    assert_eq!(tally.sources[0].lost.of(Loss::Orphan), 1);
}

#[test]
fn a_network_card_sorts_what_was_recorded_on_its_wire() {
    let card = PLAIN.replace(
        "[[receiver]]\nname = \"control\"",
        "moderation = { absolute = \"1ms\" }\n[[source]]\nname = \"second\"\nvector = \"ETH2\"\norder = 2\nhandler = \"20 cycles\"\n\
         max_work = 4\nmoderation = { absolute = \"100us\" }\n[[receiver]]\nname = \"control\"",
    );
    let system = flat(&card.replace(
        "name = \"names\"\nsource = \"eth\"",
        "name = \"names\"\nsource = \"second\"",
    ));
    let (_file, pattern) = recording("time_us,port\n100,502\n200,53\n300,9\n");
    let mut options = options(3000);
    options.feeds = vec![feed(&system, "eth", &pattern)];
    let (tally, _) = run(&system, &options);
    assert_eq!([0, 1].map(|flow| tally.flows[flow].delivered), [1, 1]);
    assert_eq!([0, 1].map(|source| tally.sources[source].arrived), [2, 1]);
    assert_eq!(tally.sources[0].lost.of(Loss::NoReceiver), 1);
}

#[test]
fn a_recording_may_name_flows_and_only_those_that_there_are() {
    let system = flat(PLAIN);
    let mut options = options(1000);
    let (_file, pattern) = recording("time_us,flow\n100,names\n200,modbus\n300,names\n");
    options.feeds = vec![feed(&system, "eth", &pattern)];
    let (tally, _) = run(&system, &options);
    assert_eq!([0, 1].map(|flow| tally.flows[flow].delivered), [1, 2]);
    let (_file, pattern) = recording("time_us,flow\n100,names\n200,nobody\n");
    options.feeds = vec![feed(&system, "eth", &pattern)];
    let error = simulate(&system, &options).expect_err("there is no such flow");
    assert!(matches!(error, SimulationError::UnknownFlow(name) if name == "nobody"));
}

#[test]
fn a_recording_that_is_cut_off_during_the_run_is_no_run() {
    let system = flat(PLAIN);
    let mut options = options(10_000_000);
    let rows: String = (0..100_000)
        .flat_map(|row| [(row * 50).to_string(), "\n".to_owned()])
        .collect();
    let (file, pattern) = recording(&format!("time_us\n{rows}"));
    options.feeds = vec![feed(&system, "modbus", &pattern)];
    // The file was valid when it was checked. Now it is cut in the middle of a row.
    file.as_file()
        .set_len(rows.len() as u64 / 2 + 1)
        .expect("it can be cut");
    let error = simulate(&system, &options).expect_err("it was cut");
    assert!(matches!(error, SimulationError::Recording(_)), "{error}");
}
