// SPDX-License-Identifier: MIT OR Apache-2.0
//! Facts about interfaces that only netlink reports: the network namespace of the other end of a
//! pair (rtnetlink(7)), and the NAPI instances of receive queues with their threads (the family
//! `netdev` of generic netlink, from Linux 6.8 on).
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Lengths of `struct nlmsghdr`, `struct ifinfomsg`, `struct rtgenmsg` with its padding, `struct
/// genlmsghdr`, and `struct rtattr`.
const HEADER: usize = 16;
const LINK: usize = 16;
const GENERAL: usize = 4;
const COMMAND: usize = 4;
const ATTRIBUTE: usize = 4;

/// Messages of <linux/rtnetlink.h>, and attributes of <linux/if_link.h> and
/// <linux/net_namespace.h>.
const RTM_GETLINK: u16 = 18;
const RTM_GETNSID: u16 = 90;
const IFLA_LINK_NETNSID: u16 = 37;
const NETNSA_NSID: u16 = 1;
const NETNSA_FD: u16 = 3;

/// Constants of <linux/genetlink.h>: the family that lists the others, its command, and its
/// attributes.
const GENL_ID_CTRL: u16 = 0x10;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;

/// Constants of <linux/netdev.h>, where kind 0 is a receive queue.
const NETDEV_CMD_QUEUE_GET: u8 = 10;
const NETDEV_A_QUEUE_ID: u16 = 1;
const NETDEV_A_QUEUE_IFINDEX: u16 = 2;
const NETDEV_A_QUEUE_TYPE: u16 = 3;
const NETDEV_A_QUEUE_NAPI_ID: u16 = 4;
const NETDEV_CMD_NAPI_GET: u8 = 11;
const NETDEV_A_NAPI_IFINDEX: u16 = 1;
const NETDEV_A_NAPI_ID: u16 = 2;
const NETDEV_A_NAPI_PID: u16 = 4;

/// Number that this network namespace uses for the one with the other end of the interface `index`;
/// none: it is in this one, or there is no other end.
///
/// # Errors
/// Fails with ENODEV when there is no such interface.
pub fn namespace_of_link(index: i32) -> io::Result<Option<i32>> {
    let mut body = [0; LINK];
    body[4..8].copy_from_slice(&index.to_ne_bytes());
    let answer = NetlinkSocket::new(libc::NETLINK_ROUTE)?.one(RTM_GETLINK, &body)?;
    Ok(attribute(&answer, LINK, IFLA_LINK_NETNSID).map(|number| number as i32))
}

/// Number that this network namespace uses for `namespace`; none if it has none.
///
/// # Errors
/// Fails when `namespace` is no namespace.
pub fn number_of(namespace: &File) -> io::Result<Option<i32>> {
    let mut body = vec![0; GENERAL];
    add(&mut body, NETNSA_FD, &namespace.as_raw_fd().to_ne_bytes());
    let answer = NetlinkSocket::new(libc::NETLINK_ROUTE)?.one(RTM_GETNSID, &body)?;
    let number = attribute(&answer, GENERAL, NETNSA_NSID).map(|number| number as i32);
    Ok(number.filter(|number| *number >= 0))
}

/// Numbers of the NAPI instances of the interface `index` of this network namespace, by receive
/// queue. Queues whose instance the driver does not report are left out.
///
/// # Errors
/// Fails with ENOENT or EOPNOTSUPP before Linux 6.8, and with ENODEV when there is no such
/// interface.
pub fn instances(index: i32) -> io::Result<BTreeMap<u32, u32>> {
    let queues = netdev(NETDEV_CMD_QUEUE_GET, NETDEV_A_QUEUE_IFINDEX, index)?;
    let of = |queue: &Vec<u8>| {
        let its = |wanted| attribute(queue, COMMAND, wanted);
        let receives = its(NETDEV_A_QUEUE_TYPE) == Some(0);
        Some((its(NETDEV_A_QUEUE_ID)?, its(NETDEV_A_QUEUE_NAPI_ID)?)).filter(|_| receives)
    };
    Ok(queues.iter().filter_map(of).collect())
}

/// NAPI instances of the interface `index` of this network namespace, by number, each with the
/// number of its thread if there is one. Instances without a number are left out, such as those
/// that only clean up after sending.
///
/// # Errors
/// Fails as [`instances`] does.
pub fn threads(index: i32) -> io::Result<BTreeMap<u32, Option<u32>>> {
    let all = netdev(NETDEV_CMD_NAPI_GET, NETDEV_A_NAPI_IFINDEX, index)?;
    let of = |instance: &Vec<u8>| {
        let its = |wanted| attribute(instance, COMMAND, wanted);
        Some((its(NETDEV_A_NAPI_ID)?, its(NETDEV_A_NAPI_PID)))
    };
    Ok(all.iter().filter_map(of).collect())
}

/// Answers of the family `netdev` to `command` for the interface `index`, which it expects in the
/// attribute `by`.
fn netdev(command: u8, by: u16, index: i32) -> io::Result<Vec<Vec<u8>>> {
    let socket = NetlinkSocket::new(libc::NETLINK_GENERIC)?;
    let mut body = vec![CTRL_CMD_GETFAMILY, 1, 0, 0];
    add(&mut body, CTRL_ATTR_FAMILY_NAME, b"netdev\0");
    let answer = socket.one(GENL_ID_CTRL, &body)?;
    let family = attribute(&answer, COMMAND, CTRL_ATTR_FAMILY_ID);
    let family = family.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
    let mut body = vec![command, 1, 0, 0];
    add(&mut body, by, &index.to_ne_bytes());
    socket.all(family as u16, &body)
}

/// Adds an attribute.
fn add(body: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let length = (ATTRIBUTE + value.len()) as u16;
    body.extend(length.to_ne_bytes());
    body.extend(kind.to_ne_bytes());
    body.extend(value);
    // The next attribute begins at a multiple of four.
    body.resize(body.len().next_multiple_of(4), 0);
}

/// Value of the attribute `wanted`, a number, in a message whose own structure has the length
/// `own`.
fn attribute(message: &[u8], own: usize, wanted: u16) -> Option<u32> {
    let mut rest = message.get(HEADER + own..)?;
    while rest.len() >= ATTRIBUTE {
        let word = |at: usize| u16::from_ne_bytes([rest[at], rest[at + 1]]);
        let (length, kind) = (usize::from(word(0)), word(2));
        if length < ATTRIBUTE {
            return None;
        }
        if kind == wanted {
            return match *rest.get(ATTRIBUTE..length)? {
                [a, b] => Some(u16::from_ne_bytes([a, b]).into()),
                [a, b, c, d] => Some(u32::from_ne_bytes([a, b, c, d])),
                _ => None,
            };
        }
        rest = rest.get(length.next_multiple_of(4)..)?;
    }
    None
}

/// A socket to one of the kernel's netlink protocols.
struct NetlinkSocket(OwnedFd);

impl NetlinkSocket {
    fn new(part: libc::c_int) -> io::Result<Self> {
        // SAFETY: no pointers are passed, and the descriptor has no other owner.
        unsafe {
            let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
            let socket = libc::socket(libc::AF_NETLINK, kind, part);
            if socket < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(Self(OwnedFd::from_raw_fd(socket)))
        }
    }

    /// The kernel's answer to a request for one object.
    fn one(&self, kind: u16, body: &[u8]) -> io::Result<Vec<u8>> {
        self.ask(kind, libc::NLM_F_REQUEST, body)?;
        let first = self.answers()?.into_iter().next();
        first.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
    }

    /// The kernel's answers to a request for all objects.
    fn all(&self, kind: u16, body: &[u8]) -> io::Result<Vec<Vec<u8>>> {
        self.ask(kind, libc::NLM_F_REQUEST | libc::NLM_F_DUMP, body)?;
        let mut all = Vec::new();
        loop {
            let answers = self.answers()?;
            let is_last = |answer: &Vec<u8>| kind_of(answer) == Some(libc::NLMSG_DONE as u16);
            let ends = answers.is_empty() || answers.iter().any(is_last);
            all.extend(answers.into_iter().filter(|answer| !is_last(answer)));
            if ends {
                return Ok(all);
            }
        }
    }

    fn ask(&self, kind: u16, flags: libc::c_int, body: &[u8]) -> io::Result<()> {
        let length = (HEADER + body.len()) as u32;
        let mut message = Vec::from(length.to_ne_bytes());
        message.extend(kind.to_ne_bytes());
        message.extend((flags as u16).to_ne_bytes());
        // The numbers of the request and of the sender may be 0: nobody else uses the socket.
        message.extend([0; 8]);
        message.extend(body);
        // SAFETY: the message outlives the call. Without an address it goes to the kernel.
        let sent = unsafe {
            libc::send(
                self.0.as_raw_fd(),
                message.as_ptr().cast(),
                message.len(),
                0,
            )
        };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// Messages that have come so far, at least one.
    fn answers(&self) -> io::Result<Vec<Vec<u8>>> {
        // Everything that the kernel reports of one interface has some kilobytes.
        let mut answer = vec![0; 65_536];
        // SAFETY: the kernel writes at most that many bytes.
        let received = unsafe {
            libc::recv(
                self.0.as_raw_fd(),
                answer.as_mut_ptr().cast(),
                answer.len(),
                0,
            )
        };
        let received = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
        answer.truncate(received);
        let mut messages = Vec::new();
        let mut rest = &answer[..];
        while let Some(&[a, b, c, d]) = rest.get(..4) {
            let length = u32::from_ne_bytes([a, b, c, d]) as usize;
            let message = rest.get(..length).filter(|message| message.len() >= HEADER);
            let message = message.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
            if kind_of(message) == Some(libc::NLMSG_ERROR as u16) {
                let number = message.get(HEADER..HEADER + 4).unwrap_or_default();
                let number = i32::from_ne_bytes(number.try_into().map_err(io::Error::other)?);
                return Err(io::Error::from_raw_os_error(-number));
            }
            messages.push(message.to_vec());
            rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
        Ok(messages)
    }
}

fn kind_of(message: &[u8]) -> Option<u16> {
    let kind = message.get(4..6)?;
    Some(u16::from_ne_bytes([kind[0], kind[1]]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_without_another_end_has_no_other_namespace() {
        // The number 1 is the loopback interface.
        assert_eq!(namespace_of_link(1).unwrap(), None);
        let missing = namespace_of_link(i32::MAX).unwrap_err();
        assert_eq!(missing.raw_os_error(), Some(libc::ENODEV));
        let file = File::open("/proc/self/status").unwrap();
        assert!(number_of(&file).is_err());
    }

    #[test]
    fn an_interface_without_queues_of_its_own_has_no_instances() {
        match instances(1) {
            Ok(instances) => assert_eq!(instances, BTreeMap::new()),
            // Kernels before 6.8 fail.
            Err(error) => assert!(matches!(
                error.raw_os_error(),
                Some(libc::ENOENT | libc::EOPNOTSUPP)
            )),
        }
    }

    #[test]
    fn attributes_are_found_by_their_kinds() {
        let mut message = vec![0; HEADER + COMMAND];
        add(&mut message, 7, b"odd");
        add(&mut message, 8, &5_u16.to_ne_bytes());
        add(&mut message, 9, &6_u32.to_ne_bytes());
        let of = |kind| attribute(&message, COMMAND, kind);
        assert_eq!(
            (of(7), of(8), of(9), of(10)),
            (None, Some(5), Some(6), None)
        );
        message.truncate(message.len() - 1);
        assert_eq!(attribute(&message, COMMAND, 9), None);
    }
}
