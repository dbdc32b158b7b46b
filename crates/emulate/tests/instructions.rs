// SPDX-License-Identifier: GPL-3.0-or-later
//! Compares the cycles of instructions with the ATmega128 data sheet's "Instruction Set Summary".

use weir_emulate::board::EmulatedBoard;
use weir_emulate::run::run;

/// The cycles between the two marks of each instruction form, including the comparison before a
/// branch (1) and the RET after a call (4).
const FORMS: &[(&str, u64)] = &[
    ("nop", 1),
    ("add", 1),
    ("adiw", 2),
    ("mul", 2),
    ("ldi", 1),
    ("in", 1),
    ("out", 1),
    ("sbi", 2),
    ("cbi", 2),
    ("lds", 2),
    ("sts", 2),
    ("ld", 2),
    ("ldd", 2),
    ("st", 2),
    ("push", 2),
    ("pop", 2),
    ("lpm", 3),
    ("elpm", 3),
    ("rjmp", 2),
    ("jmp", 3),
    ("brne_not_taken", 1 + 1),
    ("brne_taken", 1 + 2),
    ("sbrc_no_skip", 1 + 1),
    ("sbrc_skip_one", 2),
    ("sbrc_skip_two", 3),
    ("sbic_skip_two", 3),
    ("cpse_skip_one", 2),
    ("rcall_and_ret", 3 + 4),
    ("call_and_ret", 4 + 4),
    ("icall_and_ret", 3 + 4),
    ("reti", 4),
];

#[test]
fn every_form_takes_the_data_sheets_cycles() {
    let (_folder, elf) = crate::common::build("instructions.S", &[]);
    let mut spec = EmulatedBoard::ATMEGA128.spec(&elf, 4_000_000, 1000);
    for (name, _) in FORMS {
        spec.marks
            .extend([format!("begin_{name}"), format!("end_{name}")]);
    }
    let marks = run(&spec).unwrap().marks;
    for (name, cycles) in FORMS {
        let (begin, end) = (
            &marks[&format!("begin_{name}")],
            &marks[&format!("end_{name}")],
        );
        assert_eq!((begin.len(), end.len()), (1, 1), "{name}");
        assert_eq!(end[0] - begin[0], *cycles, "{name}");
    }
}
