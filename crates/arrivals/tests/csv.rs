// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of recorded times in CSV.
use std::io::Write;

use proptest::prelude::*;
use weir_arrivals::{Arrival, Packet, Pattern, What};

const CLOCK: u64 = 4_000_000;

fn saved(content: &[u8]) -> tempfile::NamedTempFile {
    let mut file = tempfile::Builder::new().suffix(".csv").tempfile().unwrap();
    file.write_all(content).unwrap();
    file
}

fn played(content: &str, options: &str, count: usize) -> Result<Vec<Arrival>, String> {
    let file = saved(content.as_bytes());
    let text = format!("trace:{}{options}", file.path().display());
    let pattern = Pattern::parse(&text, CLOCK).map_err(|error| error.to_string())?;
    assert_eq!(pattern.to_string(), text);
    let mut arrivals = pattern.start(CLOCK, 0).unwrap();
    let all = arrivals.by_ref().take(count).collect();
    assert!(arrivals.error().is_none());
    Ok(all)
}

fn times(content: &str, options: &str) -> Result<Vec<u64>, String> {
    Ok(played(content, options, 10)?
        .iter()
        .map(|arrival| arrival.at)
        .collect())
}

#[test]
fn both_units_are_read() {
    assert_eq!(times("time_us\n0\n1.5\n10\n", "").unwrap(), [0, 6, 40]);
    assert_eq!(
        times("# a recording\ncycle\n7\n7\n9\n", "").unwrap(),
        [7, 7, 9]
    );
    assert_eq!(played("cycle\n7\n", "", 9).unwrap()[0].what, What::Request);
}

#[test]
fn ports_and_flows_come_along() {
    let content = "time_us, flow, port\n1, telnet, 23\n2, modbus, 502\n3, telnet,\n4,,\n";
    let packet = |flow, port| {
        What::Packet(Packet {
            flow,
            port,
            ..Packet::default()
        })
    };
    let found: Vec<What> = played(content, "", 9)
        .unwrap()
        .iter()
        .map(|arrival| arrival.what)
        .collect();
    assert_eq!(
        found,
        [
            packet(Some(0), Some(23)),
            packet(Some(1), Some(502)),
            packet(Some(0), None),
            packet(None, None)
        ]
    );
    let file = saved(content.as_bytes());
    let text = format!("trace:{}", file.path().display());
    match Pattern::parse(&text, CLOCK).unwrap() {
        Pattern::File(recording) => {
            assert_eq!(recording.flows(), ["telnet", "modbus"]);
            assert_eq!(recording.count(), 4);
        }
        other => panic!("{other}"),
    }
}

#[test]
fn a_recording_can_be_played_faster_and_for_ever() {
    assert_eq!(
        times("cycle\n10\n20\n40\n", ":speed=2").unwrap(),
        [5, 10, 20]
    );
    assert_eq!(
        times("cycle\n10\n20\n40\n", ":speed=0.5").unwrap(),
        [20, 40, 80]
    );
    // The recording is 30 cycles long, with 15 cycles between arrivals on average. So the next
    // repetition begins 45 cycles later.
    assert_eq!(
        times("cycle\n10\n20\n40\n", ":repeat").unwrap(),
        [10, 20, 40, 55, 65, 85, 100, 110, 130, 145]
    );
    assert_eq!(
        times("cycle\n10\n20\n40\n", ":speed=5:repeat").unwrap()[..5],
        [2, 4, 8, 11, 13]
    );
}

#[test]
fn what_is_wrong_is_refused_with_its_line() {
    for (content, options, says) in [
        ("seconds\n1\n", "", "line 1: the header is `seconds`"),
        (
            "port,cycle\n1,1\n",
            "",
            "line 1: the header is `port,cycle`",
        ),
        ("cycle,cycle\n1,1\n", "", "it must be `time_us` or `cycle`"),
        (
            "cycle,port,port\n1,1,1\n",
            "",
            "it must be `time_us` or `cycle`",
        ),
        ("time_us\n1\nx\n", "", "line 3: `x` is not a time"),
        ("time_us\n-1\n", "", "line 2: `-1` is not a time"),
        ("time_us\nNaN\n", "", "line 2"),
        ("time_us\n1e300\n", "", "line 2"),
        ("cycle\n1.5\n", "", "line 2: `1.5` is not a cycle"),
        ("cycle\n5\n4\n", "", "line 3: 4 comes after 5: sort"),
        ("cycle,port\n5,65536\n", "", "line 2: `65536` is not a port"),
        ("cycle\n1,2\n", "", "line: 2"),
        ("cycle\n", "", "no edges"),
        ("", "", "the header is ``"),
        ("cycle\n1\n", ":repeat", "cannot be repeated"),
        ("cycle\n1\n1\n", ":repeat", "cannot be repeated"),
        (
            "cycle\n4000000000000000000\n",
            ":speed=0.5",
            "play it faster",
        ),
        ("\u{1f}\u{8b}", "", "the header is"),
    ] {
        let message = times(content, options).unwrap_err();
        assert!(message.contains(says), "{content:?}: {message}");
    }
}

#[test]
fn what_is_no_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let message = |text: &str| Pattern::parse(text, CLOCK).unwrap_err().to_string();
    assert!(message(&format!("trace:{}", folder.path().display())).contains("is not a file"));
    assert!(message("trace:/dev/null").contains("is not a file"));
    let packed = saved(&[0x1f, 0x8b, 8, 0]);
    assert!(message(&format!("trace:{}", packed.path().display())).contains("gunzip"));
}

#[test]
fn a_file_that_changes_behind_our_back_is_reported() {
    let file = saved(b"cycle\n1\n2\n3\n");
    let text = format!("trace:{}", file.path().display());
    let pattern = Pattern::parse(&text, CLOCK).unwrap();
    std::fs::write(file.path(), "cycle\n1\n2\nx\n").unwrap();
    let mut arrivals = pattern.start(CLOCK, 0).unwrap();
    assert_eq!(arrivals.by_ref().count(), 2);
    let error = arrivals.error().unwrap().to_string();
    assert!(error.contains("line 4: `x`"), "{error}");
    assert!(arrivals.next().is_none());
    std::fs::remove_file(file.path()).unwrap();
    assert!(pattern.start(CLOCK, 0).is_err());
}

proptest! {
    #![proptest_config(crate::cases(64, 256))]

    #[test]
    fn no_file_makes_it_panic(
        header in "(time_us|cycle)?(,port)?(,flow)?",
        rows in prop::collection::vec("[0-9]{0,20}[.e,-]?[0-9]{0,4}(,[0-9a-z]{0,6}){0,3}", 0..8),
        tail in prop::collection::vec(any::<u8>(), 0..8),
    ) {
        let mut content = format!("{header}\n{}\n", rows.join("\n")).into_bytes();
        content.extend(tail);
        let file = saved(&content);
        if let Ok(pattern) = Pattern::parse(&format!("trace:{}", file.path().display()), CLOCK) {
            let arrivals: Vec<u64> = pattern.start(CLOCK, 0).unwrap().map(|arrival| arrival.at).collect();
            prop_assert!(arrivals.is_sorted());
        }
    }
}
