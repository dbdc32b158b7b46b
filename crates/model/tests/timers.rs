// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits that no timer can keep. In the texts « » stand around what the first label must cover.

use crate::common::{LIMITER_OFF, SHARED, limited, on_board, on_fast, own, parsed, says, source};

mod channels {
    use super::*;

    #[test]
    fn hold_what_their_bits_can() {
        says(
            &source("limit = { policy = \"strict\", rate = «\"0.1Hz\"», timer = \"TIMER1A\" }"),
            "TIMER1 cannot hold 10s",
            "with prescaler 1024",
        );
        says(
            &source(
                "limit = { policy = \"strict\", rate = «\"10Hz\"», timer = \"TIMER1A\", prescaler = 8 }",
            ),
            "TIMER1 cannot hold 100ms with prescaler 8",
            "fits with prescaler 256, 1024",
        );
        // A bucket looks burst + 1 intervals ahead.
        says(
            &source(
                "limit = { policy = \"bucket\", burst = 99, interval = «\"500ms\"», timer = \"TIMER1A\" }",
            ),
            "TIMER1 cannot hold 500ms",
            "",
        );
        says(
            &source(
                "limit = { policy = \"strict\", rate = \"1kHz\", timer = \"TIMER1A\", prescaler = «32» }",
            ),
            "TIMER1 has no prescaler 32",
            "1, 8, 64, 256, 1024",
        );
        says(
            &source(
                "limit = { policy = \"strict\", interval = «\"200 cycles\"», timer = \"TIMER1A\", prescaler = 1 }",
            ),
            "TIMER1 counts too fast for 12.5us with prescaler 1",
            "fits with prescaler 8",
        );
        says(
            &source("limit = { policy = \"strict\", rate = \"1kHz\", timer = «\"TIMER0\"» }"),
            "TIMER0 has 8 bits",
            "TIMER1A",
        );
    }

    /// What the help says is the longest interval is one that loads.
    #[test]
    fn that_are_too_short_are_told_their_longest() {
        for written in ["rate", "interval"] {
            let text = |value: &str| {
                source(&format!(
                    "limit = {{ policy = \"strict\", {written} = {value}, timer = \"TIMER1A\" }}"
                ))
            };
            let bad = if written == "rate" {
                "«\"0.1Hz\"»"
            } else {
                "«\"10s\"»"
            };
            let problem = says(&text(bad), "cannot hold 10s", "");
            let advice = problem.advice().unwrap();
            let offered = match written {
                "rate" => advice
                    .split("a rate of ")
                    .nth(1)
                    .unwrap()
                    .split(')')
                    .next()
                    .unwrap(),
                _ => advice
                    .split("TIMER1 is ")
                    .nth(1)
                    .unwrap()
                    .split(' ')
                    .next()
                    .unwrap(),
            };
            let system = parsed(&text(&format!("\"{offered}\"")));
            let ticks = system.sources[0].limit.interval.ticks;
            assert!((16370..=16383).contains(&ticks), "{offered}: {ticks}");
        }
    }

    #[test]
    fn have_one_prescaler_for_all_channels() {
        let fast = limited(
            "a",
            "INT0",
            "policy = \"strict\", rate = \"8kHz\", timer = \"TIMER1A\", prescaler = 8",
        );
        let slow = limited(
            "b",
            "INT1",
            "policy = \"strict\", rate = \"10Hz\", timer = \"TIMER1B\", prescaler = «256»",
        );
        says(
            &on_board(&format!("{fast}{slow}")),
            "one prescaler for all its channels",
            "another timer",
        );

        // 5 cycles cannot be told from others by a prescaler that holds 2 s.
        let fine = "[[timer]]\nname = \"s\"\nchannel = \"TIMER1A\"\nperiod = \"2s\"\n";
        let text = on_board(&format!(
            "{fine}{}",
            limited(
                "a",
                "INT0",
                "policy = \"strict\", rate = «\"1kHz\"», timer = \"TIMER1B\", prescaler = 1"
            )
        ));
        says(
            &text.replace(['«', '»'], "").replace("\"2s\"", "«\"2s\"»"),
            "TIMER1 cannot hold 2s with prescaler 1",
            "fits with prescaler 1024",
        );
    }

    #[test]
    fn with_eight_bits_of_ones_own_say_so() {
        let costs = "[cpu.costs.strict.lazy]\nrequest_served = \"1 cycles\"\nrequest_refused = \"1 cycles\"\nexpiry_served = \"1 cycles\"\nexpiry_empty = \"1 cycles\"";
        let text = own(
            &format!("{LIMITER_OFF}\n{costs}"),
            &format!(
                "[[timer]]\nname = \"t\"\norder = 2\nwidth = 8\ndivisors = [1, 8]\n{}",
                limited(
                    "a",
                    "X",
                    "policy = \"strict\", rate = «\"1kHz\"», timer = \"t\""
                )
                .replace("handler", "order = 1\nhandler")
            ),
        );
        // 63 ticks of 8 cycles are 504; 1 kHz needs 8000.
        says(&text, "t cannot hold 1ms", "63us");
    }
}

mod the_fast_flavour {
    use super::*;

    #[test]
    fn takes_the_vector_behind_that_of_a_strict_eager_limit() {
        let text = |limit: &str| {
            let own = limited("a", "INT0", limit);
            on_fast(&format!(
                "{own}[[source]]\nname = \"b\"\nvector = \"TIMER0_OVF\"\nhandler = \"1us\"\n"
            ))
        };
        says(
            &text("policy = \"strict\", rate = \"4kHz\", timer = «\"TIMER0\"»"),
            "the limit of `a`, which takes two vectors, have the same vector, TIMER0_OVF",
            "another channel",
        );
        parsed(&text(
            "policy = \"strict\", timing = \"lazy\", rate = \"4kHz\", timer = \"TIMER0\"",
        ));
    }

    #[test]
    fn lacks_what_it_lacks() {
        let text = |limit: &str| on_fast(&limited("a", "INT0", limit));
        says(
            &text("policy = «\"paced\"», rate = \"4kHz\", timer = \"TIMER0\""),
            "the flavour `fast` has no limit `paced.lazy`",
            "it has bucket (lazy), bursty (lazy), off, shared, strict (eager, lazy)",
        );
        says(
            &text("policy = «\"poll\"», rate = \"4kHz\", timer = \"TIMER0\""),
            "no port has code for policy = \"poll\"",
            "policy = \"strict\"",
        );
        says(
            &text("policy = «\"bursty\"», timing = \"eager\", rate = \"4kHz\", timer = \"TIMER0\""),
            "no limit `bursty.eager`",
            "",
        );
        says(
            &text("policy = \"strict\", rate = \"4kHz\", timer = «\"TIMER1A\"»"),
            "limits with 8-bit timers",
            "TIMER0, TIMER2",
        );
        // It takes no prescaler of 1.
        says(
            &text("policy = \"strict\", rate = \"4kHz\", timer = \"TIMER0\", prescaler = «2»"),
            "no prescaler 2",
            "one of 8, 32,",
        );
        says(
            &text("policy = «\"bucket\"», rate = \"4kHz\", timer = \"TIMER0\""),
            "bursts of 2 to 60",
            "burst = 2",
        );
        says(
            &text("policy = \"bursty\", rate = \"15kHz\", timer = \"TIMER0\", burst = «129»"),
            "bursts of 2 to 128",
            "at most 128",
        );
        says(
            &text("policy = \"strict\", rate = «\"4kHz\"», timer = \"TIMER0\", prescaler = 1"),
            "TIMER0 cannot hold 250us with prescaler 1",
            "prescaler 8",
        );
        says(
            &text("policy = \"strict\", rate = «\"400kHz\"», timer = \"TIMER0\""),
            "TIMER0 is too coarse for 2.5us",
            "shortest interval",
        );
    }

    #[test]
    fn limits_one_source_or_shares() {
        let first = limited(
            "a",
            "INT0",
            "policy = \"strict\", rate = \"4kHz\", timer = \"TIMER0\"",
        );
        let second = limited(
            "b",
            "INT1",
            "policy = \"strict\", rate = \"4kHz\", timer = \"TIMER2\"",
        );
        let second = second
            .replace("limit = {", "limit = «{")
            .replace("}\n", "}»\n");
        says(
            &on_fast(&format!("{first}{second}")),
            "limits one source",
            "flavour = \"c\"",
        );
        let shared = limited("a", "INT4", "policy = \"bursty\", timer = \"s\"")
            .replace("\"INT4\"", "«\"INT4\"»");
        says(
            &on_fast(&format!("{SHARED}{shared}")),
            "limits INT0, INT1, INT2, INT3, and not INT4",
            "",
        );
        says(
            &on_fast("[[timer]]\nname = \"s\"\nchannel = «\"TIMER1B\"»\nrate = \"100Hz\""),
            "not channel A",
            "TIMER1A",
        );
    }
}
