# Everything here sets itself up: Python 3.11 or newer, Java 17 and make are all a machine needs.

# The newest Spark for which all connectors exist, the newest that vsc supports (tests that need no connector, bench), and
# the oldest.
PYSPARK := 4.1.4
PYSPARK_NEWEST := 4.3.0
PYSPARK_OLDEST := 4.0.2

PYTHON ?= $(shell for p in python3.11 python3 python3.12 python3.13; do \
	$$p -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
NEWEST := .venv-newest
OLDEST := .venv-oldest
MUTANTS := .venv-mutants
RELEASE := .venv-release
BIN := $(VENV)/bin
READY := $(VENV)/.ready-$(PYSPARK)
CLASSES := $(VENV)/spark-classes.jsa
READY_NEWEST := $(NEWEST)/.ready-$(PYSPARK_NEWEST)
READY_OLDEST := $(OLDEST)/.ready-$(PYSPARK_OLDEST)
READY_MUTANTS := $(MUTANTS)/.ready
INPUTS := pyproject.toml constraints.txt Makefile $(wildcard hashes/*.txt)
# pip takes hashes in files of requirements alone, and refuses an editable install then: vsc comes after them.
HASHED := --no-deps

# What `make thorough-long` asks of the tests with the marker `long`; without these variables they do little.
LONG := VSC_KILLS=10 VSC_BROKER_KILLS=4 VSC_SPARK_TOPOLOGIES=50 VSC_TOPOLOGIES=400 VSC_PARTITIONS=400 VSC_TASKS=40 \
	VSC_EXPRESSIONS=20 VSC_CSV_FILES=20000 VSC_ONE_RECORDING_IN=1 VSC_COMMENTS=2000 VSC_STORE_ENDS=40 VSC_CLUSTER_FAULTS=all \
	VSC_SCENARIOS=99 VSC_HISTORIES=1000 VSC_SPARK_HISTORIES=30 VSC_FRAMES=100

# Each process would compile the tests again.
unexport PYTHONDONTWRITEBYTECODE

PYTEST := -m pytest -q
# Two cores for three processes: tests on Spark wait for a third of their time. The files that take longest come first.
# The ten tests that take longest are shown in the end, so that each run says where its time goes.
ON_SPARK := $(PYTEST) -n 3 --dist loadfile --no-loadscope-reorder --durations 10
# `make rest SHARE=3/8`: of what `make test` leaves out, the third of eight shares (tests/shares.py).
SHARE ?=
IN_SHARE = $(if $(SHARE),--share $(SHARE))
# `make oldest SHORT=1`: of what `make newest` and `make oldest` run, only what shows that something works at all
# (tests/supported.py). With a share, the gate's, it is left out.
SHORT ?=
IN_SUPPORT = $(if $(SHORT),support,$(if $(SHARE),release,release or support))

.DEFAULT_GOAL := help
.PHONY: help docs demo live cluster check lint types architecture unit test rest full thorough thorough-long spark newest oldest \
	soak coverage coverage-driver mutants bench release fmt setup setup-oldest clean

help:
	@echo 'make demo    the flights example on Spark'
	@echo 'make live    payments from Kafka to Kafka and PostgreSQL, killed once on the way'
	@echo 'make cluster  the flights example on a Spark cluster, one of whose two workers is killed on the way'
	@echo 'make check   lint, types, architecture, and the quick tests that need no JVM: 3 minutes'
	@echo 'make test    does it work on this machine? make check, and each seam once on Spark: 12 minutes with set-up'
	@echo 'make full    every test: make test, then make rest, which is one share of eight with SHARE=3/8'
	@echo 'make newest  the tests of what differs between releases of Spark, on pyspark $(PYSPARK_NEWEST)'
	@echo 'make oldest  the same on pyspark $(PYSPARK_OLDEST)'
	@echo 'make thorough-long  more kills, random topologies and files than the tests try otherwise'
	@echo 'make soak    1,000 random topologies, 10,000 calls of each function; then kill -9 at random points, 50 times; options in SOAK, such as SOAK="--kills 5"'
	@echo 'make coverage  the lines and branches that tests reach, Spark workers too; without Spark: coverage-driver'
	@echo 'make mutants   which small changes of the code no test notices; options in MUTATE'
	@echo 'make bench   the benchmarks, on pyspark $(PYSPARK_NEWEST)'
	@echo 'make release TAG=v1.2.3  what a release publishes, checked, in build/release; nothing is published'
	@echo 'make docs    the documents as a site, in build/site'
	@echo 'make fmt     format code and topologies, and fix what can be fixed'
	@echo 'make clean   remove environments, caches and output'

setup: $(READY)

setup-oldest: $(READY_OLDEST)

# An environment $(1) with pyspark $(2): a line for each step, as they take minutes in all.
define set_up
	@test -n '$(PYTHON)' || { echo 'vsc needs Python 3.11 or newer with its venv module: none was found' >&2; exit 1; }
	@echo 'Set-up 1 of 5: an environment in $(1) (set-up takes some minutes and 2 GB, once)'
	@test -x $(1)/bin/python || $(PYTHON) -m venv $(1)
	@echo 'Set-up 2 of 5: the packages, such as PyArrow, pandas and RocksDB'
	@$(1)/bin/python -m pip install --quiet $(HASHED) --require-hashes -r hashes/dependencies.txt
	@echo 'Set-up 3 of 5: Spark $(2)'
	@$(1)/bin/python -m pip install --quiet $(HASHED) --require-hashes -r hashes/pyspark-$(2).txt
	@echo 'Set-up 4 of 5: vsc'
	@PIP_CONSTRAINT=constraints.txt $(1)/bin/python -m pip install --quiet -e '.[spark,dev]' pyspark==$(2)
	@echo 'Set-up 5 of 5: compiled Python, so that commands start fast'
endef

# `.ready-VERSION` says that an environment holds what the inputs ask for; a target that finds it current installs nothing.
$(READY): $(INPUTS)
	$(call set_up,$(VENV),$(PYSPARK))
	@$(BIN)/python -m compileall -q vsc compiler grammar runtime  # as pip does for what it copies: `vsc check` starts at once
	@rm -f $(VENV)/.ready-* && touch $@

# The classes that a small query loads: each JVM of the tests starts with 4 CPU seconds fewer. And the bytecode of pyspark.
$(CLASSES): $(READY) tools/class_archive.py tools/compiled_zips.py
	@$(BIN)/python -m tools.compiled_zips
	@$(BIN)/python -m tools.class_archive >$(VENV)/spark-classes.log 2>&1 || { cat $(VENV)/spark-classes.log >&2; exit 1; }

$(READY_NEWEST): $(INPUTS)
	$(call set_up,$(NEWEST),$(PYSPARK_NEWEST))
	@$(NEWEST)/bin/python -m tools.compiled_zips
	@rm -f $(NEWEST)/.ready-* && touch $@

$(READY_OLDEST): $(INPUTS)
	$(call set_up,$(OLDEST),$(PYSPARK_OLDEST))
	@$(OLDEST)/bin/python -m tools.compiled_zips
	@rm -f $(OLDEST)/.ready-* && touch $@

demo: $(READY)
	@$(BIN)/python -m examples.flights.demo

live: $(READY)
	@$(BIN)/python -m examples.payments_live.live

cluster: $(READY)
	@$(BIN)/python -m examples.flights.on_cluster

# Types take one core for most of a minute: the tests take the other.
check: $(READY)
	@$(MAKE) --no-print-directory --jobs 2 lint architecture types unit

lint: $(READY)
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --quiet --check .

types: $(READY)
	$(BIN)/mypy

architecture: $(READY)
	$(BIN)/lint-imports --no-logo

unit: $(READY)
	$(BIN)/python $(PYTEST) -n auto --maxprocesses 8 -m 'not spark and not slow'

thorough: $(READY)
	$(BIN)/python $(PYTEST) -n auto --maxprocesses 8 -m 'slow and not spark'

thorough-long: $(CLASSES)
	$(LONG) $(BIN)/python $(ON_SPARK) -m long

spark: $(CLASSES)
	$(BIN)/python $(ON_SPARK) -m spark

test: check $(CLASSES)
	$(BIN)/python $(ON_SPARK) -m '(spark or slow) and not full'

# The report is what `python -m tools.test_costs` makes equal shares from.
rest: $(CLASSES)
	$(BIN)/python $(ON_SPARK) -m full $(IN_SHARE) --junitxml build/rest.xml

full: test
	@$(MAKE) --no-print-directory rest

newest: $(READY_NEWEST)
	$(NEWEST)/bin/python $(ON_SPARK) -m '$(IN_SUPPORT)' $(IN_SHARE)

oldest: $(READY_OLDEST)
	$(OLDEST)/bin/python $(ON_SPARK) -m '$(IN_SUPPORT)' $(IN_SHARE)

soak: $(READY)
	$(BIN)/python -m tests.random_topologies 0:1000 partitions
	$(BIN)/python -m soak.functions
	$(BIN)/python -m soak $(SOAK)

# A worker process saves what it has measured as it ends, so it ends with its task: tools/coverage/spark-defaults.conf.
coverage: $(READY)
	rm -rf build/coverage
	$(BIN)/coverage run $(PYTEST) -n auto --maxprocesses 8 -m 'not spark'
	SPARK_CONF_DIR=$(CURDIR)/tools/coverage $(BIN)/coverage run $(ON_SPARK) -m spark
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage html --quiet
	$(BIN)/coverage report --fail-under=96

coverage-driver: $(READY)
	rm -rf build/coverage
	$(BIN)/coverage run $(PYTEST) -n auto --maxprocesses 8 -m 'not spark'
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage html --quiet
	$(BIN)/coverage report

mutants: $(READY) $(READY_MUTANTS)
	$(MUTANTS)/bin/python -m tools.mutants $(MUTATE)

$(READY_MUTANTS): constraints.txt
	test -x $(MUTANTS)/bin/python || $(PYTHON) -m venv $(MUTANTS)
	PIP_CONSTRAINT=constraints.txt $(MUTANTS)/bin/python -m pip install --quiet cosmic-ray
	@touch $@

bench: $(READY_NEWEST)
	$(NEWEST)/bin/python -m bench
	$(NEWEST)/bin/python -m bench.kafka

release:
	@test -x $(RELEASE)/bin/python || $(PYTHON) -m venv $(RELEASE)
	$(RELEASE)/bin/python -m pip install --quiet $(HASHED) --require-hashes -r hashes/release.txt
	$(RELEASE)/bin/python -m tools.release $(TAG)

docs: $(READY)
	$(BIN)/python -m tools.docs.site build

fmt: $(READY)
	$(BIN)/ruff check --quiet --fix .
	$(BIN)/ruff format --quiet .
	$(BIN)/vsc fmt examples tests/golden tests/dirty_data
	$(BIN)/python -m tools.docs.blocks

clean:
	rm -rf $(VENV) $(NEWEST) $(OLDEST) $(MUTANTS) $(RELEASE) build dist out *.egg-info spark-warehouse metastore_db derby.log \
		.pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
