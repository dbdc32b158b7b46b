// SPDX-License-Identifier: MIT OR Apache-2.0
//! Small runs, in which the instant of every event was computed by hand.

use crate::common::{LINE, TASK, feed, flat, grouped, options, run};
use weir_sim::tally::Stage;
use weir_sim::{
    Batches, CostSpreads, Defer, Loss, Queue, SimulationEvent, Spread, Tick, Ties, Track,
    options::Compensation,
};

#[test]
fn an_interrupt_takes_its_time_from_the_task_that_runs() {
    let system = flat(&format!("{LINE}{TASK}"));
    let mut options = options(1000);
    // Requests arrive at 50 and every 500 cycles after that.
    options.feeds = vec![feed(&system, "line", "2kHz:phase=50us")];
    let (tally, log) = run(&system, &options);
    let about = |(at, event): &(u64, SimulationEvent)| match event {
        SimulationEvent::Starts(_)
        | SimulationEvent::Stops(_)
        | SimulationEvent::Resumes(_)
        | SimulationEvent::Ends(_)
        | SimulationEvent::Missed(_) => Some((*at, *event)),
        _ => None,
    };
    let (task, line) = (Track::Task(0), Track::Request(0));
    let seen: Vec<(u64, SimulationEvent)> = log.0.iter().filter_map(about).collect();
    assert_eq!(
        seen,
        [
            (0, SimulationEvent::Starts(task)),
            (50, SimulationEvent::Stops(task)),
            (50, SimulationEvent::Starts(line)),
            (80, SimulationEvent::Ends(line)),
            (80, SimulationEvent::Resumes(task)),
            (125, SimulationEvent::Ends(task)),
            (125, SimulationEvent::Missed(0)),
            (550, SimulationEvent::Starts(line)),
            (580, SimulationEvent::Ends(line)),
        ]
    );
    let task = &tally.tasks[0];
    assert_eq!((task.released, task.ended, task.missed), (1, 1, 1));
    assert_eq!((task.responses.most(), task.lateness), (Some(125), 25));
    assert_eq!((task.ran, task.interrupted), (95, 30));
    assert_eq!(tally.stages.of(Stage::Handlers), 60);
    assert_eq!(tally.stages.of(Stage::Idle), 1000 - 60 - 95);
}

#[test]
fn a_pending_bit_is_one_deep() {
    let system = flat(LINE);
    let mut options = options(1000);
    // The first request is taken at 100. Those of 105 and 110 come during its interrupt; one stays
    // pending, and the other is lost.
    options.feeds = vec![feed(&system, "line", "bursts:3:gap=5us:period=900us")];
    let (tally, log) = run(&system, &options);
    let first = log.instants(SimulationEvent::Arrived(0))[0];
    assert_eq!(
        log.instants(SimulationEvent::Starts(Track::Request(0)))[..2],
        [first, first + 30]
    );
    assert_eq!(
        log.instants(SimulationEvent::Lost(0, Loss::Pending))[0],
        first + 10
    );
    assert!(tally.sources[0].lost.of(Loss::Pending) >= 1);
}

#[test]
fn interrupts_nest_by_group_and_queue_by_order() {
    let sources = r#"
[[source]]
name = "low"
vector = "LOW"
group = 1
order = 9
handler = "90 cycles"
max_work = 1
[[source]]
name = "second"
vector = "SECOND"
group = 2
order = 7
handler = "20 cycles"
max_work = 1
[[source]]
name = "first"
vector = "FIRST"
group = 2
order = 3
handler = "20 cycles"
max_work = 1
"#;
    let feeds = |system: &weir_model::System| {
        vec![
            feed(system, "low", "1kHz"),
            feed(system, "second", "1kHz:phase=10us"),
            feed(system, "first", "1kHz:phase=20us"),
        ]
    };
    let starts = |log: &crate::common::Log| {
        [0, 1, 2].map(|source| log.instants(SimulationEvent::Starts(Track::Request(source)))[0])
    };
    let system = grouped(sources);
    let mut nested = options(900);
    nested.feeds = feeds(&system);
    let (_, log) = run(&system, &nested);
    // "second" preempts "low" at 10. "first" is in the same group as "second", so it waits until
    // 40. It runs before "low", which resumes at 70.
    assert_eq!(starts(&log), [0, 10, 40]);
    assert_eq!(
        log.instants(SimulationEvent::Resumes(Track::Request(0))),
        [70]
    );
    assert_eq!(
        log.instants(SimulationEvent::Ends(Track::Request(0))),
        [160]
    );

    let system = flat(
        &sources
            .replace("group = 1\n", "")
            .replace("group = 2\n", ""),
    );
    let mut queued = options(900);
    queued.feeds = feeds(&system);
    let (_, log) = run(&system, &queued);
    // Nothing preempts "low", which ends at 100. The others follow by their order.
    assert_eq!(starts(&log), [0, 130, 100]);
}

const NETWORK: &str = r#"
[[source]]
name = "eth"
vector = "ETH"
order = 1
handler = "20 cycles"
max_work = 4
queue = 8
[[receiver]]
name = "urgent"
urgency = 20
wcet = "40us"
backlog = 2
[[receiver]]
name = "busy"
urgency = 10
period = "1ms"
wcet = "500us"
deadline = "1ms"
[[receiver]]
name = "idle"
urgency = 5
wcet = "10us"
backlog = 2
[[flow]]
name = "control"
source = "eth"
receiver = "urgent"
top_half = "5 cycles"
demux = "3 cycles"
bottom_half = "50 cycles"
queue = 4
[[flow]]
name = "bulk"
source = "eth"
receiver = "idle"
top_half = "5 cycles"
demux = "3 cycles"
bottom_half = "70 cycles"
queue = 4
"#;

#[test]
fn a_bottom_half_waits_for_its_receivers_urgency() {
    let system = flat(NETWORK);
    let mut options = options(1000);
    options.feeds = vec![
        feed(&system, "bulk", "1kHz:phase=100us"),
        feed(&system, "control", "1kHz:phase=200us"),
    ];
    let (tally, log) = run(&system, &options);
    // Both interrupts take 10 + 20 + 5 + 3 cycles. The urgent bottom half runs at once, followed by
    // its receiver. The other one waits until "busy" is done.
    assert_eq!(
        log.instants(SimulationEvent::Starts(Track::BottomHalf(0))),
        [238]
    );
    assert_eq!(log.instants(SimulationEvent::Starts(Track::Task(0))), [288]);
    let busy_ends = 500 + 2 * 38 + 50 + 40;
    assert_eq!(
        log.instants(SimulationEvent::Ends(Track::Task(1))),
        [busy_ends]
    );
    assert_eq!(
        log.instants(SimulationEvent::Starts(Track::BottomHalf(1))),
        [busy_ends]
    );
    assert_eq!(
        log.instants(SimulationEvent::Ends(Track::Task(2))),
        [busy_ends + 70 + 10]
    );
    assert_eq!(tally.flows[0].latencies.most(), Some(88));
    assert_eq!(tally.flows[1].latencies.most(), Some(busy_ends + 70 - 100));
    assert_eq!(tally.stages.of(Stage::Demux), 6);
    assert_eq!(tally.tasks[1].interrupted, 2 * 38 + 50);
    assert_eq!(tally.tasks[1].interrupted_by_bottom_halves, 50);
    assert_eq!((tally.tasks[0].charged, tally.tasks[2].charged), (88, 108));

    options.defer = Defer::Immediate;
    let (tally, log) = run(&system, &options);
    // Without demultiplexing (35 cycles per interrupt) both bottom halves run right after their top
    // halves. The first has 5 cycles left when the second packet comes.
    assert_eq!(
        log.instants(SimulationEvent::Starts(Track::BottomHalf(1))),
        [135]
    );
    assert_eq!(
        log.instants(SimulationEvent::Starts(Track::BottomHalf(0))),
        [240]
    );
    assert_eq!(tally.tasks[1].interrupted_by_bottom_halves, 120);
}

#[test]
fn ties_wait_or_run() {
    let system = flat(&NETWORK.replace("urgency = 5", "urgency = 10"));
    let mut options = options(1000);
    options.feeds = vec![feed(&system, "bulk", "1kHz:phase=100us")];
    let (_, log) = run(&system, &options);
    assert_eq!(
        log.instants(SimulationEvent::Starts(Track::BottomHalf(1))),
        [138]
    );
    options.defer = Defer::Exact(Ties::Wait);
    let (_, log) = run(&system, &options);
    assert_eq!(
        log.instants(SimulationEvent::Starts(Track::BottomHalf(1))),
        [538]
    );
}

#[test]
fn queues_are_as_long_as_stated_and_losses_have_their_reasons() {
    let system = flat(NETWORK);
    let mut options = options(450);
    // 20 packets arrive while "busy" runs. The device hands up to 4 at a time to a queue of 4.
    options.feeds = vec![feed(&system, "bulk", "bursts:20:gap=1us:period=10ms")];
    let (tally, log) = run(&system, &options);
    let flow = &tally.flows[1];
    assert_eq!(flow.arrived, 20);
    assert_eq!(flow.delivered, 0, "its receiver's turn has not come");
    let lost = &flow.lost;
    // The first interrupt takes the only packet in the device, which leaves the device at the end
    // of the interrupt. Of the 19 packets that come meanwhile, 7 fit into the device.
    assert_eq!(lost.of(Loss::DeviceFull), 12);
    assert_eq!(lost.of(Loss::QueueFull), 1 + 7 - 4);
    assert_eq!(
        log.instants(SimulationEvent::Depth(Queue::Device(0), 8))
            .len(),
        1
    );

    options.duration = 1000;
    let (tally, _) = run(&system, &options);
    // The bottom halves are as urgent as their receiver and go first. So two of the four queued
    // packets find the receiver's backlog full.
    assert_eq!(tally.flows[1].delivered, 2);
    assert_eq!(tally.flows[1].lost.of(Loss::BacklogFull), 2);
    assert_eq!(tally.tasks[2].received, 2);
    options.defer = Defer::Exact(Ties::Wait);
    let (tally, _) = run(&system, &options);
    assert_eq!(
        tally.flows[1].delivered, 4,
        "each waits for the receiver's job"
    );
    assert_eq!(tally.tasks[2].received, 4);
}

#[test]
fn a_moderated_device_interrupts_once_per_window_and_drops_what_is_for_nobody() {
    let moderated = NETWORK.replace(
        "queue = 8",
        "queue = 8\nmoderation = { absolute = \"300us\", count = 3 }",
    );
    let system = flat(&moderated);
    let mut options = options(3000);
    options.feeds = vec![feed(&system, "bulk", "1kHz:phase=100us")];
    let (_, log) = run(&system, &options);
    assert_eq!(
        log.instants(SimulationEvent::Starts(Track::Request(0))),
        [400, 1400, 2400]
    );
    // Every third packet completes a count of 3, within 300 cycles of the first packet.
    options.feeds = vec![feed(&system, "bulk", "10kHz:phase=100us")];
    let (_, log) = run(&system, &options);
    assert_eq!(
        log.instants(SimulationEvent::Starts(Track::Request(0)))[..2],
        [300, 600]
    );
    options.feeds = vec![feed(&system, "eth", "10kHz")];
    let (tally, _) = run(&system, &options);
    assert_eq!(tally.sources[0].interrupts, 0);
    assert_eq!(tally.sources[0].lost.of(Loss::NoReceiver), 30);
    options.moderation = false;
    let (tally, _) = run(&system, &options);
    assert!(tally.sources[0].interrupts > 0);
    assert!(tally.sources[0].lost.of(Loss::Orphan) > 0);
    assert!(tally.orphans > 0);
}

#[test]
fn equals_take_turns_if_time_is_sliced() {
    let tasks = r#"
[[receiver]]
name = "one"
urgency = 5
period = "10ms"
wcet = "250us"
[[receiver]]
name = "two"
urgency = 5
period = "10ms"
wcet = "150us"
"#;
    let ends = |system: &weir_model::System| {
        let (_, log) = run(system, &options(1000));
        [0, 1].map(|task| log.instants(SimulationEvent::Ends(Track::Task(task))))
    };
    let text = crate::common::CPU.replace("INTERRUPTS", "flat");
    assert_eq!(
        ends(&crate::common::parse(&format!("{text}{tasks}"))),
        [[250], [400]]
    );
    let sliced = text.replace("[cpu.costs]", "time_slice = \"100us\"\n[cpu.costs]");
    // The numbers of packets are: one until 100, two until 200, one until 300, two until 350, one
    // until 400.
    assert_eq!(
        ends(&crate::common::parse(&format!("{sliced}{tasks}"))),
        [[400], [350]]
    );
}

#[test]
fn cooperative_tasks_run_to_their_end() {
    let tasks = r#"
[[receiver]]
name = "urgent"
urgency = 9
period = "100us"
wcet = "10us"
[[receiver]]
name = "long"
urgency = 1
period = "1ms"
wcet = "300us"
"#;
    let text = crate::common::CPU.replace("INTERRUPTS", "flat");
    let cooperative = text.replace("[cpu.costs]", "tasks = \"cooperative\"\n[cpu.costs]");
    let (_, log) = run(
        &crate::common::parse(&format!("{cooperative}{tasks}")),
        &options(500),
    );
    assert_eq!(log.instants(SimulationEvent::Ends(Track::Task(1))), [310]);
    // Three releases have waited; their jobs run one after the other.
    assert_eq!(
        log.instants(SimulationEvent::Ends(Track::Task(0))),
        [10, 320, 330, 340, 410]
    );
}

#[test]
fn a_batch_costs_its_waking_and_what_does_not_fit() {
    let system = flat(
        r#"
[[source]]
name = "eth"
vector = "E"
order = 0
handler = "20 cycles"
max_work = 8
moderation = { absolute = "300us" }
[[receiver]]
name = "server"
urgency = 1
[[flow]]
name = "bulk"
source = "eth"
receiver = "server"
bottom_half = "50 cycles"
"#,
    );
    let spent = |wake, room, beyond| {
        let mut options = options(9_900);
        options.costs.batches = Batches { wake, room, beyond };
        // Batches of four packets arrive 400 cycles apart. Each batch is handled before the next.
        options.feeds = vec![feed(&system, "bulk", "10kHz:phase=50us")];
        let (tally, _) = run(&system, &options);
        assert_eq!(tally.sources[0].interrupts, 24);
        tally.stages.of(Stage::BottomHalves)
    };
    let packets = 24 * 4 * 50;
    assert_eq!(spent(0, 0, 0), packets);
    assert_eq!(spent(7, 0, 0), packets + 24 * 7);
    // Two packets of each batch start while more than two wait.
    assert_eq!(spent(0, 2, 5), packets + 24 * 2 * 5);
    assert_eq!(spent(0, 4, 5), packets);
}

#[test]
fn a_tick_charges_whoever_runs_and_compensation_takes_it_back() {
    let system = flat(NETWORK);
    let ticks = |compensation, defer| {
        let mut options = options(1_000_000);
        options.defer = defer;
        options.costs = CostSpreads::all(Spread::Worst);
        options.tick = Some(Tick {
            period: 1000,
            cost: 0,
            compensation,
        });
        // "busy" is constantly interrupted by packets for "idle".
        options.feeds = vec![feed(&system, "bulk", "2kHz")];
        options.closed_loops = vec![None, Some(1_000_000)];
        let (tally, _) = run(&system, &options);
        (
            tally.tasks[1].ticks,
            tally.tasks[1].ran,
            tally.tasks[1].interrupted_by_bottom_halves,
        )
    };
    let (charged, ran, taken) = ticks(Compensation::None, Defer::Immediate);
    assert_eq!(charged, 999, "all ticks are its own");
    assert_eq!(taken, 2000 * 70);
    assert_eq!(ran, 1_000_000 - 2000 * (70 + 35));
    let (charged, _, _) = ticks(Compensation::Measured, Defer::Immediate);
    assert!((charged - (999 - 210)).abs() <= 1, "{charged}");
    let (charged, _, _) = ticks(Compensation::Counted, Defer::Immediate);
    // In the paper N is a whole number of packets: 14 packets of 70 cycles make a tick of 1000.
    assert_eq!(charged, 999 - 2000 / 14);
    let (charged, _, taken) = ticks(Compensation::Measured, Defer::Exact(Ties::Run));
    assert_eq!((charged, taken), (999, 0), "nothing to compensate for");
}

#[test]
fn a_bottom_half_that_costs_nothing_is_none() {
    let system = flat(&NETWORK.replace("bottom_half = \"70 cycles\"\n", ""));
    let mut options = options(1000);
    options.feeds = vec![feed(&system, "bulk", "1kHz:phase=100us")];
    let (tally, log) = run(&system, &options);
    // The top half delivers the packet at 138, whatever runs then. The receiver waits for its turn.
    assert_eq!(tally.flows[1].latencies.most(), Some(38));
    assert_eq!(log.instants(SimulationEvent::Released(2)), [138]);
    assert_eq!(log.instants(SimulationEvent::Ends(Track::Task(2))), [548]);
}

#[test]
fn each_job_begins_with_a_whole_slice() {
    let tasks = r#"
[[receiver]]
name = "often"
urgency = 5
period = "200us"
wcet = "60us"
[[receiver]]
name = "long"
urgency = 5
period = "10ms"
wcet = "300us"
"#;
    let text = crate::common::CPU.replace("INTERRUPTS", "flat");
    let sliced = text.replace("[cpu.costs]", "time_slice = \"100us\"\n[cpu.costs]");
    let (_, log) = run(
        &crate::common::parse(&format!("{sliced}{tasks}")),
        &options(500),
    );
    // The second job is released at 200, behind "long". "long" uses up slices since 60 and since
    // 160, so that the job starts at 260 and runs to its end.
    assert_eq!(
        log.instants(SimulationEvent::Ends(Track::Task(0)))[..2],
        [60, 320]
    );
}

#[test]
fn a_cooperative_loop_that_ends_under_an_interrupt_gives_the_processor_back() {
    let tasks = r#"
[[receiver]]
name = "loop"
urgency = 9
period = "10ms"
wcet = "1us"
[[receiver]]
name = "other"
urgency = 1
period = "10ms"
wcet = "100us"
"#;
    let text = crate::common::CPU.replace("INTERRUPTS", "flat");
    let cooperative = text.replace("[cpu.costs]", "tasks = \"cooperative\"\n[cpu.costs]");
    let system = crate::common::parse(&format!("{cooperative}{LINE}{tasks}"));
    let mut options = options(1000);
    // The closed loop is over at 200, while the interrupt lasts from 190 to 220.
    options.closed_loops = vec![Some(200)];
    options.feeds = vec![feed(&system, "line", "1kHz:phase=190us")];
    let (_, log) = run(&system, &options);
    assert_eq!(log.instants(SimulationEvent::Starts(Track::Task(1))), [220]);
}
