# make demo   try it on the sample images
# make check  lint; types and tests nearest to what you changed   make test [ROOM=store]   the short tests, of one folder
# make lint   lint, import contracts, types of all modules        make test-all            all tests, which CI runs
# make test-readers   exports read by other tools (1.4 GB)        make test-streamlit   pages with two Streamlit versions
# make bench NAME=store [ARGS="--images 100000"]   measures the program itself; without NAME: the list of measurements
# make docs   the documents as a site, in build/site              make figures     README's figures, measured anew
# make constraints [ARGS=--upgrade]   versions and hashes of all packages       make sbom   what is installed, as CycloneDX
# Everything is installed into .venv; nothing outside this folder is touched (but a missing Chromium, for the tests).

PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin

# With this set, each of the hundreds of processes that tests start would compile the program anew.
export PYTHONDONTWRITEBYTECODE =

# uv, since pip checks hashes only where it installs no editable folder. It takes the versions of deploy/constraints.txt
# and compares every file with the hashes there; of uv itself pip does. It reads no pip.conf: UV_DEFAULT_INDEX names a mirror.
CONSTRAINTS = deploy/constraints.txt
INSTALL = $(BIN)/uv pip install --quiet --python $(BIN)/python --constraints $(CONSTRAINTS) --build-constraints $(CONSTRAINTS)

# One test process a core, on machines with more than two cores no more than leave room for its servers and browser. On two
# cores a third one gains nothing: 655 s instead of 622, with both cores busy all the time.
PYTEST = $(BIN)/python -m pytest -n auto --maxprocesses 6 --dist loadfile --no-loadscope-reorder

# The Python interface and the protocols that plug-ins and new files follow: their docstrings are checked as a whole.
PUBLIC = annotator/__init__.py annotator/project.py annotator/torch_dataset.py annotator/records.py \
  annotator/settings.py annotator/errors.py annotator/roles.py annotator/humanize.py annotator/indexing.py \
  $(addprefix annotator/exchange/exports/,choices.py export_options.py thresholds.py) annotator/exchange/classifier/onnx_classifier.py \
  $(addprefix annotator/exchange/formats/,__init__.py format.py export_view.py contents.py) \
  $(addprefix annotator/exchange/sources/,__init__.py source.py) \
  $(foreach room,losses methods trainers query_strategies,models/spmll/$(room)/__init__.py models/spmll/$(room)/base.py)

.PHONY: demo lint types style check test test-all test-programs nearest-types nearest-tests short-tests all-tests test-readers test-streamlit bench screenshots figures docs constraints sbom clean help

help:
	@sed -n 1,8p Makefile

demo: $(VENV)/installed
	$(BIN)/annotator demo demo-project

# The types keep one core busy for most of a minute; everything else is read beside them.
lint: $(VENV)/installed-for-tests
	@$(MAKE) --no-print-directory -j 2 types style

types: $(VENV)/installed-for-tests
	$(BIN)/basedpyright --pythonpath $(BIN)/python --level error

style: $(VENV)/installed-for-tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/ruff check --select D --ignore D105,D107 --config 'lint.pydocstyle.convention = "google"' $(PUBLIC)
	$(BIN)/pydoclint $(PUBLIC)
	$(BIN)/lint-imports --no-cache
	$(BIN)/python tests/get_typescript.py
	$(BIN)/python -m pytest -p no:cacheprovider tests/repository/test_script_types.py

# Types and tests of what was changed run beside each other; `make lint` checks the types of all modules in 75 s of one core.
check: $(VENV)/installed-for-tests
	@$(MAKE) --no-print-directory -j 2 nearest-types nearest-tests style

ifdef ROOM
test: test-programs
	$(PYTEST) -m "not slow and not readers" tests/$(ROOM)
else
test: test-programs
	@$(MAKE) --no-print-directory -j 2 lint short-tests
endif

test-all: test-programs
	@$(MAKE) --no-print-directory -j 2 lint all-tests

test-programs: $(VENV)/installed-for-tests
	$(BIN)/python tests/get_chromium.py
	$(BIN)/python tests/get_caddy.py
	$(BIN)/python tests/get_nginx.py

nearest-types: $(VENV)/installed-for-tests
	$(BIN)/python tests/nearest_types.py

nearest-tests: $(VENV)/installed-for-tests
	$(BIN)/python tests/nearest_tests.py

short-tests: $(VENV)/installed-for-tests
	$(PYTEST) -m "not slow and not readers" --deselect tests/repository/test_script_types.py

all-tests: $(VENV)/installed-for-tests
	$(PYTEST) -m "not readers" --deselect tests/repository/test_script_types.py

# The tools that own formats, in an environment of their own: they need other versions than ours.
test-readers: $(VENV)/installed-for-tests .venv-readers/installed
	$(BIN)/python tests/get_photo_tools.py
	ANNOTATOR_READERS=$(CURDIR)/.venv-readers $(BIN)/python -m pytest -m readers

# The oldest and the newest version that pyproject.toml allows, each in a folder of its own.
test-streamlit: $(VENV)/installed-for-tests
	$(BIN)/python tests/get_chromium.py
	$(BIN)/python tests/run_streamlit_versions.py

.venv-readers/installed: tests/readers/requirements.txt
	$(PYTHON) -m venv .venv-readers
	.venv-readers/bin/python -m pip install --quiet -r tests/readers/requirements.txt
	$(BIN)/python -m pip install --quiet --no-deps --target .venv-readers/ultralytics ultralytics==8.4.* opencv-python-headless==5.*
	@touch $@

bench: $(VENV)/installed-for-tests
	PYTHONPATH=tests $(BIN)/python -P -m benchmarks $(NAME) $(ARGS)

screenshots: $(VENV)/installed-for-tests
	PYTHONPATH=tests $(BIN)/python docs/screenshots.py
	PYTHONPATH=tests $(BIN)/python docs/screenshots_start.py
	PYTHONPATH=tests $(BIN)/python docs/screenshots_team.py
	PYTHONPATH=tests $(BIN)/python docs/screenshots_events.py

docs: $(VENV)/installed-for-tests
	$(BIN)/mkdocs build -f .mkdocs.yml

figures: $(VENV)/installed-for-tests
	$(BIN)/python docs/figures.py

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Python 3.11 or newer is needed; $(PYTHON) is older or missing. Name another: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(BIN)/uv: $(BIN)/python $(CONSTRAINTS)
	sed -n '/^uv==/,/[^\\]$$/p' $(CONSTRAINTS) > $(VENV)/uv.txt
	$(BIN)/python -m pip install --quiet --require-hashes --requirement $(VENV)/uv.txt
	@touch $@

$(VENV)/installed: $(BIN)/uv pyproject.toml models/pyproject.toml
	@echo "Installing (torch alone is several GB: some minutes the first time)..."
	$(INSTALL) --editable models --editable ".[train]"
	@touch $@

$(VENV)/installed-for-tests: $(BIN)/uv pyproject.toml models/pyproject.toml
	@echo "Installing (torch alone is several GB: some minutes the first time)..."
	$(INSTALL) --editable models --editable ".[test]"
	@touch $@ $(VENV)/installed

# For all systems and all Python versions from 3.11 on. Versions stay as they are where they fit; ARGS=--upgrade raises them.
constraints: $(BIN)/uv
	printf -- '-e ./models\n-e .[test]\n' | $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	  --no-emit-package spmll --no-emit-package multilabel-annotator --custom-compile-command "make constraints" $(ARGS) \
	  --output-file $(CONSTRAINTS) -

# What the extra `train` installs on this machine, in an environment of its own; published beside the wheels.
sbom: $(VENV)/installed-for-tests
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python build/sbom-environment
	$(BIN)/uv pip install --quiet --python build/sbom-environment/bin/python --constraints $(CONSTRAINTS) \
	  --build-constraints $(CONSTRAINTS) ./models ".[train]"
	$(BIN)/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible \
	  --output-file build/multilabel-annotator.cdx.json build/sbom-environment

clean:
	rm -rf $(VENV) .venv-readers demo-project build dist *.egg-info models/build models/*.egg-info .pytest_cache .ruff_cache .import_linter_cache
