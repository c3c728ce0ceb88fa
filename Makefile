# Every target sets itself up in .venv; nothing has to be installed by hand.
VENV ?= $(if $(NEWEST),.venv-newest,.venv)
BIN := $(VENV)/bin
PORT ?= 8000
PYTHON ?= python3
READY := $(VENV)/.ready
SITE_READY := $(VENV)/.ready-site
SITE := _build/html
SOURCES := _config.yml _toc.yml $(wildcard book/* theme/* theme/*/* attention/*.py coding_attention/labs/*)

# NEWEST=1: what there is today in place of the pinned versions, PyTorch aside, in an
# environment of its own.
export NEWEST

# Python keeps the bytecode of what it imports; without it a build takes half as long
# again, since it starts by compiling Sphinx.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help setup book serve check notebooks execute test test-pages test-site test-labs test-checker test-isolated test-hosts test-budget test-rest test-all test-processors mutants measure repository pdf slides citation environments experiments real-heads bench clean

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

execute: $(READY)
	@$(BIN)/python -m tools.notebooks

# All that is known without running a page: seconds, or one with PAGE=04_causal_attention.
CHECKS := $(addprefix tests/book/test_,$(addsuffix .py,pairs claims links listings \
	printed_values_on_pages prose imports data)) tests/test_style.py
check: $(READY) ## check what needs no execution: words, digits, links (PAGE=04_causal_attention)
	@$(BIN)/python -m tools.notebooks --words $(PAGE)
	@$(BIN)/python -m pytest -q $(if $(PAGE),-k "$(PAGE) or ruff") $(CHECKS)

ifdef TORCH
# Only what needs the package and PyTorch, against the version that was asked for.
# Releases before 2.3 were built against the first NumPy. TORCH=newest: of today.
OTHER := .venv-torch-$(TORCH)
test: $(OTHER)/.ready
	$(OTHER)/bin/python -m pytest -rs -m package --timeout=300 tests/attention

$(OTHER)/.ready:
	$(PYTHON) -m venv $(OTHER)
	$(OTHER)/bin/python -m pip install -q \
		torch$(if $(filter-out newest,$(TORCH)),==$(TORCH)) pytest pytest-timeout \
		"numpy$(if $(filter 2.0.% 2.1.% 2.2.%,$(TORCH)),<2)"
	@touch $@
else ifdef MODELS
# The package's layers inside models of two libraries, built from a config: no download.
# In an environment of its own, since they bring a PyTorch for themselves if they must.
# torchvision has to be of its kind, CPU or CUDA: the last line stops where it is not.
test: .venv-models/.ready
	.venv-models/bin/python -m pytest -rs --timeout=300 -m package \
		tests/attention/test_real_models.py tests/attention/test_small_gpt.py \
		tests/attention/test_layers_of_models.py

.venv-models/.ready: constraints.txt
	$(PYTHON) -m venv .venv-models
	.venv-models/bin/python -m pip install -q -c constraints.txt \
		torch torchvision transformers timm pytest pytest-timeout
	.venv-models/bin/python -c "import timm, transformers" # a skip is no pass
	@touch $@
else
# What belongs to which tier, and what it may cost: tests/tiers.toml.
WORKERS = 2
PYTEST = $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder -rs \
	--timeout=300 --nbval --nbval-sanitize-with tests/nbval.cfg
test: $(READY) ## what must hold after every change: 3 minutes (TORCH=x.y.z, NEWEST=1, MODELS=1)
	$(PYTEST) --tier test book tests
endif

test-pages: ## the other pages by nbval, the claims that train, drawings seen closely
test-site: ## the built site, in a browser
test-labs: ## every lab, in every way that readers come
test-checker: ## the checker and the grader in use: classes that hang or lie, reports
test-isolated: ## installing, several devices, executing pages
test-hosts: ## every page in JupyterLab and Notebook, in a browser
test-budget: ## every page against site_budget.json, in a browser
test-pages test-site test-labs test-checker test-isolated test-hosts test-budget: $(READY)
	$(PYTEST) --tier $(@:test-%=%) book tests

# Browsers and kernels leave a processor waiting, which a third worker fills.
REST = pages,site,labs,checker,isolated,budget
test-rest: WORKERS = 3
test-rest: $(READY) ## all that make test leaves out but the hosts, in one run
	$(PYTEST) --tier $(REST) book tests

test-all: REST := $(REST),hosts
test-all: test test-rest ## everything

# PyTorch computes with what the processor has, and as readers have it: with fewer
# instructions, with more threads. "native" leaves the choice to PyTorch.
CPUS ?= default avx2 native
THREADS ?= 1 2
test-processors: $(READY) ## every page and general claim, as other processors compute (CPUS=… THREADS=…)
	@failed=; for cpu in $(CPUS); do for threads in $(THREADS); do \
		echo "== instructions: $$cpu, threads: $$threads"; \
		env $$(test $$cpu = native || echo ATEN_CPU_CAPABILITY=$$cpu) \
			OMP_NUM_THREADS=$$threads $(PYTEST) --timeout=1200 \
			book tests/book/test_general_*.py || failed="$$failed $$cpu/$$threads"; \
	done; done; test -z "$$failed" || { echo "failed:$$failed"; exit 1; }

mutants: $(READY) ## break the book in N places and see every check work (N=120 SEED=1)
	@mkdir -p _build && $(BIN)/python -m coverage run --rcfile=tools/mutants/cover.ini \
		-m pytest -q --tier test,pages,checker -m "not browser" tests
	@$(BIN)/python -m tools.mutants --number $(or $(N),120) --seed $(or $(SEED),1)

measure: $(READY) book ## measure every page, times on a slow phone, too (BEFORE=1: bare theme first)
	@$(BIN)/python -m tools.measure --slow $(if $(BEFORE),--against-theme)

repository: $(SITE_READY) ## set the repository's address: URL=https://github.com/ORG/NAME (SITE_URL=https://…)
	@$(BIN)/python -m tools.repository $(if $(URL),$(URL) $(if $(SITE_URL),--site $(SITE_URL)),--unset)

pdf: $(READY) book ## print the whole book into one PDF
	@$(BIN)/python -m tools.pdf

slides: $(SITE_READY) ## write decks of slides, for the first page and 01 to 10 (ROUTE=90min: one for a session)
	@$(BIN)/python -m theme.slides $(if $(ROUTE),--route $(ROUTE))

citation: $(SITE_READY) ## write the BibTeX entry and .zenodo.json, from CITATION.cff
	@$(BIN)/python -m tools.citation

environments: $(READY) ## run every page where readers do: Binder's recipe, Colab, with PyTorch alone (KINDS=…)
	$(BIN)/python -m tools.environments $(KINDS)

experiments: $(READY) ## train the small models of two pages again
	$(BIN)/python -m experiments

real-heads: $(READY) ## compute again what the book carries of a trained model (83 MB; WRITE=1)
	$(BIN)/python -m experiments.real _build/real-heads $(if $(WRITE),,--check)

bench: $(READY) ## measure speed and memory, as ratios in one run
	$(BIN)/python benchmarks/attention_speed.py

clean: ## remove what was built, not the environment
	rm -rf _build
