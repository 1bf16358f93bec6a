# What one does with Linchpin, a word each; `make help` lists them.

CARGO ?= cargo
# The linchpin of this checkout, built first if it must be.
LINCHPIN = $(CARGO) run --quiet --package linchpin --

.DEFAULT_GOAL := help

.PHONY: help
help: ## Say what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: down
down: ## End the local Kubernetes and remove everything of it
	@$(LINCHPIN) local down

# Kubernetes' own packages are not ours to judge: vetting main.go would go through all of them, for minutes.
.PHONY: lint-go
lint-go:
	@test -z "$$(gofmt -l kubernetes)" || { gofmt -d kubernetes; exit 1; }
	@cd kubernetes && go vet ./keeper ./images/...
