# `make help` lists the commands.  Everything needs only python3, pip and make.
PYTHON ?= python3
BIN := .venv/bin
N ?= 100
SEED ?= 1
MINUTES ?= 10

.PHONY: help demo dev shop-django shop-flask test browser check chaos crash crash-effects recovery bench-effect bench-pages bench-run clean
help:  ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

demo: .venv/.ready  ## the support agent under kill -9, live in the terminal
	@$(BIN)/celegraph demo

dev: .venv/.ready  ## the same left running, with Flower, to play with
	@$(BIN)/celegraph dev

shop-django: .venv/.ready  ## a Django shop whose refunds you decide in the browser
	@$(BIN)/python -m examples.django_shop

shop-flask: .venv/.ready  ## the same shop in Flask
	@$(BIN)/python -m examples.flask_shop

test: .venv/.ready  ## the whole suite, on a real PostgreSQL and a real Valkey
	@$(BIN)/python -m pytest -n 4 --dist loadgroup

browser: .venv/.ready  ## both shops in a real browser; pictures in .celegraph/pictures (needs chromium)
	@$(BIN)/python -m pytest tests/browser

check: .venv/.ready  ## format, lint, types, import arrows
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

chaos: .venv/.ready  ## everything at once under overlapping seeded faults (SEED=1 MINUTES=10)
	@$(BIN)/python -m tests.chaos --seed $(SEED) --minutes $(MINUTES)

crash: .venv/.ready  ## N seeded kills over every stage of a run (N=100 SEED=1)
	@$(BIN)/python -m tests.crash.soak --kills $(N) --seed $(SEED)

crash-effects: N := 1000
crash-effects: .venv/.ready  ## N seeded kills over every point around an effect (N=1000 SEED=1)
	@$(BIN)/python -m tests.crash.effects_soak --kills $(N) --seed $(SEED)

recovery: .venv/.ready  ## 50 kills of a whole worker, each timed to the next node (SEED=1)
	@$(BIN)/python -m tests.bench.recovery --seed $(SEED)

bench-effect: .venv/.ready  ## commits, round trips and time of an effect beside two bare commits
	@$(BIN)/python -m tests.bench.effect

bench-pages: .venv/.ready  ## milliseconds of every page with 1,000 open questions
	@$(BIN)/python -m tests.bench.pages

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
