# Every target works on a fresh machine: it makes .venv with what it needs, then runs.
# `make PYTHON=python3.12 …` chooses the interpreter of a new .venv.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# Tests and benchmarks that need real traces find them here, and skip where it is empty.
export TRAINMASTER_DATA ?= $(realpath ../shared/data)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export NO_MKDOCS_2_WARNING := 1

PY := .venv/bin/python
TESTS ?= tests src
PYTEST_ARGS ?= -n 2

.PHONY: help demo test test-core check format bench docs docs-serve clean distclean

help:  ## show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: .venv/.with-core  ## replay a synthetic week under six policies and make a report
	@scripts/demo

test: test-core  ## run every test

test-core: .venv/.with-test  ## run the tests of the scheduler and simulator, which are all of them so far
	$(PY) -m pytest $(PYTEST_ARGS) $(TESTS)

check: .venv/.with-test  ## check format, lint, types, import directions and the built wheel
	@scripts/check

format: .venv/.with-test  ## format the code and mend what ruff can mend
	$(PY) -m ruff format
	$(PY) -m ruff check --fix

bench: .venv/.with-core  ## measure speed and exactness: out/bench/core.json (ONLY=substring for a part)
	$(PY) bench/run.py core $(if $(ONLY),--only '$(ONLY)')

docs: .venv/.with-docs  ## build the documentation into site/
	$(PY) -m mkdocs build --strict --quiet
	@echo site/index.html

docs-serve: .venv/.with-docs  ## show the documentation on a local port
	$(PY) -m mkdocs serve

clean:  ## remove what was built (not .venv, nor cached results in .cache)
	rm -rf out site build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .coverage
	find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

distclean: clean  ## remove .venv and cached results too
	rm -rf .venv .cache

.venv/.with-%: pyproject.toml scripts/venv
	@scripts/venv $*
	@touch $@

.PRECIOUS: .venv/.with-%
