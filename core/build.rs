// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles the shims: what depends on the tick width once per width, the limit machine also with and without its record, under prefixed names.

fn compile(shim: &str, library: &str, defines: &[(&str, &str)]) {
    let mut build = cc::Build::new();
    for &(name, value) in defines {
        build.define(name, value);
    }
    build
        .file(shim)
        .include("include")
        .flag("-std=c11")
        .flag("-Wconversion")
        .flag("-Wsign-conversion")
        .extra_warnings(true)
        .warnings_into_errors(true)
        .compile(library);
}

fn main() {
    println!("cargo::rerun-if-changed=include");
    println!("cargo::rerun-if-changed=src");
    for bits in ["16", "32", "64"] {
        for (record, suffix) in [("1", ""), ("0", "bare")] {
            let library = format!("weir{bits}{suffix}");
            compile(
                "src/ffi.c",
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
            "src/moderate_ffi.c",
            &library,
            &[
                ("WEIR_TICK_BITS", bits),
                ("WEIR_FFI_PREFIX", &format!("{library}_")),
            ],
        );
    }
    compile("src/account_ffi.c", "weir_account", &[]);
    compile("src/classes_ffi.c", "weir_classes", &[]);
}
