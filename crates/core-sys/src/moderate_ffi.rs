// SPDX-License-Identifier: MIT OR Apache-2.0
//! The boundary to `shims/moderate.c`: the same functions once per tick width.

use std::ffi::c_void;

/// Twin of `weir_ffi_config_t`.
#[repr(C)]
pub struct RawConfig {
    pub absolute: u64,
    pub packet: u64,
    pub count: u16,
    pub size: u16,
}

/// Twin of `weir_ffi_queue_t`.
#[repr(C)]
#[derive(Default)]
pub struct RawQueue {
    pub accepted: u32,
    pub dropped: u32,
    pub interrupts: u32,
    pub waiting: u16,
    pub phase: u8,
}

// The C side asserts the same numbers.
const _: () = {
    assert!(std::mem::offset_of!(RawConfig, size) == 18 && size_of::<RawConfig>() == 24);
    assert!(std::mem::offset_of!(RawQueue, phase) == 14 && size_of::<RawQueue>() == 16);
};

/// The functions of `shims/moderate.c` at one width. The first parameter is an array of queues of
/// `size()` bytes each, aligned to `alignment()`; the second an index into it, or (`expired`) its
/// length.
pub struct Functions {
    pub size: unsafe extern "C" fn() -> usize,
    pub alignment: unsafe extern "C" fn() -> usize,
    pub check: unsafe extern "C" fn(*const RawConfig) -> u32,
    pub start: unsafe extern "C" fn(*mut c_void, u16, *const RawConfig),
    pub arrive: unsafe extern "C" fn(*mut c_void, u16, u64) -> u32,
    pub remove: unsafe extern "C" fn(*mut c_void, u16, u16) -> u16,
    pub done: unsafe extern "C" fn(*mut c_void, u16, u64) -> bool,
    pub reconfigure:
        unsafe extern "C" fn(*mut c_void, u16, *const RawConfig, u64, *mut bool) -> u32,
    pub next: unsafe extern "C" fn(*const c_void, u16, u16, u64, *mut u64) -> bool,
    pub expired: unsafe extern "C" fn(*mut c_void, u16, u16, u64) -> u16,
    pub read: unsafe extern "C" fn(*const c_void, u16, *mut RawQueue),
}

macro_rules! functions {
    ($name:ident, $prefix:literal) => {
        pub static $name: Functions = {
            unsafe extern "C" {
                #[link_name = concat!($prefix, "size")]
                fn size() -> usize;
                #[link_name = concat!($prefix, "alignment")]
                fn alignment() -> usize;
                #[link_name = concat!($prefix, "check")]
                fn check(config: *const RawConfig) -> u32;
                #[link_name = concat!($prefix, "start")]
                fn start(queues: *mut c_void, queue: u16, config: *const RawConfig);
                #[link_name = concat!($prefix, "arrive")]
                fn arrive(queues: *mut c_void, queue: u16, now: u64) -> u32;
                #[link_name = concat!($prefix, "remove")]
                fn remove(queues: *mut c_void, queue: u16, count: u16) -> u16;
                #[link_name = concat!($prefix, "done")]
                fn done(queues: *mut c_void, queue: u16, now: u64) -> bool;
                #[link_name = concat!($prefix, "reconfigure")]
                fn reconfigure(
                    queues: *mut c_void,
                    queue: u16,
                    to: *const RawConfig,
                    now: u64,
                    interrupt: *mut bool,
                ) -> u32;
                #[link_name = concat!($prefix, "next")]
                fn next(
                    queues: *const c_void,
                    from: u16,
                    count: u16,
                    now: u64,
                    at: *mut u64,
                ) -> bool;
                #[link_name = concat!($prefix, "expired")]
                fn expired(queues: *mut c_void, count: u16, from: u16, now: u64) -> u16;
                #[link_name = concat!($prefix, "read")]
                fn read(queues: *const c_void, queue: u16, out: *mut RawQueue);
            }
            Functions {
                size,
                alignment,
                check,
                start,
                arrive,
                remove,
                done,
                reconfigure,
                next,
                expired,
                read,
            }
        };
    };
}

functions!(BITS16, "weir_moderate16_");
functions!(BITS32, "weir_moderate32_");
functions!(BITS64, "weir_moderate64_");
