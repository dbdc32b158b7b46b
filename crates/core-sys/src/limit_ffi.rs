// SPDX-License-Identifier: MIT OR Apache-2.0
//! The boundary to `shims/limit.c`: the same functions once per tick width, with and without the
//! record.

use std::ffi::c_void;

/// Twin of `weir_ffi_config_t`.
#[repr(C)]
pub struct RawConfig {
    pub interval: u64,
    pub lag: u64,
    pub burst: u8,
    pub policy: u8,
    pub timing: u8,
    pub trigger: u8,
}

/// Twin of `weir_ffi_step_t`.
#[repr(C)]
#[derive(Default)]
pub struct RawStep {
    pub at: u64,
    pub actions: u32,
}

/// Twin of `weir_ffi_record_t`.
#[repr(C)]
#[derive(Default)]
pub struct RawRecord {
    pub longest_masked: u64,
    pub longest_handler: u64,
    pub first_overload: u64,
    pub last_overload: u64,
    pub taken: u32,
    pub served: u32,
    pub masked_intervals: u32,
    pub overloads: u32,
}

// The C side asserts the same numbers.
const _: () = {
    assert!(std::mem::offset_of!(RawConfig, burst) == 16 && size_of::<RawConfig>() == 24);
    assert!(std::mem::offset_of!(RawStep, actions) == 8 && size_of::<RawStep>() == 16);
    assert!(std::mem::offset_of!(RawRecord, taken) == 32 && size_of::<RawRecord>() == 48);
};

/// The functions of `shims/limit.c` at one width. Every pointer to a limiter points to `size()`
/// bytes, aligned to `alignment()`.
pub struct Functions {
    pub size: unsafe extern "C" fn() -> usize,
    pub alignment: unsafe extern "C" fn() -> usize,
    pub check: unsafe extern "C" fn(*const RawConfig) -> u32,
    pub start: unsafe extern "C" fn(*mut c_void, *const RawConfig, u64, *mut RawStep),
    pub request: unsafe extern "C" fn(*mut c_void, u64, bool, *mut RawStep),
    pub refused: unsafe extern "C" fn(*mut c_void, u64, *mut RawStep),
    pub expired: unsafe extern "C" fn(*mut c_void, u64, bool, *mut RawStep),
    pub tick: unsafe extern "C" fn(*mut c_void, u64, bool, *mut RawStep),
    pub user_enable: unsafe extern "C" fn(*mut c_void, u64, *mut RawStep),
    pub user_disable: unsafe extern "C" fn(*mut c_void, *mut RawStep),
    pub reconfigure: unsafe extern "C" fn(*mut c_void, *const RawConfig, u64, *mut RawStep) -> u32,
    pub age: unsafe extern "C" fn(*mut c_void, u64),
    pub elapsed: unsafe extern "C" fn(*mut c_void),
    pub done: unsafe extern "C" fn(*mut c_void, u64, u64),
    pub is_on: unsafe extern "C" fn(*const c_void) -> bool,
    pub next: unsafe extern "C" fn(*const *const c_void, u8, u64, *mut u64) -> bool,
    pub record: unsafe extern "C" fn(*const c_void, *mut RawRecord) -> bool,
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
                fn start(
                    limit: *mut c_void,
                    config: *const RawConfig,
                    now: u64,
                    step: *mut RawStep,
                );
                #[link_name = concat!($prefix, "request")]
                fn request(limit: *mut c_void, now: u64, elapsed: bool, step: *mut RawStep);
                #[link_name = concat!($prefix, "refused")]
                fn refused(limit: *mut c_void, now: u64, step: *mut RawStep);
                #[link_name = concat!($prefix, "expired")]
                fn expired(limit: *mut c_void, now: u64, pending: bool, step: *mut RawStep);
                #[link_name = concat!($prefix, "tick")]
                fn tick(limit: *mut c_void, now: u64, pending: bool, step: *mut RawStep);
                #[link_name = concat!($prefix, "user_enable")]
                fn user_enable(limit: *mut c_void, now: u64, step: *mut RawStep);
                #[link_name = concat!($prefix, "user_disable")]
                fn user_disable(limit: *mut c_void, step: *mut RawStep);
                #[link_name = concat!($prefix, "reconfigure")]
                fn reconfigure(
                    limit: *mut c_void,
                    to: *const RawConfig,
                    now: u64,
                    step: *mut RawStep,
                ) -> u32;
                #[link_name = concat!($prefix, "age")]
                fn age(limit: *mut c_void, now: u64);
                #[link_name = concat!($prefix, "elapsed")]
                fn elapsed(limit: *mut c_void);
                #[link_name = concat!($prefix, "done")]
                fn done(limit: *mut c_void, begin: u64, now: u64);
                #[link_name = concat!($prefix, "is_on")]
                fn is_on(limit: *const c_void) -> bool;
                #[link_name = concat!($prefix, "next")]
                fn next(limits: *const *const c_void, count: u8, now: u64, at: *mut u64) -> bool;
                #[link_name = concat!($prefix, "record")]
                fn record(limit: *const c_void, record: *mut RawRecord) -> bool;
            }
            Functions {
                size,
                alignment,
                check,
                start,
                request,
                refused,
                expired,
                tick,
                user_enable,
                user_disable,
                reconfigure,
                age,
                elapsed,
                done,
                is_on,
                next,
                record,
            }
        };
    };
}

functions!(BITS16, "weir16_");
functions!(BITS32, "weir32_");
functions!(BITS64, "weir64_");
functions!(BARE16, "weir16bare_");
functions!(BARE32, "weir32bare_");
functions!(BARE64, "weir64bare_");
