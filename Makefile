# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The two commands of a newcomer are `make demo` and `make test`. `make` alone lists the others.
# Every target first installs what it needs.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# `make BOOTSTRAP=true …` skips the check of the system's packages, for systems without apt.
BOOTSTRAP ?= scripts/bootstrap.sh
# Cargo chooses its number of jobs itself. make's flags would only reach the makefiles that build
# scripts run.
ALONE := env -u MAKEFLAGS -u MFLAGS
# --locked makes sure that the tested dependencies are the built ones. A dependency changes only by
# a commit of Cargo.lock.
CARGO_TEST := $(ALONE) cargo test --locked

TEST_PARTS := test-linux test-rtl test-format test-core test-host test-avr test-arm
# The packages of this workspace that several parts build.
HOST := -p weir-model -p weir-arrivals -p weir-sim -p weir-analysis -p weir-verify -p weir-report -p weir-generate -p weir-boards
AVR := -p weir-emulate -p weir-cli
ARM := -p weir-peer
# Tests in AVR whose names begin like this need QEMU and the compiler for Arm.
ARM_TESTS := cortex_m_ qemu_
LINUX := -p weir-load -p weir-linux

.PHONY: help demo test quick build-tests $(TEST_PARTS) test-guest papers due bench format clean bootstrap-%

help: ## list the targets (the default)
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: bootstrap-demo ## flood an emulated ATmega128 with and without Weir, and draw what is left for the background work
	$(ALONE) scripts/demo.sh

test: bootstrap-all ## all tests of the product: the parts below, each callable alone, and then what ran, failed and was skipped
	@scripts/test.sh $(TEST_PARTS)

quick: bootstrap-format ## what to run before each commit: format, Clippy, the tests of all that needs no emulator, kernel or FPGA tool
	cargo fmt --all --check
	$(ALONE) scripts/lint-rust.sh
	$(CARGO_TEST) $(HOST) -p weir-core-sys -p weir-cli

# Builds everything in the workspace that the parts below need, at once.
build-tests:
	$(CARGO_TEST) --no-run $(HOST) $(AVR) $(ARM) $(LINUX)

test-format: bootstrap-format ## formatters, linters, SPDX lines
	scripts/check-tree.sh
	cargo fmt --all --check
	cd papers && cargo fmt --all --check
	$(ALONE) scripts/lint-rust.sh

test-core: bootstrap-core ## the C policies: contracts against a brute-force model, sanitizers, fuzzer; ports/freertos on the host
	$(MAKE) -C core -j"$$(nproc)" -Otarget test
	$(MAKE) -C ports/freertos test

test-host: bootstrap-host ## quantities, the analysis against others' and against simulations, tables and plots
	$(CARGO_TEST) $(HOST)

test-avr: bootstrap-avr ## the weir command, the emulated ATmega128, the port, the examples of the README
# Both commands are built together, as the scripts build them.
	$(CARGO_TEST) $(AVR) -- $(addprefix --skip ,$(ARM_TESTS)) # test-arm has them
	$(ALONE) scripts/test-examples.sh

test-arm: bootstrap-arm ## the emulated Cortex-M3, the lines and the wire to it, in the time of its guest; its port
	$(CARGO_TEST) $(ARM)
# The packages are the same as in test-avr, because other packages would have other features and
# would be built again.
	$(CARGO_TEST) $(AVR) -- $(ARM_TESTS)

test-rtl: bootstrap-rtl ## silicon: lint, proofs with their mutants, simulation beside core/, the RISC-V board, cell counts
	$(ALONE) scripts/test-rtl.sh

test-linux: bootstrap-linux ## stock Linux: this kernel, between network namespaces of its own (skipped without root)
# These tests run one after the other, because some of them measure times.
	RUST_TEST_THREADS=1 $(CARGO_TEST) $(LINUX) --lib --bins --test load
# These tests wait more than they compute. Each has a thread, in which it waits for its turn
# (crates/linux/tests/turn.rs).
	RUST_TEST_THREADS=200 $(CARGO_TEST) $(LINUX) --test main

test-guest: bootstrap-linux ## stock Linux in an emulated machine: CPUs that come and go, a card that steers; minutes
	WEIR_GUEST=1 $(ALONE) cargo test --locked $(LINUX) --test main -- cpus:: card::

papers: bootstrap-papers ## the papers' figures and tables: every experiment's claims, in its short form; hours
	$(ALONE) papers/scripts/test.sh

MINUTES ?= 20
due: bootstrap-papers ## as much of the papers and of the long tests as MINUTES=20 allow: first what has changed, then others in rotation
	$(ALONE) papers/scripts/due.sh '$(MINUTES)'

bench: bootstrap-all bootstrap-papers ## everything whole: the long tests, proofs and fuzzers; every figure and table. Writes papers/ledger.json
	$(ALONE) papers/scripts/bench.sh

format: bootstrap-format ## apply the formatters
	cargo fmt --all
	cd papers && cargo fmt --all
	git ls-files -z '*.c' '*.h' '*.cpp' '*.hpp' ':!rtl/limit/registers/generated' | xargs -0 "$$(scripts/python-env.sh format)/bin/clang-format" -i

clean: ## remove what was built and the results
	cargo clean
	rm -rf build results

bootstrap-all:
	@$(BOOTSTRAP)

bootstrap-%:
	@$(BOOTSTRAP) $*
