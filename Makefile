# `make help` lists the commands.  Everything needs only python3, pip and make.
PYTHON ?= python3
BIN := .venv/bin
N ?= 100
SEED ?= 1

.PHONY: help demo dev test check crash crash-effects bench-effect bench-run clean
help:  ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

demo: .venv/.ready  ## the support agent under kill -9, live in the terminal
	@$(BIN)/celegraph demo

dev: .venv/.ready  ## the same left running, with Flower, to play with
	@$(BIN)/celegraph dev

test: .venv/.ready  ## the whole suite, on a real PostgreSQL and a real Valkey
	@$(BIN)/python -m pytest -n 4

check: .venv/.ready  ## format, lint, types, import arrows
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

crash: .venv/.ready  ## N seeded kills over every stage of a run (N=100 SEED=1)
	@$(BIN)/python -m tests.crash.soak --kills $(N) --seed $(SEED)

crash-effects: N := 1000
crash-effects: .venv/.ready  ## N seeded kills over every point around an effect (N=1000 SEED=1)
	@$(BIN)/python -m tests.crash.effects_soak --kills $(N) --seed $(SEED)

bench-effect: .venv/.ready  ## commits, round trips and time of an effect beside two bare commits
	@$(BIN)/python -m tests.bench.effect

bench-run: .venv/.ready  ## a durable run beside a bare graph.invoke, in commits and time
	@$(BIN)/python -m tests.bench.run

clean:  ## remove the virtual environment, local servers' data and caches
	-@[ -x $(BIN)/python ] && $(BIN)/python -m celegraph.dev.clean
	rm -rf .venv .celegraph .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A venv half made by an interrupted run would otherwise look finished: the stamp is written last.
.venv/.ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "celegraph needs Python 3.11 or newer: make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -m venv .venv || { echo "no venv module: apt-get install python3-venv"; exit 1; }
	@$(BIN)/python -m pip install -q --disable-pip-version-check --upgrade 'pip>=25.1'
	@$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e . --group dev
	@touch $@
