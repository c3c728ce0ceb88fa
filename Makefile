# Every target sets itself up in .venv; nothing has to be installed by hand.
VENV ?= $(if $(NEWEST),.venv-newest,.venv)
BIN := $(VENV)/bin
PORT ?= 8000
PYTHON ?= python3
READY := $(VENV)/.ready
SITE_READY := $(VENV)/.ready-site
SITE := _build/html
SOURCES := _config.yml _toc.yml $(wildcard book/* book/reference/* theme/* theme/*/* attention/*.py coding_attention/labs/*)

# NEWEST=1: what there is today in place of the pinned versions, PyTorch aside, in an
# environment of its own.
export NEWEST

# Python keeps the bytecode of what it imports; without it a build takes half as long
# again, since it starts by compiling Sphinx.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help setup book serve check notebooks labs execute test test-site test-weekly pdf slides experiments bench

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

setup: $(READY) ## make .venv and install the pinned versions

# What renders the pages, which hold their outputs: no PyTorch.
$(SITE_READY): pyproject.toml constraints.txt tools/install.py
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m tools.install site
	@touch $@

# What executes and tests them, too: asked for only when a page's code has changed.
$(READY): $(SITE_READY)
	$(BIN)/python -m tools.install all
	@touch $@

book: notebooks ## bring stale pages up to date and build the HTML
	@$(MAKE) --no-print-directory $(SITE)/.built
	@echo "The book: file://$(abspath $(SITE))/index.html"

# A build that warned must not look clean the next time, so its cache goes.
$(SITE)/.built: $(SITE_READY) $(SOURCES)
	$(BIN)/jupyter-book build . -W --keep-going || { rm -rf _build; exit 1; }
	@touch $@

serve: book ## serve the book on 127.0.0.1 (PORT=8000)
	@echo "http://127.0.0.1:$(PORT)/  (stop with Ctrl+C)"
	@$(BIN)/python -m http.server --bind 127.0.0.1 -d $(SITE) $(PORT)

notebooks: $(SITE_READY) ## pair the pages that changed, execute those whose code did
	@$(BIN)/python -m tools.notebooks --words || $(MAKE) --no-print-directory execute

labs: $(SITE_READY) ## bundle the labs' scripts after a change to one (needs Node's npx)
	@$(BIN)/python -m tools.labs

execute: $(READY)
	@$(BIN)/python -m tools.notebooks

# All that is known without running a page: seconds, or one with PAGE=04_causal_attention.
CHECKS := $(addprefix tests/book/test_,$(addsuffix .py,pairs claims links listings \
	printed_values_on_pages imports data)) tests/test_style.py
check: $(READY) ## check what needs no execution: pairs, digits, links (PAGE=04_causal_attention)
	@$(BIN)/python -m tools.notebooks --words $(PAGE)
	@$(BIN)/python -m pytest -q $(if $(PAGE),-k "$(PAGE) or ruff") $(CHECKS)

PYTEST = $(BIN)/python -m pytest -n 2 --dist loadfile -rs --timeout=300
NBVAL := --nbval --nbval-sanitize-with tests/nbval.cfg
test: $(READY) ## after every change: the package, the checker, pages 01 to 06
	$(PYTEST) $(NBVAL) -m "not site and not weekly" book tests

test-site: $(READY) ## the built site in a browser, every lab, every other page
	$(PYTEST) $(NBVAL) -m "site and not weekly" book tests

# What nobody waits for, one part after another, or those that PARTS names.
PARTS ?= hosts processors models torch newest links
test-weekly: $(addprefix weekly-,$(PARTS)) ## JupyterLab, processors, other versions (PARTS="hosts torch")

weekly-hosts: $(READY)
	$(PYTEST) -m weekly tests

# PyTorch computes with what the processor has: with fewer instructions, more threads.
CPUS ?= default avx2
THREADS ?= 1 2
weekly-processors: $(READY)
	@for cpu in $(CPUS); do for threads in $(THREADS); do \
		echo "== instructions: $$cpu, threads: $$threads"; \
		ATEN_CPU_CAPABILITY=$$cpu OMP_NUM_THREADS=$$threads \
			$(PYTEST) $(NBVAL) --timeout=1200 -m "not weekly" book tests/book || exit 1; \
	done; done

# The package's layers inside models of two libraries, built from a config: no download.
# In an environment of its own, since they bring a PyTorch for themselves if they must.
# torchvision has to be of its kind, CPU or CUDA: the last line stops where it is not.
weekly-models: .venv-models/.ready
	.venv-models/bin/python -m pytest -rs --timeout=300 tests/attention/test_real_models.py

.venv-models/.ready: constraints.txt
	$(PYTHON) -m venv .venv-models
	.venv-models/bin/python -m pip install -q -c constraints.txt \
		torch torchvision transformers timm pytest pytest-timeout
	.venv-models/bin/python -c "import timm, transformers" # a skip is no pass
	@touch $@

# The package with another PyTorch (TORCH=newest: today's). Releases before 2.3 were
# built against the first NumPy.
TORCH ?= 2.1.2
weekly-torch: .venv-torch-$(TORCH)/.ready
	.venv-torch-$(TORCH)/bin/python -m pytest -rs -m "package and not weekly" \
		--timeout=300 tests/attention

.venv-torch-$(TORCH)/.ready:
	$(PYTHON) -m venv .venv-torch-$(TORCH)
	.venv-torch-$(TORCH)/bin/python -m pip install -q \
		torch$(if $(filter-out newest,$(TORCH)),==$(TORCH)) pytest pytest-timeout \
		"numpy$(if $(filter 2.0.% 2.1.% 2.2.%,$(TORCH)),<2)"
	@touch $@

weekly-newest:
	$(MAKE) test test-site NEWEST=1

# Whether the pages' links to other hosts still lead somewhere.
weekly-links: $(SITE_READY)
	$(BIN)/jupyter-book build . --builder linkcheck --path-output _build/links -W -q --keep-going

pdf: $(READY) book ## print the whole book into one PDF
	@$(BIN)/python -m tools.pdf

slides: $(SITE_READY) ## write decks of slides, for pages 01 to 05 (ROUTE=90min: one for a session)
	@$(BIN)/python -m theme.slides $(if $(ROUTE),--route $(ROUTE))

experiments: $(READY) ## compute the stored results of the pages again
	$(BIN)/python -m experiments

bench: $(READY) ## measure speed and memory, as ratios in one run
	$(BIN)/python benchmarks/attention_speed.py
