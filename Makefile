# SPDX-License-Identifier: Apache-2.0
# Every target installs what it needs on Debian 12, as root or with sudo.

.DEFAULT_GOAL := help
.PHONY: help build demo test flaky python wheel check format bench fuzz tidy clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-8s %s\n", $$1, $$2}' Makefile

build:  ## the library and the command, at build/bin/cairn
	@tools/install_packages.sh build
	cmake --preset release
	cmake --build --preset release

demo: build  ## a small story: train, be killed in a save, resume on fewer ranks, find damage, compare
	@examples/demo/run.sh

check:  ## format, sizes, names and other rules of the sources; quick
	@tools/install_packages.sh test
	@tools/check_format.sh
	@/usr/bin/python3 tools/check_sources.py
	@/usr/bin/python3 tools/check_rooms.py
	@/usr/bin/python3 tools/draw_rooms.py --check

test: check  ## the checks, then every unit test and every comparison with other systems
	@tools/install_packages.sh build test
	@tools/make_venv.sh
	cmake --preset dev
	cmake --build --preset dev
	@ctest --preset dev --parallel $$(nproc); status=$$?; tools/say_skipped.py build/dev; exit $$status

flaky:  ## every test 20 times beside busy processes; lists what failed (RUNS=n, TESTS=regex)
	cmake --preset dev
	cmake --build --preset dev
	@tools/flaky.py build/dev $(if $(RUNS),--runs $(RUNS)) $(if $(TESTS),--tests '$(TESTS)')

python:  ## .venv with the Python package and the systems that the tests compare it with
	@tools/install_packages.sh build test
	@tools/make_venv.sh
	.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation .

wheel:  ## dist/cairn_checkpoint-*.whl, which needs NumPy alone
	@tools/install_packages.sh build test
	@tools/make_venv.sh
	@rm -rf dist
	@tools/make_wheel.sh dist

format:  ## lay out the sources
	@tools/install_packages.sh test
	@tools/check_format.sh --fix

bench:  ## benchmarks, each against memcpy or the bare codec of the same run
	@tools/install_packages.sh build test bench
	@tools/make_venv.sh
	cmake --preset bench
	cmake --build --preset bench --target cairn_benchmarks cairn_python
	@/usr/bin/python3 bench/report.py build/release/benchmarks $(BENCH_FLAGS)
	@/usr/bin/python3 bench/leaves.py build/release/benchmarks/cairn_leaves build/bin/cairn $(BENCH_FLAGS)
	@build/release/benchmarks/cairn_stall $(BENCH_FLAGS)
	@/usr/bin/python3 bench/ranks.py build/release/benchmarks $(BENCH_FLAGS)
	@.venv/bin/python bench/python.py build/release/python $(BENCH_FLAGS)
	@.venv/bin/python bench/peers.py build/release/python $(BENCH_FLAGS)

fuzz:  ## replay the corpora, then 200,000 new inputs for each target (RUNS=n for another number)
	@tools/install_packages.sh build clang
	cmake --preset fuzz
	cmake --build --preset fuzz --target cairn_fuzzers
	@tools/run_fuzz.sh $(RUNS)

tidy:  ## clang-tidy over the product sources; DEEP=1: and the static analyzer, for an hour
	@tools/install_packages.sh build clang
	cmake --preset clang
	@/usr/bin/python3 tools/check_tidy.py build/clang $(if $(DEEP),--deep)

clean:  ## remove everything that was built (.venv stays)
	rm -rf build
