# Everything here sets itself up: Python 3.11 or newer, Java 17 and make are all a machine needs.

# The newest Spark for which all connectors exist, and the newest that vsc supports (tests that need no connector, bench).
PYSPARK := 4.1.4
PYSPARK_NEWEST := 4.3.0

PYTHON ?= $(shell for p in python3.11 python3 python3.12 python3.13; do \
	$$p -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
NEWEST := .venv-newest
BIN := $(VENV)/bin
READY := $(VENV)/.ready-$(PYSPARK)
READY_NEWEST := $(NEWEST)/.ready-$(PYSPARK_NEWEST)
INPUTS := pyproject.toml constraints.txt Makefile

.DEFAULT_GOAL := help
.PHONY: help docs demo live test check lint types architecture unit thorough spark newest soak bench fmt setup clean

help:
	@echo 'make demo    the flights example on Spark'
	@echo 'make live    payments from Kafka to Kafka and PostgreSQL, killed once on the way'
	@echo 'make test    everything: the checks and the tests on Spark'
	@echo 'make check   lint, types, architecture, and the quick tests that need no JVM'
	@echo 'make newest  the fast Spark tests on pyspark $(PYSPARK_NEWEST)'
	@echo 'make soak    kill -9 at random points, 50 times; options in SOAK, such as SOAK="--kills 5"'
	@echo 'make bench   the benchmarks, on pyspark $(PYSPARK_NEWEST)'
	@echo 'make docs    the documents as a site, in build/site'
	@echo 'make fmt     format code and topologies, and fix what can be fixed'
	@echo 'make clean   remove environments, caches and output'

setup: $(READY)

# `.ready-VERSION` says that an environment holds what the inputs ask for; a target that finds it current installs nothing.
$(READY): $(INPUTS)
	@test -n '$(PYTHON)' || { echo 'vsc needs Python 3.11 or newer with its venv module: none was found' >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet -e '.[spark,dev]' pyspark==$(PYSPARK)
	$(BIN)/python -m compileall -q vsc compiler grammar runtime  # as pip does for what it copies: `vsc check` starts at once
	@rm -f $(VENV)/.ready-* && touch $@

$(READY_NEWEST): $(INPUTS)
	@test -n '$(PYTHON)' || { echo 'vsc needs Python 3.11 or newer with its venv module: none was found' >&2; exit 1; }
	test -x $(NEWEST)/bin/python || $(PYTHON) -m venv $(NEWEST)
	PIP_CONSTRAINT=constraints.txt $(NEWEST)/bin/python -m pip install --quiet -e '.[spark,dev]' pyspark==$(PYSPARK_NEWEST)
	@rm -f $(NEWEST)/.ready-* && touch $@

demo: $(READY)
	$(BIN)/python -m examples.flights.demo

live: $(READY)
	$(BIN)/python -m examples.payments_live.live

check: lint types architecture unit

lint: $(READY)
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --quiet --check .

types: $(READY)
	$(BIN)/mypy

architecture: $(READY)
	$(BIN)/lint-imports --no-logo

unit: $(READY)
	$(BIN)/python -m pytest -q -n auto --maxprocesses 8 -m 'not spark and not slow'

thorough: $(READY)
	$(BIN)/python -m pytest -q -n auto --maxprocesses 8 -m 'slow and not spark'

spark: $(READY)
	$(BIN)/python -m pytest -q -n 2 --dist loadfile -m spark

test: check
	$(MAKE) --no-print-directory thorough
	$(MAKE) --no-print-directory spark

newest: $(READY_NEWEST)
	$(NEWEST)/bin/python -m pytest -q -n 2 --dist loadfile -m 'spark and not slow'

soak: $(READY)
	$(BIN)/python -m soak $(SOAK)

bench: $(READY_NEWEST)
	$(NEWEST)/bin/python -m bench
	$(NEWEST)/bin/python -m bench.kafka

docs: $(READY)
	$(BIN)/python -m tools.docs.site build

fmt: $(READY)
	$(BIN)/ruff check --quiet --fix .
	$(BIN)/ruff format --quiet .
	$(BIN)/vsc fmt examples tests/golden tests/messy
	$(BIN)/python -m tools.docs.blocks

clean:
	rm -rf $(VENV) $(NEWEST) build dist out *.egg-info spark-warehouse metastore_db derby.log \
		.pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
