# Every verb works from a clean clone with Python 3.11+ and nothing else.
PYTHON ?= python3
VENV := .venv
PROTOBUF := src/homeport/apiserver/http/protobuf.json
BIN := $(VENV)/bin
RUN := $(VENV)/.run
DEV := $(VENV)/.dev
BENCH := $(VENV)/.bench

.DEFAULT_GOAL := help
.PHONY: help setup run test test-all campaign check gen verify bench conformance upstream docs dashboard clean

help: ## list the verbs
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(RUN) ## make .venv with the package (idempotent)

$(RUN): requirements/run.txt pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing Homeport into $(VENV) (about half a minute)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/run.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

$(DEV): $(RUN) requirements/dev.txt
	@echo "installing the tools of development into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@touch $@

run: setup ## start the plane with simulated infrastructure in the foreground (Ctrl-C stops it)
	@$(BIN)/homeport up --sim

test: check ## lint, types, layers, then the quick tests; needs nothing but Python
	@$(BIN)/python -m pytest -n 2 --quick

test-all: $(DEV) ## everything that `make test` runs, and all long tests: real programs, scenarios, documentation
	@$(BIN)/python tools/suite

campaign: $(DEV) ## controllers killed hundreds of times, rollouts on late caches: every seed (some 15 minutes)
	@HOMEPORT_CAMPAIGN=1 $(BIN)/python -m pytest -n 2 --timeout 600 $$(grep -rl '^from campaign import' tests --include='test_*.py')

check: $(DEV) ## ruff, mypy --strict of the package, tests and tools (for the oldest and the newest Python), import-linter
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/mypy --python-version 3.14 src
	@$(BIN)/lint-imports

gen: $(DEV) ## write the generated files anew (needs Go)
	@$(BIN)/python tools/gen_crds.py
	@$(BIN)/python tools/gen_install.py
	@$(BIN)/python tools/gen_reference.py
	@$(BIN)/python tools/gen_builtin.py
	@$(BIN)/python tools/gen_wire.py
	@cd tools/kube && go run ./protobuf > ../../$(PROTOBUF)
	@tools/gotemplate/record
	@tools/browser/install && cd ui && npm run --silent build

verify: $(DEV) ## fail if a generated file is not what `make gen` writes (needs Go)
	@$(BIN)/python tools/gen_crds.py --check
	@$(BIN)/python tools/gen_install.py --check
	@$(BIN)/python tools/gen_reference.py --check
	@$(BIN)/python tools/gen_builtin.py --check
	@$(BIN)/python tools/gen_wire.py --check
	@cd tools/kube && go run ./protobuf | cmp - ../../$(PROTOBUF)
	@tools/gotemplate/record --check
	@tools/browser/install && cd ui && npm run --silent check && npm run --silent build -- --check
	@echo "generated files are up to date"

bench: $(DEV) $(BENCH) ## measure side by side with kopf, and with a real kube-apiserver and etcd (needs Go)
	@$(BIN)/python bench/runtime.py
	@tools/kube/build
	@$(BIN)/python bench/apiserver.py

$(BENCH): requirements/bench.txt
	@echo "installing what we are measured against into $(VENV)/bench"
	@$(PYTHON) -m venv $(VENV)/bench
	@$(VENV)/bench/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

conformance: $(DEV) ## one client suite on four servers, a real kube-apiserver and a workload cluster among them (needs Go)
	@tools/kube/build
	@HOMEPORT_CONFORMANCE=local,http,real,workload $(BIN)/python -m pytest -n 2 tests/conformance

upstream: $(DEV) ## upstream's own managers on the simulators, then side by side with ours (needs Go; minutes)
	@tools/kube/build
	@tools/upstream/build
	@tools/clusterctl/build
	@tools/autoscaler/build
	@tools/certmanager/build
	@HOMEPORT_UPSTREAM=1 $(BIN)/python -m pytest tests/e2e/test_nutanix_upstream.py tests/e2e/test_takeover.py tests/e2e/test_autoscaler.py tests/e2e/test_clusterctl.py \
		tests/e2e/test_topology_on_kubernetes.py tests/e2e/test_cert_manager.py
	@$(BIN)/python bench/nutanix.py

dashboard: ## build the page of the dashboard from ui/ (needs Node.js)
	@tools/browser/install && cd ui && npm run --silent check && npm run --silent build

docs: $(DEV) ## build the documentation site into build/site; broken links fail it
	@$(BIN)/python tools/build_site.py

clean: ## remove .venv and caches
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
