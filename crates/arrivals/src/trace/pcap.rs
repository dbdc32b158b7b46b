// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packet captures from Ethernet in the formats pcap (microseconds and nanoseconds, both byte
//! orders) and pcapng.
use std::fs::File;
use std::path::{Path, PathBuf};

use etherparse::{IpNumber, LaxSlicedPacket, TransportSlice};
use pcap_parser::traits::{PcapNGPacketBlock, PcapReaderIterator};
use pcap_parser::{
    Block, IDB_MAGIC, InterfaceDescriptionBlock, LegacyPcapBlock, LegacyPcapReader, Linktype,
    PcapBlockOwned, PcapError, PcapNGReader,
};

use super::error::TraceError;
use crate::arrivals::{Arrival, LATEST, Packet, Protocol, What};

/// The size of the read buffer, which limits the size of a record. Capture programs store up to 256
/// KiB of a packet.
const BUFFER_BYTES: usize = 1 << 20;
/// The most interfaces in a capture. The limit is higher than on any machine, and bounds the
/// memory.
const INTERFACES_MOST: usize = 4096;
/// The type of the packet block in the first drafts of pcapng.
const OBSOLETE_PACKET: u32 = 2;

/// Returns whether a capture begins with these bytes.
pub(super) fn is_capture(begin: &[u8]) -> bool {
    begin == PCAPNG
        || matches!(
            begin,
            // The magic numbers as bytes in the file: microseconds, nanoseconds, and the variant
            // with longer records, which exists in one byte order only.
            [0xd4, 0xc3, 0xb2, 0xa1]
                | [0xa1, 0xb2, 0xc3, 0xd4]
                | [0x4d, 0x3c, 0xb2, 0xa1]
                | [0xa1, 0xb2, 0x3c, 0x4d]
                | [0x34, 0xcd, 0xb2, 0xa1]
        )
}

/// The magic number of a pcapng file, which is the same in both byte orders.
const PCAPNG: &[u8] = &[0x0a, 0x0d, 0x0d, 0x0a];

/// Reads a capture packet by packet.
pub(super) struct Packets {
    path: PathBuf,
    clock_hz: u64,
    format: Format,
    /// The number of packets read so far.
    count: u64,
    /// The recorded times of the first and the latest packet, in nanoseconds.
    first: Option<i128>,
    latest: i128,
}

enum Format {
    Pcap {
        reader: LegacyPcapReader<File>,
        fractions: Fractions,
    },
    Pcapng {
        reader: PcapNGReader<File>,
        /// The interfaces of the current section of a pcapng file.
        interfaces: Vec<CaptureInterface>,
    },
}

/// The unit of the sub-second part of times in a pcap file.
#[derive(Clone, Copy)]
enum Fractions {
    Microseconds,
    Nanoseconds,
}

/// An interface on which packets were recorded.
struct CaptureInterface {
    link: Linktype,
    /// The time resolution: units per second.
    resolution: u128,
    /// Seconds to add to the interface's times.
    offset: i64,
}

/// A packet as it is stored in the capture.
struct CaptureRecord {
    nanoseconds: i128,
    packet: Packet,
}

impl Packets {
    /// Opens a capture. `begin` contains the first bytes of the file; `file` is positioned at its
    /// start.
    ///
    /// # Errors
    /// Fails if the file ends within its header, or if a pcap file was not recorded on Ethernet.
    pub fn new(path: &Path, file: File, begin: &[u8], clock_hz: u64) -> Result<Self, TraceError> {
        let format = if begin == PCAPNG {
            pcapng(file)
        } else {
            pcap(file)
        };
        Ok(Self {
            path: path.to_owned(),
            clock_hz,
            format: format.map_err(|what| TraceError::Capture {
                path: path.to_owned(),
                place: "in its header".to_owned(),
                what,
            })?,
            count: 0,
            first: None,
            latest: 0,
        })
    }

    /// Reads the next packet. Its time counts from the first packet.
    ///
    /// # Errors
    /// Fails if the file is damaged or cut off, if the packet was not recorded on Ethernet, or if
    /// its time is before that of the previous packet.
    pub fn next(&mut self) -> Result<Option<Arrival>, TraceError> {
        let place = |count| match count {
            0 => "before the first packet".to_owned(),
            count => format!("after packet {count}"),
        };
        loop {
            let found = match &mut self.format {
                Format::Pcap { reader, fractions } => pull(reader, |block| match block {
                    PcapBlockOwned::Legacy(block) => record(&block, *fractions).map(Some),
                    PcapBlockOwned::LegacyHeader(_) | PcapBlockOwned::NG(_) => Ok(None),
                }),
                Format::Pcapng { reader, interfaces } => pull(reader, |block| match block {
                    PcapBlockOwned::NG(block) => next_block(&block, interfaces),
                    PcapBlockOwned::LegacyHeader(_) | PcapBlockOwned::Legacy(_) => Ok(None),
                }),
            };
            match found {
                Err(what) => return Err(self.wrong(place(self.count), what)),
                Ok(None) => return Ok(None),
                Ok(Some(Ok(None))) => {}
                Ok(Some(Ok(Some(recorded)))) => {
                    self.count += 1;
                    return self.arrival(&recorded).map(Some);
                }
                Ok(Some(Err(what))) => {
                    return Err(self.wrong(format!("packet {}", self.count + 1), what));
                }
            }
        }
    }

    fn arrival(&mut self, recorded: &CaptureRecord) -> Result<Arrival, TraceError> {
        let first = *self.first.get_or_insert(recorded.nanoseconds);
        let back = self.latest - recorded.nanoseconds;
        if self.count > 1 && back > 0 {
            let what = format!(
                "it came {back} ns before the packet before it: sort the packets with reordercap FROM TO"
            );
            return Err(self.wrong(format!("packet {}", self.count), what));
        }
        self.latest = recorded.nanoseconds;
        let at = u128::try_from(recorded.nanoseconds - first)
            .ok()
            .and_then(|since| since.checked_mul(u128::from(self.clock_hz)))
            .and_then(|product| u64::try_from((product + 500_000_000) / 1_000_000_000).ok())
            .filter(|at| *at < LATEST / 2);
        match at {
            Some(at) => Ok(Arrival {
                at,
                what: What::Packet(recorded.packet),
            }),
            None => Err(self.wrong(
                format!("packet {}", self.count),
                "it came too long after the first one: at most 2^62 cycles can lie between them"
                    .to_owned(),
            )),
        }
    }

    fn wrong(&self, place: String, what: String) -> TraceError {
        TraceError::Capture {
            path: self.path.clone(),
            place,
            what,
        }
    }
}

fn pcap(file: File) -> Result<Format, String> {
    let mut reader =
        LegacyPcapReader::new(BUFFER_BYTES, file).map_err(|error| explain(&error, true))?;
    let header = pull(&mut reader, |block| match block {
        PcapBlockOwned::LegacyHeader(header) => Some(header),
        PcapBlockOwned::Legacy(_) | PcapBlockOwned::NG(_) => None,
    })?
    .flatten()
    .unwrap_or_default();
    // The bits above the link type describe checksums.
    ethernet(Linktype(header.network.0 & 0xffff))?;
    let fractions = if header.is_nanosecond_precision() {
        Fractions::Nanoseconds
    } else {
        Fractions::Microseconds
    };
    Ok(Format::Pcap { reader, fractions })
}

fn pcapng(file: File) -> Result<Format, String> {
    Ok(Format::Pcapng {
        reader: PcapNGReader::new(BUFFER_BYTES, file).map_err(|error| explain(&error, true))?,
        interfaces: Vec::new(),
    })
}

/// Takes the next block, and reads more of the file if necessary. `None` at the end.
fn pull<R: PcapReaderIterator, T>(
    reader: &mut R,
    mut look: impl FnMut(PcapBlockOwned<'_>) -> T,
) -> Result<Option<T>, String> {
    loop {
        match reader.next() {
            Ok((length, block)) => {
                let seen = look(block);
                reader.consume(length);
                return Ok(Some(seen));
            }
            Err(PcapError::Eof) => return Ok(None),
            Err(PcapError::Incomplete(_)) => {}
            Err(error) => {
                let error = error.to_owned_vec();
                return if matches!(error, PcapError::UnexpectedEof) && reader.data().is_empty() {
                    Ok(None)
                } else {
                    Err(explain(&error, false))
                };
            }
        }
        let before = reader.data().len();
        if let Err(error) = reader.refill() {
            return Err(explain(&error, false));
        }
        if reader.data().len() == before && !reader.reader_exhausted() {
            return Err(explain(&PcapError::<&[u8]>::BufferTooSmall, false));
        }
    }
}

/// Describes an error of the parser library for the user.
fn explain<I>(error: &PcapError<I>, in_header: bool) -> String {
    match error {
        PcapError::ReadError => "the file cannot be read any further".to_owned(),
        PcapError::BufferTooSmall => {
            "a record is longer than 1 MiB, so the file is damaged: record it anew".to_owned()
        }
        PcapError::UnexpectedEof | PcapError::Incomplete(_) | PcapError::Eof if in_header => {
            "the file ends there: record it anew".to_owned()
        }
        PcapError::UnexpectedEof | PcapError::Incomplete(_) | PcapError::Eof => {
            "the file ends within a record: keep the whole ones with editcap FROM TO, or record it anew"
                .to_owned()
        }
        _ => "what follows is no record, so the file is damaged: record it anew".to_owned(),
    }
}

/// # Errors
/// Fails for every link type except Ethernet.
fn ethernet(link: Linktype) -> Result<(), String> {
    if link == Linktype::ETHERNET {
        return Ok(());
    }
    // The names of common link types in https://www.tcpdump.org/linktypes.html.
    let name = match link.0 {
        0 => " (NULL, a loopback)",
        12 | 14 | 101 => " (RAW, packets without a link)",
        105 => " (IEEE802_11, a radio)",
        108 => " (LOOP, a loopback)",
        113 => " (LINUX_SLL, the device `any`)",
        127 => " (IEEE802_11_RADIOTAP, a radio)",
        189 | 220 => " (USB_LINUX)",
        195 | 230 => " (IEEE802_15_4, a radio)",
        227 => " (CAN_SOCKETCAN)",
        276 => " (LINUX_SLL2, the device `any`)",
        _ => "",
    };
    Err(format!(
        "the link type is {}{name} and must be 1 (ETHERNET): record on an Ethernet device, for example with tcpdump -i eth0 -w FILE",
        link.0
    ))
}

/// Returns the packet of a pcap record.
fn record(block: &LegacyPcapBlock<'_>, fractions: Fractions) -> Result<CaptureRecord, String> {
    let (scale, unit, most) = match fractions {
        Fractions::Nanoseconds => (1, "nanoseconds", 1_000_000_000),
        Fractions::Microseconds => (1000, "microseconds", 1_000_000),
    };
    if block.ts_usec >= most {
        return Err(format!(
            "its time has {} {unit} beside the whole seconds, so the file is damaged: there are at most {}",
            block.ts_usec,
            most - 1
        ));
    }
    Ok(CaptureRecord {
        nanoseconds: i128::from(block.ts_sec) * 1_000_000_000 + i128::from(block.ts_usec) * scale,
        packet: dissect(block.data, block.origlen),
    })
}

/// Handles a block of a pcapng file. `None` if the block is not a packet.
fn next_block(
    block: &Block<'_>,
    interfaces: &mut Vec<CaptureInterface>,
) -> Result<Option<CaptureRecord>, String> {
    match block {
        Block::SectionHeader(_) => interfaces.clear(),
        Block::InterfaceDescription(_) if interfaces.len() == INTERFACES_MOST => {
            return Err(format!(
                "there are more than {INTERFACES_MOST} interfaces, so the file is damaged: record it anew"
            ));
        }
        Block::InterfaceDescription(described) => interfaces.push(interface(described)?),
        Block::EnhancedPacket(packet) => {
            let interface = usize::try_from(packet.if_id)
                .ok()
                .and_then(|index| interfaces.get(index))
                .ok_or_else(|| {
                    format!(
                        "it is from the interface {}, but the file describes {} (counted from 0): it is damaged, record it anew",
                        packet.if_id,
                        interfaces.len()
                    )
                })?;
            ethernet(interface.link)?;
            let units = u128::from(packet.ts_high) << 32 | u128::from(packet.ts_low);
            // The product cannot overflow: `units` is below 2^64 and 10^9 is below 2^30.
            let since = i128::try_from(units * 1_000_000_000 / interface.resolution).unwrap_or(0);
            return Ok(Some(CaptureRecord {
                nanoseconds: since + i128::from(interface.offset) * 1_000_000_000,
                packet: dissect(packet.packet_data(), packet.origlen),
            }));
        }
        Block::SimplePacket(_) => {
            return Err("it has no time (a Simple Packet Block): record with times".to_owned());
        }
        Block::Unknown(unknown) if unknown.block_type == OBSOLETE_PACKET => {
            return Err(
                "it is an obsolete Packet Block: convert the file with editcap -F pcapng FROM TO"
                    .to_owned(),
            );
        }
        _ => {}
    }
    Ok(None)
}

fn interface(described: &InterfaceDescriptionBlock<'_>) -> Result<CaptureInterface, String> {
    // The library does not support resolutions that are powers of two, and reads the offset in one
    // byte order only. So both options are parsed here.
    let power = u32::from(described.if_tsresol & 0x7f);
    let resolution = match described.if_tsresol {
        0..=19 => 10_u128.pow(power),
        128..=191 => 1 << power,
        other => {
            return Err(format!(
                "the times of an interface have the resolution {other:#04x}, so the file is damaged: nanoseconds are 9"
            ));
        }
    };
    Ok(CaptureInterface {
        link: described.linktype,
        resolution,
        offset: if described.block_type == IDB_MAGIC {
            described.if_tsoffset
        } else {
            described.if_tsoffset.swap_bytes()
        },
    })
}

/// Returns the facts about a frame's packet. A frame that cannot be parsed is a packet without a
/// receiver.
fn dissect(frame: &[u8], length: u32) -> Packet {
    let mut packet = Packet {
        length,
        ..Packet::default()
    };
    let Ok(layers) = LaxSlicedPacket::from_ethernet(frame) else {
        return packet;
    };
    packet.protocol = match layers.ip_payload().map(|payload| payload.ip_number) {
        Some(IpNumber::TCP) => Some(Protocol::Tcp),
        Some(IpNumber::UDP) => Some(Protocol::Udp),
        Some(IpNumber::ICMP | IpNumber::IPV6_ICMP) => Some(Protocol::Icmp),
        _ => None,
    };
    packet.port = match layers.transport {
        Some(TransportSlice::Tcp(tcp)) => Some(tcp.destination_port()),
        Some(TransportSlice::Udp(udp)) => Some(udp.destination_port()),
        _ => None,
    };
    packet
}
