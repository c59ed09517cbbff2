# The entry point: every task of this project as one target, on a machine that may have nothing
# installed.
#
# CMake builds (see CMakePresets.json). This file installs what is missing, selects the preset and
# runs the tools. Each preset builds in build/<preset>, so presets do not affect one another.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

CROSS := $(if $(filter x86_64,$(shell uname -m)),cross-aarch64,cross-x86-64)

# ThreadSanitizer of gcc 12 and older cannot map its shadow memory if the kernel randomises
# addresses over 32 bits. Its tests run without randomisation if the system permits that.
FIXED_ADDRESSES = $(shell setarch $$(uname -m) -R true 2>/dev/null && echo setarch $$(uname -m) -R)

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

# --- building ---------------------------------------------------------------------------------

PRESETS := release demo debug asan tsan coverage clang fuzz cross-aarch64 cross-x86-64
CONFIGURED := $(PRESETS:%=build/%/.configured)
BUILDS := $(PRESETS:%=build-%)
SETUPS := setup-build setup-check setup-fuzz setup-abi setup-cross

.PHONY: $(SETUPS)
$(SETUPS): setup-%:
	@scripts/setup $*

# CMake reconfigures when a CMakeLists.txt changes, but not when a preset does; the stamp covers
# that. setup-build is an order-only prerequisite: it runs every time and makes no target out of
# date.
$(CONFIGURED): build/%/.configured: CMakePresets.json $(wildcard cmake/toolchain-*.cmake) | setup-build
	@mkdir -p $(@D)
	@cmake --preset $* >$(@D)/configure.log 2>&1 || { tail -n 30 $(@D)/configure.log >&2; \
	    echo "configure $*: failed; all it printed is in $(@D)/configure.log" >&2; exit 1; }
	@touch $@
build/clang/.configured: | setup-check
build/fuzz/.configured: | setup-fuzz
build/$(CROSS)/.configured: | setup-cross

.PHONY: $(BUILDS)
$(BUILDS): build-%: build/%/.configured
	@scripts/build $* $(if $(KPYTRACE_TEST_LONG),$(if $(filter asan tsan clang cross-%,$*),--target all kpt_long_tests))

# --- commands for users -----------------------------------------------------------------------

.PHONY: demo
demo: build-demo ## build for one Python, trace a program and print the path of its report page
	@scripts/demo build/demo

.PHONY: demo-ranks
demo-ranks: build-release build/torch/3.12/.complete ## four ranks of torch, one of them slow, as one trace
	@scripts/demo_ranks build/release build/torch/3.12

.PHONY: pictures
pictures: build-release browser ## make the pictures in docs/pictures from new traces
	@scripts/pictures build/release

# Stands before a command that fetches. If another make fetches the same, this one waits; the command then finds that
# there is nothing left to do.
ALONE = mkdir -p build && flock build/.fetch-$(1)

# Environments with stock torch, for the tests of the torch host. Each takes a minute or two, once.
# If one cannot be made, CMake leaves out its tests and reports that.
TORCH_TAGS := 3.12 $(if $(KPYTRACE_TEST_LONG),3.11 3.13)
TORCH_ENVIRONMENTS := $(TORCH_TAGS:%=build/torch/%/.complete)

.PHONY: torch
torch: ## make environments with stock torch in build/torch; the tests then use them
	@$(MAKE) --jobs $$(nproc) $(TORCH_ENVIRONMENTS)

$(TORCH_ENVIRONMENTS): build/torch/%/.complete:
	@python=$$(scripts/pythons/list | awk '$$1 == "$*" { print $$2 }'); \
	if [ -n "$$python" ]; then $(call ALONE,torch-$*) scripts/torch_env "$$python" build/torch/$* >/dev/null || echo "torch: none for $*" >&2; \
	else echo "torch: there is no Python $*"; fi

.PHONY: torch-newest-environment
torch-newest-environment:
	@python=$$(scripts/pythons/list | awk '$$1 == "3.12" { print $$2 }'); \
	scripts/torch_env "$${python:?torch: there is no Python 3.12}" build/torch/newest newest

# The releases of torch, beside that of the other environments and the newest, with which native profiles are tested.
TORCH_MINORS := 2.12 2.14
TORCH_MINOR_ENVIRONMENTS := $(TORCH_MINORS:%=build/torch/%/.complete)

$(TORCH_MINOR_ENVIRONMENTS): build/torch/%/.complete:
	@python=$$(scripts/pythons/list | awk '$$1 == "3.12" { print $$2 }'); \
	scripts/torch_env "$${python:?torch: there is no Python 3.12}" build/torch/$* '$*.*' >/dev/null

.PHONY: torch-minors
torch-minors: export KPYTRACE_TEST_LONG := 1
torch-minors: $(TORCH_MINOR_ENVIRONMENTS) build-release ## the tests of native profiles with torch 2.12 and 2.14
	@cmake build/release >build/release/configure.log
	@scripts/run_tests release --tests-regex '^torch\.2\.'

.PHONY: torch-newest
torch-newest: export KPYTRACE_TEST_LONG := 1
torch-newest: torch-newest-environment build-release ## the tests of the torch host with the newest torch
	@scripts/run_tests release --tests-regex '^torch\.newest\.'

# greenlet and gevent, aiohttp and uvloop, for the tests of greenlets and tasks, for each Python
# that has a build of them.
GREENLET_TAGS := 3.11 3.12 3.13 3.14

.PHONY: greenlets
greenlets: setup-build ## put greenlet, gevent, aiohttp and uvloop into build/greenlets; the tests then use them
	@for tag in $(GREENLET_TAGS); do \
	    python=$$(scripts/pythons/list | awk -v tag=$$tag '$$1 == tag { print $$2 }'); \
	    if [ -n "$$python" ]; then $(call ALONE,greenlets) scripts/greenlets_env "$$python" build/greenlets/$$tag || echo "greenlets: none for $$tag" >&2; fi; \
	done

# Other projects' readers of traces; small. If they cannot be installed, their tests are skipped.
.PHONY: readers
readers: setup-build ## make an environment with readers of traces in build/readers; the tests then use it
	@$(call ALONE,readers) scripts/readers_env build/readers >/dev/null || echo "readers: none" >&2
	@$(call ALONE,tables) scripts/readers_env build/tables tables >/dev/null || echo "tables: none" >&2

# CUPTI's headers, for GPU activities and their tests. If they cannot be fetched, these are left
# out.
.PHONY: cuda
cuda: ## fetch the headers of CUPTI into build/cuda; the build then has GPU activities
	@$(call ALONE,cuda) scripts/cuda_headers build/cuda >/dev/null || echo "cuda: no headers" >&2

# The report page is tested in a browser. If none can be installed, as in an Ubuntu container, whose
# Chromium is a snap, these tests are left out.
.PHONY: browser
browser: ## install a Chromium, which the tests of the report page drive
	@$(call ALONE,browser) scripts/setup browser || echo "browser: none" >&2

# Mostly waits for the network, so CI runs it beside make lint.
.PHONY: fetch
fetch: cuda torch readers greenlets browser ## fetch what the tests need; make test does it, too

.PHONY: test
test: setup-abi fetch build-release ## build and run every test that can run on this machine
	@scripts/run_tests release

# Every suite runs on every Python, the stress tests run their thousands of rounds, and CPython's
# own tests run completely.
.PHONY: test-all
test-all: export KPYTRACE_TEST_LONG := 1
test-all: ## test, with more Pythons and the newest torch; then sanitizers, fuzzers and cross
	@$(MAKE) pythons
	@$(MAKE) lint
	@$(MAKE) torch-newest-environment $(TORCH_MINOR_ENVIRONMENTS)
	@$(MAKE) whole-builds
	@$(MAKE) test
	@$(MAKE) asan
	@$(MAKE) tsan
	@$(MAKE) fuzz FUZZ_SECONDS=600
	@$(MAKE) cross

# Until the next configuration with the preset. A test that forgot to include something then fails to build, and
# sanitizers have a Python of each kind.
WHOLE := release asan tsan
.PHONY: whole-builds
whole-builds: $(WHOLE:%=build/%/.configured)
	@for preset in $(WHOLE); do cmake -DKPT_QUICK_TESTS=OFF build/$$preset >build/$$preset/configure.log; done

.PHONY: asan
asan: build-asan ## the tests under AddressSanitizer and UndefinedBehaviorSanitizer
	@scripts/run_tests asan

.PHONY: tsan
tsan: build-tsan ## the tests under ThreadSanitizer
	@$(FIXED_ADDRESSES) $(MAKE) run-tsan

.PHONY: run-tsan
run-tsan:
	@scripts/run_tests tsan

FUZZ_SECONDS := 60
.PHONY: fuzz
fuzz: build-fuzz ## the fuzzers, for FUZZ_SECONDS (60) each
	@scripts/fuzz build/fuzz $(FUZZ_SECONDS)

.PHONY: coverage
coverage: build-coverage ## the tests with line and branch coverage, percentages per folder
	@find build/coverage -name '*.gcda' -delete
	@scripts/run_tests coverage
	@scripts/coverage build/coverage

.PHONY: cross
cross: build-$(CROSS) ## the tests on the other one of x86-64 and aarch64, emulated
	@scripts/run_tests $(CROSS)

# With the headers of CUPTI, as the GPU tracer is checked too.
build/clang/.configured: | cuda
.PHONY: lint
lint: $(if $(KPYTRACE_TEST_LONG),build-clang,generated-clang) ## clang-format, clang's warnings, clang-tidy
	@scripts/lint build/clang

# Also configures again if a source was added.
.PHONY: generated-clang
generated-clang: build/clang/.configured
	@scripts/build clang --target kpt_generated

.PHONY: format
format: setup-check ## let clang-format rewrite the sources
	@scripts/lint --fix

.PHONY: bench
bench: build-release ## measure
	@bench/run build/release

.PHONY: abi-check
abi-check: setup-abi build-release ## compare the ABI with its baseline
	@scripts/abi_check build/release

.PHONY: pythons
pythons: ## fetch CPython 3.14, 3.15 and a free-threaded one into build/pythons
	@scripts/pythons/newer
	@scripts/pythons/nogil
	@scripts/pythons/list

.PHONY: clean
clean: ## remove what was built; keeps build/pythons, build/torch and build/cuda, which were fetched
	@if [ -d build ]; then find build -mindepth 1 -maxdepth 1 ! -name pythons ! -name torch ! -name cuda -exec rm -rf {} +; fi

.PHONY: distclean
distclean: clean ## remove these too
	@rm -rf --one-file-system build
