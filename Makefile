# On a fresh machine: `make quick` trains the first policy, `make test` passes the tests. Each sets itself up.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP     = $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt
JOBS   ?= 2
ORACLE_PIP = $(VENV)-oracles/bin/pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: help setup quick test fast oracles soak lint types bench docs clean

help:  ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(BIN)/rlvr: pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -e .
	@touch $@

$(VENV)/.dev: $(BIN)/rlvr
	$(PIP) -e '.[dev]'
	@touch $@

setup: $(VENV)/.dev  ## a virtual environment with everything for development

quick: $(BIN)/rlvr  ## install the light core and train a policy from 0 to above 80 %, in under two minutes
	$(BIN)/rlvr train recipes/toy_countdown.toml

test: $(VENV)/.dev  ## all tests but the soak
	$(BIN)/python -m pytest -n $(JOBS) -m "not soak and not oracle"

fast: $(VENV)/.dev  ## the tests that take less than two minutes together
	$(BIN)/python -m pytest -n $(JOBS) -m "not soak and not slow and not oracle"

$(VENV)-oracles/.ready: tests/oracles/requirements.txt constraints.txt
	$(PYTHON) -m venv $(VENV)-oracles
	$(ORACLE_PIP) torch==2.13.0
	$(ORACLE_PIP) -r tests/oracles/requirements.txt
	$(ORACLE_PIP) --no-deps verl==0.9.1
	$(ORACLE_PIP) -e '.[dev]'
	@touch $@

oracles: $(VENV)-oracles/.ready  ## compare the maths with the real TRL and verl, in an environment of its own
	$(VENV)-oracles/bin/python -m pytest -m oracle tests/oracles

soak: $(VENV)/.dev  ## kill a run at 50 random moments and compare
	$(BIN)/python -m pytest -m soak

lint: $(VENV)/.dev  ## ruff and mypy, both strict
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.dev  ## every benchmark, with this machine's facts
	$(BIN)/python benchmarks/foundation.py
	$(BIN)/python benchmarks/countdown.py
	$(BIN)/python benchmarks/judge.py
	$(BIN)/python benchmarks/minicode.py
	$(BIN)/python benchmarks/tasks.py
	$(BIN)/python benchmarks/sql_math_logic.py

docs: $(VENV)/.dev  ## docs/reference.md from the code
	$(BIN)/python docs/make_reference.py

clean:  ## remove what was built
	rm -rf $(VENV) $(VENV)-oracles build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
