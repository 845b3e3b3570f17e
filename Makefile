.DEFAULT_GOAL := help
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)
FUZZTIME ?= 1m

.PHONY: demo demo-kube test conformance lint bench build tools envoy kubernetes fuzz generate clean help

demo: envoy build ## Run the demo: simulated regions, real Envoys, failures, under two minutes
	@./bin/meridian demo $(DEMO_FLAGS)

demo-kube: envoy kubernetes build ## Run the demo on real Kubernetes API servers
	@./bin/meridian demo --kubernetes $(DEMO_FLAGS)

test: tools ## Run every test under the race detector, real Envoys included
	go test -race -timeout 15m $$(go list ./... | grep -v /internal/e2e$$)
	go test -race -timeout 15m ./internal/e2e # alone: it counts requests while clusters die

conformance: ## Run the public xDS suite: XTH=path/to/xds-test-harness/xth (see docs/reference/conformance.md)
	XTH=$(XTH) go test -count 1 -v -timeout 30m -run TestSuite ./internal/conformance

lint: ## Check formatting and run the linters
	@internal/tools/lint.sh

bench: ## Run the benchmarks; bench/RESULTS.md keeps the ones that matter
	go test -run '^$$' -bench . -benchmem ./...

build: ## Build bin/meridian
	@go build -trimpath -ldflags '$(LDFLAGS)' -o bin/meridian ./cmd/meridian

tools: kubernetes ## Put all that tests run against into .tools
	@internal/tools/envoy.sh 1.40.0 1.38.3 1.36.4

envoy: ## Put the real Envoy into .tools; ENVOY_VERSIONS="1.36.4 1.38.3" for others
	@internal/tools/envoy.sh $(ENVOY_VERSIONS)

kubernetes: ## Build the real kube-apiserver and etcd into .tools: some minutes, once
	@internal/tools/kubernetes/build.sh

fuzz: ## Run every fuzz target for FUZZTIME (1m)
	@internal/tools/fuzz.sh $(FUZZTIME)

generate: ## Rewrite what is generated: JSON Schema, golden files, demo database
	go test ./cmd/meridian ./geo/mmdb ./internal/controlplane ./plan ./policies ./xds/build -update

clean: ## Remove what was built and fetched
	rm -rf bin .tools

help: ## Say what there is to make
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
