// SPDX-License-Identifier: MIT OR Apache-2.0
//! Charges interrupt time to the process that it was for (`include/weir/account.h`, zhang2006 §3.1
//! and §4). Cycles have 64 bits.

use std::ptr::null_mut;

use crate::account_ffi::{self as ffi, RawAccount, RawConfig, RawDevice, RawProcess};

/// The unit of a balance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Measured cycles. The balance is exact.
    Measured,
    /// Interrupts per device, N(t) of which make a tick. This is zhang2006 §3.1 to the letter, with
    /// its errors (ACCOUNT-COUNTED-2).
    Counted,
}

/// The configuration of an account.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// The unit of the balances.
    pub mode: Mode,
    /// Cycles of a clock tick, 1 to 2³⁶.
    pub cycles_per_tick: u64,
    /// The weight of the newest N(t) in the average, in units of 1/65,536: 1 to 65,535, or
    /// [`Config::GAMMA`]. The measured mode ignores it.
    pub gamma: u16,
}

impl Config {
    /// The gamma of zhang2006 §4, 0.3, in units of 1/65,536.
    pub const GAMMA: u16 = 19_661;
}

/// Why the settings of an account are rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountError {
    /// The clock tick is 0 cycles or more than 2³⁶.
    Tick,
    /// The weight `gamma` is 0.
    Gamma,
    /// There are more than 65,535 devices.
    Devices,
}

impl std::fmt::Display for AccountError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            AccountError::Tick => "a clock tick must last 1 to 68719476736 cycles",
            AccountError::Gamma => "the weight gamma must be above 0 and below 1",
            AccountError::Devices => "there may be at most 65535 devices",
        })
    }
}

impl std::error::Error for AccountError {}

fn result(code: u32) -> Result<(), AccountError> {
    match code {
        0 => Ok(()),
        1 => Err(AccountError::Tick),
        _ => Err(AccountError::Gamma),
    }
}

/// The correction to the process that a clock tick is charged to, in addition to the tick itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[must_use]
pub struct Adjustment {
    /// Ticks to add to the process's system time and to take from its time-slice; a negative number
    /// gives ticks back.
    pub ticks: i32,
}

/// The interrupt time of a process and of the ticks charged to it, in cycles, modulo 2⁶⁴.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ProcessReport {
    /// Interrupt time for the process.
    pub received: u64,
    /// Interrupt time within the ticks that were charged to the process, whichever process the
    /// interrupts were for.
    pub hosted: u64,
    /// Interrupt time that counts in both `received` and `hosted`: interrupts for the process
    /// during its own ticks.
    pub own: u64,
    /// Ticks that were charged to the process minus ticks given back: the sum of all
    /// [`Adjustment`]s.
    pub adjusted: i32,
    /// Cycles that have not been adjusted yet. A positive number is still to be charged, a negative
    /// one still to be given back. The counted mode converts interrupts to cycles with the current
    /// N(t).
    pub owed: i64,
}

impl ProcessReport {
    /// Interrupt time for the process during ticks that were charged to other processes or to none.
    #[must_use]
    pub fn charged(&self) -> u64 {
        self.received.wrapping_sub(self.own)
    }

    /// Interrupt time for other processes and for orphans during ticks that were charged to this
    /// process.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.hosted.wrapping_sub(self.own)
    }

    /// The total correction for the process, in cycles: the adjusted ticks plus the balance. In the
    /// measured mode it is `charged() - taken()`.
    #[must_use]
    pub fn compensated(&self, cycles_per_tick: u64) -> i64 {
        i64::from(self.adjusted)
            .wrapping_mul(cycles_per_tick as i64)
            .wrapping_add(self.owed)
    }
}

/// The packets of one device.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct DeviceReport {
    /// Number of handled packets, modulo 2³².
    pub handled: u32,
    /// The cost of these packets in cycles, modulo 2⁶⁴.
    pub cycles: u64,
    /// The average of N(t), the number of interrupts that make a tick. `None` in the measured mode,
    /// and until a cost has been measured.
    pub per_tick: Option<f64>,
}

/// Interrupt time that belongs to no process; in cycles, modulo 2⁶⁴.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Totals {
    /// Interrupt time of orphans. It is given back to the running process and charged to none.
    pub orphans: u64,
    /// Interrupt time in ticks that were charged to no process.
    pub idle: u64,
    /// Cycles that processes still owed when they exited.
    pub unpaid: u64,
    /// Cycles that the account still owed to processes when they exited.
    pub unreturned: u64,
    /// Interrupt time since the last tick.
    pub pending: u64,
}

/// The account of one processor. Processes and devices are identified by indices. A clone is an
/// independent account in the same state.
#[derive(Clone, Debug)]
pub struct Account {
    mode: Mode,
    account: RawAccount,
    processes: Vec<RawProcess>,
    devices: Vec<RawDevice>,
    /// The balances: in the counted mode, one row for each process.
    x: Vec<i64>,
}

impl Account {
    /// Calls `weir_account_start()`. The account begins without handled packets.
    ///
    /// # Errors
    /// Fails if `config` is not valid, or with [`AccountError::Devices`].
    pub fn new(processes: usize, devices: usize, config: &Config) -> Result<Self, AccountError> {
        u16::try_from(devices).map_err(|_| AccountError::Devices)?;
        let raw = RawConfig {
            tick: config.cycles_per_tick,
            gamma: match config.mode {
                Mode::Measured => Config::GAMMA,
                Mode::Counted => config.gamma,
            },
        };
        let mut account = RawAccount::default();
        // SAFETY: both values live through the call; both sides assert their layouts.
        result(unsafe { ffi::weir_ffi_account_start(&raw mut account, &raw const raw) })?;
        let cells = match config.mode {
            Mode::Measured => 0,
            Mode::Counted => processes * devices,
        };
        Ok(Account {
            mode: config.mode,
            account,
            processes: vec![RawProcess::default(); processes],
            devices: vec![RawDevice::default(); devices],
            x: vec![0; cells],
        })
    }

    /// Adds a process and returns its index. Indices are consecutive.
    pub fn add_process(&mut self) -> usize {
        self.processes.push(RawProcess::default());
        if self.mode == Mode::Counted {
            self.x.resize(self.processes.len() * self.devices.len(), 0);
        }
        self.processes.len() - 1
    }

    /// Returns the cycles of a clock tick.
    #[must_use]
    pub fn cycles_per_tick(&self) -> u64 {
        self.account.config.tick
    }

    /// Returns the process's row of balances and the length of the row. The measured mode has no
    /// rows.
    fn row(&self, process: usize) -> &[i64] {
        &self.x[process * self.devices.len()..][..self.devices.len()]
    }

    fn row_mut(&mut self, process: usize) -> *mut i64 {
        let devices = self.devices.len();
        self.x[process * devices..][..devices].as_mut_ptr()
    }

    fn count(&self) -> u16 {
        self.devices.len() as u16 // checked in `new`
    }

    /// Calls `weir_account_handled()`: a packet of `device` was handled for `process`, at the cost
    /// of `cycles`. `process` is `None` for an orphan.
    ///
    /// # Panics
    /// Panics if the device or the process does not exist. The same holds for all functions that
    /// take one.
    pub fn handled(&mut self, device: usize, process: Option<usize>, cycles: u64) {
        let x = match (self.mode, process) {
            // SAFETY: the row has an element for each device; if there is no such device, the index
            // below panics before this pointer is used.
            (Mode::Counted, Some(process)) => self.row_mut(process).wrapping_add(device),
            _ => null_mut(),
        };
        let account = &raw mut self.account;
        let device = &raw mut self.devices[device];
        let receiver = match process {
            Some(process) => &raw mut self.processes[process],
            None => null_mut(),
        };
        // SAFETY: all point to elements of `self`, of the types that C has; a process may be null,
        // and `x` is read only where it is not.
        unsafe {
            match self.mode {
                Mode::Measured => ffi::weir_ffi_account_handled(account, device, receiver, cycles),
                Mode::Counted => {
                    ffi::weir_ffi_account_handled_counted(account, device, receiver, x, cycles);
                }
            }
        }
    }

    /// Calls `weir_account_tick()` at a clock tick. The tick is charged to `running`, or to no
    /// process if it is `None` (idle).
    pub fn tick(&mut self, running: Option<usize>) -> Adjustment {
        let x = match (self.mode, running) {
            (Mode::Counted, Some(process)) => self.row_mut(process),
            _ => null_mut(),
        };
        let (devices, count) = (self.devices.as_mut_ptr(), self.count());
        let process = match running {
            Some(process) => &raw mut self.processes[process],
            None => null_mut(),
        };
        let account = &raw mut self.account;
        // SAFETY: all point to elements of `self`, of the types that C has; `devices` and `x` have
        // `count` elements. A process may be null, and `x` is used only where it is not.
        let ticks = unsafe {
            match self.mode {
                Mode::Measured => ffi::weir_ffi_account_tick(account, process),
                Mode::Counted => {
                    ffi::weir_ffi_account_tick_counted(account, devices, count, process, x)
                }
            }
        };
        Adjustment { ticks }
    }

    /// Calls `weir_account_exit()`: adds the process's balance to [`Account::totals`]. The index
    /// can be used for another process.
    pub fn exit(&mut self, process: usize) {
        let x = match self.mode {
            Mode::Measured => null_mut(),
            Mode::Counted => self.row_mut(process),
        };
        let (devices, count) = (self.devices.as_ptr(), self.count());
        let leaving = &raw mut self.processes[process];
        let account = &raw mut self.account;
        // SAFETY: all point to elements of `self`, of the types that C has; `devices` and, in
        // counted mode, `x` have `count` elements.
        unsafe {
            match self.mode {
                Mode::Measured => ffi::weir_ffi_account_exit(account, leaving),
                Mode::Counted => {
                    ffi::weir_ffi_account_exit_counted(account, devices, count, leaving, x);
                }
            }
        }
    }

    /// Calls `weir_account_move()`: the process moves to the processor of `to`, which takes over
    /// its balance.
    ///
    /// # Panics
    /// Panics if one of the accounts is counted, because the same packet has a different cost on
    /// the other processor.
    pub fn move_to(&mut self, process: usize, to: &mut Account) {
        let modes = (self.mode, to.mode);
        assert_eq!(modes, (Mode::Measured, Mode::Measured));
        let (from, to) = (
            &raw mut self.processes[process],
            &raw mut to.processes[process],
        );
        // SAFETY: `self` and `to` are borrowed exclusively, and so are different accounts.
        unsafe { ffi::weir_ffi_account_move(from, to) }
    }

    /// Returns the interrupt time of a process and of the ticks charged to it.
    #[must_use]
    pub fn process(&self, process: usize) -> ProcessReport {
        let raw = &self.processes[process];
        ProcessReport {
            received: raw.received,
            hosted: raw.hosted,
            own: raw.own,
            adjusted: raw.adjusted,
            owed: match self.mode {
                Mode::Measured => raw.owed,
                Mode::Counted => self.worth(process),
            },
        }
    }

    fn worth(&self, process: usize) -> i64 {
        let (account, devices) = (&raw const self.account, self.devices.as_ptr());
        // SAFETY: all point to elements of `self`; `devices` and the row have `count` elements.
        unsafe {
            ffi::weir_ffi_account_worth_counted(
                account,
                devices,
                self.count(),
                self.row(process).as_ptr(),
            )
        }
    }

    /// Returns x, the interrupts of one device for one process that are not accounted for yet
    /// (zhang2006 §3.1). In the measured mode it is 0.
    #[must_use]
    pub fn unaccounted(&self, device: usize, process: usize) -> i64 {
        match self.mode {
            Mode::Measured => 0,
            Mode::Counted => self.row(process)[device],
        }
    }

    /// Returns the statistics of a device's packets.
    #[must_use]
    pub fn device(&self, device: usize) -> DeviceReport {
        let raw = &self.devices[device];
        DeviceReport {
            handled: raw.handled,
            cycles: raw.cycles,
            per_tick: (raw.per_tick != 0).then(|| raw.per_tick as f64 / 65_536.0),
        }
    }

    /// Returns the interrupt time that belongs to no process.
    #[must_use]
    pub fn totals(&self) -> Totals {
        Totals {
            orphans: self.account.orphans,
            idle: self.account.idle,
            unpaid: self.account.unpaid,
            unreturned: self.account.unreturned,
            pending: self.account.handled,
        }
    }
}
