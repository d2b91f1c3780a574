# Everything is built and installed from here; `make help` lists the targets.
SHELL := /bin/bash
.DEFAULT_GOAL := help
CARGO ?= cargo
RELEASE := target/release

.PHONY: help
help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: prepare
prepare: # what the build needs from the registries
	@scripts/v8.sh
	@scripts/web.sh
	@scripts/esbuild.sh $(RELEASE)

.PHONY: build
ifdef RUSTY_V8_ARCHIVE
# Another V8, linked into the worker (docs/v8.md).
export RUSTY_V8_ARCHIVE
build:
	@scripts/web.sh
	@scripts/esbuild.sh $(RELEASE)
	@$(CARGO) build --release --locked -p bulkhead
	@$(CARGO) build --release --locked -p isolate-worker --bin isolate-worker --features standalone
	@rm -f $(RELEASE)/libisolate_worker.so
else
build: prepare ## build the program: target/release/bulkhead
	@$(CARGO) build --release --locked -p bulkhead -p isolate-worker
	@scripts/carrier.sh $(RELEASE)
endif

.PHONY: run
run: build ## build, start the host, deploy the examples, print calls to try
	@scripts/demo.sh

.PHONY: test
test: prepare ## install what the tests need and run them all
	@$(CARGO) build --release --locked --workspace --exclude 'bench-*' --lib --bins --tests
	@scripts/carrier.sh $(RELEASE)
	@scripts/build-test.sh
	@scripts/examples.sh
	@scripts/types-test.sh
	@scripts/clients.sh
	@scripts/browser.sh
	@scripts/test.sh

.PHONY: shake
shake: prepare ## run the suite N times beside other load and tell what failed how often; goes on where it ended
	@$(CARGO) build --release --locked --workspace --exclude 'bench-*' --lib --bins --tests
	@scripts/carrier.sh $(RELEASE)
	@scripts/build-test.sh
	@N=$(N) LOAD=$(LOAD) FRESH=$(FRESH) scripts/shake.sh

.PHONY: lint
lint: prepare ## formatting, clippy, dependency rules, shell scripts
	@scripts/lint.sh

.PHONY: conformance
conformance: build ## the protocol's official suite, both eras, against a server behind the wall
	@scripts/conformance.sh

.PHONY: bench
bench: build ## walls, gateway, fairness, deploys and the door beside their peers; writes docs/benchmarks.md, fails where a promise is missed
	@$(CARGO) build --release --locked -p 'bench-*'
	@$(CARGO) test --release --locked --quiet -p 'bench-*'
	@bench/setup.sh
	@bench/gateway-setup.sh
	@bench/egress-setup.sh
	@bench/process-setup.sh
	@missed=0; \
	$$(realpath target/v8/node/bin/node) bench/run.mjs --write-docs || missed=1; \
	$(RELEASE)/bench-gateway --write-docs || missed=1; \
	$(RELEASE)/bench-gateway fairness --write-docs || missed=1; \
	$(RELEASE)/bench-gateway deploy --write-docs || missed=1; \
	$(RELEASE)/bench-egress --write-docs || missed=1; \
	$(RELEASE)/bench-process --write-docs || missed=1; \
	exit $$missed

.PHONY: soak
soak: build ## 100,000 calls with a fresh process each, 200 sessions of programs killed at random; memory must stay flat
	@$(CARGO) build --release --locked -p bench-isolate -p bench-process
	@missed=0; \
	$(RELEASE)/soak-isolate || missed=1; \
	$(RELEASE)/soak-process || missed=1; \
	exit $$missed

.PHONY: fuzz
fuzz: ## fuzz everything that reads strangers' bytes: make fuzz SECONDS_EACH=1200 TARGETS="frames lock"
	@SECONDS_EACH=$(SECONDS_EACH) TARGETS="$(TARGETS)" scripts/fuzz.sh

.PHONY: wpt
wpt: build ## run web-platform-tests: make wpt WPT=path/to/checkout
	@$(CARGO) build --release --locked -p bulkhead-wpt
	@$(RELEASE)/bulkhead-wpt $(if $(WPT),$(WPT),$(error set WPT to a checkout of web-platform-tests))

.PHONY: clean
clean: ## remove everything built
	@rm -rf target crates/isolate-web/node_modules bench/node_modules
