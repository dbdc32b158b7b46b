// SPDX-License-Identifier: MIT OR Apache-2.0
//! Captures that another library writes, and the errors that captures can have.
use std::io::Write;
use std::time::Duration;

use etherparse::PacketBuilder;
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::simple_packet::SimplePacketBlock;
use pcap_file::{DataLink, Endianness, TsResolution};
use proptest::prelude::*;
use weir_arrivals::{Arrival, Packet, Pattern, Protocol, What};

const CLOCK: u64 = 4_000_000;
const ENDS: [Endianness; 2] = [Endianness::Big, Endianness::Little];

fn udp(port: u16) -> Vec<u8> {
    let mut frame = Vec::new();
    PacketBuilder::ethernet2([1; 6], [2; 6])
        .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
        .udp(9999, port)
        .write(&mut frame, b"news")
        .unwrap();
    frame
}

fn tcp_in_vlan(port: u16) -> Vec<u8> {
    let mut frame = Vec::new();
    PacketBuilder::ethernet2([1; 6], [2; 6])
        .single_vlan(7.try_into().unwrap())
        .ipv6([1; 16], [2; 16], 64)
        .tcp(9999, port, 0, 100)
        .write(&mut frame, b"news")
        .unwrap();
    frame
}

fn ping() -> Vec<u8> {
    let mut frame = Vec::new();
    PacketBuilder::ethernet2([1; 6], [2; 6])
        .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
        .icmpv4_echo_request(1, 2)
        .write(&mut frame, b"news")
        .unwrap();
    frame
}

/// Returns a pcap file with packets at these times, in nanoseconds.
fn pcap(
    link: DataLink,
    endianness: Endianness,
    ts_resolution: TsResolution,
    packets: &[(u64, Vec<u8>)],
) -> Vec<u8> {
    let header = PcapHeader {
        datalink: link,
        endianness,
        ts_resolution,
        ..PcapHeader::default()
    };
    let mut writer = PcapWriter::with_header(Vec::new(), header).unwrap();
    for (nanoseconds, frame) in packets {
        let length = u32::try_from(frame.len()).unwrap();
        writer
            .write_packet(&PcapPacket::new(
                Duration::from_nanos(*nanoseconds),
                length,
                frame,
            ))
            .unwrap();
    }
    writer.into_writer()
}

fn good(packets: &[(u64, Vec<u8>)]) -> Vec<u8> {
    pcap(
        DataLink::ETHERNET,
        Endianness::Little,
        TsResolution::NanoSecond,
        packets,
    )
}

/// Returns a pcapng file with packets at these times, in units of an interface whose resolution is
/// given by a pcapng option.
fn pcapng(
    endianness: Endianness,
    interfaces: &[(DataLink, Option<u8>)],
    packets: &[(u32, u64, Vec<u8>)],
) -> Vec<u8> {
    let mut writer = PcapNgWriter::with_endianness(Vec::new(), endianness).unwrap();
    for (link, resolution) in interfaces {
        let mut block = InterfaceDescriptionBlock::new(*link, 65535);
        block
            .options
            .extend(resolution.map(InterfaceDescriptionOption::IfTsResol));
        writer.write_pcapng_block(block).unwrap();
    }
    for (interface, units, frame) in packets {
        writer
            .write_pcapng_block(EnhancedPacketBlock {
                interface_id: *interface,
                // The writer takes nanoseconds for units, whatever the interface states.
                timestamp: Duration::from_nanos(*units),
                original_len: u32::try_from(frame.len()).unwrap(),
                data: frame.into(),
                options: Vec::new(),
            })
            .unwrap();
    }
    writer.into_inner()
}

fn saved(content: &[u8]) -> tempfile::NamedTempFile {
    let mut file = tempfile::Builder::new().suffix(".pcap").tempfile().unwrap();
    file.write_all(content).unwrap();
    file
}

fn played(content: &[u8]) -> Result<Vec<Arrival>, String> {
    let file = saved(content);
    let pattern = Pattern::parse(&format!("trace:{}", file.path().display()), CLOCK)
        .map_err(|error| error.to_string())?;
    let mut arrivals = pattern.start(CLOCK, 0).unwrap();
    let all = arrivals.by_ref().collect();
    assert!(arrivals.error().is_none());
    Ok(all)
}

fn times(content: &[u8]) -> Vec<u64> {
    let arrivals = played(content).unwrap();
    arrivals.iter().map(|arrival| arrival.at).collect()
}

fn packets() -> [(u64, Vec<u8>); 4] {
    // At 4 MHz a cycle is 250 ns.
    let begin = 1_700_000_000_000_000_000;
    [
        (begin, udp(502)),
        (begin + 10_000, tcp_in_vlan(23)),
        (begin + 1_000_000_000, ping()),
        (begin + 1_000_000_000, vec![0; 60]),
    ]
}

#[test]
fn every_format_gives_times_ports_and_lengths() {
    let packets = packets();
    let expected = [
        (0, Some(Protocol::Udp), Some(502)),
        (40, Some(Protocol::Tcp), Some(23)),
        (4_000_000, Some(Protocol::Icmp), None),
        (4_000_000, None, None),
    ];
    let arrivals: Vec<Arrival> = expected
        .iter()
        .zip(&packets)
        .map(|((at, protocol, port), (_, frame))| Arrival {
            at: *at,
            what: What::Packet(Packet {
                protocol: *protocol,
                port: *port,
                flow: None,
                length: u32::try_from(frame.len()).unwrap(),
            }),
        })
        .collect();
    for end in ENDS {
        for resolution in [TsResolution::MicroSecond, TsResolution::NanoSecond] {
            let file = pcap(DataLink::ETHERNET, end, resolution, &packets);
            assert_eq!(played(&file).unwrap(), arrivals, "{end:?} {resolution:?}");
        }
        // An interface that states no resolution uses microseconds. A resolution of 9 means
        // nanoseconds.
        for (resolution, unit) in [(None, 1000), (Some(6), 1000), (Some(9), 1)] {
            let packets: Vec<_> = packets
                .iter()
                .map(|(nanoseconds, frame)| (0, nanoseconds / unit, frame.clone()))
                .collect();
            let file = pcapng(end, &[(DataLink::ETHERNET, resolution)], &packets);
            assert_eq!(played(&file).unwrap(), arrivals, "{end:?} {resolution:?}");
        }
    }
}

#[test]
fn interfaces_of_one_capture_may_count_in_different_units() {
    for end in ENDS {
        // The interfaces use units of 2^-10 s and of milliseconds. The third interface is not
        // Ethernet and records no packet.
        let file = pcapng(
            end,
            &[
                (DataLink::ETHERNET, Some(0x80 | 10)),
                (DataLink::ETHERNET, Some(3)),
                (DataLink::LINUX_SLL, None),
            ],
            &[
                (0, 1024, udp(1)),
                (1, 1500, udp(2)),
                (0, 1024 + 768, udp(3)),
            ],
        );
        assert_eq!(times(&file), [0, 2_000_000, 3_000_000]);
    }
}

#[test]
fn nanoseconds_round_to_the_nearest_cycle() {
    let file = good(&[
        (1000, udp(1)),
        (1124, udp(1)),
        (1125, udp(1)),
        (1374, udp(1)),
        (1375, udp(1)),
    ]);
    assert_eq!(times(&file), [0, 0, 1, 1, 2]);
}

#[test]
fn a_packet_that_was_cut_by_the_capture_keeps_its_port_and_its_length() {
    let whole = udp(502);
    let header = PcapHeader::default();
    let mut writer = PcapWriter::with_header(Vec::new(), header).unwrap();
    writer
        .write_packet(&PcapPacket::new(Duration::ZERO, 1500, &whole[..42]))
        .unwrap();
    match played(&writer.into_writer()).unwrap()[0].what {
        What::Packet(packet) => assert_eq!((packet.port, packet.length), (Some(502), 1500)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_capture_much_longer_than_the_buffer_is_read_to_its_end() {
    let mut frame = udp(502);
    frame.resize(1400, 0);
    let packets: Vec<_> = (0..3000_u64)
        .map(|index| (index * 1_000_000, frame.clone()))
        .collect();
    let expected: Vec<u64> = (0..3000).map(|index| index * 4000).collect();
    assert_eq!(times(&good(&packets)), expected);
    let packets: Vec<_> = packets
        .into_iter()
        .map(|(at, frame)| (0, at, frame))
        .collect();
    let file = pcapng(
        Endianness::Little,
        &[(DataLink::ETHERNET, Some(9))],
        &packets,
    );
    assert_eq!(times(&file), expected);
}

#[test]
fn what_is_wrong_is_refused_with_the_packet() {
    let packets = packets();
    let whole = good(&packets);
    let wrong_fraction = {
        let mut bytes = good(&[(0, udp(1))]);
        bytes[28..32].copy_from_slice(&1_000_000_000_u32.to_le_bytes());
        bytes
    };
    let endless_record = {
        let mut bytes = good(&[(0, udp(1)), (1, udp(1))]);
        let second = 24 + 16 + udp(1).len();
        bytes[second + 8..second + 12].copy_from_slice(&0x7fff_ffff_u32.to_le_bytes());
        bytes
    };
    let next_generation = |link, resolution| {
        pcapng(
            Endianness::Little,
            &[(link, resolution)],
            &[(0, 5, udp(1)), (0, 6, udp(1))],
        )
    };
    let cut = next_generation(DataLink::ETHERNET, None);
    let no_interface = {
        let mut bytes = cut.clone();
        // A block ends with its length. The interface follows the type and the length at its start.
        let end = bytes.len();
        let length = u32::from_le_bytes(bytes[end - 4..].try_into().unwrap());
        bytes[end - usize::try_from(length).unwrap() + 8] = 1;
        bytes
    };
    let simple = {
        let mut writer = PcapNgWriter::new(Vec::new()).unwrap();
        writer
            .write_pcapng_block(InterfaceDescriptionBlock::new(DataLink::ETHERNET, 65535))
            .unwrap();
        writer
            .write_pcapng_block(SimplePacketBlock {
                original_len: 4,
                data: (&[1_u8, 2, 3, 4][..]).into(),
            })
            .unwrap();
        writer.into_inner()
    };
    let any = |link| {
        pcap(
            link,
            Endianness::Big,
            TsResolution::MicroSecond,
            &[(0, udp(1))],
        )
    };
    let disordered = good(&[(2000, udp(1)), (3000, udp(1)), (2999, udp(1))]);
    let far = good(&[(0, udp(1)), (4_294_967_295_000_000_000, udp(1))]);
    for (content, says) in [
        (&b"hello"[..], "the first bytes are 68 65 6c 6c"),
        (b"", "the first bytes are missing"),
        (&[0x1f, 0x8b, 8, 8], "gunzip"),
        (&whole[..20], "in its header: the file ends there"),
        (&cut[..20], "in its header: the file ends there"),
        (&good(&[]), "there are no packets"),
        (
            &whole[..whole.len() - 1],
            "after packet 3: the file ends within a record",
        ),
        (
            &whole[..30],
            "before the first packet: the file ends within",
        ),
        (
            &cut[..cut.len() - 1],
            "after packet 1: the file ends within a record",
        ),
        (
            &disordered,
            "packet 3: it came 1 ns before the packet before it: sort",
        ),
        (
            &any(DataLink::RAW),
            "in its header: the link type is 101 (RAW",
        ),
        (
            &any(DataLink::LINUX_SLL),
            "the link type is 113 (LINUX_SLL, the device `any`) and must be 1 (ETHERNET)",
        ),
        (
            &any(DataLink::IEEE802_11),
            "the link type is 105 (IEEE802_11",
        ),
        (&any(DataLink::from(77)), "the link type is 77 and must be"),
        (
            &wrong_fraction,
            "packet 1: its time has 1000000000 nanoseconds",
        ),
        (
            &endless_record,
            "after packet 1: a record is longer than 1 MiB",
        ),
        (
            &no_interface,
            "packet 2: it is from the interface 1, but the file describes 1",
        ),
        (
            &next_generation(DataLink::LINUX_SLL, None),
            "packet 1: the link type is 113",
        ),
        (
            &next_generation(DataLink::ETHERNET, Some(20)),
            "resolution 0x14",
        ),
        (&simple, "packet 1: it has no time"),
    ] {
        let message = played(content).unwrap_err();
        assert!(message.contains(says), "{says}: {message}");
    }
    // 136 years are too many cycles only for a faster clock.
    assert!(played(&far).is_ok());
    let file = saved(&far);
    let text = format!("trace:{}", file.path().display());
    let message = Pattern::parse(&text, 10_000_000_000)
        .unwrap_err()
        .to_string();
    assert!(
        message.contains("packet 2: it came too long after"),
        "{message}"
    );
}

#[test]
fn a_capture_repeats() {
    let file = saved(&good(&[(0, udp(1)), (1_000_000, udp(2))]));
    let text = format!("trace:{}:speed=2:repeat", file.path().display());
    let pattern = Pattern::parse(&text, CLOCK).unwrap();
    let times: Vec<u64> = pattern
        .start(CLOCK, 0)
        .unwrap()
        .take(5)
        .map(|arrival| arrival.at)
        .collect();
    assert_eq!(times, [0, 2000, 4000, 6000, 8000]);
}

proptest! {
    #![proptest_config(crate::cases(64, 512))]
    /// Bytes are changed, removed and inserted in files of each format.
    #[test]
    fn no_file_makes_it_panic(
        format in 0..6_usize,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in any::<prop::sample::Index>(),
        cut_bytes in 0..9_usize,
        more in prop::collection::vec(any::<u8>(), 0..9),
    ) {
        let packets = packets();
        let units: Vec<_> = packets.iter().map(|(at, frame)| (0, *at, frame.clone())).collect();
        let mut content = match format {
            0..4 => pcap(
                DataLink::ETHERNET,
                ENDS[format % 2],
                if format < 2 { TsResolution::MicroSecond } else { TsResolution::NanoSecond },
                &packets,
            ),
            _ => pcapng(ENDS[format % 2], &[(DataLink::ETHERNET, Some(9))], &units),
        };
        for (index, byte) in changes {
            let at = index.index(content.len());
            content[at] = byte;
        }
        let from = cut.index(content.len());
        let until = content.len().min(from + cut_bytes);
        content.splice(from..until, more);
        if let Ok(arrivals) = played(&content) {
            prop_assert!(arrivals.is_sorted_by_key(|arrival| arrival.at));
        }
    }
}
