// SPDX-License-Identifier: MIT OR Apache-2.0
//! Facts about interfaces that only netlink reports: the network namespace of the other end of a
//! veth pair (rtnetlink(7)), and the NAPI instances of receive queues with their threads (the
//! family `netdev` of generic netlink, from Linux 6.8 on).
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::num::NonZero;
use std::os::fd::AsRawFd;

use netlink_packet_core::{
    DefaultNla, Emitable, ErrorBuffer, NLM_F_DUMP, NLM_F_REQUEST, NLMSG_DONE, NLMSG_ERROR,
    NetlinkBuffer, NetlinkHeader, NlasIterator,
};
use netlink_sys::Socket;
use netlink_sys::protocols::{NETLINK_GENERIC, NETLINK_ROUTE};

/// Lengths of `struct ifinfomsg`, `struct rtgenmsg` with its padding, and `struct genlmsghdr`.
const LINK: usize = 16;
const GENERAL: usize = 4;
const COMMAND: usize = 4;

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

/// Constants of <linux/netdev.h>. The queue type 0 is a receive queue.
const NETDEV_CMD_QUEUE_GET: u8 = 10;
const NETDEV_A_QUEUE_ID: u16 = 1;
const NETDEV_A_QUEUE_IFINDEX: u16 = 2;
const NETDEV_A_QUEUE_TYPE: u16 = 3;
const NETDEV_A_QUEUE_NAPI_ID: u16 = 4;
const NETDEV_CMD_NAPI_GET: u8 = 11;
const NETDEV_A_NAPI_IFINDEX: u16 = 1;
const NETDEV_A_NAPI_ID: u16 = 2;
const NETDEV_A_NAPI_PID: u16 = 4;

/// The number by which this network namespace knows the namespace with the other end of the
/// interface `index`. `None` if the other end is in this namespace, or if there is no other end.
///
/// # Errors
/// Fails with ENODEV when there is no such interface.
pub fn namespace_of_link(index: i32) -> io::Result<Option<i32>> {
    let mut own = [0; LINK];
    own[4..8].copy_from_slice(&index.to_ne_bytes());
    let answer = one(NETLINK_ROUTE, RTM_GETLINK, &own)?;
    Ok(attribute(&answer, LINK, IFLA_LINK_NETNSID).map(|number| number as i32))
}

/// The number by which this network namespace knows `namespace`. `None` if it has given `namespace`
/// no number.
///
/// # Errors
/// Fails when `namespace` is not a network namespace.
pub fn number_of(namespace: &File) -> io::Result<Option<i32>> {
    let file = namespace.as_raw_fd().to_ne_bytes();
    let request = build([0; GENERAL], NETNSA_FD, &file);
    let answer = one(NETLINK_ROUTE, RTM_GETNSID, &request)?;
    let number = attribute(&answer, GENERAL, NETNSA_NSID).map(|number| number as i32);
    Ok(number.filter(|number| *number >= 0))
}

/// Numbers of the NAPI instances of the interface `index` in this network namespace, by receive
/// queue. Queues whose instance the driver does not report are left out.
///
/// # Errors
/// Fails with ENOENT or EOPNOTSUPP before Linux 6.8, and with ENODEV when there is no such
/// interface.
pub fn instances(index: i32) -> io::Result<BTreeMap<u32, u32>> {
    let queues = netdev(NETDEV_CMD_QUEUE_GET, NETDEV_A_QUEUE_IFINDEX, index)?;
    let entry = |queue: &Vec<u8>| {
        let number = |wanted| attribute(queue, COMMAND, wanted);
        let receives = number(NETDEV_A_QUEUE_TYPE) == Some(0);
        Some((number(NETDEV_A_QUEUE_ID)?, number(NETDEV_A_QUEUE_NAPI_ID)?)).filter(|_| receives)
    };
    Ok(queues.iter().filter_map(entry).collect())
}

/// NAPI instances of the interface `index` in this network namespace, by number. Each has the
/// number of its thread, if it has a thread. Instances without a number are left out, such as those
/// that only clean up after sending.
///
/// # Errors
/// Fails as [`instances`] does.
pub fn threads(index: i32) -> io::Result<BTreeMap<u32, Option<u32>>> {
    let all = netdev(NETDEV_CMD_NAPI_GET, NETDEV_A_NAPI_IFINDEX, index)?;
    let entry = |instance: &Vec<u8>| {
        let number = |wanted| attribute(instance, COMMAND, wanted);
        Some((number(NETDEV_A_NAPI_ID)?, number(NETDEV_A_NAPI_PID)))
    };
    Ok(all.iter().filter_map(entry).collect())
}

/// Returns the answers of the family `netdev` to `command` for the interface `index`. `by` is the
/// attribute in which the command expects the index.
fn netdev(command: u8, by: u16, index: i32) -> io::Result<Vec<Vec<u8>>> {
    let request = build(
        [CTRL_CMD_GETFAMILY, 1, 0, 0],
        CTRL_ATTR_FAMILY_NAME,
        b"netdev\0",
    );
    let answer = one(NETLINK_GENERIC, GENL_ID_CTRL, &request)?;
    let family = attribute(&answer, COMMAND, CTRL_ATTR_FAMILY_ID);
    let family = family.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
    let request = build([command, 1, 0, 0], by, &index.to_ne_bytes());
    answers(NETLINK_GENERIC, family as u16, NLM_F_DUMP, &request)
}

/// Builds a request from the structure `own` of its family and one attribute.
fn build(own: [u8; 4], kind: u16, value: &[u8]) -> Vec<u8> {
    let attribute = DefaultNla::new(kind, value.to_vec());
    let mut request = own.to_vec();
    request.resize(own.len() + attribute.buffer_len(), 0);
    attribute.emit(&mut request[own.len()..]);
    request
}

/// Reads the numeric attribute `wanted` from an answer. `own` is the length of the structure before
/// the attributes. `None` if the answer does not have the attribute.
fn attribute(answer: &[u8], own: usize, wanted: u16) -> Option<u32> {
    let mut all = NlasIterator::new(answer.get(own..)?).map_while(Result::ok);
    match *all.find(|attribute| attribute.kind() == wanted)?.value() {
        [a, b] => Some(u16::from_ne_bytes([a, b]).into()),
        [a, b, c, d] => Some(u32::from_ne_bytes([a, b, c, d])),
        _ => None,
    }
}

/// Sends a request for one object, and returns the kernel's answer.
fn one(protocol: isize, kind: u16, request: &[u8]) -> io::Result<Vec<u8>> {
    let first = answers(protocol, kind, 0, request)?.into_iter().next();
    first.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
}

/// Sends a request, and returns the kernel's answers without their headers. With the flag
/// NLM_F_DUMP there is an answer for each object.
fn answers(protocol: isize, kind: u16, flags: u16, request: &[u8]) -> io::Result<Vec<Vec<u8>>> {
    // The numbers of the request and of the sender may be 0, since only this request uses the
    // socket.
    let mut header = NetlinkHeader::default();
    header.length = (header.buffer_len() + request.len()) as u32;
    header.message_type = kind;
    header.flags = NLM_F_REQUEST | flags;
    let mut message = vec![0; header.buffer_len()];
    header.emit(&mut message);
    message.extend(request);
    let socket = Socket::new(protocol)?;
    // A message without an address goes to the kernel.
    socket.send(&message, 0)?;
    let mut answers = Vec::new();
    loop {
        let (received, _) = socket.recv_from_full()?;
        let mut rest = &received[..];
        while !rest.is_empty() {
            let answer = NetlinkBuffer::new_checked(rest).map_err(io::Error::other)?;
            match answer.message_type() {
                NLMSG_ERROR => {
                    let error = ErrorBuffer::new_checked(answer.payload());
                    let number = error
                        .map_err(io::Error::other)?
                        .code()
                        .map_or(0, NonZero::get);
                    return Err(io::Error::from_raw_os_error(-number));
                }
                NLMSG_DONE => return Ok(answers),
                _ => answers.push(answer.payload().to_vec()),
            }
            let length = answer.length() as usize;
            rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
        if flags != NLM_F_DUMP {
            return Ok(answers);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_without_another_end_has_no_other_namespace() {
        // The interface with index 1 is the loopback interface.
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
            // Kernels before 6.8 do not have this family or command.
            Err(error) => assert!(matches!(
                error.raw_os_error(),
                Some(libc::ENOENT | libc::EOPNOTSUPP)
            )),
        }
    }

    #[test]
    fn attributes_are_found_by_their_kinds() {
        let mut message = build([0; COMMAND], 7, b"odd");
        message.extend(&build([0; COMMAND], 8, &5_u16.to_ne_bytes())[COMMAND..]);
        message.extend(&build([0; COMMAND], 9, &6_u32.to_ne_bytes())[COMMAND..]);
        let value = |kind| attribute(&message, COMMAND, kind);
        assert_eq!(
            (value(7), value(8), value(9), value(10)),
            (None, Some(5), Some(6), None)
        );
        message.truncate(message.len() - 1);
        assert_eq!(attribute(&message, COMMAND, 9), None);
    }
}
