# What one does with Linchpin, a word each; `make help` lists them.

CARGO ?= cargo
GO ?= go
# Given to the program, so that `linchpin version` can name it.
export LINCHPIN_COMMIT ?= $(shell git rev-parse --short=12 HEAD 2>/dev/null)
# The linchpin of this checkout, built first if it must be.
LINCHPIN = $(CARGO) run --quiet --package linchpin --

.DEFAULT_GOAL := help

.PHONY: help
help: ## Say what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## Start a local Kubernetes and the operator, and look at them (LOCAL=0: the cluster of KUBECONFIG)
	@echo "building linchpin (the first time takes minutes) …"
	@$(CARGO) build --package linchpin
	@$(LINCHPIN) demo

.PHONY: test
test: node-packages node-waiter ## Run all tests, also those on a real API server and a real node
	cd kubernetes && $(GO) test ./services
	$(CARGO) test --workspace --no-fail-fast -- $(TEST_ARGUMENTS)

.PHONY: test-all
test-all: test image ## Run also what takes long: the chart and all examples on a real node, installed by Helm
	LINCHPIN_LONG=1 LINCHPIN_IMAGE=$(IMAGE) $(CARGO) test --workspace --test it chart -- --nocapture
	LINCHPIN_LONG=1 $(CARGO) test --workspace --test it boot_dependency::k -- --nocapture
	LINCHPIN_LONG=1 $(CARGO) test --workspace --test it consist::load -- --nocapture
	LINCHPIN_LONG=1 LINCHPIN_EMPLOYERS=$${LINCHPIN_EMPLOYERS:-100} $(CARGO) test --workspace --test it consist::scale -- --nocapture
	LINCHPIN_LONG=1 $(CARGO) test --workspace --test it sync::random -- --nocapture
	LINCHPIN_LONG=1 $(CARGO) test --workspace --test it turns::a_controller -- --nocapture

# Requests through a real HAProxy to real pods, without and with us, while everything happens to the pods.
.PHONY: load
load: node-packages ## Lose no request of 100,000 while pods are updated, scaled, deleted and evicted (LINCHPIN_LOAD)
	LINCHPIN_LOAD=$${LINCHPIN_LOAD:-100000} LINCHPIN_LOAD_WITHOUT=1 $(CARGO) test --workspace --test it consist::load -- --nocapture

.PHONY: lint
lint: lint-go ## Check format, clippy and Go
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings

# Kubernetes' own packages are not ours to judge: vetting main.go would go through all of them, for minutes.
.PHONY: lint-go
lint-go:
	@test -z "$$(gofmt -l kubernetes)" || { gofmt -d kubernetes; exit 1; }
	cd kubernetes && $(GO) vet ./keeper ./services ./stream ./images/...

.PHONY: doc
doc: ## Make the documentation of the code, without warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --no-deps --workspace

# Generated pages and files: rights.md, values.md, cli.md, the chart's rbac.yaml, schema and definitions, install.yaml.
.PHONY: docs
docs: ## Write what is generated from the code: documentation, the chart's roles, schema and definitions
	LINCHPIN_UPDATE=1 $(CARGO) test --workspace --lib --bins --test it -- definitions documented rights:: rendered reference docs::the_metrics_page

# The architecture of this machine, as images call it. Packing needs no container engine; `docker build` with the
# Dockerfile makes the same image from dist/.
ARCH = $(shell uname -m)
MUSL = $(ARCH)-unknown-linux-musl
DIST = dist/linux-$(subst x86_64,amd64,$(subst aarch64,arm64,$(ARCH)))
PROFILE ?= release
IMAGE = $(abspath $(or $(CARGO_TARGET_DIR),target))/linchpin.tar
# Where the sources of an image are, if this clone knows it.
SOURCE_URL ?= $(filter https://%,$(shell git config --get remote.origin.url))
VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)

.PHONY: dist
dist: musl wait ## Build the static programs for images and archives into dist/
	RUSTFLAGS="$$RUSTFLAGS --remap-path-prefix=$(HOME)=/" $(CARGO) build --locked --package linchpin --profile $(PROFILE) --target $(MUSL)
	mkdir -p $(DIST)
	cp $(or $(CARGO_TARGET_DIR),target)/$(MUSL)/$(subst dev,debug,$(PROFILE))/linchpin $(DIST)/linchpin
	cp $(or $(CARGO_TARGET_DIR),target)/$(MUSL)/wait/linchpin-wait $(DIST)/linchpin-wait

.PHONY: image
image: dist ## Pack the images into target/linchpin.tar and target/linchpin-wait.tar, without a container engine (PROFILE=dev: quickly)
	for program in linchpin linchpin-wait; do \
		$(LINCHPIN) local pack $(DIST)/$$program --out $(dir $(IMAGE))$$program.tar --name localhost/$$program:dev \
			--label org.opencontainers.image.version=$(VERSION) --label org.opencontainers.image.licenses=Apache-2.0 \
			--label org.opencontainers.image.revision=$(LINCHPIN_COMMIT) \
			$(addprefix --label org.opencontainers.image.source=,$(SOURCE_URL)) || exit 1; done

# A C compiler that makes programs for musl.
.PHONY: musl
musl:
	@rustup target add $(MUSL) >/dev/null 2>&1 || true
	@command -v musl-gcc >/dev/null || { \
		if command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
			apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends musl-tools >/dev/null; \
		else echo "musl-gcc is missing: install musl-tools"; exit 1; fi; }

.PHONY: helm
helm: ## Check the chart with Helm, which is built once from its Go module
	$(CARGO) test --package linchpin --test it -- chart::

.PHONY: actionlint
actionlint: ## Check the workflows (installs actionlint)
	$(GO) run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12

.PHONY: deny
deny: ## Check licences, vulnerabilities and forbidden dependencies (installs cargo-deny, which takes minutes)
	@command -v cargo-deny >/dev/null || $(CARGO) install --locked cargo-deny
	$(CARGO) deny check

.PHONY: model
model: ## Explore every way small plans, sweeps, saving, elections and the lifecycle of pods can go
	LINCHPIN_MODEL=full $(CARGO) test --workspace --lib --test it -- model:: sweep:: exploration:: --nocapture

# Every run draws other cases; a seed that failed is tried again with PROPTEST_RNG_SEED.
.PHONY: properties
properties: ## Try every property on thousands of random cases (PROPTEST_CASES, PROPTEST_RNG_SEED)
	@seed=$${PROPTEST_RNG_SEED:-$$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}; echo "PROPTEST_RNG_SEED=$$seed"; \
	export PROPTEST_RNG_SEED=$$seed PROPTEST_CASES=$${PROPTEST_CASES:-5000}; \
	$(CARGO) test --profile fast --package linchpin-words --package linchpin-engine --package linchpin-view && \
	$(CARGO) test --profile fast --package linchpin-cluster --lib stories

# A registry of the Go module proxy, kept beside the other tools in the cache.
REGISTRY_BIN = $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/linchpin/registry
$(REGISTRY_BIN)/registry:
	GOBIN=$(REGISTRY_BIN) $(GO) install github.com/distribution/distribution/v3/cmd/registry@v3.1.2

.PHONY: registry-test
registry-test: $(REGISTRY_BIN)/registry ## Pull artifacts from a real OCI registry (builds it first, which takes minutes)
	LINCHPIN_REGISTRY=$(REGISTRY_BIN)/registry $(CARGO) test --workspace --test it real:: -- --ignored
	LINCHPIN_REGISTRY=$(REGISTRY_BIN)/registry $(CARGO) test --workspace --test it sync::registry -- --nocapture

# Each controller is a program of its own in its module: its sources are copied, since modules are read-only, and built there.
# The folder that its own module of types is in is not in that module: the published one takes its place.
# The version is in the name of the program: another version is another program.
FLUX = $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/linchpin/flux
KUSTOMIZE = $(FLUX)/kustomize-controller-v1.7.3
SOURCE = $(FLUX)/source-controller-v1.7.3
$(KUSTOMIZE): MODULE = github.com/fluxcd/kustomize-controller
$(SOURCE): MODULE = github.com/fluxcd/source-controller
$(KUSTOMIZE) $(SOURCE):
	mkdir -p $(FLUX) && rm -rf $@-source
	folder=$$(cd $(FLUX) && $(GO) mod download -json $(MODULE)@$(@F:$(notdir $(MODULE))-%=%) | sed -n 's/.*"Dir": "\(.*\)".*/\1/p') && \
		cp -r "$$folder" $@-source && chmod -R u+w $@-source
	cd $@-source && $(GO) mod edit -dropreplace=$(MODULE)/api && GOFLAGS=-mod=mod $(GO) build -o $@ .

.PHONY: flux
flux: $(KUSTOMIZE) $(SOURCE) ## Let the real controllers of Flux wait for our objects, and fetch for them (builds them first, which takes minutes)
	LINCHPIN_FLUX=$(KUSTOMIZE) \
	LINCHPIN_FLUX_CRD=$(KUSTOMIZE)-source/config/crd/bases/kustomize.toolkit.fluxcd.io_kustomizations.yaml \
		$(CARGO) test --workspace --test it citizens::flux -- --nocapture
	LINCHPIN_FLUX_SOURCE=$(SOURCE) \
	LINCHPIN_FLUX_SOURCE_CRDS=$(SOURCE)-source/config/crd/bases \
		$(CARGO) test --workspace --test it sync::flux -- --nocapture

# Argo CD's own evaluation of health scripts, in a copy of its module: its sandbox is not for others to import elsewhere.
ARGOCD_VERSION = v3.2.1
ARGOCD = $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/linchpin/argocd-$(ARGOCD_VERSION)
.PHONY: argocd
argocd: ## Let Argo CD's own library evaluate our health scripts (builds it first, which takes minutes)
	@test -x $(ARGOCD)/health || { \
		mkdir -p $(ARGOCD) && \
		folder=$$(cd $(ARGOCD) && $(GO) mod download -json github.com/argoproj/argo-cd/v3@$(ARGOCD_VERSION) | sed -n 's/.*"Dir": "\(.*\)".*/\1/p') && \
		rm -rf $(ARGOCD)/source && cp -r "$$folder" $(ARGOCD)/source && chmod -R u+w $(ARGOCD)/source && mkdir -p $(ARGOCD)/source/linchpin && \
		cp crates/doors/tests/argocd/main.go $(ARGOCD)/source/linchpin/ && \
		cd $(ARGOCD)/source && $(GO) build -o $(ARGOCD)/health ./linchpin ; }
	LINCHPIN_ARGOCD=$(ARGOCD)/health $(CARGO) test --package linchpin-doors --test it argocd

# Every run draws other moments; LINCHPIN_SEED tries those of a run that failed again.
.PHONY: faults
faults: ## Kill operators at a hundred random moments, and take the API server away (LINCHPIN_FAULTS, LINCHPIN_SEED)
	@seed=$${LINCHPIN_SEED:-$$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}; echo "LINCHPIN_SEED=$$seed"; \
	LINCHPIN_SEED=$$seed LINCHPIN_FAULTS=$${LINCHPIN_FAULTS:-100} LINCHPIN_LONG=1 \
		$(CARGO) test --workspace --test it -- faults:: killed crashes:: election:: outage:: --nocapture

.PHONY: scale
scale: ## Let a thousand objects wait for one, for one each, and for each other
	LINCHPIN_CROWD=1000 $(CARGO) test --package linchpin --test it scale -- --nocapture

.PHONY: fuzz-smoke
fuzz-smoke: ## Feed everything that reads text a minute of garbage each
	@for target in cel jsonpath compare template yaml reference duration; do \
		$(CARGO) run --quiet --profile fast --package linchpin-lang --example fuzz -- --target $$target --seconds 60 || exit 1; \
	done

# Sizes and a choice of figures by environment: see crates/bench/src/main.rs.
.PHONY: bench
bench: ## Measure Linchpin against a plain client on a local cluster (BENCH_SIZE=100: a quick look)
	$(CARGO) build --profile fast --package linchpin --package linchpin-bench
	@LINCHPIN_BIN=$${LINCHPIN_BIN:-$${CARGO_TARGET_DIR:-target}/fast/linchpin} $${CARGO_TARGET_DIR:-target}/fast/bench

# Machines that others use too are noisy: a ratio may exceed its goal by half there.
.PHONY: bench-check
bench-check: ## Fail if a ratio exceeds its goal by half, at a tenth of the usual sizes (BENCH_CHECK: another factor)
	BENCH_CHECK=$${BENCH_CHECK:-1.5} BENCH_SIZE=$${BENCH_SIZE:-100} BENCH_IDLE=$${BENCH_IDLE:-10} \
		BENCH_ONLY=$${BENCH_ONLY:-crowd,hop,chain,fan-out,bundles} $(MAKE) --no-print-directory bench

.PHONY: bench-pure
bench-pure: ## Measure what decides, without a cluster
	$(CARGO) bench --workspace

.PHONY: wait
wait: musl ## Build linchpin-wait, static and small
	RUSTFLAGS="$$RUSTFLAGS --remap-path-prefix=$(or $(CARGO_HOME),$(HOME)/.cargo)/registry/src=crates" \
		$(CARGO) build --profile wait --target $(MUSL) --package linchpin-wait

.PHONY: bench-wait
bench-wait: wait ## Measure the waiter: size, memory, reaction
	LINCHPIN_WAIT_BIN=$${CARGO_TARGET_DIR:-$(CURDIR)/target}/$(MUSL)/wait/linchpin-wait \
		$(CARGO) bench --profile dev --package linchpin-wait --bench waiter

.PHONY: down
down: ## End the local Kubernetes and remove everything of it
	@$(LINCHPIN) local down

# Tests on a real node need containerd. As root on Debian it is installed; elsewhere those tests say that they were
# skipped and why. With CI=true, as root on Debian, they fail instead.
NODE_PACKAGES = haproxy containerd runc containernetworking-plugins iproute2 util-linux

.PHONY: node-packages
node-packages:
	@if ! command -v apt-get >/dev/null; then \
		echo "not Debian: tests on a real node run only if containerd is there"; \
	elif dpkg -s $(NODE_PACKAGES) >/dev/null 2>&1; then \
		:; \
	elif [ "$$(id -u)" != 0 ]; then \
		echo "not root: tests on a real node will be skipped"; \
	else \
		echo "installing $(NODE_PACKAGES) for the tests on a real node …"; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(NODE_PACKAGES) >/dev/null; \
	fi

# The waiter that tests on a real node put into pods. Where it cannot be built those tests say so.
.PHONY: node-waiter
node-waiter:
	@if command -v musl-gcc >/dev/null || { command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; }; then \
		$(MAKE) --no-print-directory wait; \
	else echo "no musl-gcc: there is no static waiter, and tests of it on a real node are skipped"; fi
