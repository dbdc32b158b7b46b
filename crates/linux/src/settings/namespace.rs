// SPDX-License-Identifier: MIT OR Apache-2.0
//! Network namespaces and their interfaces. Each is distinguished from any other of this boot, and
//! can be reached from any namespace.
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::iter;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::fcntl::{OFlag, open, openat};
use nix::sched::{CloneFlags, setns};
use nix::sys::stat::{Mode, fstatat};
use nix::sys::statfs::{FsType, fstatfs};
use procfs::process::Process;
use serde::{Deserialize, Serialize};
use weir_report::terminal::printable;

use super::sockets;
use crate::mounted::mounted;

/// Socket option: the number of the socket's network namespace (<asm-generic/socket.h>, Linux
/// 5.14).
const SO_NETNS_COOKIE: libc::c_int = 71;
const SIOCGIFNAME: libc::c_int = 0x8910;
const SIOCGIFINDEX: libc::c_int = 0x8933;
const SIOCGIFHWADDR: libc::c_int = 0x8927;
const SIOCETHTOOL: libc::c_int = 0x8946;

/// A path at which a network namespace can be opened.
#[derive(Debug)]
pub struct NamespacePath {
    path: PathBuf,
    /// Keeps the target of the path open where nothing else does.
    _held: Option<OwnedFd>,
}

impl AsRef<Path> for NamespacePath {
    fn as_ref(&self) -> &Path {
        &self.path
    }
}

impl From<PathBuf> for NamespacePath {
    fn from(path: PathBuf) -> Self {
        Self { path, _held: None }
    }
}

impl From<OwnedFd> for NamespacePath {
    fn from(held: OwnedFd) -> Self {
        Self {
            path: format!("/proc/self/fd/{}", held.as_raw_fd()).into(),
            _held: Some(held),
        }
    }
}

/// An open network namespace. It exists at least as long as this value.
#[derive(Debug)]
pub struct Namespace {
    cookie: u64,
    /// A socket in the namespace. The kernel executes its ioctls in the namespace, whichever thread
    /// calls them.
    socket: OwnedFd,
    /// A folder that shows the namespace's interfaces as /sys does.
    sys: OwnedFd,
    /// Whether `sys` is this process's own /sys, which may show another namespace.
    assumed: bool,
}

impl Namespace {
    /// Opens the namespace of this thread.
    ///
    /// # Errors
    /// Fails when no sysfs can be mounted for the namespace (which needs CAP_SYS_ADMIN) and /sys
    /// cannot be opened.
    pub fn own() -> io::Result<Self> {
        // SAFETY: no pointers are passed, and the descriptor has no other owner.
        let socket =
            unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
        if socket < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just created the descriptor, so it has no other owner.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        let mut cookie = 0_u64;
        let mut size: libc::socklen_t = 8;
        // SAFETY: the kernel writes at most `size` bytes to `cookie`.
        let result = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                SO_NETNS_COOKIE,
                (&raw mut cookie).cast(),
                &raw mut size,
            )
        };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        // /sys shows the namespace of the process that mounted it. A sysfs that this process mounts
        // itself, without a place in the tree, certainly shows this namespace.
        let (sys, assumed) = match mounted(c"sysfs") {
            Ok(sys) => (sys, false),
            Err(_) => (File::open("/sys")?.into(), true),
        };
        Ok(Self {
            cookie,
            socket,
            sys,
            assumed,
        })
    }

    /// Opens the namespace at `path` (/run/netns/NAME, /proc/PID/ns/net).
    ///
    /// # Errors
    /// Fails when there is no such namespace, or when this process may not enter it (which needs
    /// CAP_SYS_ADMIN).
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        inside(path.as_ref(), Self::own)
    }

    /// Paths of all namespaces, each at least once. They are found by their names, and through the
    /// mounts, threads, descriptors and sockets of processes. A namespace that exists only through
    /// a socket that is being sent to another process is not found.
    pub fn places() -> impl Iterator<Item = NamespacePath> {
        let processes = || folder("/proc").filter(|path| is_number(path));
        let named = folder("/run/netns");
        let mut looked_at = BTreeSet::new();
        let mounted = iter::once(PathBuf::from("/proc/self"))
            .chain(processes())
            .filter(move |process| looked_at.insert(view(process)))
            .flat_map(|process| mounted_by(&process));
        // All threads are examined, since only one thread of a program may be in a namespace.
        let threads = processes()
            .flat_map(|path| folder(path.join("task")))
            .map(|path| path.join("ns/net"));
        let open = processes()
            .flat_map(|path| folder(path.join("fd")))
            .filter(|path| {
                let target = fs::read_link(path).unwrap_or_default();
                target.to_string_lossy().starts_with("net:[")
            });
        // Sockets come last, since there may be many.
        let of_sockets = processes().flat_map(|path| sockets::namespaces(&path));
        let mut seen = BTreeSet::new();
        named
            .chain(mounted)
            .chain(threads)
            .chain(open)
            .map(NamespacePath::from)
            .chain(of_sockets.map(NamespacePath::from))
            .filter(move |place| match fs::metadata(place) {
                Ok(namespace) => seen.insert(namespace.ino()),
                // A file that this process may not examine may be a namespace, so it is kept.
                Err(error) => error.kind() == io::ErrorKind::PermissionDenied,
            })
    }

    /// The interface with this index in the namespace. `None` if there is none, or if it cannot be
    /// examined.
    #[must_use]
    pub fn into_interface(self, index: i32) -> Option<OpenInterface> {
        let interface = NetDevice {
            name: String::new(),
            index,
            device: None,
            namespace: self.cookie,
            path: None,
        };
        interface.open_in(self).ok()
    }

    /// Number of the namespace, which no other namespace of this boot has.
    #[must_use]
    pub fn cookie(&self) -> u64 {
        self.cookie
    }

    /// Finds the interface that has the name `name` in this namespace now.
    ///
    /// # Errors
    /// Fails with ENODEV when there is no such interface.
    pub fn interface(&self, name: &str) -> io::Result<NetDevice> {
        let request = self.request(name, SIOCGIFINDEX)?;
        // SAFETY: the kernel has written this member of the union.
        let index = unsafe { request.ifr_ifru.ifru_ifindex };
        Ok(NetDevice {
            name: name.to_owned(),
            index,
            device: self.device(name, index),
            namespace: self.cookie,
            path: None,
        })
    }

    /// Number of the device with the name `name` and this index. `None` if /sys does not show it.
    fn device(&self, name: &str, index: i32) -> Option<u64> {
        let shown = self.shown(name)?;
        if self.assumed {
            let path = format!("class/net/{name}/ifindex");
            let file = openat(&self.sys, path.as_str(), OFlag::O_CLOEXEC, Mode::empty()).ok()?;
            let mut text = String::new();
            File::from(file).read_to_string(&mut text).ok()?;
            return Some(shown).filter(|_| text.trim() == index.to_string());
        }
        Some(shown)
    }

    /// Number (inode) of the folder that /sys shows for `name`. A device keeps this number as long
    /// as it exists, even if it is renamed or moved to another namespace.
    fn shown(&self, name: &str) -> Option<u64> {
        let path = Path::new("class/net").join(name);
        let folder = fstatat(&self.sys, &path, nix::fcntl::AtFlags::empty()).ok()?;
        Some(folder.st_ino)
    }

    /// Name of the device with this number in the namespace. `None` if the device is not there.
    fn named(&self, device: u64) -> Option<String> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let folder = openat(&self.sys, "class/net", flags, Mode::empty()).ok()?;
        let mut entries = nix::dir::Dir::from_fd(folder).ok()?;
        let mut names = entries
            .iter()
            .filter_map(|entry| Some(entry.ok()?.file_name().to_str().ok()?.to_owned()));
        names.find(|name| name != "." && name != ".." && self.shown(name) == Some(device))
    }

    /// Present name of `interface`, since names can change.
    fn name_of(&self, interface: &NetDevice) -> io::Result<String> {
        let mut request = empty_request();
        request.ifr_ifru.ifru_ifindex = interface.index;
        self.ioctl(SIOCGIFNAME, &mut request)?;
        Ok(request
            .ifr_name
            .iter()
            .take_while(|byte| **byte != 0)
            .map(|byte| char::from(*byte as u8))
            .collect())
    }

    fn request(&self, name: &str, number: libc::c_int) -> io::Result<libc::ifreq> {
        let mut request = named_request(name)?;
        self.ioctl(number, &mut request)?;
        Ok(request)
    }

    fn ioctl(&self, number: libc::c_int, request: &mut libc::ifreq) -> io::Result<()> {
        // SAFETY: the kernel reads and writes only the request. Callers pass a request whose data
        // is as large as the command `number` requires.
        let done = unsafe { libc::ioctl(self.socket.as_raw_fd(), number as _, &raw mut *request) };
        if done < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(())
        }
    }
}

/// Opens the namespace at `path`. Any process may have mounted something there, and may change it
/// meanwhile. So the path is opened only once it is known to be a namespace: opening a pipe would
/// block, and opening a device would start it.
///
/// # Errors
/// Fails when there is nothing at the path, or something other than a namespace.
pub(crate) fn handle(path: impl AsRef<Path>) -> io::Result<File> {
    // With O_PATH the file itself is not opened, and the descriptor keeps referring to the same
    // file.
    let flags = OFlag::O_PATH | OFlag::O_CLOEXEC;
    let found = open(path.as_ref(), flags, Mode::empty())?;
    if fstatfs(&found)?.filesystem_type() != FsType(libc::NSFS_MAGIC as _) {
        let message = format!("{} is no network namespace", printable(path.as_ref()));
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    File::open(format!("/proc/self/fd/{}", found.as_raw_fd()))
}

/// Runs `work` in the network namespace at `path` and returns its result. The calling thread stays
/// in its own namespace.
///
/// # Errors
/// Fails when there is no such namespace, when this process may not enter it (which needs
/// CAP_SYS_ADMIN), or when `work` fails.
pub fn inside<T: Send, E: From<io::Error> + Send>(
    path: &Path,
    work: impl FnOnce() -> Result<T, E> + Send,
) -> Result<T, E> {
    let handle = handle(path)?;
    // The work gets a thread of its own. A thread that failed to return to its namespace could not
    // be used any longer.
    std::thread::scope(|scope| {
        let entered = scope.spawn(|| {
            setns(handle.as_fd(), CloneFlags::CLONE_NEWNET).map_err(io::Error::from)?;
            work()
        });
        entered
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn empty_request() -> libc::ifreq {
    // SAFETY: all members are integers, or pointers that may be null.
    unsafe { mem::zeroed() }
}

fn named_request(name: &str) -> io::Result<libc::ifreq> {
    let mut request = empty_request();
    // One byte is left for the final zero.
    if name.is_empty() || name.len() >= request.ifr_name.len() {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(request)
}

/// A network interface of this boot. It is distinguished from any other, even from a later one with
/// the same name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NetDevice {
    /// Name of the interface when it was found.
    pub name: String,
    /// Index of the interface, which is unique in its namespace.
    pub index: i32,
    /// Number of the interface's device. By this number the interface is found in another
    /// namespace, and distinguished from a later one with the same index. `None` if /sys did not
    /// show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<u64>,
    /// Number of the interface's network namespace ([`Namespace::cookie`]).
    pub namespace: u64,
    /// Path at which the namespace was found. It is tried first when the interface is opened.
    /// `None` means the namespace of this process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
}

impl NetDevice {
    /// Finds the interface that has the name `name` now, in the network namespace at `namespace`,
    /// or in that of this thread if `namespace` is `None`.
    ///
    /// # Errors
    /// Fails with ENODEV when there is no such interface, with ENOENT when there is no such
    /// namespace, and with EPERM when this process may not enter the namespace.
    pub fn find(name: &str, namespace: Option<&Path>) -> io::Result<Self> {
        let space = match namespace {
            None => Namespace::own()?,
            Some(path) => Namespace::open(path)?,
        };
        Ok(Self {
            path: namespace.map(Path::to_owned),
            ..space.interface(name)?
        })
    }

    /// Opens the interface, even if it has been renamed or moved to another network namespace.
    ///
    /// # Errors
    /// Fails with ENODEV when the interface no longer exists. Fails with `PermissionDenied` when
    /// the interface is not where it was, and this process may not examine all namespaces.
    pub fn open(&self) -> io::Result<OpenInterface> {
        let opened = self.space().and_then(|namespace| self.open_in(namespace));
        match (opened, self.device) {
            (Err(error), Some(device)) if error.raw_os_error() == Some(libc::ENODEV) => {
                elsewhere(device)
            }
            (opened, _) => opened,
        }
    }

    /// Runs `work` in the interface's network namespace and returns its result.
    ///
    /// # Errors
    /// Fails when `work` fails. Fails with ENODEV when the namespace is neither this thread's nor
    /// the one at the path where the interface was found.
    pub(crate) fn inside<T: Send>(
        &self,
        work: impl FnOnce() -> io::Result<T> + Send,
    ) -> io::Result<T> {
        if Namespace::own()?.cookie == self.namespace {
            return work();
        }
        let gone = || io::Error::from_raw_os_error(libc::ENODEV);
        inside(self.path.as_deref().ok_or_else(gone)?, work)
    }

    fn open_in(&self, namespace: Namespace) -> io::Result<OpenInterface> {
        let name = namespace.name_of(self)?;
        let open = OpenInterface { namespace, name };
        if open.namespace.assumed {
            open.is_shown(self)?;
        }
        // Another interface may have taken the index meanwhile.
        let is_another = |device| open.namespace.shown(&open.name) != Some(device);
        if self.device.is_some_and(is_another) {
            return Err(io::Error::from_raw_os_error(libc::ENODEV));
        }
        Ok(open)
    }

    fn space(&self) -> io::Result<Namespace> {
        let right = |space: &Namespace| space.cookie == self.namespace;
        if let Some(space) = Some(Namespace::own()?).filter(right) {
            return Ok(space);
        }
        if let Some(space) = self
            .path
            .as_deref()
            .and_then(|path| Namespace::open(path).ok())
            .filter(right)
        {
            return Ok(space);
        }
        Namespace::places()
            .find_map(|place| Namespace::open(place).ok().filter(right))
            .ok_or_else(|| io::Error::from_raw_os_error(libc::ENODEV))
    }
}

/// Finds the interface of the device with this number in any network namespace.
fn elsewhere(device: u64) -> io::Result<OpenInterface> {
    // A process that may not enter its own namespace may not enter any other.
    let enters = Namespace::open("/proc/thread-self/ns/net").is_ok();
    let mut hidden = false;
    for place in Namespace::places() {
        match Namespace::open(place) {
            Ok(namespace) => {
                if let Some(name) = namespace.named(device) {
                    return Ok(OpenInterface { namespace, name });
                }
            }
            // A process that may not be examined may be in a namespace of its own, although most
            // are not. If this process may enter namespaces, it has looked into all others.
            Err(error) => hidden |= !enters && error.kind() == io::ErrorKind::PermissionDenied,
        }
    }
    Err(if hidden {
        io::Error::new(
            io::ErrorKind::PermissionDenied,
            "it is not where it was: it has gone, or been moved to a network namespace into which this process may not look; with CAP_SYS_ADMIN (as root) `weir linux stop` finds it",
        )
    } else {
        io::Error::from_raw_os_error(libc::ENODEV)
    })
}

/// Mount namespace and root of a process. Two processes for which these are equal see the same
/// mounts.
fn view(process: &Path) -> Option<(u64, u64, u64)> {
    let namespace = fs::metadata(process.join("ns/mnt")).ok()?;
    let root = fs::metadata(process.join("root")).ok()?;
    Some((namespace.ino(), root.dev(), root.ino()))
}

/// Paths of the network namespaces that a process has mounted. This process can open these paths.
fn mounted_by(process: &Path) -> Vec<PathBuf> {
    let mounts = Process::new_with_root(process.to_owned()).and_then(|process| process.mountinfo());
    mounts
        .into_iter()
        .flatten()
        .filter(|mount| mount.fs_type == "nsfs" && mount.root.starts_with("net:"))
        .filter_map(|mount| {
            let below = mount.mount_point.strip_prefix("/").ok()?;
            Some(process.join("root").join(below))
        })
        .collect()
}

fn folder(path: impl AsRef<Path>) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(path)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
}

fn is_number(path: &Path) -> bool {
    path.file_name()
        .and_then(|name| name.to_str())
        .is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
}

/// An open interface, whose files and settings can be read and changed.
#[derive(Debug)]
pub struct OpenInterface {
    namespace: Namespace,
    name: String,
}

impl OpenInterface {
    /// Present name of the interface.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Number of the interface's network namespace ([`Namespace::cookie`]).
    #[must_use]
    pub fn namespace(&self) -> u64 {
        self.namespace.cookie
    }

    /// Whether the interface is up.
    ///
    /// # Errors
    /// Fails when the interface no longer exists.
    pub fn is_up(&self) -> io::Result<bool> {
        let text = self.read("flags")?;
        let flags = i32::from_str_radix(text.trim().trim_start_matches("0x"), 16);
        Ok(flags.map_err(io::Error::other)? & libc::IFF_UP != 0)
    }

    /// Fails unless /sys shows this interface. It may show an interface of another namespace with
    /// the same name.
    fn is_shown(&self, interface: &NetDevice) -> io::Result<()> {
        let request = self.namespace.request(&self.name, SIOCGIFHWADDR)?;
        // SAFETY: the kernel has written this member of the union.
        let address = unsafe { request.ifr_ifru.ifru_hwaddr.sa_data };
        let address = address[..6]
            .iter()
            .map(|byte| format!("{:02x}", *byte as u8))
            .collect::<Vec<_>>()
            .join(":");
        if self.read("ifindex")?.trim() == interface.index.to_string()
            && self.read("address")?.trim().starts_with(&address)
        {
            Ok(())
        } else {
            Err(io::Error::other(format!(
                "/sys does not show {}: it is mounted for another network namespace, and CAP_SYS_ADMIN, with which it could be mounted for this one, is missing",
                self.name
            )))
        }
    }

    fn file(&self, path: &str, flags: OFlag) -> io::Result<File> {
        let path = Path::new("class/net").join(&self.name).join(path);
        let file = openat(
            &self.namespace.sys,
            &path,
            flags | OFlag::O_CLOEXEC,
            Mode::empty(),
        )?;
        Ok(File::from(file))
    }

    /// Reads the file `path` in the interface's folder in /sys/class/net.
    ///
    /// # Errors
    /// Fails with ENOENT when there is no such file, otherwise with the driver's error.
    pub fn read(&self, path: &str) -> io::Result<String> {
        let mut text = String::new();
        self.file(path, OFlag::O_RDONLY)?
            .read_to_string(&mut text)?;
        Ok(text)
    }

    /// Writes `text` to the file `path` in the interface's folder in /sys/class/net.
    ///
    /// # Errors
    /// Fails with ENOENT when there is no such file, otherwise with the driver's error.
    pub fn write(&self, path: &str, text: &str) -> io::Result<()> {
        self.file(path, OFlag::O_WRONLY)?.write_all(text.as_bytes())
    }

    /// Lists the names in the folder `path` in the interface's folder in /sys/class/net, sorted.
    /// The list is empty when there is no such folder.
    ///
    /// # Errors
    /// Fails when the folder cannot be read.
    pub fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let folder = match self.file(path, OFlag::O_RDONLY | OFlag::O_DIRECTORY) {
            Ok(folder) => folder,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut names: Vec<String> = nix::dir::Dir::from_fd(folder.into())?
            .iter()
            .filter_map(|entry| Some(entry.ok()?.file_name().to_str().ok()?.to_owned()))
            .filter(|name| name != "." && name != "..")
            .collect();
        names.sort();
        Ok(names)
    }

    /// Executes the ETHTOOL command whose number `value` begins with.
    ///
    /// # Errors
    /// Fails with EOPNOTSUPP when the driver does not have the command, otherwise with the driver's
    /// error.
    ///
    /// # Safety
    /// `value` must be as large as the data that the kernel reads and writes for the command.
    pub(super) unsafe fn ethtool<T>(&self, value: &mut T) -> io::Result<()> {
        let mut request = named_request(&self.name)?;
        request.ifr_ifru.ifru_data = (&raw mut *value).cast();
        self.namespace.ioctl(SIOCETHTOOL, &mut request)
    }
}
