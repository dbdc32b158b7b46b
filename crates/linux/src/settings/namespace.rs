// SPDX-License-Identifier: MIT OR Apache-2.0
//! Network namespaces and their interfaces, each told apart from any other of this boot, and
//! reached from whatever namespace this process is in.
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

use super::sockets;
use crate::mounted::mounted;

/// Of a socket: the number of its network namespace (<asm-generic/socket.h>, Linux 5.14).
const SO_NETNS_COOKIE: libc::c_int = 71;
const SIOCGIFNAME: libc::c_int = 0x8910;
const SIOCGIFINDEX: libc::c_int = 0x8933;
const SIOCGIFHWADDR: libc::c_int = 0x8927;
const SIOCETHTOOL: libc::c_int = 0x8946;

/// Where a network namespace can be opened.
#[derive(Debug)]
pub struct NamespacePath {
    path: PathBuf,
    /// What the path leads to, if nothing else does.
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

/// An open network namespace, which stays as long as this is held.
#[derive(Debug)]
pub struct Namespace {
    cookie: u64,
    /// Belongs to the namespace, and carries its ioctls from any thread.
    socket: OwnedFd,
    /// A folder that shows the namespace's interfaces as /sys does.
    sys: OwnedFd,
    /// Whether `sys` is the /sys of this process, which may show another namespace's.
    assumed: bool,
}

impl Namespace {
    /// The one that this thread is in.
    ///
    /// # Errors
    /// When neither a sysfs can be mounted for it (CAP_SYS_ADMIN) nor /sys be opened.
    pub fn own() -> io::Result<Self> {
        // SAFETY: no pointers are passed; the descriptor is nobody else's.
        let socket =
            unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
        if socket < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: as above.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        let mut cookie = 0_u64;
        let mut size: libc::socklen_t = 8;
        // SAFETY: the kernel writes at most `size` bytes to `cookie`.
        let asked = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                SO_NETNS_COOKIE,
                (&raw mut cookie).cast(),
                &raw mut size,
            )
        };
        if asked < 0 {
            return Err(io::Error::last_os_error());
        }
        // /sys shows the namespace of whoever mounted it: one of this namespace's own, mounted
        // nowhere, cannot be another's.
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

    /// The one that `path` (/run/netns/NAME, /proc/PID/ns/net) refers to.
    ///
    /// # Errors
    /// When there is none, or this process may not enter it (CAP_SYS_ADMIN).
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        inside(path.as_ref(), Self::own)
    }

    /// Where they are found, each at least once: by their names, by where a process has them
    /// mounted, by the threads that are in them, by who has them open, and by the sockets that
    /// processes have. One that nothing but a socket on its way to another process keeps is not
    /// found.
    pub fn places() -> impl Iterator<Item = NamespacePath> {
        let processes = || folder("/proc").filter(|path| is_number(path));
        let named = folder("/run/netns");
        let mut looked_at = BTreeSet::new();
        let mounted = iter::once(PathBuf::from("/proc/self"))
            .chain(processes())
            .filter(move |process| looked_at.insert(view(process)))
            .flat_map(|process| mounted_by(&process));
        // Threads too: a program may hold a namespace by one of its threads only.
        let threads = processes()
            .flat_map(|path| folder(path.join("task")))
            .map(|path| path.join("ns/net"));
        let open = processes()
            .flat_map(|path| folder(path.join("fd")))
            .filter(|path| {
                let target = fs::read_link(path).unwrap_or_default();
                target.to_string_lossy().starts_with("net:[")
            });
        // The last, since there may be many.
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
                // What may not be looked at may be one.
                Err(error) => error.kind() == io::ErrorKind::PermissionDenied,
            })
    }

    /// The interface that has this number here; none if there is none, or it cannot be looked at.
    #[must_use]
    pub fn at(self, index: i32) -> Option<OpenInterface> {
        let interface = NetDevice {
            name: String::new(),
            index,
            device: None,
            namespace: self.cookie,
            path: None,
        };
        interface.open_in(self).ok()
    }

    /// The number that no other namespace of this boot has.
    #[must_use]
    pub fn cookie(&self) -> u64 {
        self.cookie
    }

    /// The interface that is named `name` here now.
    ///
    /// # Errors
    /// ENODEV when there is none.
    pub fn interface(&self, name: &str) -> io::Result<NetDevice> {
        let request = self.request(name, SIOCGIFINDEX)?;
        // SAFETY: the kernel has written this member.
        let index = unsafe { request.ifr_ifru.ifru_ifindex };
        Ok(NetDevice {
            name: name.to_owned(),
            index,
            device: self.device(name, index),
            namespace: self.cookie,
            path: None,
        })
    }

    /// The number of the device that is named `name` and has this index; none if /sys does not show
    /// it.
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

    /// The number of the folder that /sys shows for `name`. The kernel gives each device one for as
    /// long as it is there, whatever it is named and wherever it is moved.
    fn shown(&self, name: &str) -> Option<u64> {
        let path = Path::new("class/net").join(name);
        let folder = fstatat(&self.sys, &path, nix::fcntl::AtFlags::empty()).ok()?;
        Some(folder.st_ino)
    }

    /// What the device of this number is named here; none if it is not here.
    fn named(&self, device: u64) -> Option<String> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let folder = openat(&self.sys, "class/net", flags, Mode::empty()).ok()?;
        let mut entries = nix::dir::Dir::from_fd(folder).ok()?;
        let mut names = entries
            .iter()
            .filter_map(|entry| Some(entry.ok()?.file_name().to_str().ok()?.to_owned()));
        names.find(|name| name != "." && name != ".." && self.shown(name) == Some(device))
    }

    /// What `interface` is named now, since names can be changed.
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
        // SAFETY: the kernel reads and writes the request, and what it points to is as large as
        // `number` says: callers see to it.
        let done = unsafe { libc::ioctl(self.socket.as_raw_fd(), number as _, &raw mut *request) };
        if done < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(())
        }
    }
}

/// Opens the namespace at `path`, which any process may have mounted, and may change meanwhile: a
/// pipe in its place would be waited for, and a device would begin to work.
///
/// # Errors
/// When there is none, or what is there is no namespace.
pub(crate) fn handle(path: impl AsRef<Path>) -> io::Result<File> {
    // This opens nothing, and stays what it is.
    let flags = OFlag::O_PATH | OFlag::O_CLOEXEC;
    let found = open(path.as_ref(), flags, Mode::empty())?;
    if fstatfs(&found)?.filesystem_type() != FsType(libc::NSFS_MAGIC as _) {
        let message = format!("{} is no network namespace", path.as_ref().display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    File::open(format!("/proc/self/fd/{}", found.as_raw_fd()))
}

/// What `work` returns in the network namespace at `path`; this thread stays where it is.
///
/// # Errors
/// When there is no such namespace, this process may not enter it (CAP_SYS_ADMIN), or as `work`
/// fails.
pub fn inside<T: Send, E: From<io::Error> + Send>(
    path: &Path,
    work: impl FnOnce() -> Result<T, E> + Send,
) -> Result<T, E> {
    let handle = handle(path)?;
    // A thread of its own, since a thread that cannot go back must not go on.
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
    // SAFETY: all members are integers, and pointers that may be null.
    unsafe { mem::zeroed() }
}

fn named_request(name: &str) -> io::Result<libc::ifreq> {
    let mut request = empty_request();
    // One byte stays zero and ends it.
    if name.is_empty() || name.len() >= request.ifr_name.len() {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(request)
}

/// A network interface of this boot, told apart from any other, also from a later one of the same
/// name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NetDevice {
    /// What it was named when it was found.
    pub name: String,
    /// Its number, unique in its namespace.
    pub index: i32,
    /// Its device's number, by which it is found again in another namespace, and told from another
    /// with its index; none: /sys did not show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<u64>,
    /// The number of its network namespace ([`Namespace::cookie`]).
    pub namespace: u64,
    /// Where that namespace was found, `None` for the one that this process is in. It is where it
    /// is looked for first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
}

impl NetDevice {
    /// The interface that is named `name` now in the network namespace at `namespace`, or in the
    /// one of this thread.
    ///
    /// # Errors
    /// ENODEV when there is none; ENOENT when there is no such namespace, EPERM when this process
    /// may not enter it.
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

    /// Opens it, wherever it is now: it may have been given another name, or been moved to another
    /// network namespace.
    ///
    /// # Errors
    /// ENODEV when the interface is gone; `PermissionDenied` when it is not where it was, and there
    /// are namespaces into which this process may not look.
    pub fn open(&self) -> io::Result<OpenInterface> {
        let opened = self.space().and_then(|namespace| self.open_in(namespace));
        match (opened, self.device) {
            (Err(error), Some(device)) if error.raw_os_error() == Some(libc::ENODEV) => {
                elsewhere(device)
            }
            (opened, _) => opened,
        }
    }

    /// What `work` returns in its network namespace.
    ///
    /// # Errors
    /// ENODEV when the namespace is neither this thread's nor where it was found, or as `work`
    /// fails.
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
        // Another may have got its index.
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

/// The device of this number, in whichever network namespace it is.
fn elsewhere(device: u64) -> io::Result<OpenInterface> {
    // Who may not enter the own one may enter none.
    let enters = Namespace::open("/proc/thread-self/ns/net").is_ok();
    let mut hidden = false;
    for place in Namespace::places() {
        match Namespace::open(place) {
            Ok(namespace) => {
                if let Some(name) = namespace.named(device) {
                    return Ok(OpenInterface { namespace, name });
                }
            }
            // A process that may not be looked at may be in one, but mostly is not: who may enter
            // all others has looked everywhere.
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

/// The mount namespace and the root of a process: two with the same see the same mounts.
fn view(process: &Path) -> Option<(u64, u64, u64)> {
    let namespace = fs::metadata(process.join("ns/mnt")).ok()?;
    let root = fs::metadata(process.join("root")).ok()?;
    Some((namespace.ino(), root.dev(), root.ino()))
}

/// The network namespaces that a process sees mounted, as this process reaches them.
fn mounted_by(process: &Path) -> Vec<PathBuf> {
    let mounts = Process::new_with_root(process.to_owned()).and_then(|of| of.mountinfo());
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

/// An interface that can be read and changed.
#[derive(Debug)]
pub struct OpenInterface {
    namespace: Namespace,
    name: String,
}

impl OpenInterface {
    /// What it is named now.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number of the network namespace that it is in ([`Namespace::cookie`]).
    #[must_use]
    pub fn namespace(&self) -> u64 {
        self.namespace.cookie
    }

    /// Whether it is up.
    ///
    /// # Errors
    /// When it is gone.
    pub fn is_up(&self) -> io::Result<bool> {
        let text = self.read("flags")?;
        let flags = i32::from_str_radix(text.trim().trim_start_matches("0x"), 16);
        Ok(flags.map_err(io::Error::other)? & libc::IFF_UP != 0)
    }

    /// Whether /sys shows this interface, and not one of another namespace that is named alike.
    fn is_shown(&self, interface: &NetDevice) -> io::Result<()> {
        let request = self.namespace.request(&self.name, SIOCGIFHWADDR)?;
        // SAFETY: the kernel has written this member.
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

    /// What the file `path` of its folder in /sys/class/net holds.
    ///
    /// # Errors
    /// ENOENT when it has no such file, others as the driver answers.
    pub fn read(&self, path: &str) -> io::Result<String> {
        let mut text = String::new();
        self.file(path, OFlag::O_RDONLY)?
            .read_to_string(&mut text)?;
        Ok(text)
    }

    /// Writes the file `path` of its folder in /sys/class/net.
    ///
    /// # Errors
    /// ENOENT when it has no such file, others as the driver answers.
    pub fn write(&self, path: &str, text: &str) -> io::Result<()> {
        self.file(path, OFlag::O_WRONLY)?.write_all(text.as_bytes())
    }

    /// The names in the folder `path` of its folder in /sys/class/net, sorted; none when there is
    /// no such folder.
    ///
    /// # Errors
    /// When the folder cannot be read.
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

    /// Carries out the ETHTOOL command that `value` begins with.
    ///
    /// # Errors
    /// EOPNOTSUPP when the driver has no such command, others as it answers.
    ///
    /// # Safety
    /// `value` is as large as the kernel reads and writes for its command.
    pub(super) unsafe fn ethtool<T>(&self, value: &mut T) -> io::Result<()> {
        let mut request = named_request(&self.name)?;
        request.ifr_ifru.ifru_data = (&raw mut *value).cast();
        self.namespace.ioctl(SIOCETHTOOL, &mut request)
    }
}
