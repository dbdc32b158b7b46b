// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles the shim once per tick width, with and without the record, under prefixed names.

fn main() {
    println!("cargo::rerun-if-changed=include");
    println!("cargo::rerun-if-changed=src");
    for bits in ["16", "32", "64"] {
        for (record, suffix) in [("1", ""), ("0", "bare")] {
            cc::Build::new()
                .file("src/ffi.c")
                .include("include")
                .define("WEIR_TICK_BITS", bits)
                .define("WEIR_LIMIT_RECORD", record)
                .define("WEIR_FFI_PREFIX", format!("weir{bits}{suffix}_").as_str())
                .flag("-std=c11")
                .flag("-Wconversion")
                .flag("-Wsign-conversion")
                .extra_warnings(true)
                .warnings_into_errors(true)
                .compile(&format!("weir{bits}{suffix}"));
        }
    }
}
