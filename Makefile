# Everything a newcomer needs: `make demo` and `make test`; `make nightly` has the tests that need
# root, Docker or more minutes. All paths are relative, so that the checkout may lie in a folder with
# spaces in its name.
PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3.13 || echo python3)
BIN := .venv/bin
# Neither locked, which would bring 24 packages of CUDA, nor by hash: what pip finds here may be the
# build for CPUs, of which a site may have its own.
TORCH_VERSION := 2.13.0
JOBS ?= 2
# Compiling each module anew in each process would take a third of the time of all tests.
unexport PYTHONDONTWRITEBYTECODE
# The lock has accelerators too, which no development environment needs.
EXTRAS := --extra kfp --extra vertex --extra gcs --extra dev --extra docs

# Unit tests are two halves of about the same length; a new folder belongs to the second.
FIRST := analysis baselines cli components exports gate golden launchers pipelines
UNIT := $(BIN)/python -m pytest -m "not slow and not nightly and not extended and not cluster" --durations 15

.PHONY: nights help setup torch demo test lint fix typecheck unit unit-first unit-others slow nightly extended cluster floor newest counts chaos lock compile docs clean

help:
	@echo "make demo      a first verdict, in about half a minute after set-up"
	@echo "make test      lint, types, unit and slow tests (make unit is the quick loop)"
	@echo "make fix       formats, and corrects what ruff can"
	@echo "make nightly   what needs root, Docker or more minutes"
	@echo "make counts    claims tried many times, in hours; goes on where it was stopped"
	@echo "make nights    fourteen nights that die, hang and are slower, and what people are told of them"
	@echo "make chaos     1,000 kills, and faults of disks, clocks and neighbours; it goes on where it was stopped"
	@echo "make cluster   the acceptance test of a cluster that CLUSTER_ENDPOINT and others name: perf/cluster.md"
	@echo "make compile   writes YAML of components and docs of pipelines"
	@echo "make floor     unit tests with the oldest versions allowed (make newest: with the newest)"
	@echo "make torch     PyTorch, which make nightly installs too"
	@echo "make docs      the docs site, into dist/site"
	@echo "make lock      pins dependencies"
	@echo "make clean     removes all that is made"

setup: .venv/.ready

INSTALL := $(BIN)/python -m uv pip install --quiet --python $(BIN)/python
LOCKED := $(INSTALL) --compile-bytecode --require-hashes --constraints requirements.lock -r pyproject.toml

# A first verdict needs a third of what development needs.
.venv/.demo: requirements.lock pyproject.toml
	$(PYTHON) -m venv .venv
	sed -n '/^uv==/,/[^\]$$/p' requirements.lock > .venv/uv.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r .venv/uv.txt
	$(LOCKED) --extra kfp
	$(INSTALL) --no-deps --build-constraints requirements.lock --editable .
	touch .venv/.demo

.venv/.ready: .venv/.demo
	$(LOCKED) $(EXTRAS)
	touch .venv/.ready

# Only tests of `make nightly` need it: with CUDA it has 6 GB.
torch: setup
	$(BIN)/python -m pip install --quiet --disable-pip-version-check torch==$(TORCH_VERSION)

demo: .venv/.demo
	$(BIN)/python -P -m orbax_bench_core.cli pipeline run examples/demo.yaml --pipeline regression --set allow_inconclusive=true \
	  --output-directory demo
	@echo "Open demo/verdicts.html and demo/report.html, or read demo/samples.parquet."

# What runs side by side is shown one after the other.
test: setup
	$(MAKE) --output-sync=target --jobs 3 lint typecheck unit-first unit-others
	$(MAKE) slow
	$(BIN)/python -m perf.structure

lint: setup
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/lint-imports --no-logo

# The hooks of .pre-commit-config.yaml run the same on the files of a commit.
fix: setup
	$(BIN)/python -m ruff check --fix .
	$(BIN)/python -m ruff format .

# mypy does not follow an editable install's folder mapping, so it is shown one.
typecheck: setup
	mkdir -p build/packages
	ln -sfn ../../orbax_bench_core build/packages/orbax_bench_core
	ln -sfn ../../components build/packages/orbax_bench_components
	ln -sfn ../../pipelines build/packages/orbax_bench_pipelines
	ln -sfn ../../airflow_pipelines build/packages/orbax_bench_airflow
	ln -sfn ../../website build/packages/website
	cd build/packages && ../../$(BIN)/python -m mypy --config-file ../../pyproject.toml --cache-dir ../../.mypy_cache -p orbax_bench_core -p orbax_bench_components -p orbax_bench_pipelines -p orbax_bench_airflow -p website

# Each half imports and collects its own tests alone. Two workers of one pytest would do so for all
# tests each, and report every test to a third process: a sixth of the time of all.
unit: setup
	$(MAKE) --output-sync=target --jobs $(JOBS) unit-first unit-others

unit-first: setup
	$(UNIT) -o cache_dir=.pytest_cache/first $(FIRST:%=tests/%)

unit-others: setup
	$(UNIT) -o cache_dir=.pytest_cache/others $(FIRST:%=--ignore tests/%)

# The real worker, a few times each; no root, no Docker, nothing to install. These tests wait a fifth
# of their time, so that three processes keep two cores busy.
slow: setup
	$(BIN)/python -m pytest -m "slow and not nightly and not extended and not cluster" -n $$(($(JOBS) * 3 / 2)) --dist loadfile --durations 25

# Images and containers (as root, Docker is installed where it is missing), environments with other
# releases, PyTorch, every built-in at 2 and 4 processes, and the gate's figures by simulation.
nightly: torch
	$(BIN)/python -m pytest -m "nightly and not extended and not cluster" -n $(JOBS) --dist loadfile --durations 25
	$(BIN)/python -m perf.gate --quick --jobs $(JOBS)

# Variations of what nightly tests show once: CI has no time for them, `make counts` has.
extended: torch
	$(BIN)/python -m pytest -m "extended and not cluster" -n $(JOBS) --dist loadfile --durations 25

# On a real cluster, which perf/cluster.md says how to name; it removes what it makes there.
cluster: setup
	$(BIN)/python -m pytest -m cluster -v --tb=short tests/cluster

# The unit tests with the oldest and with the newest versions that pyproject.toml allows. What these
# versions warn of is not ours to mend, nor how they word a usage: texts are those of the lock.
# `make newest ON=python3.13` takes another interpreter.
ON ?= $(BIN)/python
floor: RESOLUTION := lowest-direct
newest: RESOLUTION := highest
floor newest: setup
	$(BIN)/python -m uv venv --quiet --clear --python $(ON) build/$@
	$(BIN)/python -m uv pip install --quiet --python build/$@/bin/python --resolution $(RESOLUTION) -r pyproject.toml $(EXTRAS)
	$(BIN)/python -m uv pip install --quiet --python build/$@/bin/python --no-deps --editable .
	build/$@/bin/python -m pytest -m "not slow and not nightly and not extended and not cluster" -n $(JOBS) --dist worksteal -W default \
	  --ignore-glob 'tests/golden/test_text_*'

# Claims such as "0 of 200", hours of trials: it goes on where it was stopped. `make counts
# COUNTS="--only orphans --most 20"` makes some of them.
counts: torch
	$(BIN)/python -m perf.counts $(COUNTS)

# Fourteen nights by the wrapper for cron, with fake workers and a clock that is moved; then nights of
# a real Airflow, whose scheduler and timeouts are its own.
nights: setup
	$(BIN)/python -m pytest -q -m nightly tests/cli/test_night.py tests/airflow/test_dags.py \
	  -k 'test_night or told_of_by_the_dag'

# Commands that are killed, frozen and robbed of their disk at drawn moments, in an hour or two: it
# goes on where it was stopped. `make chaos CHAOS="--kills 100 --seed 7"` draws others.
chaos: setup
	$(BIN)/python -m perf.chaos $(CHAOS)

# Pins every dependency by hash, without the address of any package index; then the tools of CI that
# are in no environment of ours.
COMPILE := $(BIN)/python -m uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
  --no-emit-index-url --no-annotate --no-header
lock: setup
	$(COMPILE) $(EXTRAS) \
	  --extra tpu --extra cuda --extra pathways --extra flax --extra safetensors \
	  pyproject.toml -o requirements.lock
	$(COMPILE) .ci/audit.in -o .ci/audit.txt

# Rebuilds what is derived from components and pipelines; compiled pipelines go to dist/pipelines.
compile: setup
	$(BIN)/python -m orbax_bench_pipelines.compile

# Pages from the code, links of all pages, and the site; a dead link or a stale anchor ends it.
docs: setup
	$(BIN)/python -m website
	$(BIN)/python -m website build

clean:
	rm -rf .venv .cache build dist demo .mypy_cache .ruff_cache .pytest_cache .hypothesis
