# Two commands set up everything on a fresh machine: `make demo` and `make test`.
# Lava runs on Python 3.10 alone, so the environment is made with that; name another one with PYTHON=...

SHELL := /bin/bash
PYTHON ?= python3.10
VENV := .venv
BIN := $(VENV)/bin
PINS := .constraints.txt
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint $(PINS)
SHARED_DATA := $(wildcard ../shared/datasets)
DATA := $(if $(NEURO_EQPROP_DATA),$(NEURO_EQPROP_DATA),$(if $(SHARED_DATA),$(abspath $(SHARED_DATA))))

.PHONY: help demo docs test check env dev bench claims browser wheel-test clean

help:
	@echo "make demo   train, translate, simulate, compare, estimate, report, on the embedded digits"
	@echo "make test   format, lint, types, import contracts, and all tests"
	@echo "make check  the first half of that"
	@echo "make docs   the documentation: site/index.html"
	@echo "make bench  benchmark ratios"
	@echo "make claims the claims of the research notes, tested at the small budget (BUDGET=full: hours)"
	@echo "make wheel-test  the wheel in clean environments of newer Pythons here (5 GB each, minutes)"
	@echo "make env    the environment alone: $(BIN)/neuro-eqprop"

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 10))' 2>/dev/null || { \
	  echo "No Python 3.10 as '$(PYTHON)', and Lava runs on no other version."; \
	  echo "Get one with 'pyenv install 3.10', 'uv python install 3.10' or your system's package"; \
	  echo "python3.10 (with python3.10-venv), then run make again, or 'make PYTHON=/path/to/python3.10'."; \
	  exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/env.done: pyproject.toml $(PINS) | $(BIN)/python
	@echo "installing neuro_eqprop and its pinned packages into $(VENV) (some minutes, once)"
	$(PIP) --editable .
	@touch $@

# NeuroBench and lava-dl without their dependencies (sound, event cameras, OpenCV): the tests use
# the counts of the one and the file reader of the other alone.
$(VENV)/dev.done: $(VENV)/env.done
	$(PIP) --editable '.[dev]'
	$(PIP) --no-deps neurobench lava-dl
	@touch $@

env: $(VENV)/env.done

dev: $(VENV)/dev.done

demo: env
	$(BIN)/neuro-eqprop demo --out runs/demo --force

# Strict: a broken link or a missing reference is an error.
docs: dev
	$(BIN)/mkdocs build --strict --quiet --site-dir site
	@echo "site/index.html (its search needs a server: $(BIN)/python -m http.server --bind 127.0.0.1 --directory site)"

check: dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell
	@! git grep -nE '^(<<<<<<<|>>>>>>>) ' || { echo "conflict markers: finish the merge"; exit 1; }
	$(BIN)/bandit --quiet --recursive --severity-level medium --confidence-level medium neuro_eqprop sims/claims
	$(BIN)/python sims/attack/audit.py $(PINS)

# The page of the report is tested in a real browser. Where none is found and this is a Debian
# machine on which we may install, Debian's is installed; else those tests say that they are skipped.
browser:
	@command -v chromium chromium-browser google-chrome >/dev/null || \
	{ [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	  apt-get update -qq && apt-get install -y -qq chromium >/dev/null; } || \
	echo "no browser found: install chromium to run the tests of the report page"
	@[ -e $(VENV)/node_modules/axe-core ] || ! command -v npm >/dev/null || \
	npm install --silent --no-save --no-audit --no-fund --prefix $(VENV) axe-core@4.14.0 || \
	echo "axe-core could not be installed: the tests of accessibility are skipped"

# Two workers; `make test WORKERS=0` runs one test after the other. tests/conftest.py has the order.
# A worker that crashes ends the run: with a new one, the scheduler of pytest-xdist can wait for ever.
WORKERS ?= 2

test: check browser
	NEURO_EQPROP_DATA="$(DATA)" $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadgroup --no-loadscope-reorder --max-worker-restart 0

# Heavy, so no part of `make test`; docs/results/wheel.md has the last result.
wheel-test: dev
	$(BIN)/python sims/wheel/check.py

bench: dev
	@for script in sims/bench/*.py; do echo "== $$script"; \
	NEURO_EQPROP_DATA="$(DATA)" $(BIN)/python $$script || exit 1; done

BUDGET ?= small

claims: dev
	NEURO_EQPROP_DATA="$(DATA)" $(BIN)/python -m sims.claims --budget $(BUDGET)

clean:
	rm -rf $(VENV) runs site .cache test-artefacts .mypy_cache .ruff_cache .pytest_cache .hypothesis
