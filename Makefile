# make demo   try it on the sample images        make test   run every test
# Everything is installed into .venv; nothing outside this folder is touched (but a missing Chromium, for the tests).

PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin

.PHONY: demo test screenshots clean help

help:
	@sed -n 1,2p Makefile

demo: $(VENV)/installed
	$(BIN)/annotator demo demo-project

test: $(VENV)/installed-for-tests
	$(BIN)/python tests/get_chromium.py
	$(BIN)/python tests/get_typescript.py
	$(BIN)/python -m pytest

screenshots: $(VENV)/installed-for-tests
	$(BIN)/python docs/screenshots.py

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Python 3.11 or newer is needed; $(PYTHON) is older or missing. Name another: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: $(VENV)/bin/python pyproject.toml
	@echo "Installing (torch alone is several GB: some minutes the first time)..."
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/installed-for-tests: $(VENV)/bin/python pyproject.toml
	@echo "Installing (torch alone is several GB: some minutes the first time)..."
	$(BIN)/python -m pip install --quiet --editable ".[test]"
	@touch $@ $(VENV)/installed

clean:
	rm -rf $(VENV) demo-project build dist *.egg-info .pytest_cache .ruff_cache .import_linter_cache
