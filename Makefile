# Everything a person or a CI machine runs. Needs make and CPython 3.11 or newer with the venv module.
PYTHON ?= python3
VENV ?= .venv

# One stamp per set of packages: a second run of any target installs nothing.
RUNTIME := $(VENV)/.runtime-installed
TESTING := $(VENV)/.test-installed
PIN := -c requirements.lock
PIP := $(VENV)/bin/python -m pip --disable-pip-version-check -q
CACHES := .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist out demo-store
LINTED := prme_ray stages actors storage jobs tests examples

.DEFAULT_GOAL := help
.PHONY: help demo serve test check bench lock clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1@\2/p' Makefile | column -t -s @ 2>/dev/null \
	  || sed -n 's/^\([a-z]*\):.*## /  make \1: /p' Makefile

demo: $(RUNTIME) ## store the sample history and ask it questions; DATA=folder CONVERSATION=id for LoCoMo, RAY=1 for Ray in every run
	$(VENV)/bin/python -m jobs.demo $(if $(DATA),--data $(DATA)) $(if $(CONVERSATION),--conversation $(CONVERSATION)) $(if $(RAY),--ray)

serve: $(RUNTIME) ## load the sample history and serve it at http://127.0.0.1:8000 until interrupted; PORT=n
	$(VENV)/bin/python -m jobs.demo --serve $(or $(PORT),8000)

test: $(TESTING) ## run the default tests; ARGS="-m slow" for the long ones
	$(VENV)/bin/python -m pytest $(ARGS)

check: $(TESTING) ## lint, formatting, types and pinned versions
	$(VENV)/bin/ruff check $(LINTED)
	$(VENV)/bin/ruff format --check $(LINTED)
	$(VENV)/bin/mypy
	$(VENV)/bin/python -m tests.lock check

bench: $(RUNTIME) ## measure latency in-process, on Ray and over HTTP, and write out/latency.json
	mkdir -p out
	$(VENV)/bin/python -m jobs.benchmark latency --memories 600,20000 --service --json out/latency.json

lock: ## resolve the newest allowed versions in a fresh environment and write requirements.lock
	rm -rf out/lock-venv
	$(PYTHON) -m venv out/lock-venv
	out/lock-venv/bin/python -m pip --disable-pip-version-check -q install -e ".[test]"
	out/lock-venv/bin/python -m tests.lock write
	rm -rf out/lock-venv

clean: ## remove the environment, caches and everything the targets made
	rm -rf $(VENV) $(CACHES) prme_ray.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("prme-ray needs Python 3.11 or newer, $(PYTHON) is " + sys.version.split()[0] + "; set PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)

$(RUNTIME): pyproject.toml requirements.lock | $(VENV)/bin/python
	$(PIP) install $(PIN) -e .
	@touch $@

$(TESTING): pyproject.toml requirements.lock | $(VENV)/bin/python
	$(PIP) install $(PIN) -e ".[test]"
	@touch $@ $(RUNTIME)
