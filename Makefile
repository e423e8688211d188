# One command per job; each sets itself up in .venv. Needs Python 3.11 or newer, and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# The lock files are complete, so nothing is resolved: pip asks for newer versions of what an extra names, which have no
# hashes here.
LOCKED := $(PIP) install --require-hashes --no-deps --requirement

.PHONY: help docs demo test test-unit test-all test-rest audit-fast audit crash crash-full mutants soak load lint drift wheel image bench protos clean lock sbom hooks breaking released coverage

help:  ## what can be made
	@sed -n 's/^\([a-z-]*\):.*##  *\(.*\)/\1: \2/p' Makefile

demo: $(VENV)/demo.stamp  ## one whole round on a public table, with a real server on loopback
	@$(BIN)/equipoise-server demo $(DEMO)

# Bytecode is kept, whatever the environment says: without it every worker rewrites the assertions of all tests in
# every run, and every server that is started compiles the package.
unexport PYTHONDONTWRITEBYTECODE

# Two more than there are cores, as many tests wait for a server.
PYTEST := $(BIN)/python -m pytest --numprocesses $(shell expr $$(nproc) + 2) --dist worksteal
# Unit tests wait for nothing, and each process collects all of them first.
PYTEST_UNIT := $(BIN)/python -m pytest --numprocesses $(shell nproc) --dist worksteal

# How long each takes is measured in CONTRIBUTING.md.
test: $(VENV)/test.stamp $(VENV)/demo.stamp  ## a part of every kind of test, none of which may fail
	$(PYTEST) --tier quick $(TESTS)

test-unit: $(VENV)/test.stamp $(VENV)/demo.stamp  ## of the unit tests alone, without a server
	$(PYTEST_UNIT) --tier quick -m "not slow" tests/unit tests/vectors

test-all: $(VENV)/test.stamp $(VENV)/demo.stamp $(VENV)/engines.stamp $(VENV)/browser.stamp $(VENV)/deploy.stamp  ## every test, on both stores
	$(PYTEST) $(TESTS)

test-rest: $(VENV)/test.stamp $(VENV)/demo.stamp $(VENV)/engines.stamp $(VENV)/browser.stamp $(VENV)/deploy.stamp  ## what `make test` leaves out
	$(PYTEST) --tier rest $(TESTS)

# What tests the client: the tests without a server, and those that type its commands.
CLIENT_TESTS = tests/unit tests/vectors $(shell grep -L equipoise_server tests/property/test_*.py) \
	$(shell grep -lE 'client_command|equipoise\.cli' tests/integration/test_*.py)

coverage: $(VENV)/test.stamp $(VENV)/demo.stamp  ## how much of both packages the client's tests run; at least 95 % of the client
	$(BIN)/python -m pytest --cov --cov-report= $(CLIENT_TESTS)
	$(BIN)/coverage report --include 'server/*' --format total
	$(BIN)/coverage report --include 'client/*' --fail-under 95

# Tests are handed out one by one, and at the end each certified bound is printed beside its claim.
AUDIT := $(BIN)/python -m pytest tests/statistical tests/noninterference -rfEP --numprocesses $(shell expr $$(nproc) + 1) --dist load --maxschedchunk 1

audit-fast: $(VENV)/test.stamp  ## what the tests prove about privacy, and each certified bound beside its claim
	$(AUDIT) --audit-size fast

PART ?= 1/1
audit: $(VENV)/test.stamp  ## the same at the nightly size, and a replay with another numpy: some four hours; in parts: PART=1/3
	@$(PIP) install --upgrade --target $(VENV)/other-numpy --no-deps --only-binary :all: 'numpy>=2.0,<2.2'
	$(AUDIT) --audit-size nightly --part $(PART) --other-numpy $(abspath $(VENV))/other-numpy

mutants: $(VENV)/test.stamp  ## faults put into the code one by one, each of which a named test must notice
	$(BIN)/python tools/mutants.py

crash: $(VENV)/test.stamp  ## a real server killed at every named point and at random, and on disks that fail or lose power
	$(BIN)/python -m pytest tests/hostile/crash tests/hostile/faults

crash-full: $(VENV)/test.stamp  ## 1,000 random kills on each store: an hour and a half
	$(PYTEST) tests/hostile/crash/test_random_kills.py --kills 1000

MINUTES ?= 30
STORE ?= sqlite
PULSE ?= 0

soak: $(VENV)/test.stamp  ## a real server used for MINUTES (30) on STORE (sqlite, postgresql) must not grow
	$(BIN)/python -m pytest tests/hostile/soak/test_soak.py -s --soak-minutes $(MINUTES) --soak-store $(STORE) --soak-pulse $(PULSE)

load: $(VENV)/test.stamp  ## 1,000 unread streams, 10,000 cancelled ones, floods of submits, on a real server: minutes
	$(BIN)/python -m pytest tests/hostile/load -s --unread 1000 --cancelled 10000

lint: $(VENV)/lint.stamp $(VENV)/test.stamp  ## style, types, import rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

drift: breaking  ## the protos are in good style and break no released client, and what is generated from them is up to date
	$(BIN)/buf lint protos
	PATH="$(abspath $(BIN)):$$PATH" protos/generate.sh
	git diff --exit-code -- client/equipoise/v1
	test -z "$$(git ls-files --others --exclude-standard client/equipoise/v1)"

RELEASED := protos/released.binpb

breaking: $(VENV)/protos.stamp  ## the protos are compatible with those of the last release
	@if [ -f $(RELEASED) ]; then $(BIN)/buf breaking protos --against $(RELEASED); \
	else echo "There is no $(RELEASED): nothing was released yet, so the protos may change freely."; fi

released: $(VENV)/protos.stamp  ## keep the protos as those of a release; RELEASE.md says when
	$(BIN)/buf build protos --exclude-source-info --output $(RELEASED)

protos: $(VENV)/protos.stamp  ## write client/equipoise/v1 anew
	PATH="$(abspath $(BIN)):$$PATH" protos/generate.sh

lock: $(VENV)/lock.stamp  ## write requirements/ anew from the ranges in pyproject.toml; LOCK=--upgrade for newer versions
	PATH="$(abspath $(BIN)):$$PATH" LOCK="$(LOCK)" requirements/lock.sh

sbom: $(VENV)/sbom.stamp  ## write dist/equipoise.cdx.json: what is installed for a server, with versions and hashes
	mkdir -p dist
	$(BIN)/cyclonedx-py requirements --pyproject pyproject.toml --output-file dist/equipoise.cdx.json requirements/base.txt
	$(BIN)/python tests/smoke/sbom.py dist/equipoise.cdx.json

docs: $(VENV)/docs.stamp  ## write the documentation's site to dist/docs; a warning or a dead link is an error
	rm -rf dist/docs
	$(BIN)/sphinx-build -n -W --keep-going -q -b html docs dist/docs

hooks: $(VENV)/hooks.stamp $(VENV)/lint.stamp $(VENV)/test.stamp  ## let git check style, types and import rules before every commit
	$(BIN)/pre-commit install

wheel: $(VENV)/test.stamp $(VENV)/lock.stamp  ## build the wheel, install it in a bare environment by pip and by uv, run the demo there
	PYTHON=$(BIN)/python tests/smoke/wheel.sh

BASE ?= docker.io/library/python:3.13-slim-bookworm

# The demo's table is not in the image: it lies in a folder of its own that is mounted.
image: $(VENV)/base.stamp  ## build the container's image from BASE with buildah, run the demo in it, serve from it
	@$(LOCKED) requirements/demo.txt --upgrade --target $(VENV)/demo-table
	DEMO=$(abspath $(VENV))/demo-table CLIENT=$(abspath $(BIN))/equipoise tests/smoke/image.sh $(BASE)

bench: $(VENV)/base.stamp  ## ratios against straightforward references; never part of the tests
	$(BIN)/python benchmarks/mixed_rounds.py
	$(BIN)/python benchmarks/large_universe.py
	$(BIN)/python benchmarks/game_rounds.py
	$(BIN)/python benchmarks/sampled_rounds.py
	$(BIN)/python benchmarks/sessions.py
	$(BIN)/python benchmarks/asking.py
	PYTHONPATH=tests $(BIN)/python benchmarks/service_throughput.py
	PYTHONPATH=tests $(BIN)/python benchmarks/recording.py
	PYTHONPATH=tests $(BIN)/python benchmarks/submitting.py

clean:  ## remove what the other commands made
	rm -rf $(VENV) dist

# All comes from the lock files, by hash; then the project itself, which needs nothing more.
$(VENV)/base.stamp: pyproject.toml requirements/base.txt
	@echo "Setting up $(VENV) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(LOCKED) requirements/base.txt
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

# Only the table is wanted of this package, so nothing that it depends on is installed.
$(VENV)/demo.stamp: $(VENV)/base.stamp requirements/demo.txt
	@$(LOCKED) requirements/demo.txt
	@touch $@

$(VENV)/%.stamp: $(VENV)/base.stamp requirements/%.txt
	@$(LOCKED) requirements/$*.txt
	@touch $@

# What the tests need of node, from its own lock file.
$(VENV)/node.stamp: $(VENV)/base.stamp tests/harness/node/package-lock.json
	@npm ci --prefix tests/harness/node --omit dev --legacy-peer-deps --ignore-scripts --no-audit --no-fund --loglevel error
	@touch $@

# Neither what writes the lock files nor what writes bills of materials is locked: nothing else uses them.
$(VENV)/sbom.stamp: $(VENV)/base.stamp
	@$(PIP) install 'cyclonedx-bom>=5'
	@touch $@

$(VENV)/lock.stamp: $(VENV)/base.stamp
	@$(PIP) install 'uv>=0.9'
	@touch $@
