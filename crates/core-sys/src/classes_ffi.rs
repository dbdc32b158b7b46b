// SPDX-License-Identifier: MIT OR Apache-2.0
//! The FFI boundary to `shims/classes.c`: demux, defer and predict with 64 classes.

use std::ffi::c_void;

/// The index that stands for no class (`WEIR_CLASS_NONE`, `WEIR_DEMUX_DROP`).
pub const NONE: u8 = 0xff;

/// Has the layout of `weir_demux_t`.
#[repr(C)]
#[derive(Clone, Debug, Default)]
pub struct Head {
    /// The number of slots minus 1.
    pub mask: u16,
    /// The first free link.
    pub free: u16,
    /// The number of sockets of each kind.
    pub bound: [u16; 4],
    /// The class of packets without a receiver; 255 drops them.
    pub orphans: u8,
    /// The class of fragments without a receiver; 255 drops them.
    pub fragments: u8,
}

/// Has the layout of `weir_demux_slot_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Slot {
    /// The socket's key. 0 marks a free slot, whose other fields have no meaning.
    pub key: u32,
    /// The link of the socket's most urgent reader.
    pub first: u16,
    /// The class of that reader.
    pub which: u8,
}

/// Has the layout of `weir_demux_link_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Link {
    pub next: u16,
    pub reader: u16,
    pub which: u8,
}

/// Has the layout of `weir_demux_packet_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RawPacket {
    pub ethertype: u16,
    pub vlan: u16,
    pub port: u16,
    pub pcp: u8,
    pub protocol: u8,
    pub outcome: u8,
}

/// Has the layout of `weir_demux_found_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawFound {
    pub link: u16,
    pub which: u8,
    pub kind: u8,
}

/// Has the layout of `weir_predict_config_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawHistory {
    pub share: u16,
    pub shift: u8,
    pub patience: u8,
}

// The C file asserts the same sizes and offsets.
const _: () = {
    use std::mem::offset_of;
    assert!(size_of::<Head>() == 14 && offset_of!(Head, orphans) == 12);
    assert!(size_of::<Slot>() == 8 && offset_of!(Slot, which) == 6);
    assert!(size_of::<Link>() == 6 && offset_of!(Link, reader) == 2);
    assert!(size_of::<RawPacket>() == 10 && offset_of!(RawPacket, outcome) == 8);
    assert!(size_of::<RawFound>() == 4 && offset_of!(RawFound, kind) == 3);
    assert!(size_of::<RawHistory>() == 4 && offset_of!(RawHistory, patience) == 3);
};

unsafe extern "C" {
    pub fn weir_ffi_demux_start(
        head: *mut Head,
        slots: *mut Slot,
        capacity: u32,
        links: *mut Link,
        readers: u32,
        orphans: u8,
        fragments: u8,
    ) -> u32;
    pub fn weir_ffi_demux_bind(
        head: *mut Head,
        slots: *mut Slot,
        links: *mut Link,
        key: u32,
        reader: u16,
        which: u8,
    ) -> u32;
    pub fn weir_ffi_demux_unbind(
        head: *mut Head,
        slots: *mut Slot,
        links: *mut Link,
        key: u32,
        reader: u16,
    ) -> u32;
    pub fn weir_ffi_demux_set_class(
        head: *mut Head,
        slots: *mut Slot,
        links: *mut Link,
        reader: u16,
        which: u8,
    ) -> u32;
    pub fn weir_ffi_demux_parse(frame: *const u8, length: u16, packet: *mut RawPacket);
    pub fn weir_ffi_demux_parse_plain(
        frame: *const u8,
        length: u16,
        packet: *mut RawPacket,
    ) -> bool;
    pub fn weir_ffi_demux_lookup(head: *const Head, slots: *const Slot, key: u32) -> RawFound;
    pub fn weir_ffi_demux_classify(
        head: *const Head,
        slots: *const Slot,
        packet: *const RawPacket,
    ) -> RawFound;

    pub fn weir_ffi_defer_size() -> usize;
    pub fn weir_ffi_defer_start(defer: *mut c_void);
    pub fn weir_ffi_defer_set_class(
        defer: *mut c_void,
        which: u8,
        capacity: u16,
        urgency: u8,
    ) -> bool;
    pub fn weir_ffi_defer_set_urgency(defer: *mut c_void, which: u8, urgency: u8) -> bool;
    pub fn weir_ffi_defer_push(defer: *mut c_void, which: u8) -> bool;
    pub fn weir_ffi_defer_best(defer: *const c_void) -> u8;
    pub fn weir_ffi_defer_would_run(defer: *const c_void, running: u8, ties: u8) -> bool;
    pub fn weir_ffi_defer_next(defer: *mut c_void, running: u8, ties: u8) -> u8;
    pub fn weir_ffi_defer_done(defer: *mut c_void, which: u8) -> bool;
    pub fn weir_ffi_defer_waiting(defer: *const c_void, which: u8) -> u16;

    pub fn weir_ffi_predict_size() -> usize;
    pub fn weir_ffi_predict_start(predict: *mut c_void, config: *const RawHistory) -> bool;
    pub fn weir_ffi_predict_wait(predict: *mut c_void, which: u8) -> bool;
    pub fn weir_ffi_predict_stop_waiting(predict: *mut c_void, which: u8) -> bool;
    pub fn weir_ffi_predict_register(predict: *mut c_void, which: u8) -> bool;
    pub fn weir_ffi_predict_unregister(predict: *mut c_void, which: u8) -> bool;
    pub fn weir_ffi_predict_handled(predict: *mut c_void, config: *const RawHistory, which: u8);
    pub fn weir_ffi_predict_deferred(predict: *mut c_void, config: *const RawHistory);
    pub fn weir_ffi_predict(predict: *const c_void, config: *const RawHistory, how: u8) -> u8;
}
