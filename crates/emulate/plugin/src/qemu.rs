// SPDX-License-Identifier: MIT OR Apache-2.0
//! The functions of QEMU that the peer uses.
//!
//! QEMU exports its functions to modules and plugins, but has no header for most of them. The
//! declarations here hold for 7.2 and 10.0. The functions are looked up when the plugin is loaded,
//! so that a version of QEMU that lacks one of them is rejected with the name of the function.
//!
//! All functions here are called in a thread that holds QEMU's big lock (in a timer, or in the
//! instruction that writes to the card), or while there is only one thread. The same holds for all
//! callbacks.
use std::ffi::{CStr, c_char, c_int, c_void};

/// QEMU's `QEMU_CLOCK_VIRTUAL`: the guest's clock.
pub(crate) const CLOCK_VIRTUAL: c_int = 1;
/// QEMU's `SHUTDOWN_CAUSE_HOST_QMP_QUIT`: QEMU ends with exit code 0, even with `-no-shutdown`.
const CAUSE_HOST_QUIT: c_int = 2;
/// QEMU's `NET_CLIENT_DRIVER_NONE`.
const DRIVER_NONE: c_int = 0;

/// QEMU's `NetClientState`.
#[repr(C)]
pub struct Client {
    _opaque: [u8; 0],
}

/// QEMU calls this function with a frame that reaches a client. It returns the length, or a code
/// for what has happened to the frame.
pub type Receive =
    unsafe extern "C" fn(client: *mut Client, frame: *const u8, length: usize) -> isize;
/// QEMU calls this function when a timer is due.
pub type Due = unsafe extern "C" fn(data: *mut c_void);
/// QEMU calls this function when it ends.
pub type Exit = unsafe extern "C" fn(plugin: u64, data: *mut c_void);

/// QEMU's `NetClientInfo`. Its first three fields are the same in 7.2 and 10.0. The others differ;
/// they are optional function pointers (21 in 7.2, 20 in 10.0).
#[repr(C)]
pub(crate) struct ClientInfo {
    driver: c_int,
    /// The number of zeroed bytes that QEMU allocates for a client. A `NetClientState` needs 376 in
    /// 7.2 and in 10.0.
    size: usize,
    receive: Option<Receive>,
    others: [usize; 61],
}

/// QEMU's `QEMUTimer` (48 bytes). QEMU has a function that initialises its memory, but none that
/// creates it.
#[repr(C, align(16))]
pub(crate) struct Timer([u8; 256]);

/// Declares functions of QEMU, and a function that looks them up.
macro_rules! functions {
    ($functions:ident { $($name:ident: fn($($argument:ty),*) $(-> $result:ty)?;)* }) => {
        /// QEMU's functions, under their own names.
        #[derive(Clone, Copy)]
        pub(crate) struct $functions {
            $(pub(crate) $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl $functions {
            fn find() -> Result<Self, &'static str> {
                Ok(Self {
                    $($name: {
                        let name = concat!(stringify!($name), "\0");
                        let address = $crate::qemu::symbol(name).ok_or(stringify!($name))?;
                        // SAFETY: a function of this name in QEMU 7.2 and 10.0 has this type.
                        unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($argument),*) $(-> $result)?>(address) }
                    },)*
                })
            }
        }
    };
}

pub(crate) use functions;

functions! {
    Functions {
        qemu_plugin_register_atexit_cb: fn(u64, Exit, *mut c_void);
        qemu_clock_get_ns: fn(c_int) -> i64;
        timer_init_full: fn(*mut Timer, *mut c_void, c_int, c_int, c_int, Due, *mut c_void);
        timer_mod_ns: fn(*mut Timer, i64);
        timer_del: fn(*mut Timer);
        qemu_find_netdev: fn(*const c_char) -> *mut Client;
        qemu_get_peer: fn(*mut Client, c_int) -> *mut Client;
        net_hub_id_for_client: fn(*mut Client, *mut c_int) -> c_int;
        net_hub_add_port: fn(c_int, *const c_char, *mut Client) -> *mut Client;
        qemu_new_net_client: fn(*const ClientInfo, *mut Client, *const c_char, *const c_char) -> *mut Client;
        qemu_send_packet: fn(*mut Client, *const u8, c_int) -> isize;
        qemu_system_shutdown_request: fn(c_int);
    }
}

/// Returns the address of a function of QEMU. `name` must end with a zero byte.
pub(crate) fn symbol(name: &str) -> Option<*mut c_void> {
    let name = CStr::from_bytes_with_nul(name.as_bytes()).ok()?;
    // SAFETY: the name ends with a zero.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!address.is_null()).then_some(address)
}

/// Returns the version of the plugin interface that this QEMU accepts: 1 up to 8.2, 2 from 9.0 on.
pub fn plugin_version() -> c_int {
    if symbol("qemu_plugin_scoreboard_new\0").is_some() {
        2
    } else {
        1
    }
}

/// Why the guest's card cannot be reached.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// No netdev has this name.
    #[error(
        "QEMU has no netdev `{0}`: start it with -netdev hubport,id={0},hubid=0 -net nic,netdev={0}"
    )]
    Missing(String),
    /// The netdev is not a port of a hub.
    #[error("the netdev `{0}` is no port of a hub: use -netdev hubport,id={0},hubid=0")]
    NoPort(String),
    /// No card is connected to the netdev.
    #[error("no card is on the netdev `{0}`: start QEMU with -net nic,netdev={0}")]
    NoCard(String),
}

/// The parts of QEMU that the peer uses: its clock, one timer, and the hub to which the guest's
/// card is connected.
pub struct Qemu {
    functions: Functions,
    timer: *mut Timer,
    port: *mut Client,
}

// SAFETY: the pointers are QEMU's, which allows their use in any thread that holds its big lock;
// all threads that call the plugin do.
unsafe impl Send for Qemu {}

impl Qemu {
    /// Looks up QEMU's functions.
    ///
    /// # Errors
    /// The error is the name of a function that this QEMU does not have.
    pub fn find() -> Result<Self, &'static str> {
        Ok(Self {
            functions: Functions::find()?,
            timer: std::ptr::null_mut(),
            port: std::ptr::null_mut(),
        })
    }

    /// Registers a function that QEMU calls when it ends.
    pub fn on_exit(&self, plugin: u64, exit: Exit) {
        // SAFETY: the function lives as long as the plugin, which is never unloaded.
        unsafe {
            (self.functions.qemu_plugin_register_atexit_cb)(plugin, exit, std::ptr::null_mut());
        }
    }

    /// Returns the guest's time in nanoseconds.
    pub fn now(&self) -> u64 {
        // SAFETY: the clock can be read at any time after QEMU's start.
        let now = unsafe { (self.functions.qemu_clock_get_ns)(CLOCK_VIRTUAL) };
        u64::try_from(now).unwrap_or(0)
    }

    /// Creates the timer. It is called once.
    pub fn make_timer(&mut self, due: Due) {
        // QEMU keeps the address, so the timer must live until the process ends.
        self.timer = Box::leak(Box::new(Timer([0; 256])));
        // SAFETY: the memory is larger than a QEMUTimer of any version, and lives for ever.
        unsafe {
            (self.functions.timer_init_full)(
                self.timer,
                std::ptr::null_mut(),
                CLOCK_VIRTUAL,
                1,
                0,
                due,
                std::ptr::null_mut(),
            );
        }
    }

    /// Sets the timer to `at`, or stops it if that is `None`.
    pub fn set_timer(&self, at: Option<u64>) {
        if self.timer.is_null() {
            return;
        }
        // SAFETY: the timer has been made.
        unsafe {
            match at {
                Some(at) => {
                    (self.functions.timer_mod_ns)(self.timer, i64::try_from(at).unwrap_or(i64::MAX))
                }
                None => (self.functions.timer_del)(self.timer),
            }
        }
    }

    /// Connects to the hub of the port `netdev`. QEMU then calls `receive` with each frame that the
    /// guest sends, in the instruction that makes the card send the frame.
    pub fn connect(&mut self, netdev: &CStr, receive: Receive) -> Result<(), NetworkError> {
        let name = || netdev.to_string_lossy().into_owned();
        // QEMU keeps the address of this structure as long as the client exists.
        let info = Box::leak(Box::new(ClientInfo {
            driver: DRIVER_NONE,
            size: 4096,
            receive: Some(receive),
            others: [0; 61],
        }));
        // SAFETY: the names end with a zero and are copied by QEMU; the clients come from QEMU; the
        // information lives for ever, and every field that a version of QEMU reads in it is there.
        unsafe {
            let port = (self.functions.qemu_find_netdev)(netdev.as_ptr());
            if port.is_null() {
                return Err(NetworkError::Missing(name()));
            }
            let mut hub = 0;
            if (self.functions.net_hub_id_for_client)(port, &raw mut hub) != 0 {
                return Err(NetworkError::NoPort(name()));
            }
            if (self.functions.qemu_get_peer)(port, 0).is_null() {
                return Err(NetworkError::NoCard(name()));
            }
            let client = (self.functions.qemu_new_net_client)(
                info,
                std::ptr::null_mut(),
                c"weir-peer".as_ptr(),
                c"weir-peer".as_ptr(),
            );
            (self.functions.net_hub_add_port)(hub, c"weir-peer-port".as_ptr(), client);
            self.port = port;
        }
        Ok(())
    }

    /// Sends a frame to the guest's card. Returns whether the card accepted it.
    ///
    /// The frame is sent from the card's own port of the hub. From another port, the hub would not
    /// return what has happened to the frame. QEMU returns the length if the card accepted the
    /// frame (or ignored it, because it is for another address), -1 if the card dropped it, and 0
    /// if QEMU queued it. QEMU never queues frames for a LAN9118 unless the machine is stopped, and
    /// then no timer of the guest's clock is called.
    pub fn send(&self, frame: &[u8]) -> bool {
        let Ok(length) = c_int::try_from(frame.len()) else {
            return false;
        };
        // SAFETY: the port is QEMU's; a card reads `length` bytes during the call.
        unsafe { (self.functions.qemu_send_packet)(self.port, frame.as_ptr(), length) > 0 }
    }

    /// Asks QEMU to end. The guest may continue for a while.
    pub fn end(&self) {
        // SAFETY: a request can be made at any time.
        unsafe { (self.functions.qemu_system_shutdown_request)(CAUSE_HOST_QUIT) }
    }
}
