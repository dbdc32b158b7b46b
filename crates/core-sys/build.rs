// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles the shims with prefixed function names. Shims that depend on the tick width are
//! compiled once per width; the limiter is also compiled with and without its record.

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
        for (machine, record, suffix) in [
            ("limit", "1", ""),
            ("limit", "0", "bare"),
            ("moderate", "1", ""),
        ] {
            let prefix = format!("weir_ffi{bits}{suffix}_{machine}_");
            compile(
                &format!("shims/{machine}.c"),
                &prefix,
                &[
                    ("WEIR_TICK_BITS", bits),
                    ("WEIR_LIMIT_RECORD", record),
                    ("WEIR_FFI_PREFIX", &prefix),
                ],
            );
        }
    }
    compile("shims/account.c", "weir_ffi_account", &[]);
    compile("shims/classes.c", "weir_ffi_classes", &[]);
}
