# SPDX-License-Identifier: Apache-2.0
#
# Needs Go, git and make; to test, spin and a C compiler, which are installed if they can be; to deploy, bash 4.4 or newer. `make` lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

least_go := 1.26
# Where several goroutines meet. Everything else decides, and is tested without -race.
racing := ./shared/runner ./shared/flights ./shared/cluster/... ./shared/provider/kubemark ./shared/events
# Functions whose tests have a runner write, or ask clouds, from several goroutines; what only decides, or takes minutes, is left out.
calling := ./functions/drain-node ./functions/provision-machine ./functions/sweep-instances
deciding := ^Test(Scenarios|Properties|FindsTakeTurns)$$
# Modules beside the product's: Kubernetes and Knative, which ask for other versions than it does.
nested := test/cluster test/eventing test/scheduling test/node
tool := go tool -modfile=$(CURDIR)/tools/go.mod
# What images are built with: whatever judges them goes by it.
toolchain := $(shell awk '$$1 == "toolchain" { print $$2 }' go.mod)
vulndb := v0.0.0-20261105234957-e22db6528018
say = echo "== $$(date -u +%T) $(1)"

.PHONY: help
help: ## This list
	@awk -F ':.*## ' '/^[a-z][a-z0-9-]*:.*## / { printf "  %-11s %s\n", $$1, $$2 }' Makefile

.PHONY: go
go:
	@command -v go >/dev/null || { echo "Go is missing: install Go $(least_go) or newer from https://go.dev/dl/"; exit 1; }
	@have=$$(cd / && GOTOOLCHAIN=local go env GOVERSION) && \
	  [ "$$(printf '%s\n' $(least_go) "$${have#go}" | sort -V | head -1)" = $(least_go) ] || \
	  { echo "Go $${have#go} is too old: install Go $(least_go) or newer from https://go.dev/dl/"; exit 1; }

.PHONY: run
run: go build/local ## Start everything on this machine, until Ctrl-C; PROVIDER=aws|azure|libvirt|metal3|openstack|ovirt|vsphere with that cloud
	@exec build/local run $(if $(PROVIDER),-cloud $(PROVIDER))

.PHONY: demo
demo: go build/local ## Play a story on what `make run` started, or start it; PROVIDER=aws|azure|libvirt|metal3|openstack|ovirt|vsphere plays on that cloud
	@exec build/local demo $(if $(PROVIDER),-cloud $(PROVIDER))

.PHONY: build/local
build/local:
	@go build -o $@ ./test/local

.PHONY: test
test: go ## All tests, the fast ones first; what CI runs; SPIN=no leaves the models out where spin cannot be had
	@$(call say,vet)
	go vet ./...
	@$(call say,unit and scenario tests)
	go test -short -count=1 -shuffle=on -timeout 15m ./...
	go test -count=1 -timeout 15m ./shared/provider/vsphere ./shared/provider/openstack ./shared/provider/azure ./shared/provider/ovirt # every fault, and thousands of Machines: half a minute each
	go test -count=1 -timeout 15m ./test/bench/scan # each function in the memory that its manifest gives it, with 5,000 Machines
	@$(call say,simulation: schedules of the real functions)
	go test -v -count=1 -timeout 20m -run 'TestSwarm|TestPriorities|TestSleeper|TestEvery|TestAllSchedules|TestForged' ./test/sim
	go test -count=1 -timeout 20m -run 'TestConverged|TestCallsOfAThousand' ./test/sim # in full
	go test -count=1 -timeout 20m ./test/history
	@$(call say,a sixteenth of the guards: another one for each commit)
	go test -v -count=1 -timeout 20m -run WithoutEachGuard ./test/guards -args -remove -cheap -share "$$(git rev-parse HEAD 2>/dev/null || echo none)" | grep -v '^=== '
	@$(call say,the protocols as models)
	test/spin/run.sh
	@$(call say,control plane and eventing: built once then cached)
	test/cluster/build.sh
	test/eventing/build.sh
	go test -count=1 -run '^TestOverlays' ./test
	@$(call say,schedules of the simulation on a real API server)
	go test -v -count=1 -timeout 20m -run '^TestSeedsOnARealServer$$' ./test/sim | grep -vE '^ *(=== |--- PASS: .*/)'
	@$(call say,nested modules)
	for module in $(nested); do (cd $$module && go test -count=1 -timeout 20m ./...); done
	@$(MAKE) --no-print-directory test-race
	@$(call say,the parts that make run starts)
	go test -count=1 -p 1 -timeout 20m ./test/local/...
	@$(MAKE) --no-print-directory e2e
	@[ "$(SPIN)" != no ] || $(call say,not all was tested: the models were left out)

# N=3000 plays 7,000: in so short a run each of the 420 small scopes gets its share, while in longer ones most end before they have it:
# N=100000 plays 102,000. Another SEED is another run, but for what is the same with every seed, which is printed at the end.
.PHONY: sim
sim: go ## N schedules or more of all functions together under faults, 1000000 unless told; one PART of PARTS of them: PARTS=20 with PART=0 to PART=19 are a run
	go test -v -count=1 -timeout 24h -run 'TestSwarm|TestPriorities|TestSleeper|TestEvery|TestAllSchedules' ./test/sim -args -every 10s -times "$$(awk 'BEGIN { print $(or $(N),1000000) / 100000 }')" -seed $(or $(SEED),0) -part $(or $(PART),0) -parts $(or $(PARTS),1)

.PHONY: guards
guards: go ## Take every guard away in turn and want tests to fail: docs/guards.md; ONLY=name; hours
	go test -short -timeout 15m ./... # what fails with every guard in place says nothing of one
	go test -v -count=1 -timeout 24h -run WithoutEachGuard ./test/guards -args -remove -quick -only '$(or $(ONLY),.)' -table $(CURDIR)/docs/guards.md

.PHONY: spin
spin: ## Check the models of the ledger and of the claim, or fail; installs spin on Debian
	test/spin/run.sh

.PHONY: test-race
test-race: go ## Race detector over the packages where goroutines meet; needs a C compiler
	@$(call say,race detector)
	@[ "$$(go env CGO_ENABLED)" = 1 ] || echo "no C compiler: testing without the race detector"
	go test -count=1 -timeout 20m $$([ "$$(go env CGO_ENABLED)" = 0 ] || echo -race) -p 1 $(racing)
	go test -count=1 -timeout 20m $$([ "$$(go env CGO_ENABLED)" = 0 ] || echo -race) -p 1 -short -skip '$(deciding)' $(calling)

.PHONY: e2e
e2e: go ## Whole stories on a real control plane with real Knative Eventing
	@$(call say,end to end)
	go test -v -count=1 -timeout 60m -parallel 4 ./test/e2e # most of the time they wait

.PHONY: e2e-knative
e2e-knative: go ## The stories on a real node with real Knative: root on Linux; writes docs/evidence/e2e-knative.txt
	@test/node/run.sh # says what is missing
	@mkdir -p build
	FUNC_GO=$(CURDIR)/test/node/native-go.sh tools/func/deploy.sh build # once with a network: the node has none
	@{ echo "make e2e-knative, $$(git log -1 --format='commit %h of %cs: %s')"; \
	  echo "$$(nproc) cores, $$(uname -sr), $$(go env GOVERSION), $$(runc --version | head -1), $$(containerd --version)"; \
	  (cd test/node && go list -m knative.dev/eventing knative.dev/serving github.com/coredns/coredns); \
	  (cd test/node/kubernetes && go list -m k8s.io/kubernetes); (cd tools/func && go list -m knative.dev/func); echo; } >build/e2e-knative.txt
	REPORT=$(CURDIR)/build/e2e-knative.txt test/node/run.sh go test -v -count=1 -timeout 90m -run '^TestKnative$$' ./test/e2e
	cp build/e2e-knative.txt docs/evidence/e2e-knative.txt
	@{ grep '^#' test/replay/testdata/knative.txt; cat build/node/logs/calls.txt; } >build/calls.txt # test/replay holds config/rbac to these calls
	cp build/calls.txt test/replay/testdata/knative.txt

.PHONY: test-metal3
test-metal3: go ## Bare metal against the real baremetal-operator, built once; writes docs/evidence/metal3*.txt
	test/metal3/run.sh

.PHONY: test-openstack
test-openstack: go ## OpenStack against a real one, which is installed once: root, 1 GB, an hour; ARGS=-test.run=…
	test/openstack/run.sh $(ARGS)

.PHONY: test-libvirt
test-libvirt: go ## libvirt against a real daemon, which is installed once: root; writes docs/evidence/libvirt.txt; ARGS=-test.run=…
	test/libvirt/run.sh $(ARGS)

.PHONY: load-machines
load-machines: go ## N Machines, 1000 unless told, up and down; writes docs/evidence/load-N.txt
	LOAD=$(or $(N),1000) LOAD_REPORT=$(CURDIR)/docs/evidence/load-$(or $(N),1000).txt go test -v -count=1 -timeout 90m -run '^TestLoad$$' ./test/e2e

.PHONY: load
load: go ## Floods of events through the Broker and at the functions, which are killed meanwhile; writes docs/evidence/load-events.txt, whose figures docs/without-a-leader.md tells
	@mkdir -p build
	FLOOD_REPORT=$(CURDIR)/build/load-events.txt go test -v -count=1 -timeout 45m -run '^TestFlood$$' ./test/e2e
	cp build/load-events.txt docs/evidence/load-events.txt

.PHONY: check
check: go ## Format, vet, lint, unit and scenario tests: before every commit
	@$(call say,lint: the linter is built once and then cached)
	$(tool) golangci-lint run ./...
	for module in $(nested); do (cd $$module && $(tool) golangci-lint run --config ../../.golangci.yml ./...); done
	@$(call say,unit and scenario tests)
	go test -short ./...

.PHONY: golden
golden: go ## Rewrite the plans of all scenarios; commit what you can explain
	go test ./functions/... -update
	git diff --stat -- functions

.PHONY: explain
explain: go ## Tell how a scenario is decided: FILE=functions/…/testdata/….txtar
	@go run ./test/scenario/explain $(or $(FILE),$(error FILE= names a scenario))

.PHONY: bench
bench: go ## Decide about every workload, a line each into build/bench.jsonl (WORKLOADS=files takes others); then images and starts
	@mkdir -p build
	@go build -o build/bench ./test/bench/run
	@for file in $(or $(WORKLOADS),test/bench/testdata/*.json*); do build/bench "$$file"; done | tee build/bench.jsonl
	FUNC_GO=$(CURDIR)/test/node/native-go.sh tools/func/deploy.sh build
	go run ./test/bench/start | tee build/start.txt

.PHONY: bench-scan
bench-scan: go ## Whole scans at 5,000 Nodes and 155,000 Pods, a line into build/scan.jsonl; ARGS=-real asks a real API server
	@mkdir -p build
	@go build -o build/scan ./test/bench/scan
	@build/scan $(ARGS) | tee build/scan.jsonl

.PHONY: benchstat
benchstat: go ## Run the benchmarks into build/bench.txt; OLD=file compares with an earlier one
	@mkdir -p build
	go test -run '^$$' -bench . -benchmem -count 6 ./... | tee build/bench.txt
	@$(if $(OLD),$(tool) benchstat $(OLD) build/bench.txt)

.PHONY: fuzz
fuzz: go ## Run every fuzz test for TIME, 30s unless told
	@grep -rlE --include='*_test.go' '^func Fuzz' . | while read -r file; do \
	  for target in $$(sed -nE 's/^func (Fuzz[A-Za-z0-9_]*).*/\1/p' "$$file"); do \
	    (cd "$$(dirname "$$file")" && go test -run '^$$' -fuzz "^$$target\$$" -fuzzminimizetime 100x -fuzztime $(or $(TIME),30s) .); \
	  done; \
	done

.PHONY: generate
generate: go ## Write what is generated: the CRDs of openshift/api
	config/crd/update.sh

.PHONY: verify
verify: go ## Fail if generate or tidy would change anything
	config/crd/update.sh --verify
	for module in . tools tools/func $(nested) test/node/kubernetes test/metal3; do (cd $$module && go mod tidy -diff && go mod verify); done

.PHONY: vulncheck
vulncheck: go ## Known vulnerabilities that images reach; asks https://vuln.go.dev, or VULNDB=a copy of it, file:// too
	GOTOOLCHAIN=$(toolchain)+auto $(tool) govulncheck $(if $(VULNDB),-db $(VULNDB)) ./...

.PHONY: vulndb
vulndb: go ## A copy of https://vuln.go.dev from the module proxy, into build/vulndb; VERSION=latest takes the newest that it has
	@rm -rf build/vulndb
	@from=$$(cd / && go mod download -json golang.org/x/vulndb@$(or $(VERSION),$(vulndb)) | sed -n 's/.*"Dir": "\(.*\)".*/\1/p') && \
	  go run golang.org/x/vulndb/cmd/indexdb@$$(basename "$$from" | cut -d@ -f2) -vulns "$$from/data/osv" -out build/vulndb && \
	  echo "make vulncheck VULNDB=file://$(CURDIR)/build/vulndb"

.PHONY: sbom
sbom: go ## The bill of materials, SPDX 2.3, into build/sbom.spdx.json
	@mkdir -p build
	GOTOOLCHAIN=$(toolchain)+auto go run ./test/sbom >build/sbom.spdx.json

.PHONY: build
build: go ## Build everything: the product, the control plane, eventing
	go build ./...
	test/cluster/build.sh
	test/eventing/build.sh

.PHONY: manifests
manifests: ## Write build/manifests: an installation but the functions, for make deploy; OVERLAYS="namespaces oidc" with these
	OVERLAYS='$(OVERLAYS)' tools/func/deploy.sh manifests

.PHONY: deploy
deploy: go ## Deploy functions with kn func: REGISTRY=where images go; FN=link-node that one alone; ENV="NAME=VALUE NAME-" settings
	ENV='$(ENV)' OVERLAYS='$(OVERLAYS)' FUNC_REGISTRY=$(or $(REGISTRY),$(FUNC_REGISTRY)) tools/func/deploy.sh deploy $(FN)

.PHONY: undeploy
undeploy: go ## Take functions away again; FN=link-node that one alone
	tools/func/deploy.sh undeploy $(FN)

.PHONY: release
release: go ## Push all images to REGISTRY and write build/release: an installation with their digests; OVERLAYS="namespaces oidc"
	OVERLAYS='$(OVERLAYS)' FUNC_REGISTRY=$(or $(REGISTRY),$(FUNC_REGISTRY)) tools/func/deploy.sh release

.PHONY: clean
clean: ## Remove what was built here; the caches of go and of the control plane stay
	rm -rf build
