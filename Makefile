# On a fresh machine: `make quick` trains the first policy, `make test` passes the tests. Each sets itself up.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP     = $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt
JOBS   ?= 2
TORCH  ?= torch==2.13.0
VERL   ?= .venv-verl

.PHONY: help hf setup quick demo demo-llm test long fast oracles verl-test verl-faults soak wheel fuzz mutants lint types bench claims docs clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

# What is installed is marked by files of our own: pip writes bin/rlvr anew with every extra, so its age says nothing.
$(VENV)/.core: pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -e .
	@touch $@

# torch first: a plain `pip install` of what depends on it would bring gigabytes of CUDA. For a GPU: make hf TORCH=torch; without one: docs/engines.md
$(VENV)/.hf: $(VENV)/.core
	@echo "installing torch and Transformers; the time of this is not the demo's"
	@start=$$(date +%s); $(PIP) $(TORCH) && $(PIP) -e '.[hf]' && echo "installed in $$(( $$(date +%s) - start )) s"
	@touch $@

$(VENV)/.dev: $(VENV)/.hf
	$(PIP) -e '.[dev]'
	@touch $@

hf: $(VENV)/.hf  ## torch and Transformers beside the light core, for language models; without a GPU see docs/engines.md

setup: $(VENV)/.dev  ## a virtual environment with everything for development

quick: $(VENV)/.core  ## install the light core and train a policy from 0 % to 73.3 % of the test problems, in under two minutes
	$(BIN)/rlvr train recipes/toy_countdown.toml
	@echo "Go on with: . $(VENV)/bin/activate && rlvr eval --run latest     (or $(BIN)/rlvr …, without activating)"

demo: $(VENV)/.hf  ## all five phases on a tiny code model that learns from the real judge, in about five minutes
	$(BIN)/rlvr train studies/coding_five_phase/nano.toml

demo-llm: $(VENV)/.hf  ## SmolLM2-135M learns Countdown on a CPU (LoRA), in about seven minutes
	$(BIN)/rlvr model get smollm2-135m
	$(BIN)/rlvr train studies/countdown_gsm8k/smollm2_countdown_cpu.toml

test: $(VENV)/.dev  ## all tests but those of `make long`, `make soak` and `make oracles`
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile -m "not long and not soak and not oracle"

long: $(VENV)/.dev  ## the tests that take longest: whole data sets, real models, endurance
	-$(BIN)/rlvr model get smollm2-135m  # without it the tests of a real model are skipped
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile -m "long and not soak and not oracle" -o faulthandler_timeout=3600

fast: $(VENV)/.dev  ## the tests that take less than two minutes together
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile -m "not long and not soak and not slow and not oracle"

$(VENV)/.oracles: $(VENV)/.dev tests/oracles/requirements.txt
	$(PIP) -r tests/oracles/requirements.txt
	$(PIP) --no-deps verl==0.9.1
	@touch $@

oracles: $(VENV)/.oracles  ## compare the maths with the real TRL, verl and TorchJD
	$(BIN)/python -m pytest -m oracle $$(grep -rlE --include='test_*.py' 'mark\.oracle' tests)  # all others take longer to collect

# verl's pins conflict with ours, so it never shares our environment; no constraints.txt here for the same reason.
$(VERL)/.ready: tests/scale/verl_requirements.txt pyproject.toml
	@test -x $(VERL)/bin/python || $(PYTHON) -m venv $(VERL)
	$(VERL)/bin/pip install --quiet --disable-pip-version-check $(TORCH)
	$(VERL)/bin/pip install --quiet --disable-pip-version-check -r tests/scale/verl_requirements.txt -e '.[data]'
	@touch $@

verl-test: $(VERL)/.ready  ## the real verl trainer on a local Ray cluster on a CPU: our reward, credit, surgery, merge, eval
	$(VERL)/bin/python -m pytest -n $(JOBS) --dist loadfile -m oracle tests/oracles/test_verl_*.py tests/scale/test_verl_resume.py tests/scale/test_verl_run.py tests/scale/test_verl_phases.py

verl-faults: $(VERL)/.ready  ## a node of a local Ray cluster is killed under an evaluation and under verl
	$(VERL)/bin/python -m pytest -m oracle tests/scale/test_nodes.py

soak: $(VENV)/.dev  ## kill every kind of work at random moments and compare
	$(BIN)/python -m pytest -m soak -o faulthandler_timeout=3600  # hundreds of kills in one test

wheel: $(VENV)/.core  ## build the wheel and train from it in another folder, as after a `pip install`
	PYTHON=$(BIN)/python sh tests/wheel.sh

fuzz: $(VENV)/.dev  ## ten minutes of random inputs for everything that reads foreign text; FUZZ_SECONDS=120 for less
	FUZZ_SECONDS=$(or $(FUZZ_SECONDS),600) $(BIN)/python tests/fuzz

mutants: $(VENV)/.dev  ## plant small bugs and report those that no test notices; MUTANT_SECONDS=600 for less
	$(BIN)/python tests/mutants

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
	$(BIN)/python benchmarks/data_eval.py
	$(BIN)/python benchmarks/sampling.py
	$(BIN)/python benchmarks/training.py
	$(BIN)/python benchmarks/credit.py
	$(BIN)/python benchmarks/interference.py
	$(BIN)/python benchmarks/dashboard.py

claims: $(VENV)/.dev  ## recompute every claim of docs/claims.md from committed result files, in under a minute
	$(BIN)/python docs/check_claims.py

docs: $(VENV)/.dev  ## docs/reference.md from the code
	$(BIN)/python docs/make_reference.py

clean:  ## remove what was built
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
