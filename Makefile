# What one does with Linchpin, a word each; `make help` lists them.

CARGO ?= cargo
GO ?= go
# Told to the program, so that `linchpin version` can name it.
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
test: node-packages ## Run all tests, also those on a real API server and a real node
	$(CARGO) test --workspace

.PHONY: lint
lint: lint-go ## Check format, clippy and Go
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings

# Kubernetes' own packages are not ours to judge: vetting main.go would go through all of them, for minutes.
.PHONY: lint-go
lint-go:
	@test -z "$$(gofmt -l kubernetes)" || { gofmt -d kubernetes; exit 1; }
	cd kubernetes && $(GO) vet ./keeper ./images/...

.PHONY: deny
deny: ## Check licences, vulnerabilities and forbidden dependencies (installs cargo-deny, which takes minutes)
	@command -v cargo-deny >/dev/null || $(CARGO) install --locked cargo-deny
	$(CARGO) deny check

.PHONY: model
model: ## Explore every way small plans and elections can go
	$(CARGO) test --package linchpin-engine --test it model
	$(CARGO) test --package linchpin-cluster --lib lease::exploration

.PHONY: fuzz-smoke
fuzz-smoke: ## Feed everything that reads text ten seconds of garbage each
	@for target in cel jsonpath compare template yaml reference duration; do \
		$(CARGO) run --quiet --profile fast --package linchpin-lang --example fuzz -- --target $$target --seconds 10 || exit 1; \
	done

.PHONY: bench
bench: ## Measure what must be fast
	$(CARGO) bench --workspace

.PHONY: down
down: ## End the local Kubernetes and remove everything of it
	@$(LINCHPIN) local down

# Tests on a real node need containerd. As root on Debian it is installed; elsewhere those tests say that they were
# skipped and why.
NODE_PACKAGES = containerd runc containernetworking-plugins iproute2 util-linux

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
