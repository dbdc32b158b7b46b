// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rules of the system file for receivers. They override the scheduler's policies.
use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::{PacketKey, Protocol};
use crate::urgency::Urgency;

/// Number of bytes of a command's name that the kernel keeps.
const COMM: usize = 15;

/// A rule: the urgency of all receivers that match. A field that is `None` matches everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The protocol.
    pub protocol: Option<Protocol>,
    /// The port.
    pub port: Option<u16>,
    /// Path of a cgroup from the root ("/system.slice/ptp4l.service"). It also matches all cgroups
    /// below.
    pub cgroup: Option<String>,
    /// Name of the command. Only the first 15 bytes are compared, since the kernel keeps no more.
    pub command: Option<String>,
    /// Real and effective user of the process.
    pub user: Option<u32>,
    /// Urgency of the receiver, whatever policies its threads have.
    pub urgency: Urgency,
}

/// The rules of a system file. If several rules match, the most specific one applies. Rules with a
/// port come before rules without. The next criteria are a deeper cgroup, a command, a user, a
/// protocol, and the order in the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleSet(Vec<Rule>);

/// What rules need to know about a process.
#[derive(Debug, Clone, Copy)]
pub struct RuleSubject<'a> {
    /// Name of the command. A process can give itself any name.
    pub comm: &'a str,
    /// Path of the process's cgroup.
    pub cgroup: &'a str,
    /// User of the process. `None` if its effective user is not its real user.
    pub user: Option<u32>,
}

impl RuleSet {
    /// Creates the set from the rules of the system file, in the file's order.
    #[must_use]
    pub fn new(mut rules: Vec<Rule>) -> Self {
        rules.sort_by_key(|rule| {
            Reverse((
                rule.port.is_some(),
                rule.cgroup
                    .as_deref()
                    .map(|path| parts(path).count() + 1)
                    .unwrap_or(0),
                rule.command.is_some(),
                rule.user.is_some(),
                rule.protocol.is_some(),
            ))
        });
        Self(rules)
    }

    /// Urgency that the rules give a process that reads `key`. `None` if no rule matches.
    #[must_use]
    pub fn urgency(&self, key: PacketKey, subject: &RuleSubject<'_>) -> Option<Urgency> {
        self.0
            .iter()
            .find(|rule| rule.matches(key, subject))
            .map(|rule| rule.urgency)
    }

    /// Whether the rule that applies to a process that reads `key` names only the port, so that it
    /// does not matter who reads the port.
    #[must_use]
    pub fn is_of_port_alone(&self, key: PacketKey, subject: &RuleSubject<'_>) -> bool {
        let rule = self.0.iter().find(|rule| rule.matches(key, subject));
        rule.is_some_and(|rule| {
            rule.cgroup.is_none() && rule.command.is_none() && rule.user.is_none()
        })
    }

    /// Urgencies of ports before anybody reads them. If the rule names a user, the urgency no
    /// longer applies once another user reads the port.
    #[must_use]
    pub fn of_ports(&self) -> BTreeMap<PacketKey, Urgency> {
        let mut of_ports = BTreeMap::new();
        for rule in &self.0 {
            let (Some(port), None, None) = (rule.port, &rule.cgroup, &rule.command) else {
                continue;
            };
            let of_it = |protocol| rule.protocol.is_none_or(|only| only == protocol);
            for protocol in [Protocol::Tcp, Protocol::Udp]
                .into_iter()
                .filter(|one| of_it(*one))
            {
                // The rules are sorted, so the first rule of a port applies.
                of_ports
                    .entry(PacketKey { protocol, port })
                    .or_insert(rule.urgency);
            }
        }
        of_ports
    }
}

impl Rule {
    fn matches(&self, key: PacketKey, subject: &RuleSubject<'_>) -> bool {
        self.protocol
            .is_none_or(|protocol| protocol == key.protocol)
            && self.port.is_none_or(|port| port == key.port)
            && self
                .command
                .as_deref()
                .is_none_or(|command| kept(command) == kept(subject.comm))
            && self.user.is_none_or(|user| subject.user == Some(user))
            && self
                .cgroup
                .as_deref()
                .is_none_or(|above| is_below(subject.cgroup, above))
    }
}

fn kept(command: &str) -> &[u8] {
    let bytes = command.as_bytes();
    &bytes[..bytes.len().min(COMM)]
}

fn parts(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|part| !part.is_empty())
}

fn is_below(cgroup: &str, above: &str) -> bool {
    let mut cgroup = parts(cgroup);
    parts(above).all(|part| cgroup.next() == Some(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NTP: PacketKey = PacketKey {
        protocol: Protocol::Udp,
        port: 123,
    };

    fn rule(port: Option<u16>, cgroup: Option<&str>, command: Option<&str>, urgency: u8) -> Rule {
        Rule {
            protocol: None,
            port,
            cgroup: cgroup.map(str::to_owned),
            command: command.map(str::to_owned),
            user: None,
            urgency: Urgency::new(urgency).unwrap(),
        }
    }

    fn says(rules: &[Rule], comm: &str, cgroup: &str) -> Option<u8> {
        let user = Some(7);
        let subject = RuleSubject { comm, cgroup, user };
        let rules = RuleSet::new(rules.to_vec());
        rules.urgency(NTP, &subject).map(Urgency::get)
    }

    #[test]
    fn a_name_is_worth_what_its_user_is() {
        let rule_for_user = |user, urgency| Rule {
            user: Some(user),
            ..rule(None, None, Some("ntpd"), urgency)
        };
        assert_eq!(says(&[rule_for_user(7, 5)], "ntpd", "/"), Some(5));
        assert_eq!(says(&[rule_for_user(8, 5)], "ntpd", "/"), None);
        assert_eq!(
            says(
                &[rule(None, None, Some("ntpd"), 1), rule_for_user(7, 5)],
                "ntpd",
                "/"
            ),
            Some(5)
        );
        let subject = RuleSubject {
            comm: "ntpd",
            cgroup: "/",
            user: None,
        };
        assert_eq!(
            RuleSet::new(vec![rule_for_user(7, 5)]).urgency(NTP, &subject),
            None
        );
    }

    #[test]
    fn the_most_specific_holds_in_whatever_order() {
        let mut rules = vec![
            rule(None, None, None, 1),
            rule(None, None, Some("ntpd"), 2),
            rule(None, Some("/a"), None, 3),
            rule(None, Some("/a"), Some("ntpd"), 4),
            rule(None, Some("/a/b"), None, 5),
            rule(Some(123), None, None, 6),
            rule(Some(123), Some("/a/b/"), None, 7),
        ];
        for _ in 0..2 {
            assert_eq!(says(&rules, "ntpd", "/a/b/c"), Some(7));
            assert_eq!(says(&rules[..], "other", "/"), Some(6));
            let without_port: Vec<Rule> = rules
                .iter()
                .filter(|rule| rule.port.is_none())
                .cloned()
                .collect();
            assert_eq!(says(&without_port, "ntpd", "/a/b"), Some(5));
            assert_eq!(says(&without_port, "ntpd", "/a/bc"), Some(4));
            assert_eq!(says(&without_port, "other", "/a"), Some(3));
            assert_eq!(says(&without_port, "ntpd", "/ab"), Some(2));
            assert_eq!(says(&without_port, "other", ""), Some(1));
            rules.reverse();
        }
    }

    #[test]
    fn the_first_of_equals_holds() {
        let rules = [
            rule(Some(123), None, None, 8),
            rule(Some(123), None, None, 9),
        ];
        assert_eq!(says(&rules, "ntpd", "/"), Some(8));
    }

    #[test]
    fn all_that_is_given_must_match() {
        assert_eq!(says(&[rule(Some(124), None, None, 8)], "ntpd", "/"), None);
        let tcp = Rule {
            protocol: Some(Protocol::Tcp),
            ..rule(Some(123), None, None, 8)
        };
        assert_eq!(says(&[tcp], "ntpd", "/"), None);
        assert_eq!(says(&[rule(None, Some("/a"), None, 8)], "ntpd", ""), None);
    }

    #[test]
    fn what_is_said_of_a_port_whoever_reads_it_needs_no_reader() {
        let tcp = Rule {
            protocol: Some(Protocol::Tcp),
            ..rule(Some(80), None, None, 5)
        };
        let rules = RuleSet::new(vec![
            rule(None, None, None, 1),
            rule(Some(1), Some("/a"), None, 2),
            rule(Some(2), None, Some("ntpd"), 3),
            tcp,
            rule(Some(123), None, None, 8),
            rule(Some(123), None, None, 9),
        ]);
        let of_ports: Vec<_> = rules
            .of_ports()
            .into_iter()
            .map(|(key, urgency)| (key.protocol, key.port, urgency.get()))
            .collect();
        let wanted = [
            (Protocol::Tcp, 80, 5),
            (Protocol::Tcp, 123, 8),
            (Protocol::Udp, 123, 8),
        ];
        assert_eq!(of_ports, wanted);
    }

    #[test]
    fn a_long_command_is_known_by_what_the_kernel_keeps() {
        let rules = [rule(None, None, Some("a-very-long-command-name"), 8)];
        assert_eq!(says(&rules, "a-very-long-com", "/"), Some(8));
        assert_eq!(says(&rules, "a-very-long-co", "/"), None);
    }
}
