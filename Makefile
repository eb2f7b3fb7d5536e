# memagent: make run shows what it does, make test proves it. Both install
# what they miss (Debian packages, as root) and say so.

GO      ?= go
KERNEL  ?= 6.12
RUNS    ?= 3
MATRIX  ?= # flags of memlab matrix, such as --short --scenario stream --lru classic,mglru
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
# Static binaries: bin/memlab is also the init of its guests.
BUILD   := CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-s -w -X main.version=$(VERSION)"

.PHONY: all build run test unit lint manifests lab conform host matrix bench fuzz packages packages-check clean help

all: build

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

build: ## build bin/memagent and bin/memlab
	$(BUILD) -o bin/ ./cmd/memagent ./cmd/memlab
	$(BUILD) -tags crashpoints -o bin/memagent-crashpoints ./cmd/memagent # for the lab alone

run: build ## watch this host, or a demonstration in a guest where the host has no cgroup v2 memory
	@scripts/demo

test: lint unit manifests conform lab ## unit tests, lint, manifests and the lab on kernel $(KERNEL)

unit: ## unit tests with the race detector
	@scripts/need gcc:gcc /usr/include/stdlib.h:libc6-dev # the race detector needs cgo
	@scripts/need chromium:chromium # a test looks at the report as people do
	@scripts/promtool --version >/dev/null # tests of the alert rules
	CGO_ENABLED=1 $(GO) test -race -timeout 10m ./...

lint: ## gofmt, go vet and staticcheck
	@scripts/lint

manifests: ## the Kubernetes manifests against the types of its API
	@scripts/manifests-check

lab: build ## each lab scenario once, in its short form, on kernel $(KERNEL)
	bin/memlab setup --kernel $(KERNEL)
	bin/memlab suite --short --kernel $(KERNEL)

conform: build ## the real host against the simulated host's own suite, in a guest on kernel $(KERNEL)
	bin/memlab setup --kernel $(KERNEL)
	CGO_ENABLED=0 $(GO) test -c -o bin/cgroupfs.test ./cgroupfs
	bin/memlab exec --kernel $(KERNEL) -- bin/cgroupfs.test -test.v -test.run ConformsOnARealKernel -guest
	CGO_ENABLED=0 $(GO) test -c -o bin/memagent.test ./cmd/memagent
	bin/memlab exec --kernel $(KERNEL) -- bin/memagent.test -test.v -test.run OnARealKernel -guest

host: build packages ## the package on a container host with systemd, podman and containerd, in a guest on kernel $(KERNEL)
	@scripts/need mmdebstrap:mmdebstrap
	bin/memlab setup --kernel $(KERNEL)
	bin/memlab run host --agent on --kernel $(KERNEL)

matrix: build ## every scenario on kernels 6.1, 6.12 and the latest, medians of $(RUNS) runs; continues what was stopped
	bin/memlab setup
	bin/memlab matrix --runs $(RUNS) $(MATRIX)

bench: ## the benchmarks behind docs/performance.md
	$(GO) test -run '^$$' -bench . -benchmem ./...

fuzz: ## every fuzz target for half a minute
	@scripts/fuzz 30s

packages: ## .deb and .rpm in dist/, for ARCH (Go's names; default: this machine's)
	@scripts/packages

packages-check: manifests ## build the packages twice, install and purge them in a throw-away root; alerts and manifests
	@scripts/packages-check
	@scripts/promtool --version >/dev/null # for the tests of packaging/
	$(GO) test -count 1 ./packaging/

clean: ## remove what was built here; downloads stay in the cache folder
	rm -rf bin dist
