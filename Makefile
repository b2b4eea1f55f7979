# Two commands set up everything on a fresh machine: `make demo` and `make test`.
# They take the newest Python from 3.10 to 3.13 that is here; PYTHON= names another one, and TORCH=cpu
# takes torch without CUDA.

SHELL := /bin/bash
PYTHON ?= $(shell .ci/find-python)
VENV ?= .venv
BIN := $(VENV)/bin
PINS := .constraints.txt
INSTALL := .ci/install $(BIN)/python
WITHOUT_DEPENDENCIES := $(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check \
  --constraint $(PINS) --no-deps --ignore-requires-python
SHARED_DATA := $(wildcard ../shared/datasets)
DATA := $(if $(NEURO_EQPROP_DATA),$(NEURO_EQPROP_DATA),$(if $(SHARED_DATA),$(abspath $(SHARED_DATA))))
export TORCH

.PHONY: help demo docs test test-all oldest lava-test check env dev bench claims browser dist wheel-test pins clean

help:
	@echo "make demo   train, translate, simulate, compare, estimate, report, on the embedded digits"
	@echo "make test   format, lint, types, import contracts, and all tests"
	@echo "make test-all  the same without drawing: every pair of simulator and case, every notebook"
	@echo "make check  the first half of that"
	@echo "make oldest the tests of Lava and of agreement on Python 3.10, if that is here"
	@echo "make docs   the documentation: site/index.html"
	@echo "make bench  benchmark ratios"
	@echo "make claims the claims of the research notes, tested at the small budget (BUDGET=full: hours)"
	@echo "make dist   the wheel and the source archive"
	@echo "make wheel-test  the wheel in clean environments of the Pythons here (5 GB each, minutes)"
	@echo "make pins   resolve .constraints.txt again, for all Pythons"
	@echo "make env    the environment alone: $(BIN)/neuro-eqprop"
	@echo "With TORCH=cpu an environment takes under 2 GB for over 5 GB; PYTHON=... names the Python."

$(BIN)/python:
	@python="$(PYTHON)"; [ -n "$$python" ] && "$$python" -c \
	  'import ensurepip, sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null || { \
	  echo "No Python from 3.10 to 3.13 that runs$${python:+ as '$$python'}."; \
	  echo "Get one with 'pyenv install 3.13', 'uv python install 3.13' or your system's packages"; \
	  echo "(Debian: python3 and python3-venv), or name one: make PYTHON=/path/to/python3.13"; \
	  exit 1; }; \
	"$$python" -m venv $(VENV)

# Above Python 3.10, pip refuses Lava, and our command installs it.
$(VENV)/env.done: pyproject.toml $(PINS) | $(BIN)/python
	@echo "installing neuro_eqprop and its packages into $(VENV), with $$($(BIN)/python --version), once:"
	@echo "$(if $(TORCH),with torch for '$(TORCH)' (cpu: under 2 GB),over 5 GB, most of it torch with its CUDA libraries; stop and add TORCH=cpu for under 2 GB)"
	$(INSTALL) --editable .
	PIP_CONSTRAINT="$(abspath $(PINS))" $(BIN)/neuro-eqprop lava install
	@touch $@

# NeuroBench and lava-dl without their dependencies (sound, event cameras, OpenCV): the tests use
# the counts of the one and the file reader of the other alone. lava-dl asks for Python 3.10.
$(VENV)/dev.done: $(VENV)/env.done
	$(INSTALL) --editable '.[dev]'
	$(WITHOUT_DEPENDENCIES) neurobench lava-dl
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
PYTEST = $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadgroup --no-loadscope-reorder \
  --max-worker-restart 0

test: check browser
	NEURO_EQPROP_DATA="$(DATA)" $(PYTEST) $(TESTS)

# Without drawing: all tests of which `make test` runs some.
test-all: TESTS := --full
test-all: test

# The other end of the Pythons. A second environment with what these tests need; uv links its files to
# those of the first, where both take the same version.
OLDEST := .venv-3.10

oldest: dev
	@python=$$(.ci/find-python 3.10); \
	if $(BIN)/python -c 'import sys; sys.exit(sys.version_info[:2] != (3, 10))'; then \
	  echo "the tests ran on Python 3.10"; \
	elif [ -z "$$python" ]; then \
	  echo "no Python 3.10 on this machine: the tests of Lava and of agreement did not run on it"; \
	else \
	  $(MAKE) --no-print-directory lava-test VENV=$(OLDEST) PYTHON="$$python"; \
	fi

lava-test: $(VENV)/env.done
	$(INSTALL) brian2-loihi hypothesis pytest pytest-timeout pytest-xdist
	$(WITHOUT_DEPENDENCIES) lava-dl
	NEURO_EQPROP_DATA="$(DATA)" $(PYTEST) -m "(lava or brian2) and not slow" tests/agreement tests/simulators/lava

# What is published: dist/ with the wheel and the source archive, checked.
dist: dev
	rm -rf dist
	$(BIN)/python -m build --quiet
	$(BIN)/twine check --strict dist/*

# Heavy, so no part of `make test`; docs/results/wheel.md has the last result.
wheel-test: dev
	$(BIN)/python sims/wheel/check.py

bench: dev
	@for script in sims/bench/*.py; do echo "== $$script"; \
	NEURO_EQPROP_DATA="$(DATA)" $(BIN)/python $$script || exit 1; done

BUDGET ?= small

claims: dev
	NEURO_EQPROP_DATA="$(DATA)" $(BIN)/python -m sims.claims --budget $(BUDGET)

# One set of versions for Python 3.10 to 3.13; what stands in the file stays where it still fits. The
# published Lava forbids the newer versions of two packages, which the one that is made anew takes.
pins: dev
	@kept=$$(grep -E "^(lava-dl|neurobench|uv)==" $(PINS)) && \
	printf "%s; python_version>='3.11'\n" "asteval>=1" "networkx>=3.4" | \
	$(BIN)/python -m uv pip compile --quiet --universal --python-version 3.10 \
	  --no-header --no-annotate --no-emit-index-url --no-emit-find-links --all-extras \
	  --output-file $(PINS) pyproject.toml - && echo "$$kept" >> $(PINS)

clean:
	rm -rf $(VENV) $(OLDEST) runs site .cache test-artefacts .mypy_cache .ruff_cache .pytest_cache .hypothesis
