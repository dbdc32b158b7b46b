// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the receiver of a packet (`include/weir/demux.h`).

use crate::classes_ffi::{self as ffi, Link, NONE, RawFound, RawPacket};

pub use crate::classes_ffi::{Head, Slot};

/// The number of classes. A class is an index below it; a higher class is more urgent.
pub const CLASSES: u8 = 64;

/// The key of a socket: `weir_demux_key_t`. IPv4 and IPv6 have the same keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SocketKey(u32);

impl SocketKey {
    const fn new(kind: u32, protocol: u8, value: u16) -> Self {
        SocketKey(((kind + 1) << 24) | ((protocol as u32) << 16) | value as u32)
    }

    /// A UDP destination port.
    #[must_use]
    pub const fn udp(port: u16) -> Self {
        SocketKey::new(0, 17, port)
    }

    /// A TCP destination port.
    #[must_use]
    pub const fn tcp(port: u16) -> Self {
        SocketKey::new(0, 6, port)
    }

    /// All packets of an IP protocol, except those whose port has a key of its own.
    #[must_use]
    pub const fn protocol(protocol: u8) -> Self {
        SocketKey::new(1, protocol, 0)
    }

    /// All packets of an EtherType (0x600 or more), except those that match a port or protocol key.
    #[must_use]
    pub const fn ethertype(ethertype: u16) -> Self {
        SocketKey::new(2, 0, ethertype)
    }

    /// All packets with a VLAN priority (0 to 7), except those that match any of the keys above.
    #[must_use]
    pub const fn pcp(pcp: u8) -> Self {
        SocketKey::new(3, 0, pcp as u16)
    }
}

/// The contents of a frame's headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// UDP (17) or TCP (6), and the destination port.
    Port {
        /// The IP protocol.
        protocol: u8,
        /// The destination port.
        port: u16,
    },
    /// Another IP protocol.
    OtherProtocol(u8),
    /// The frame is not IP.
    NotIp,
    /// The first fragment of a packet of this IP protocol; its port is ignored.
    FirstFragment(u8),
    /// A later fragment, which contains no port.
    LaterFragment(u8),
}

/// Why a frame has no receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The frame ends within its headers.
    Truncated,
    /// The headers contradict themselves.
    Malformed,
    /// The frame has more extension headers than the parser skips.
    TooDeep,
}

/// The result of parsing a frame: `weir_demux_packet_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet(RawPacket);

impl Packet {
    /// Returns the contents of the headers.
    ///
    /// # Errors
    /// Returns the reason if the frame is truncated, malformed or nested too deeply.
    pub fn outcome(&self) -> Result<Outcome, Reason> {
        let protocol = self.0.protocol;
        match self.0.outcome {
            0 => Ok(Outcome::Port {
                protocol,
                port: self.0.port,
            }),
            1 => Ok(Outcome::OtherProtocol(protocol)),
            2 => Ok(Outcome::NotIp),
            3 => Ok(Outcome::FirstFragment(protocol)),
            4 => Ok(Outcome::LaterFragment(protocol)),
            5 => Err(Reason::Truncated),
            6 => Err(Reason::Malformed),
            _ => Err(Reason::TooDeep),
        }
    }

    /// Returns the EtherType after the VLAN tags. `None` for an 802.3 frame, which has a length in
    /// that place, and if the tags are truncated.
    #[must_use]
    pub fn ethertype(&self) -> Option<u16> {
        (self.0.ethertype != 0).then_some(self.0.ethertype)
    }

    /// Returns the identifier (0 to 4095) and the priority (0 to 7) of the outermost VLAN tag.
    #[must_use]
    pub fn tag(&self) -> Option<(u16, u8)> {
        (self.0.pcp != NONE).then_some((self.0.vlan, self.0.pcp))
    }
}

/// Calls `weir_demux_parse()`: parses the headers of an Ethernet frame without preamble and
/// checksum. Bytes after the first 65535 are ignored.
#[must_use]
pub fn parse(frame: &[u8]) -> Packet {
    let mut raw = RawPacket::default();
    let length = u16::try_from(frame.len()).unwrap_or(u16::MAX);
    // SAFETY: `frame` has at least `length` bytes, and C reads none behind them; `raw` lives
    // through the call.
    unsafe { ffi::weir_ffi_demux_parse(frame.as_ptr(), length, &raw mut raw) };
    Packet(raw)
}

/// The number of bytes that [`parse_plain`] reads.
const PLAIN: u16 = 58;

/// Calls `weir_demux_parse_plain()`: a fast [`parse`] for frames whose headers are at the usual
/// offsets. `None` if the frame has another form or fewer than 58 bytes.
#[must_use]
pub fn parse_plain(frame: &[u8]) -> Option<Packet> {
    let mut raw = RawPacket::default();
    let length = u16::try_from(frame.len()).unwrap_or(u16::MAX);
    // SAFETY: `frame` has at least PLAIN bytes, and C reads none behind them; `raw` lives through
    // the call.
    let is_plain = length >= PLAIN
        && unsafe { ffi::weir_ffi_demux_parse_plain(frame.as_ptr(), length, &raw mut raw) };
    is_plain.then_some(Packet(raw))
}

/// Why a table cannot be created or changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DemuxError {
    /// The number of sockets is not a power of two up to 32768, or the number of readers is not 1
    /// to 65535.
    Capacity,
    /// The key's value is out of range for its kind.
    Key,
    /// The class is not below [`CLASSES`].
    Class,
    /// The table has no room for another socket.
    NoSlot,
    /// The table has no room for another reader of a socket.
    NoLinks,
    /// The reader is not bound to this socket, or to any.
    NotBound,
}

impl std::fmt::Display for DemuxError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            DemuxError::Capacity => {
                "a table holds a power of two of sockets, up to 32768, and 1 to 65535 readers"
            }
            DemuxError::Key => {
                "an EtherType is 0x600 or more, a VLAN priority 0 to 7, and a port is UDP's or TCP's"
            }
            DemuxError::Class => "a class is 0 to 63",
            DemuxError::NoSlot => "the table has no room for another socket",
            DemuxError::NoLinks => "the table has no room for another reader of a socket",
            DemuxError::NotBound => "the reader does not read that socket",
        })
    }
}

impl std::error::Error for DemuxError {}

fn result(code: u32) -> Result<(), DemuxError> {
    match code {
        0 => Ok(()),
        1 => Err(DemuxError::Capacity),
        2 => Err(DemuxError::Key),
        3 => Err(DemuxError::Class),
        4 => Err(DemuxError::NoSlot),
        5 => Err(DemuxError::NoLinks),
        _ => Err(DemuxError::NotBound),
    }
}

/// The receiver of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DemuxReceiver {
    /// The most urgent reader of the packet's socket. Among readers of the same urgency it is the
    /// one that was bound first.
    Bound(u16),
    /// The packet has no receiver.
    Orphan,
    /// The packet is a fragment whose receiver is unknown.
    Fragment,
}

/// The result of a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// The class that queues the packet. `None` if the packet is dropped.
    pub class: Option<u8>,
    /// The receiver of the packet.
    pub receiver: DemuxReceiver,
}

/// The table: a `weir_demux_t` with its memory. A clone is an independent table.
#[derive(Clone, Debug)]
pub struct Demux {
    head: Head,
    slots: Box<[Slot]>,
    links: Box<[Link]>,
}

impl Demux {
    /// Calls `weir_demux_start()`. The table has room for `sockets` sockets and `readers` readers,
    /// where a reader of several sockets counts once per socket. `sockets` is a power of two, best
    /// twice the number needed. Packets without a receiver get the class `orphans`, fragments get
    /// `fragments`; if that is `None` they are dropped.
    ///
    /// # Errors
    /// Fails with [`DemuxError::Capacity`] or [`DemuxError::Class`].
    pub fn new(
        sockets: usize,
        readers: usize,
        orphans: Option<u8>,
        fragments: Option<u8>,
    ) -> Result<Self, DemuxError> {
        // The C function checks the capacity, too, but only after the memory would have been
        // allocated.
        if sockets > 1 << 15 || readers > usize::from(u16::MAX) {
            return Err(DemuxError::Capacity);
        }
        let class = |class: Option<u8>| match class {
            Some(NONE) => Err(DemuxError::Class),
            class => Ok(class.unwrap_or(NONE)),
        };
        let (orphans, fragments) = (class(orphans)?, class(fragments)?);
        let mut demux = Demux {
            head: Head::default(),
            slots: vec![Slot::default(); sockets].into_boxed_slice(),
            links: vec![Link::default(); readers].into_boxed_slice(),
        };
        // SAFETY: the arrays have as many elements as the arguments say; their layouts are asserted
        // on both sides.
        result(unsafe {
            ffi::weir_ffi_demux_start(
                &raw mut demux.head,
                demux.slots.as_mut_ptr(),
                sockets as u32,
                demux.links.as_mut_ptr(),
                readers as u32,
                orphans,
                fragments,
            )
        })?;
        Ok(demux)
    }

    /// Calls `weir_demux_bind()`: from now on `reader` reads the socket `key`. A reader has the
    /// same class in all its sockets: the latest one that was given.
    ///
    /// # Errors
    /// Fails with [`DemuxError::Key`], [`DemuxError::Class`], [`DemuxError::NoSlot`] or
    /// [`DemuxError::NoLinks`], and then changes nothing.
    pub fn bind(&mut self, key: SocketKey, reader: u16, class: u8) -> Result<(), DemuxError> {
        // SAFETY: `new` has initialised the three; C indexes the arrays only as far as they reach.
        result(unsafe {
            ffi::weir_ffi_demux_bind(
                &raw mut self.head,
                self.slots.as_mut_ptr(),
                self.links.as_mut_ptr(),
                key.0,
                reader,
                class,
            )
        })
    }

    /// Calls `weir_demux_unbind()`: from now on `reader` does not read the socket.
    ///
    /// # Errors
    /// Fails with [`DemuxError::NotBound`].
    pub fn unbind(&mut self, key: SocketKey, reader: u16) -> Result<(), DemuxError> {
        // SAFETY: as in `bind`.
        result(unsafe {
            ffi::weir_ffi_demux_unbind(
                &raw mut self.head,
                self.slots.as_mut_ptr(),
                self.links.as_mut_ptr(),
                key.0,
                reader,
            )
        })
    }

    /// Calls `weir_demux_set_class()`: changes the class of `reader` in all its sockets.
    ///
    /// # Errors
    /// Fails with [`DemuxError::Class`], or with [`DemuxError::NotBound`] if the reader is bound to
    /// no socket.
    pub fn set_class(&mut self, reader: u16, class: u8) -> Result<(), DemuxError> {
        // SAFETY: as in `bind`.
        result(unsafe {
            ffi::weir_ffi_demux_set_class(
                &raw mut self.head,
                self.slots.as_mut_ptr(),
                self.links.as_mut_ptr(),
                reader,
                class,
            )
        })
    }

    /// Returns the memory that a lookup reads. A copy of it, such as one in a BPF map, lets another
    /// program look up receivers.
    #[must_use]
    pub fn raw(&self) -> (&Head, &[Slot]) {
        (&self.head, &self.slots)
    }

    fn found(&self, raw: RawFound) -> Lookup {
        Lookup {
            class: (raw.which != NONE).then_some(raw.which),
            receiver: match raw.kind {
                0 => DemuxReceiver::Bound(self.links[usize::from(raw.link)].reader),
                1 => DemuxReceiver::Orphan,
                _ => DemuxReceiver::Fragment,
            },
        }
    }

    /// Calls `weir_demux_lookup()`: returns the receiver of packets with this key.
    #[must_use]
    pub fn lookup(&self, key: SocketKey) -> Lookup {
        // SAFETY: as in `bind`; C only reads.
        self.found(unsafe {
            ffi::weir_ffi_demux_lookup(&raw const self.head, self.slots.as_ptr(), key.0)
        })
    }

    /// Calls `weir_demux_classify()`: returns the receiver of a parsed frame.
    #[must_use]
    pub fn classify(&self, packet: &Packet) -> Lookup {
        // SAFETY: as in `lookup`; `packet` is borrowed through the call.
        self.found(unsafe {
            ffi::weir_ffi_demux_classify(
                &raw const self.head,
                self.slots.as_ptr(),
                &raw const packet.0,
            )
        })
    }
}
