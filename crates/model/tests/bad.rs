// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bad files: every error is reported at its place, with what would be right. In the texts « »
//! stand around what the first label must cover.

use crate::common::{on_board, refused, says, shown, source, task, unmarked};

mod file {
    use super::*;
    use std::io::Write as _;
    use weir_model::{FILE_BYTES_MOST, LoadError, load};

    #[test]
    fn of_another_schema() {
        says(
            "schema = «2»\nfuture = true",
            "this Weir reads schema 1",
            "write `schema = 1`",
        );
        says(
            "schema = «\"1\"»",
            "this Weir reads schema 1",
            "write `schema = 1`",
        );
        says(
            "«name = \"x\"»\n[cpu]",
            "does not state its schema",
            "first line",
        );
    }

    #[test]
    fn that_is_empty() {
        says("«»", "the file is empty", "schema = 1");
        says("«  »\n\n", "the file is empty", "schema = 1");
    }

    #[test]
    fn that_is_no_toml() {
        let (text, _) = unmarked("schema = 1\n[cpu«»\nboard = 3");
        let error = refused(&text);
        assert!(error.problems()[0].message().contains("this is not TOML"));
        let span = error.problems()[0].spans().next().unwrap();
        assert!(
            text[..span.offset()].starts_with("schema = 1\n[cpu"),
            "{span:?}"
        );
        for (text, help) in [
            ("schema = 1\nname = \"a\"\nname = \"b\"", "each key once"),
            ("schema = 99999999999999999999", "9223372036854775807"),
            ("schema = 1\nname = a", "in quotes"),
        ] {
            let error = refused(text);
            let problem = &error.problems()[0];
            assert!(problem.message().contains("not TOML"));
            assert!(problem.advice().unwrap().contains(help), "{problem:?}");
        }
    }

    #[test]
    fn that_is_no_text() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"schema = 1\nname = \"\xff\xfe\"").unwrap();
        let error = load(file.path()).unwrap_err();
        assert!(
            matches!(
                error,
                LoadError::NotText {
                    offset: 19,
                    line: 2,
                    ..
                }
            ),
            "{error:?}"
        );
        assert!(shown(&error).contains("UTF-8"), "{}", shown(&error));
    }

    #[test]
    fn of_ten_megabytes() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let line = "# a comment that goes on and on and on\n".repeat(1 << 10);
        for _ in 0..(10 << 20) / line.len() {
            file.write_all(line.as_bytes()).unwrap();
        }
        let error = load(file.path()).unwrap_err();
        assert!(
            matches!(
                error,
                LoadError::TooLarge {
                    most: FILE_BYTES_MOST,
                    ..
                }
            ),
            "{error:?}"
        );
        assert!(
            error.to_string().contains("larger than 1048576 bytes"),
            "{error}"
        );
    }

    #[test]
    fn that_has_no_end() {
        let error = load(std::path::Path::new("/dev/zero")).unwrap_err();
        assert!(matches!(error, LoadError::TooLarge { .. }), "{error:?}");
    }

    #[test]
    fn that_is_not_there() {
        let error = load(std::path::Path::new("no/such.toml")).unwrap_err();
        assert!(
            error.to_string().contains("cannot read no/such.toml"),
            "{error}"
        );
        assert_eq!(shown(&error).matches("No such file").count(), 1);
    }
}

mod keys {
    use super::*;

    #[test]
    fn that_are_unknown() {
        says(
            &on_board("«taks» = \"preemptive\""),
            "[cpu] has no key `taks`",
            "did you mean `tasks`? The keys of [cpu] are `board`",
        );
        says(
            &source("limit = { «polcy» = \"off\", policy = \"off\" }"),
            "[source.limit] has no key `polcy`",
            "did you mean `policy`?",
        );
        says(
            "schema = 1\n«sources» = []\n[cpu]\nboard = \"atmega128\"",
            "no key `sources`",
            "did you mean `source`?",
        );
    }

    /// A key that is offered is not refused when it is written.
    #[test]
    fn that_are_unknown_of_a_limit_are_answered_with_those_of_its_place() {
        for (place, others) in [
            ("", &["`trigger`"][..]),
            ("place = \"software\", ", &["`trigger`"]),
            (
                "place = \"hardware\", ",
                &["`timing`", "`timer`", "`prescaler`"],
            ),
        ] {
            let limit =
                format!("limit = {{ «polcy» = 1, {place}policy = \"strict\", rate = \"1kHz\" }}");
            let (text, _) = unmarked(&source(&limit));
            let error = refused(&text);
            let mut problems = error.problems().iter();
            let problem = problems
                .find(|of| of.message().contains("`polcy`"))
                .unwrap();
            let advice = problem.advice().unwrap();
            assert!(
                advice.contains("`rate`") && advice.contains("`burst`"),
                "{advice}"
            );
            assert!(others.iter().all(|key| !advice.contains(key)), "{advice}");
        }
    }

    #[test]
    fn that_are_missing() {
        says("«schema = 1»", "the key `cpu` is missing", "add it: cpu =");
        says(
            &on_board("«[[source]]»\nvector = \"INT0\"\nhandler = \"1us\""),
            "the key `name` is missing",
            "name = \"encoder\"",
        );
        says(
            &on_board("«[[receiver]]»\nname = \"t\""),
            "the key `urgency` is missing",
            "Higher is more urgent",
        );
    }

    #[test]
    fn of_another_kind() {
        says(
            &source("max_work = «\"one\"»"),
            "expected a whole number, found the text `one`",
            "write a whole number of 1 or more, without quotes",
        );
        for number in ["1.5", "8.0"] {
            says(
                &source(&format!("max_work = «{number}»")),
                &format!("expected a whole number, found the number {number}"),
                "write a whole number",
            );
        }
        says(&source("max_work = «0»"), "0 is out of range", "from 1 to");
        says(
            &format!(
                "{}\n[[receiver]]\nname = \"t\"\nurgency = «-1»\nperiod = \"1ms\"\nwcet = \"1us\"",
                source("")
            ),
            "-1 is out of range",
            "for `weir linux` one from 0 to 99",
        );
        says(
            &task("period = «10»"),
            "10 has no unit",
            "\"2ms\", in quotes",
        );
        says(
            &source("rate = «\"1kHz\"»"),
            "expected a table `[source.rate]`",
            "",
        );
        says(
            &on_board("«[source]»\nname = \"a\""),
            "found a single table",
            "",
        );
        says(
            &on_board("«[[cpu.costs]]»\n"),
            "expected a table `[cpu.costs]`, found an array of tables",
            "",
        );
        says(&task("jitter = «2026-01-01»"), "found a date", "");
    }
}

mod quantities {
    use super::*;

    #[test]
    fn that_are_none() {
        for (time, message) in [
            ("NaNms", "does not begin with a number"),
            ("infms", "does not begin with a number"),
            ("-2ms", "is not more than zero"),
            ("0ms", "is not more than zero"),
            ("1e300s", "is too large"),
            ("2", "has no unit"),
            ("2kHz", "has the unit `kHz`"),
            ("2 mins", "has the unit `mins`"),
            ("1.5cycles", "a whole number of cycles"),
            ("99999999999999999999cycles", "is too large"),
            ("", "does not begin with a number"),
        ] {
            says(
                &task(&format!("period = «\"{time}\"»")),
                message,
                "write a time with its unit",
            );
        }
        for rate in ["0Hz", "-1kHz", "4", "4khz", "2ms", "1e13Hz"] {
            let text = source(&format!("rate = {{ expected = «\"{rate}\"» }}"));
            says(&text, &format!("`{rate}`"), "write a rate with its unit");
        }
        says(
            &source("work = «\"-0 cycles\"»"),
            "is not more than zero",
            "write a cost",
        );
        says(&task("jitter = «nan»"), "NaN has no unit", "write a time");
    }

    #[test]
    fn that_no_clock_counts() {
        says(
            &task("period = «\"1ns\"»"),
            "less than one cycle of a 16MHz clock",
            "\"1 cycle\"",
        );
        says(
            "schema = 1\n[cpu]\nboard = \"atmega128\"\nclock = \"1000000MHz\"\n[[receiver]]\nname = \"t\"\nurgency = 1\nperiod = «\"1e9s\"»",
            "more than 4611686018427387904 cycles",
            "",
        );
        says(
            &source("limit = { policy = \"strict\", rate = «\"1e-30Hz\"», timer = \"TIMER1A\" }"),
            "more than 4611686018427387904 cycles",
            "",
        );
        says(
            "schema = 1\n[cpu]\nboard = \"atmega128\"\nclock = «\"0.5Hz\"»",
            "not whole hertz",
            "7372800Hz",
        );
        says(
            &task("period = «\"0.3333333333333333333333ms\"»"),
            "too many digits",
            "write a time",
        );
    }

    #[test]
    fn with_control_characters_are_not_shown_as_they_are() {
        let text = task("period = \"2\\u001b[31mms\"");
        let error = refused(&text);
        assert!(!error.problems()[0].message().contains('\u{1b}'), "{error}");
        let text = on_board("\"a\\u001bb\" = 1");
        assert!(!refused(&text).problems()[0].message().contains('\u{1b}'));
    }
}

mod names {
    use super::*;

    #[test]
    fn that_are_there_twice() {
        let problem = says(
            &source("[[source]]\nname = «\"a\"»\nvector = \"INT1\"\nhandler = \"1us\""),
            "two sources are called `a`",
            "another name",
        );
        assert_eq!(problem.spans().count(), 2);
        says(
            &task("[[receiver]]\nname = «\"t\"»\nurgency = 1"),
            "two receivers are called `t`",
            "",
        );
        let timer = "[[timer]]\nname = \"x\"\nchannel = \"TIMER1A\"\nrate = \"100Hz\"\n";
        let again = "[[timer]]\nname = «\"x\"»\nchannel = \"TIMER3A\"\nrate = \"100Hz\"\n";
        says(
            &on_board(&format!("{timer}{again}")),
            "two timers are called `x`",
            "",
        );
        let flow = "[[flow]]\nname = \"f\"\nsource = \"a\"\nreceiver = \"t\"\n";
        let again = flow.replace("\"f\"", "«\"f\"»");
        let rest = format!("[[receiver]]\nname = \"t\"\nurgency = 1\n{flow}{again}");
        says(&source(&rest), "two flows are called `f`", "");
    }

    #[test]
    fn that_cannot_be_names() {
        for name in ["", "two words", "9lives", "-x", "é", "a\\nb"] {
            let text = on_board(&format!("[[receiver]]\nname = «\"{name}\"»\nurgency = 1"));
            says(&text, "name", "begins with a letter");
        }
        let long = "a".repeat(65);
        says(
            &on_board(&format!("[[receiver]]\nname = «\"{long}\"»\nurgency = 1")),
            "cannot be a name",
            "64 at most",
        );
        says(
            "schema = 1\nname = «\"a\\tb\"»\n[cpu]\nboard = \"atmega128\"",
            "no text that can be shown",
            "",
        );
    }

    #[test]
    fn that_nobody_has() {
        says(
            "schema = 1\n[cpu]\nboard = «\"atmega182\"»",
            "there is no board `atmega182`",
            "did you mean `atmega128`?",
        );
        says(
            "schema = 1\n[cpu]\nboard = \"atmega128\"\nflavour = «\"fsat\"»",
            "no flavour `fsat`",
            "did you mean `fast`?",
        );
        says(
            &on_board("[[source]]\nname = \"a\"\nvector = «\"INT8\"»\nhandler = \"1us\""),
            "atmega128 has no vector `INT8`",
            "did you mean `INT",
        );
        says(
            &source("limit = { policy = \"strict\", rate = \"1kHz\", timer = «\"TIMR1A\"» }"),
            "there is no timer `TIMR1A`",
            "did you mean `TIMER1A`?",
        );
        says(
            &on_board("[[timer]]\nname = \"s\"\nchannel = «\"TIMER9A\"»\nrate = \"1Hz\""),
            "no compare channel `TIMER9A`",
            "did you mean `TIMER1A`?",
        );
        let flow = "[[receiver]]\nname = \"task\"\nurgency = 1\n[[flow]]\nname = \"f\"\n";
        says(
            &source(&format!("{flow}source = \"a\"\nreceiver = «\"tsak\"»")),
            "there is no receiver `tsak`",
            "did you mean `task`?",
        );
        says(
            &source(&format!("{flow}source = «\"b\"»\nreceiver = \"task\"")),
            "there is no source `b`",
            "the only one is `a`",
        );
        says(
            &source("rate = { worst = «\"lose-wire\"» }"),
            "there is no common source `lose-wire`",
            "did you mean `loose-wire`?",
        );
        says(
            &source("limit = { policy = «\"burst\"» }"),
            "there is no policy `burst`",
            "did you mean `bursty`?",
        );
    }

    #[test]
    fn of_a_bad_timer_are_not_reported_again() {
        let bad = "[[timer]]\nname = \"slow\"\nchannel = «\"TIMER9A\"»\nrate = \"100Hz\"\n";
        let uses = "[[source]]\nname = \"a\"\nvector = \"INT0\"\nhandler = \"1us\"\nlimit = { policy = \"bursty\", timer = \"slow\" }";
        says(&on_board(&format!("{bad}{uses}")), "no compare channel", "");
    }
}

mod bands {
    use super::*;

    fn limited(rate: &str, limit: &str) -> String {
        source(&format!(
            "rate = {rate}\nlimit = {{ policy = \"strict\", {limit}, timer = \"TIMER1A\" }}"
        ))
    }

    #[test]
    fn that_a_limit_misses() {
        says(
            &limited("{ expected = \"2kHz\" }", "rate = «\"1kHz\"»"),
            "lets 1kHz through, less than the 2kHz expected",
            "ask for 2kHz or more; with 1 cycle per tick",
        );
        says(
            &limited("{ tolerated = \"500Hz\" }", "interval = «\"1ms\"»"),
            "lets 1kHz through, more than the 500Hz tolerated",
            "ask for 500Hz or less",
        );
        says(
            &source(
                "rate = { expected = \"2kHz\" }\nlimit = { policy = \"strict\", place = \"hardware\", rate = «\"1kHz\"» }",
            ),
            "less than the 2kHz expected",
            "ask for 2kHz or more",
        );
    }

    #[test]
    fn that_a_limit_misses_after_rounding() {
        // 39.1 ticks: 40 let 390.6 Hz through.
        let problem = says(
            &limited(
                "{ expected = \"396Hz\", tolerated = \"440Hz\" }",
                "rate = «\"400Hz\"», prescaler = 1024",
            ),
            "lets 390.625Hz through, less than the 396Hz expected",
            "ask for 400.642Hz or more",
        );
        // What the help offers is right: the limit above it.
        let advice = problem.advice().unwrap();
        let near = advice.split("near it are ").nth(1).unwrap();
        let offered = near.split(',').next().unwrap();
        let text = limited(
            "{ expected = \"396Hz\", tolerated = \"440Hz\" }",
            &format!("rate = \"{offered}\", prescaler = 1024"),
        );
        assert_eq!(
            crate::common::parsed(&text).sources[0]
                .limit
                .interval
                .cycles(),
            39 * 1024
        );
    }

    #[test]
    fn that_a_burst_of_a_shared_timer_misses() {
        let text = |limit: &str| {
            on_board(&format!(
                "[[timer]]\nname = \"s\"\nchannel = \"TIMER1A\"\nrate = \"100Hz\"\n[[source]]\nname = \"a\"\nvector = \"INT0\"\nhandler = \"1us\"\n\
                 rate = {{ expected = \"300Hz\", tolerated = \"400Hz\" }}\nlimit = {{ policy = \"bursty\", timer = \"s\", {limit} }}"
            ))
        };
        says(
            &text("burst = «2»"),
            "lets 200Hz through, less than the 300Hz expected",
            "",
        );
        says(
            &text("burst = «5»"),
            "lets 500Hz through, more than the 400Hz tolerated",
            "",
        );
        says(
            &text("burst = 4, rate = «\"350Hz\"»"),
            "a burst of 4 per period of this timer is 400Hz, more than the rate asked for",
            "smaller burst",
        );
        crate::common::parsed(&text("burst = 3, rate = \"350Hz\""));
    }

    #[test]
    fn of_flows_that_a_limit_cannot_let_through() {
        let text = |rates: [&str; 2], rest: &str| {
            source(&format!(
                "max_work = 1\nqueue = 8\nlimit = {{ policy = \"strict\", rate = \"1kHz\", timer = \"TIMER1A\" }}\n\
                 [[receiver]]\nname = \"r\"\nurgency = 1\n\
                 [[flow]]\nname = \"f\"\nsource = \"a\"\nreceiver = \"r\"\nrate = {}\ndeadline = \"9ms\"\n\
                 [[flow]]\nname = \"g\"\nsource = \"a\"\nreceiver = \"r\"\nrate = {}\n{rest}",
                rates[0], rates[1]
            ))
        };
        says(
            &text(["«\"1.5kHz\"»", "\"9kHz\""], ""),
            "1.5kHz of packets are more than the 1kHz that the limit of `a` lets through",
            "raise the limit (weir tune chooses one), or `max_work`",
        );
        says(
            &text(["\"800Hz\"", "«\"300Hz\"»"], "deadline = \"9ms\""),
            "1.1kHz of packets, with the flows before it, are more than the 1kHz",
            "raise the limit",
        );
        crate::common::parsed(&text(["\"800Hz\"", "\"300Hz\""], ""));
        crate::common::parsed(&text(["\"800Hz\"", "\"200Hz\""], "deadline = \"9ms\""));
        // Limits that are yet to be chosen are not held against flows.
        let (text, _) = crate::common::unmarked(&text(["«\"1.5kHz\"»", "\"9kHz\""], ""));
        assert!(weir_model::parse_to_be_limited("test.toml", &text).is_ok());
    }

    #[test]
    fn that_contradict_themselves() {
        says(
            &source("rate = { expected = \"2kHz\", tolerated = «\"1kHz\"» }"),
            "the tolerated rate is below the expected one",
            "at least the expected",
        );
        says(
            &source("rate = { expected = \"2kHz\", worst = «\"loose-wire\"» }"),
            "the worst rate, 500Hz, is below the expected one",
            "broken",
        );
    }
}
