# Every check of .ci/run is a target here, so that what fails there fails here.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
export GOWORK := off

# Each directory with a go.mod is a module of its own; the root comes last.
MODULES := $(patsubst %/go.mod,%,$(wildcard */go.mod)) .
in-each-module = for m in $(MODULES); do (cd $$m && echo "== $$m: $(1)" && $(1)); done

# How long to fuzz each target. A count, not a duration: Go 1.26 now and then
# reports the end of a duration as a failure of the target.
FUZZTIME ?= 3000x
# How many operations the soak makes.
N ?= 1000000
# Which benchmarks to run.
BENCH ?= .
# The version that the next release will bear, set when it may break the API: a
# new major version, or a new minor version while the major version is 0.
NEXT :=

TOOLS := bin/staticcheck bin/gofumpt bin/apiguard

.NOTPARALLEL:
.PHONY: help build test lint onboard-race onboard-asan onboard-tsan bench explore mutate verify spin docs docs-check fuzz soak api check

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## compile all modules with and without cgo; bin/runfence is the result
	@export CGO_ENABLED=0; $(call in-each-module,go build -o /dev/null ./...)
	@export CGO_ENABLED=1; $(call in-each-module,go build -o /dev/null ./...)
	go build -trimpath -o bin/runfence ./cmd/runfence

test: build ## all tests: every scenario checked, then every module under the race detector
	@find scenario/testdata -name '*.txt' -print0 | sort -z | xargs -0 -r -n 1 bin/runfence run --check
	@$(call in-each-module,go test -race ./...)

lint: $(TOOLS) ## vet (this platform and linux/arm64), staticcheck, gofumpt
	@$(call in-each-module,go vet ./...)
	@export GOOS=linux GOARCH=arm64 CGO_ENABLED=0; $(call in-each-module,go vet ./...)
	@$(call in-each-module,$(CURDIR)/bin/staticcheck ./...)
	@bad=$$(bin/gofumpt -l .); if [ -n "$$bad" ]; then echo "not in gofumpt style; run bin/gofumpt -w on:"; echo "$$bad"; exit 1; fi

# The onboard backend on its stand-in driver, each time in another build: no two
# sanitizers go into one program, nor does either go with the race detector.
ONBOARD := ./backend/onboard/...
# The lifecycles on it, as the command plays them.
PLAYED := ./cmd/runfence -run 'StandIn|Borrowed|Doctor'
NO_ASLR := $(shell setarch -R true 2>/dev/null && echo setarch -R)

onboard-race: ## the onboard backend under the race detector, with checked cgo pointers, and without cgo
	ONBOARD_SANITIZER=none go test -race $(ONBOARD)
	ONBOARD_SANITIZER=none GOEXPERIMENT=cgocheck2 go test $(ONBOARD)
	CGO_ENABLED=0 go test $(ONBOARD)
	CGO_ENABLED=0 go test $(PLAYED)

onboard-asan: ## the onboard backend and its driver under AddressSanitizer
	ONBOARD_SANITIZER=address go test -asan $(ONBOARD)
	ONBOARD_SANITIZER=address go test -asan $(PLAYED)

onboard-tsan: export ONBOARD_SANITIZER := thread
onboard-tsan: export TSAN_OPTIONS := halt_on_error=1
onboard-tsan: export CGO_CFLAGS := -O1 -g -fsanitize=thread
onboard-tsan: export CGO_LDFLAGS := -fsanitize=thread
onboard-tsan: ## the C of the onboard backend and its driver under ThreadSanitizer
	$(NO_ASLR) go test $(ONBOARD)
	$(NO_ASLR) go test $(PLAYED)

bench: ## the peers side by side (BENCH=regexp chooses)
	cd bench && go test -run '^$$' -bench '$(BENCH)' -benchmem ./...

explore: ## explore every model of a lane, and write docs/verification.md
	go run ./docs/verify

verify: ## explore the models that take seconds
	go run ./docs/verify -short

spin: ## hold SPIN's search of the run model against ours (SPIN=--large for all of it); see docs/promela.md
	@command -v spin >/dev/null || { echo "SPIN is not installed: it is the Debian package spin (apt-get install spin gcc libc6-dev)"; exit 1; }
	go run ./cmd/runfence promela --check --faults $(SPIN)

mutate: build ## break the rules, one change at a time; some ten thousand of them (MUTATE='--machine drain' chooses)
	bin/runfence mutate $(MUTATE)

docs: ## write the generated parts of docs/ anew
	go run ./docs/gen

docs-check: ## fail if the generated parts of docs/ are out of date
	go run ./docs/gen -check

fuzz: ## fuzz every target for a short while (FUZZTIME=3000x, or a duration)
	@FUZZTIME=$(FUZZTIME) bash tools/fuzz.sh

soak: ## many goroutines at an orchestrator on a device with faults (N=1000000 operations, ten minutes at most)
	go test -race ./invariants -run '^TestResourcesSoak$$' -v -timeout 20m -soak.n=$(N)

api: bin/apiguard ## fail if the public API breaks what the last release promised
	bin/apiguard -next '$(NEXT)' .

check: lint docs-check api fuzz verify test onboard-race onboard-asan onboard-tsan ## everything that CI checks

$(TOOLS) &: tools/go.mod tools/go.sum $(wildcard tools/apiguard/*.go)
	mkdir -p bin
	cd tools && go build -o ../bin/ tool ./apiguard
	touch $(TOOLS)
