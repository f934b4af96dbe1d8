# `make demo` and `make test` are the two commands of the README; the rest is for those who work on docgen.
.DEFAULT_GOAL := help
.PHONY: help demo test coverage ui prove bench lint lock clean
SHELL := /bin/bash

VENV := .venv
BIN := $(CURDIR)/$(VENV)/bin
STAMP := $(VENV)/.installed
PYTHON ?= python3
UV_VERSION := 0.13.9
# Tests mostly wait for processes and servers of their own: three at a time keep two cores busy.
PROCESSES ?= 3

# Some images forbid Python to keep what it has compiled: each of many short processes would then compile all again.
unexport PYTHONDONTWRITEBYTECODE

export DAGSTER_HOME ?= $(CURDIR)/.dagster

help: ## This list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

$(STAMP): requirements.lock pyproject.toml
	@deploy/venv.sh "$(PYTHON)" "$(VENV)" "$(UV_VERSION)"
	@touch $@

demo: $(STAMP) ## From nothing to invoices, their golden set in DuckDB, the Dagster runs that made them, and a scored extractor
	@deploy/system.sh chromium poppler
	@$(BIN)/python deploy/demo.py

ui: $(STAMP) ## The Dagster UI on http://127.0.0.1:3000
	@$(BIN)/python deploy/demo.py --prepare
	@$(BIN)/dagster dev -w workspace.yaml -h 127.0.0.1 -p $${PORT:-3000}

test: $(STAMP) ## Lint, types, and every test at its stated smaller size
	@deploy/system.sh chromium poppler tesseract
	@$(MAKE) --no-print-directory lint
	@$(BIN)/pytest -q -n $(PROCESSES) --dist loadscope --no-loadscope-reorder

coverage: $(STAMP) ## The tests once more, slower, with the lines and branches that none of them reaches
	@deploy/system.sh chromium poppler tesseract
	@$(BIN)/pytest -q -n $(PROCESSES) --dist loadscope --no-loadscope-reorder --cov --cov-report=term:skip-covered

lint: $(STAMP) ## Style, docstrings, types, which package may import which, and dependencies nobody uses
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check -q .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/deptry .

prove: $(STAMP) ## The tests at their full figures (an hour and more)
	@deploy/system.sh chromium poppler tesseract
	@DOCGEN_PROVE=1 $(BIN)/pytest -q --timeout 7200

bench: $(STAMP) ## Every speed claim, each against a baseline in the same run
	@for file in bench/*.py; do echo "== $$file"; $(BIN)/python $$file --check || exit 1; done

lock: ## Resolve the lock anew, keeping versions that still fit
	@UV_CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/uv pip compile pyproject.toml --extra dagster --extra aws --extra gcp --extra models --group dev \
		--no-annotate --generate-hashes --universal --python-version 3.11 -q -o requirements.lock --no-emit-index-url

clean: ## Remove what the demo and the tests made (not the environment)
	@rm -rf .docgen .dagster .coverage .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache build dist
