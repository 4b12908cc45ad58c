# `make demo` and `make test` are all a newcomer needs; both make .venv on first use.
PYTHON ?= python3
BIN := .venv/bin
# torch is pinned (constraints.txt); an installation older than these files is refreshed.
STAMP := .venv/installed
# Into site/; a broken link or anchor, or a page that loads something from another machine, ends it.
DOCS := NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

.PHONY: demo test check test-research test-long docs bench format clean

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	touch $@

demo: $(STAMP)
	$(BIN)/maxflip demo --out maxflip-demo

test: check

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pytest -n auto
	$(DOCS)

# Slower than the product, and changed more rarely.
test-research: $(STAMP)
	$(BIN)/pytest -n auto research/tests

docs: $(STAMP)
	$(DOCS)

test-long: $(STAMP)
	MAXFLIP_LONG=1 $(BIN)/pytest -n auto

# maxflip beside other tools, each installed into .peers on first use; docs/results/peers.md has the full form.
# After Ctrl-C, `make bench RESUME=1` goes on.
bench: $(STAMP)
	$(BIN)/python -m research.benchmarks.peers --quick$(if $(RESUME), --resume)

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf .venv .peers maxflip-demo site
