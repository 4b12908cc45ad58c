# `make demo` and `make test` are all a newcomer needs; both make .venv on first use. The demo installs what running needs,
# everything else adds the tools of development.
PYTHON ?= python3
BIN := .venv/bin
# torch is pinned (constraints.txt); an installation older than these files is refreshed.
RUN := .venv/installed
DEV := .venv/installed-dev
# Into site/; a broken link or anchor, or a page that loads something from another machine, ends it.
DOCS := NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# Neighbours stay with one worker as long as the other has work of its own: what they share is set up once.
PYTEST := $(BIN)/pytest -n auto --dist worksteal

.PHONY: demo test check static tests test-research test-long docs bench format clean

$(RUN): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet -c constraints.txt -e .
	touch $@

$(DEV): $(RUN)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	touch $@

demo: $(RUN)
	$(BIN)/maxflip demo --out maxflip-demo

test: check

# The static checks are one process after another, so they run beside the tests.
check: $(DEV)
	$(MAKE) --jobs=2 static tests

static: $(DEV)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(DOCS)

tests: $(DEV)
	$(PYTEST)

# Slower than the product, and changed more rarely.
test-research: $(DEV)
	$(PYTEST) research/tests

docs: $(DEV)
	$(DOCS)

test-long: $(DEV)
	MAXFLIP_LONG=1 $(PYTEST)

# maxflip beside other tools, each installed into .peers on first use; docs/results/peers.md has the full form.
# After Ctrl-C, `make bench RESUME=1` goes on.
bench: $(DEV)
	$(BIN)/python -m research.benchmarks.peers --quick$(if $(RESUME), --resume)

format: $(DEV)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf .venv .peers maxflip-demo site
