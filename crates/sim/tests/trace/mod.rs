// SPDX-License-Identifier: MIT OR Apache-2.0
//! A reader gets back what was written as a trace.
mod reader;
mod sequences;

use std::cell::Cell;
use std::io::{self, Write};

use weir_model::{Nesting, System};
use weir_sim::trace::PerfettoTrace;
use weir_sim::{Loss, Observer, Queue, SimulationEvent, Track};

use self::reader::{Seen, Slice, read};

fn system() -> System {
    weir_model::parse("system.toml", include_str!("system.toml")).unwrap()
}

fn written(events: &[(u64, SimulationEvent)], end: u64) -> Vec<u8> {
    let mut trace = PerfettoTrace::new(Vec::new(), &system());
    for &(at, event) in events {
        trace.event(at, event);
    }
    trace.finish(end).unwrap()
}

fn seen(events: &[(u64, SimulationEvent)], end: u64) -> Seen {
    read(&written(events, end))
}

/// Returns a slice that ran from `begin` to `end`.
fn ran(track: &str, begin: u64, end: u64, flows: (Option<u64>, Option<u64>)) -> Slice {
    let (_, name) = track.rsplit_once('/').unwrap();
    // A track is called `VECTOR: NAME`; its slices are called NAME.
    let name = name.split_once(": ").map_or(name, |(_, name)| name);
    Slice {
        track: track.to_owned(),
        name: name.to_owned(),
        begin,
        end,
        flows,
    }
}

#[test]
fn there_is_a_track_for_everything_in_the_order_of_urgency() {
    let tracks = [
        "plant/sources/eth",
        "plant/sources/switch",
        "plant/interrupts/clock tick",
        "plant/interrupts/group 2/TIM3: limit of eth",
        "plant/interrupts/group 1/EXTI4: switch",
        "plant/interrupts/group 1/TIM2: timer slow",
        "plant/interrupts/group 1/ETH: eth",
        "plant/bottom halves/modbus",
        "plant/bottom halves/rest",
        "plant/bottom halves/eth: no receiver",
        "plant/bottom halves/switch: no receiver",
        "plant/tasks/control",
        "plant/tasks/log",
        "plant/queues/eth: in the device",
        "plant/queues/eth: no receiver",
        "plant/queues/switch: in the device",
        "plant/queues/switch: no receiver",
        "plant/queues/rest: for the bottom half",
        "plant/queues/modbus: for the bottom half",
        "plant/queues/log: at the receiver",
        "plant/queues/control: at the receiver",
    ];
    assert_eq!(seen(&[], 0).tracks, tracks);
}

#[test]
fn interrupts_that_do_not_nest_stand_in_one_group() {
    let mut system = system();
    system.cpu.nesting = Nesting::Flat;
    let trace = PerfettoTrace::new(Vec::new(), &system);
    let tracks = read(&trace.finish(0).unwrap()).tracks;
    let interrupts = [
        "plant/interrupts/clock tick",
        "plant/interrupts/EXTI4: switch",
        "plant/interrupts/TIM2: timer slow",
        "plant/interrupts/TIM3: limit of eth",
        "plant/interrupts/ETH: eth",
    ];
    assert_eq!(tracks[2..7], interrupts);
}

#[test]
fn a_preempted_job_is_parts_that_a_flow_joins() {
    let (task, eth, timer) = (Track::Task(1), Track::Request(0), Track::Expiry(0));
    let seen = seen(
        &[
            (16, SimulationEvent::Starts(task)),
            (32, SimulationEvent::Stops(task)),
            (32, SimulationEvent::Starts(eth)),
            (48, SimulationEvent::Stops(eth)),
            (48, SimulationEvent::Starts(timer)),
            (64, SimulationEvent::Ends(timer)),
            (64, SimulationEvent::Resumes(eth)),
            (80, SimulationEvent::Ends(eth)),
            (80, SimulationEvent::Resumes(task)),
            (96, SimulationEvent::Stops(task)),
            (96, SimulationEvent::Starts(eth)),
            (112, SimulationEvent::Ends(eth)),
            (112, SimulationEvent::Resumes(task)),
            (128, SimulationEvent::Ends(task)),
            (144, SimulationEvent::Starts(task)),
            (160, SimulationEvent::Ends(task)),
        ],
        160,
    );
    let task = "plant/tasks/control";
    let eth = "plant/interrupts/group 1/ETH: eth";
    let timer = "plant/interrupts/group 2/TIM3: limit of eth";
    // 16 cycles are a microsecond.
    let expected = [
        ran(task, 1000, 2000, (None, Some(1))),
        ran(eth, 2000, 3000, (None, Some(2))),
        ran(timer, 3000, 4000, (None, None)),
        ran(eth, 4000, 5000, (Some(2), None)),
        ran(task, 5000, 6000, (Some(1), None)),
        ran(eth, 6000, 7000, (None, None)),
        ran(task, 7000, 8000, (Some(1), None)),
        ran(task, 9000, 10_000, (None, None)),
    ];
    assert_eq!(seen.slices, expected);
}

#[test]
fn a_source_shows_what_it_asks_and_when_it_is_masked() {
    let mut events = vec![
        (16, SimulationEvent::Arrived(0)),
        (16, SimulationEvent::Masked(0)),
        // Some ports mask a source that is already masked.
        (32, SimulationEvent::Masked(0)),
        (48, SimulationEvent::Unmasked(0)),
        (64, SimulationEvent::Unmasked(0)),
        (80, SimulationEvent::Masked(0)),
    ];
    // A burst in one cycle is written once for each reason.
    events.extend([(96, SimulationEvent::Arrived(0)); 600]);
    events.extend(Loss::ALL.map(|why| (96, SimulationEvent::Lost(0, why))));
    events.extend(Loss::ALL.map(|why| (96, SimulationEvent::Lost(0, why))));
    events.push((96, SimulationEvent::Arrived(1)));
    let seen = seen(&events, 112);
    let masked = |begin, end| Slice {
        name: "masked".to_owned(),
        ..ran("plant/sources/eth", begin, end, (None, None))
    };
    // A source that is masked at the end of the run has a slice that lasts until the end.
    assert_eq!(seen.slices, [masked(1000, 3000), masked(5000, 7000)]);
    let lost = [
        "pending already",
        "masked",
        "device full",
        "no receiver, seen by the card",
        "no receiver",
        "over budget",
        "queue full",
        "backlog full",
    ];
    let eth = "plant/sources/eth".to_owned();
    let mut expected = vec![
        (1000, eth.clone(), "arrived".to_owned()),
        (6000, eth.clone(), "arrived".to_owned()),
    ];
    expected.extend(lost.map(|why| (6000, eth.clone(), format!("lost: {why}"))));
    expected.push((
        6000,
        "plant/sources/switch".to_owned(),
        "arrived".to_owned(),
    ));
    assert_eq!(seen.notes, expected);
}

#[test]
fn releases_misses_and_queues_are_shown() {
    let seen = seen(
        &[
            (1, SimulationEvent::Released(1)),
            (2, SimulationEvent::Missed(0)),
            (3, SimulationEvent::Depth(Queue::Device(1), 3)),
            (3, SimulationEvent::Depth(Queue::Orphans(0), 2)),
            (4, SimulationEvent::Depth(Queue::Deferred(1), 1)),
            (5, SimulationEvent::Depth(Queue::Backlog(0), u64::MAX)),
        ],
        5,
    );
    let note = |at, task: &str, what: &str| (at, format!("plant/tasks/{task}"), what.to_owned());
    assert_eq!(
        seen.notes,
        [
            note(62, "control", "released"),
            note(125, "log", "deadline missed")
        ]
    );
    let depth = |at, queue: &str, waiting| (at, format!("plant/queues/{queue}"), waiting);
    assert_eq!(
        seen.depths,
        [
            depth(187, "switch: in the device", 3),
            depth(187, "eth: no receiver", 2),
            depth(250, "modbus: for the bottom half", 1),
            depth(312, "log: at the receiver", i64::MAX),
        ]
    );
}

/// Checks the field numbers. Perfetto's own classes (`perfetto_trace_pb2` of the Python package
/// perfetto 0.59) decode these bytes to the text in the comments.
#[test]
fn the_bytes_are_those_of_perfettos_messages() {
    let task = Track::Task(1);
    let bytes = written(
        &[
            (16, SimulationEvent::Starts(task)),
            (32, SimulationEvent::Stops(task)),
            (48, SimulationEvent::Resumes(task)),
            (64, SimulationEvent::Ends(task)),
            (64, SimulationEvent::Released(1)),
            (64, SimulationEvent::Depth(Queue::Device(0), 300)),
        ],
        64,
    );
    let packets = [
        // trusted_packet_sequence_id: 1 (in every packet), sequence_flags: 1 system_info {
        // tracing_service_version: "weir simulate 0.1.0" }
        (
            "0a1c50016801",
            "ea02152213776569722073696d756c61746520302e312e30",
        ),
        // interned_data { event_names { iid: 1
        // name: "arrived" } … (423 bytes) } sequence_flags: 2
        ("0aae035001", "62a703120b0801120761727269766564"),
        // track_descriptor { uuid: 1 name: "plant" child_ordering: EXPLICIT sibling_order_rank: 0
        // description: "Processor time and queues, in virtual time" }
        (
            "0a3e5001",
            "e2033908011205706c616e7458036000722a50726f636573736f722074696d6520616e64207175657565732c20696e207669727475616c2074696d65",
        ),
        // track_descriptor { uuid: 24 name: "eth: in the device" parent_uuid: 6 counter { unit:
        // UNIT_COUNT } sibling_order_rank: 21 }
        (
            "0a235001",
            "e2031e081812126574683a20696e20746865206465766963652806420218026015",
        ),
        // timestamp: 1000 track_event { type: TYPE_SLICE_BEGIN name_iid: 34 track_uuid: 34 }
        // sequence_flags: 2
        ("0a0f40e8075001", "5a064801502258226802"),
        // timestamp: 2000 track_event { type: TYPE_SLICE_END track_uuid: 34 flow_ids: 1 }
        ("0a1540d00f5001", "5a0e48025822f9020100000000000000"),
        // timestamp: 3000 track_event { type: TYPE_SLICE_BEGIN name_iid: 34 track_uuid: 34
        // flow_ids: 1 } sequence_flags: 2
        ("0a1940b8175001", "5a10480150225822f90201000000000000006802"),
        // timestamp: 4000 track_event { type: TYPE_SLICE_END track_uuid: 34 }
        ("0a0b40a01f5001", "5a0448025822"),
        // timestamp: 4000 track_event { type: TYPE_INSTANT name_iid: 3 track_uuid: 34 }
        // sequence_flags: 2
        ("0a0f40a01f5001", "5a064803500358226802"),
        // timestamp: 4000 track_event { type: TYPE_COUNTER track_uuid: 24 counter_value: 300 }
        ("0a0f40a01f5001", "5a0848045818f001ac02"),
    ];
    let hex: String = bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect();
    let mut from = 0;
    for (head, content) in packets {
        let packet = format!("{head}{content}");
        let at = hex[from..].find(&packet).expect(&packet);
        from += at + packet.len();
    }
}

/// A writer with a capacity of this many bytes.
struct Disk(usize);

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0 == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let written = bytes.len().min(self.0);
        self.0 -= written;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_reported_at_the_end() {
    for room in [0, 1000, 100_000] {
        let mut trace = PerfettoTrace::new(Disk(room), &system());
        for at in 0..100_000 {
            trace.event(at, SimulationEvent::Arrived(0));
        }
        let error = trace.finish(100_000).err().expect("the disk is full");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}

#[test]
fn a_long_run_does_not_stay_in_memory() {
    struct Counted<'a>(&'a Cell<usize>);
    impl Write for Counted<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.set(self.0.get() + bytes.len());
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let written = Cell::new(0);
    let mut trace = PerfettoTrace::new(Counted(&written), &system());
    for at in 0..100_000 {
        trace.event(at, SimulationEvent::Arrived(0));
    }
    let before = written.get();
    trace.finish(100_000).unwrap();
    assert!(
        before > 1_000_000 && written.get() - before < 70_000,
        "{before} of {written:?}"
    );
}

#[test]
fn what_was_written_before_a_flush_fails_is_not_called_whole() {
    struct Unflushed;
    impl Write for Unflushed {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Err(io::ErrorKind::StorageFull.into())
        }
    }
    assert!(PerfettoTrace::new(Unflushed, &system()).finish(0).is_err());
}

#[test]
fn an_observer_can_be_left_out_at_run_time() {
    let mut none: Option<PerfettoTrace<Vec<u8>>> = None;
    none.event(0, SimulationEvent::Arrived(0));
    let mut some = Some(PerfettoTrace::new(Vec::new(), &system()));
    some.event(0, SimulationEvent::Arrived(0));
    let notes = read(&some.unwrap().finish(0).unwrap()).notes;
    assert_eq!(notes.len(), 1);
}
