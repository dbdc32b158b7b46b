// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keys that contradict each other or lack each other. In the texts « » stand around what the first
//! label must cover.

use crate::common::{
    LIMITER_OFF, SHARED, limited, on_board, own, parsed, refused, says, shown, source, task,
};

mod registers {
    use super::*;

    #[test]
    fn are_a_part_of_the_handler() {
        says(
            "schema = 1\n[cpu]\nboard = \"atmega128\"\n[[source]]\nname = \"a\"\nvector = \"INT0\"\nhandler = \"50 cycles\"\nregisters = «\"51 cycles\"»\n",
            "a part of the handler's 50",
            "at most \"50 cycles\"",
        );
    }
}

mod limits {
    use super::*;

    #[test]
    fn have_a_rate_or_an_interval() {
        let limit = "policy = \"strict\", timer = \"TIMER1A\"";
        says(
            &source(&format!(
                "limit = {{ {limit}, rate = \"1kHz\", interval = «\"1ms\"» }}"
            )),
            "a rate or an interval, not both",
            "leave one of them out",
        );
        says(
            &source(&format!("limit = «{{ {limit} }}»")),
            "does not say how much it lets through",
            "add rate = \"1kHz\"",
        );
    }

    #[test]
    fn have_a_policy_and_a_timer() {
        says(
            &source("limit = «{ rate = \"1kHz\" }»"),
            "the key `policy` is missing",
            "policy = \"bursty\"",
        );
        says(
            &source("limit = «{ policy = \"strict\", rate = \"1kHz\" }»"),
            "this limit has no timer",
            "there are TIMER1A, TIMER1B, TIMER1C, TIMER3A",
        );
        says(
            "schema = 1\n[cpu]\nboard = \"soc\"\n[[source]]\nname = \"a\"\nvector = \"INT0\"\nhandler = \"50 cycles\"\nmax_work = 1\n\
             rate = { expected = \"1kHz\" }\nlimit = «{ policy = \"strict\", rate = \"1kHz\" }»",
            "the costs of a limit in software have not been measured on soc",
            "place = \"hardware\"",
        );
    }

    #[test]
    fn have_keys_that_their_policy_knows() {
        for (limit, message) in [
            (
                "policy = \"off\", rate = «\"1kHz\"»",
                "`rate` does not go with policy = \"off\"",
            ),
            (
                "policy = \"strict\", burst = «2», rate = \"1kHz\", timer = \"TIMER1A\"",
                "`burst` does not go with policy = \"strict\"",
            ),
            (
                "policy = \"paced\", burst = «1», rate = \"1kHz\", timer = \"TIMER1A\"",
                "`burst` does not go with policy = \"paced\"",
            ),
            (
                "policy = \"strict\", timing = «\"one_shot\"», rate = \"1kHz\", timer = \"TIMER1A\"",
                "\"one_shot\" is of bursty limits, not of strict",
            ),
            (
                "policy = \"bucket\", timing = «\"one_shot\"», rate = \"1kHz\", timer = \"TIMER1A\"",
                "\"one_shot\" is of bursty limits, not of bucket",
            ),
            (
                "policy = «\"paced\"», place = \"hardware\", rate = \"1kHz\"",
                "a limit in hardware is strict, bucket or bursty, not paced",
            ),
            (
                "policy = \"bursty\", timing = «\"eager\"», place = \"hardware\", rate = \"1kHz\"",
                "`timing` does not go with a limit in hardware",
            ),
            (
                "policy = \"strict\", burst = «2», place = \"hardware\", rate = \"1kHz\"",
                "`burst` does not go with policy = \"strict\"",
            ),
            (
                "policy = \"strict\", place = \"hardware\", timer = «\"TIMER1A\"», rate = \"1kHz\"",
                "`timer` does not go with a limit in hardware",
            ),
        ] {
            says(&source(&format!("limit = {{ {limit} }}")), message, "");
        }
        says(
            &source(
                "limit = { policy = \"strict\", trigger = «\"level\"», rate = \"1kHz\", timer = \"TIMER1A\" }",
            ),
            "`trigger` does not go with a limit in software",
            "or write place = \"hardware\"",
        );
    }

    #[test]
    fn in_the_boards_port_are_of_its_lines() {
        let text = limited(
            "uart",
            "USART0_RX",
            "policy = \"strict\", rate = \"1kHz\", timer = \"TIMER1A\"",
        );
        says(
            &on_board(&text.replace("\"USART0_RX\"", "«\"USART0_RX\"»")),
            "limits INT0, INT1, INT2, INT3, INT4, INT5, INT6, INT7, and not USART0_RX",
            "leave the limit out",
        );
        let text = limited(
            "uart",
            "USART0_RX",
            "policy = \"strict\", rate = \"1kHz\", place = \"hardware\"",
        );
        says(
            &on_board(&text.replace("\"USART0_RX\"", "«\"USART0_RX\"»")),
            "stands in front of a line, and USART0_RX is none of atmega128's",
            "leave the limit out",
        );
    }

    #[test]
    fn that_only_poll_are_for_the_analysis_of_a_system_without_a_board() {
        says(
            &source("limit = { policy = «\"poll\"», rate = \"1kHz\", timer = \"TIMER1A\" }"),
            "no port has code for policy = \"poll\", so it cannot be kept on atmega128",
            "write policy = \"strict\" and the same rate",
        );
        let polled = |keys: &str| {
            own(
                &format!(
                    "{LIMITER_OFF}\ncosts.poll = {{ expiry_served = \"35 cycles\", expiry_empty = \"34 cycles\" }}"
                ),
                &format!(
                    "[[timer]]\nname = \"look\"\nwidth = 16\norder = 2\n[[source]]\nname = \"a\"\nvector = \"A\"\norder = 1\nhandler = \"10 cycles\"\n\
                     limit = {{ policy = \"poll\", rate = \"1kHz\", timer = \"look\"{keys} }}"
                ),
            )
        };
        parsed(&polled(""));
        says(
            &polled(", timing = «\"lazy\"»"),
            "`timing` does not go with policy = \"poll\"",
            "",
        );
    }
}

mod shared_timers {
    use super::*;

    #[test]
    fn clear_counts_of_bursty_eager_limits() {
        let text = |limit: &str| on_board(&format!("{SHARED}{}", limited("a", "INT0", limit)));
        says(
            &text("policy = «\"strict\"», timer = \"s\""),
            "a limit on a shared timer is bursty, not strict",
            "channel of their own",
        );
        says(
            &text("policy = \"bursty\", timing = «\"lazy\"», timer = \"s\""),
            "is eager",
            "leave `timing` out",
        );
        says(
            &text("policy = \"bursty\", interval = «\"1ms\"», timer = \"s\""),
            "`interval` does not go with a shared timer",
            "",
        );
        says(
            &text("policy = \"bursty\", prescaler = «8», timer = \"s\""),
            "`prescaler` does not go with a shared timer",
            "",
        );
    }

    #[test]
    fn are_one_on_a_board() {
        let other = SHARED.replace("\"s\"", "\"t\"").replace("1A", "3A");
        let limit = |timer: &str| format!("policy = \"bursty\", burst = 2, timer = {timer}");
        let [first, second] = [("a", "INT0", "\"s\""), ("b", "INT1", "«\"t\"»")]
            .map(|(name, line, timer)| limited(name, line, &limit(timer)));
        says(
            &on_board(&format!("{SHARED}{other}{first}{second}")),
            "limits share two timers, and the port of atmega128 has code for one",
            "a channel of their own",
        );
        // A timer that no limit names has no code.
        parsed(&on_board(&format!("{SHARED}{other}{first}")));
    }

    #[test]
    fn say_how_often_and_where() {
        let timer = |rest: &str| on_board(&format!("«[[timer]]»\nname = \"s\"\n{rest}"));
        says(
            &timer("channel = \"TIMER1A\""),
            "does not say how often it comes",
            "add rate = \"110Hz\"",
        );
        says(
            &timer("rate = \"100Hz\""),
            "does not say on which channel it runs",
            "TIMER1A, TIMER1B",
        );
        says(
            &on_board(
                "[[timer]]\nname = \"s\"\nchannel = \"TIMER1A\"\nrate = \"100Hz\"\nperiod = «\"10ms\"»",
            ),
            "a rate or a period, not both",
            "",
        );
        says(
            &on_board("[[timer]]\nname = «\"TIMER1A\"»\nchannel = \"TIMER1A\"\nrate = \"100Hz\""),
            "like a channel of the board",
            "give the timer another",
        );
        says(
            &on_board("[[timer]]\nname = \"s\"\nchannel = «\"TIMER0\"»\nrate = \"1kHz\""),
            "TIMER0 cannot be a shared timer: TIMER0 has 8 bits",
            "16-bit",
        );
        says(
            &on_board(
                "[[timer]]\nname = \"s\"\nchannel = \"TIMER1A\"\nrate = \"100Hz\"\nwidth = «16»",
            ),
            "the timers of atmega128 are fixed",
            "leave it out",
        );
    }
}

mod interrupts {
    use super::*;

    #[test]
    fn are_each_of_one() {
        let strict = "policy = \"strict\", rate = \"1kHz\", timer = \"TIMER1A\"";
        let first = limited("a", "INT0", strict);
        let second = limited("b", "INT1", strict).replace("\"TIMER1A\"", "«\"TIMER1A\"»");
        let problem = says(
            &on_board(&format!("{first}{second}")),
            "the limit of `a` and the limit of `b` both run on TIMER1A",
            "its own channel",
        );
        assert_eq!(problem.spans().count(), 2);

        let second = limited("b", "INT1", strict).replace("\"TIMER1A\"", "«\"TIMER1A\"»");
        says(
            &on_board(&format!("{SHARED}{second}")),
            "the timer `s` and the limit of `b` both run on TIMER1A",
            "",
        );

        let both = "[[source]]\nname = \"b\"\nvector = «\"INT0\"»\nhandler = \"1us\"";
        says(
            &on_board(&format!("{first}{both}")),
            "the source `a` and the source `b` have the same vector, INT0",
            "",
        );

        let timer = "[[source]]\nname = \"b\"\nvector = \"TIMER1_COMPA\"\nhandler = \"1us\"\n";
        let limit = limited("a", "INT0", strict).replace("\"TIMER1A\"", "«\"TIMER1A\"»");
        says(
            &on_board(&format!("{timer}{limit}")),
            "have the same vector, TIMER1_COMPA",
            "another channel",
        );
    }

    #[test]
    fn of_a_board_stand_where_its_table_says() {
        says(
            &source("order = «3»"),
            "are those of its vector table",
            "leave it out",
        );
        says(
            &on_board(
                "[[source]]\nname = \"a\"\nvector = «{ name = \"INT0\", order = 1 }»\nhandler = \"1us\"",
            ),
            "are those of its vector table",
            "",
        );
        says(
            "schema = 1\n[cpu]\nboard = \"atmega128\"\ninterrupts = «\"grouped\"»",
            "on atmega128 no interrupt preempts another",
            "\"flat\"",
        );
    }

    #[test]
    fn of_ones_own_state_their_places() {
        let line = |vector: &str| {
            own(
                LIMITER_OFF,
                &format!("«[[source]]»\nname = \"a\"\nhandler = \"1us\"\n{vector}"),
            )
        };
        says(
            &line("vector = \"X\""),
            "without a board, the key `order` is needed",
            "order = 3",
        );
        let grouped = line("vector = \"X\"\norder = 1").replace("\"flat\"", "\"grouped\"");
        says(&grouped, "without a board, the key `group` is needed", "");
        let twice = own(
            LIMITER_OFF,
            "[[source]]\nname = \"a\"\nvector = \"X\"\norder = 1\nhandler = \"1us\"\n[[source]]\nname = \"b\"\nvector = «\"Y\"»\norder = 1\nhandler = \"1us\"",
        );
        says(&twice, "both have order 1 in group 0", "served first");
        let both = own(
            LIMITER_OFF,
            "[[source]]\nname = \"a\"\nvector = { name = \"X\", order = 1 }\norder = «1»\nhandler = \"1us\"",
        );
        says(&both, "place is stated twice", "");
        let group = own(
            LIMITER_OFF,
            "[[source]]\nname = \"a\"\nvector = \"X\"\norder = 1\ngroup = «2»\nhandler = \"1us\"",
        );
        says(&group, "flat interrupts have no groups", "grouped");
    }
}

mod own_processors {
    use super::*;

    #[test]
    fn state_what_a_board_would() {
        says(
            "schema = 1\n«[cpu]»\ninterrupts = \"flat\"\nlongest_instruction = \"4 cycles\"",
            "the key `clock` is needed",
            "16MHz",
        );
        says(
            "schema = 1\n«[cpu]»\nclock = \"1MHz\"\nlongest_instruction = \"4 cycles\"",
            "the key `interrupts` is needed",
            "",
        );
        says(
            "schema = 1\n«[cpu]»\nclock = \"1MHz\"\ninterrupts = \"flat\"",
            "the key `longest_instruction` is needed",
            "",
        );
        says(
            &own("flavour = «\"c\"»", ""),
            "there is no board",
            "[cpu.costs]",
        );
        says(
            &own(
                "",
                "«[[source]]»\nname = \"a\"\nvector = \"X\"\norder = 1\nhandler = \"1us\"",
            ),
            "what an interrupt of `off` costs is not stated",
            "add to [cpu.costs.off]: request_served",
        );
    }

    #[test]
    fn state_the_costs_of_their_limits_and_the_widths_of_their_timers() {
        let limit = "policy = \"strict\", rate = \"1kHz\", timer = \"t\"";
        let with = |timer: &str, limit: &str| {
            let source = limited("a", "X", limit).replace("handler", "order = 1\nhandler");
            own(
                LIMITER_OFF,
                &format!("[[timer]]\nname = \"t\"\norder = 2\n{timer}\n{source}"),
            )
        };
        let text = with("width = 16", limit)
            .replace("{ policy", "«{ policy")
            .replace(" }\n", " }»\n");
        says(
            &text,
            "what an interrupt of `strict.lazy` costs is not stated",
            "request_refused = \"… cycles\"",
        );
        let text = with("", limit).replace("[[timer]]", "«[[timer]]»");
        says(&text, "the key `width` is needed", "");
        let text = with("width = 16\ndivisors = «[]»", limit);
        says(&text, "a timer without a divisor cannot run", "[1, 8, 64]");
        let text = with("width = 16\nprescaler = «8»", limit);
        let error = refused(&text.replace(['«', '»'], ""));
        assert!(
            shown(&error).contains("is the limit's"),
            "{}",
            shown(&error)
        );
    }
}

mod tasks_and_packets {
    use super::*;

    #[test]
    fn say_how_often_they_come() {
        says(
            &task("period = \"1ms\"\ninterarrival = «\"1ms\"»"),
            "a period or an interarrival time, not both",
            "",
        );
        says(
            &task("wcet = «\"1ms\"»"),
            "does not say how often it runs",
            "add `period` or `interarrival`, or a [[flow]] with this receiver",
        );
    }

    #[test]
    fn say_what_has_a_deadline() {
        for idle in ["", "period = \"1ms\"\n", "wcet = \"0us\"\n"] {
            says(
                &task(&format!("{idle}deadline = «\"1ms\"»")),
                "does not say what it does until then",
                "add `wcet`",
            );
        }
    }

    #[test]
    fn run_per_packet_of_a_flow_of_their_own() {
        let receivers = "[[receiver]]\nname = \"server\"\nurgency = 1\nwcet = «\"1ms\"»\n[[receiver]]\nname = \"log\"\nurgency = 1\n";
        let flow_to = |receiver: &str| {
            source(&format!(
                "{receivers}[[flow]]\nname = \"f\"\nsource = \"a\"\nreceiver = \"{receiver}\"\n"
            ))
        };
        says(
            &flow_to("log"),
            "does not say how often it runs",
            "a [[flow]]",
        );
        let system = parsed(&flow_to("server").replace(['«', '»'], ""));
        let [server, _] = &system.receivers[..] else {
            panic!("{:?}", system.receivers);
        };
        assert_eq!((server.period, server.wcet.cycles), (None, 16_000));
    }

    #[test]
    fn are_not_asked_how_often_they_come_if_the_flow_is_misspelt() {
        let receiver = "[[receiver]]\nname = \"server\"\nurgency = 1\nwcet = \"1ms\"\n";
        says(
            &source(&format!(
                "{receiver}[[flow]]\nname = \"f\"\nsource = \"a\"\nreceiver = «\"sever\"»\n"
            )),
            "no receiver `sever`",
            "server",
        );
    }

    #[test]
    fn are_moderated_by_an_absolute_timer() {
        says(
            &source("moderation = «{ packet = \"50us\" }»"),
            "the key `absolute` is missing",
            "The longest wait",
        );
        says(
            &source("moderation = «{ count = 8 }»"),
            "the key `absolute` is missing",
            "",
        );
    }

    #[test]
    fn wait_in_devices_that_have_packets() {
        says(
            &source("queue = «64»"),
            "this source brings none",
            "add a [[flow]] with source = \"a\"",
        );
        let moderated = |rest: &str| source(&format!("moderation = {{ absolute = \"1ms\"{rest}"));
        says(
            &moderated(", count = 8 }\nqueue = «7»"),
            "a device that holds 7 packets never counts 8",
            "a count of at most 7",
        );
        parsed(&moderated(", count = 8 }\nqueue = 8"));
        says(&moderated(" }\nqueue = «0»"), "0 is out of range", "from 1");
        parsed(&source(
            "queue = 1\n[[receiver]]\nname = \"t\"\nurgency = 1\nbacklog = 1\n[[flow]]\nname = \"f\"\nsource = \"a\"\nreceiver = \"t\"",
        ));
        says(&task("backlog = «0»"), "0 is out of range", "from 1");
        says(
            &task("match = { port = «65536» }"),
            "65536 is out of range",
            "to 65535",
        );
    }

    #[test]
    fn take_turns_only_if_they_preempt_each_other() {
        let problem = says(
            &on_board("tasks = \"cooperative\"\ntime_slice = «\"10ms\"»"),
            "cooperative tasks run to their end and take no turns",
            "leave one of them out",
        );
        assert_eq!(problem.spans().count(), 2);
        says(
            &on_board("time_slice = «\"1ns\"»"),
            "less than one cycle",
            "at least",
        );
        parsed(&on_board("tasks = \"preemptive\"\ntime_slice = \"10ms\""));
    }

    #[test]
    fn are_selected_by_what_they_have() {
        let flow = |selector: &str| {
            source(&format!(
                "[[receiver]]\nname = \"t\"\nurgency = 1\n[[flow]]\nname = \"f\"\nsource = \"a\"\nreceiver = \"t\"\nselector = {{ {selector} }}"
            ))
        };
        says(
            &flow("protocol = \"icmp\", port = «1»"),
            "ICMP has no ports",
            "",
        );
        says(
            &flow("ethertype = «0x0806», port = 502"),
            "frames of type 0x0806 have no protocol",
            "0x86dd",
        );
        says(&flow("pcp = «8»"), "8 is out of range", "0 to 7");
        says(
            &flow("address = «\"192.0.2.0/33\"»"),
            "is no address",
            "2001:db8",
        );
        says(
            &flow("protocol = «\"tpc\"»"),
            "no protocol `tpc`",
            "did you mean `tcp`?",
        );
        says(
            &flow("ethertype = «0x0800», address = \"2001:db8::1\""),
            "frames of type 0x0800 have addresses of the other version",
            "leave one of them out",
        );
        parsed(&flow(
            "ethertype = 0x86dd, address = \"2001:db8::/128\", protocol = \"udp\", port = 5",
        ));
    }
}

#[test]
fn all_errors_are_reported_in_the_order_of_the_file() {
    let error = refused(
        "schema = 1\nnmae = \"x\"\n[cpu]\nboard = \"atmega128\"\n[[source]]\nvector = \"INT9\"\nhandler = 3\n\
         [[receiver]]\nname = \"t\"\nurgency = 300\n[[flow]]\nname = \"f\"\nsource = \"nobody\"\nreceiver = \"t\"\n",
    );
    let text = shown(&error);
    let places: Vec<usize> = [
        "no key `nmae`",
        "`name` is missing",
        "no vector `INT9`",
        "3 has no unit",
        "300 is out of range",
        "no source `nobody`",
    ]
    .iter()
    .map(|message| {
        text.find(message)
            .unwrap_or_else(|| panic!("no {message} in\n{text}"))
    })
    .collect();
    assert!(places.is_sorted(), "{text}");
    assert!(error.to_string().contains("has 6 errors"), "{error}");
}

#[test]
fn errors_without_number_are_counted_and_not_shown() {
    let many: String = (0..500)
        .flat_map(|index| ["k".to_owned(), index.to_string(), " = 1\n".to_owned()])
        .collect();
    let error = refused(&format!("schema = 1\n{many}[cpu]\nboard = \"atmega128\"\n"));
    assert_eq!(error.problems().len(), 50);
    assert!(
        error
            .to_string()
            .contains("has 500 errors; these are the first 50"),
        "{error}"
    );
}
