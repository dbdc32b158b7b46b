// SPDX-License-Identifier: MIT OR Apache-2.0
//! The FFI boundary to `shims/account.c`: the structures of `account.h` for 64-bit cycles, in C
//! layout.

/// Has the layout of `weir_account_config_t`.
#[repr(C)]
#[derive(Clone, Debug, Default)]
pub struct RawConfig {
    pub tick: u64,
    pub gamma: u16,
}

/// Has the layout of `weir_account_t`.
#[repr(C)]
#[derive(Clone, Debug, Default)]
pub struct RawAccount {
    pub config: RawConfig,
    pub handled: u64,
    pub orphans: u64,
    pub idle: u64,
    pub unpaid: u64,
    pub unreturned: u64,
    pub ticks: u32,
}

/// Has the layout of `weir_account_process_t`.
#[repr(C)]
#[derive(Clone, Debug, Default)]
pub struct RawProcess {
    pub owed: i64,
    pub received: u64,
    pub hosted: u64,
    pub own: u64,
    pub recent: u64,
    pub recent_tick: u32,
    pub adjusted: i32,
}

/// Has the layout of `weir_account_device_t`.
#[repr(C)]
#[derive(Clone, Debug, Default)]
pub struct RawDevice {
    pub cycles: u64,
    pub cycles_before: u64,
    pub per_tick: u64,
    pub handled: u32,
    pub handled_before: u32,
}

// The C file asserts the same sizes and offsets.
const _: () = {
    assert!(std::mem::offset_of!(RawAccount, ticks) == 56 && size_of::<RawAccount>() == 64);
    assert!(std::mem::offset_of!(RawProcess, adjusted) == 44 && size_of::<RawProcess>() == 48);
    assert!(std::mem::offset_of!(RawDevice, handled_before) == 28 && size_of::<RawDevice>() == 32);
};

// A pointer to a process may be null. The `count` devices are contiguous, and so are the same
// number of balances.
unsafe extern "C" {
    pub fn weir_ffi_account_start(account: *mut RawAccount, config: *const RawConfig) -> u32;
    pub fn weir_ffi_account_handled(
        account: *mut RawAccount,
        device: *mut RawDevice,
        process: *mut RawProcess,
        cost: u64,
    );
    pub fn weir_ffi_account_tick(account: *mut RawAccount, process: *mut RawProcess) -> i32;
    pub fn weir_ffi_account_handled_counted(
        account: *mut RawAccount,
        device: *mut RawDevice,
        process: *mut RawProcess,
        x: *mut i64,
        cost: u64,
    );
    pub fn weir_ffi_account_tick_counted(
        account: *mut RawAccount,
        devices: *mut RawDevice,
        count: u16,
        process: *mut RawProcess,
        x: *mut i64,
    ) -> i32;
    pub fn weir_ffi_account_worth_counted(
        account: *const RawAccount,
        devices: *const RawDevice,
        count: u16,
        x: *const i64,
    ) -> i64;
    pub fn weir_ffi_account_exit(account: *mut RawAccount, process: *mut RawProcess);
    pub fn weir_ffi_account_exit_counted(
        account: *mut RawAccount,
        devices: *const RawDevice,
        count: u16,
        process: *mut RawProcess,
        x: *mut i64,
    );
    pub fn weir_ffi_account_move(from: *mut RawProcess, to: *mut RawProcess);
}
