// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles the shims: what depends on the tick width once per width, the limit machine also with
//! and without its record, under prefixed names.

fn compile(shim: &str, library: &str, defines: &[(&str, &str)]) {
    let mut build = cc::Build::new();
    for &(name, value) in defines {
        build.define(name, value);
    }
    build
        .file(shim)
        .include("../../core/include")
        .include("../../core/src")
        .flag("-std=c11")
        .flag("-Wconversion")
        .flag("-Wsign-conversion")
        .extra_warnings(true)
        .warnings_into_errors(true)
        .compile(library);
}

fn main() {
    for folder in ["../../core/include", "../../core/src", "shims"] {
        println!("cargo::rerun-if-changed={folder}");
    }
    for bits in ["16", "32", "64"] {
        for (record, suffix) in [("1", ""), ("0", "bare")] {
            let library = format!("weir{bits}{suffix}");
            compile(
                "shims/limit.c",
                &library,
                &[
                    ("WEIR_TICK_BITS", bits),
                    ("WEIR_LIMIT_RECORD", record),
                    ("WEIR_FFI_PREFIX", &format!("{library}_")),
                ],
            );
        }
        let library = format!("weir_moderate{bits}");
        compile(
            "shims/moderate.c",
            &library,
            &[
                ("WEIR_TICK_BITS", bits),
                ("WEIR_FFI_PREFIX", &format!("{library}_")),
            ],
        );
    }
    compile("shims/account.c", "weir_account", &[]);
    compile("shims/classes.c", "weir_classes", &[]);
}
