# make test     everything that must pass. As root on Debian it first installs what the tests need beyond Go, and on
#               a terminal asks; elsewhere it leaves out what needs more, says so in its last line, and fails,
#               unless QUICK=1
# make build    the binary, static
# make release VERSION=x  what a release consists of, in .dist; RELEASES_URL is where it will be, for Homebrew and
#               Scoop (see the page Install)
# make release-check  what takes too long for each change: other systems, benchmarks, the portable forms, other
#               versions of PostgreSQL, released versions beside this one; then a whole release, twice: every byte
#               must come out the same
# make generate writes what derives from the code: API reference, lists on pages, packed pages
# make fixtures what a server and a sidecar of this version leave on disk, for the tests of later ones, once before a
#               release: it replaces those of the same version
# make chart    renders the Helm chart again for the tests, after a change to it
# make soak     long forms of tests, and scenes that are in no other run (tag soak): the spool broken for
#               PROMPTSPOOL_SOAK (10m by default) on end by kills, power cuts, full and broken disks; a day in
#               short, a fuzzer and hostile input on the listeners, released versions beside this one
# make postgres-versions  the tests that need PostgreSQL, with each version that the page PostgreSQL names; npm has
#               them for Linux on amd64. A folder of your own: PROMPTSPOOL_POSTGRES=/usr/lib/postgresql/17/bin go test ...
# make bench    the benchmarks, beside their floors
# make screenshots  each page of the dashboard, light and dark, wide and narrow, in the folder SCREENSHOTS
#               (/tmp/promptspool-screenshots); the pictures of README and documentation, in their own folder
# make fuzz     each fuzz target for a minute

ifeq ($(filter oneshell,$(.FEATURES)),)
$(error GNU make 4 is needed. On macOS, `brew install make` has it as gmake)
endif

SHELL := /bin/bash
.ONESHELL:
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory
# What is compiled names no folder, so that a clone anywhere finds it in Go's cache.
export GOFLAGS := $(strip $(shell go env GOFLAGS) -trimpath)
# Only the race detector needs cgo. Everything else shares what the shipped binary is compiled from.
export CGO_ENABLED := 0

# The end-to-end tests and those of what is deployed are modules of their own, for what only they use.
e2e := cmd/promptspool/e2e
deploy := cmd/promptspool/deploy

.PHONY: test check packages race scenes plain portable build generate fixtures release release-check chart soak postgres-versions bench screenshots fuzz

test:
	@export PROMPTSPOOL_ABSENT PROMPTSPOOL_LEFT_OUT
	PROMPTSPOOL_ABSENT=$$(.ci/install)
	PROMPTSPOOL_LEFT_OUT=$$(mktemp)
	# Each minute a line with what runs, because the output of each part comes when it ends.
	while sleep 60 >/dev/null 2>&1; do
		running=$$(ps -A -o comm= | sed -nE 's|.*/||; /^(compile|link|vet|staticcheck|npm.*|.*\.test)$$/p' | sort -u) || true
		echo "$$((SECONDS / 60)) min:" $$running
	done &
	trap 'kill %1 || true; rm $$PROMPTSPOOL_LEFT_OUT' EXIT
	$(MAKE) -j 2 --output-sync=target check packages
	$(MAKE) -j 3 --output-sync=target scenes race plain
	[ -n "$$PROMPTSPOOL_ABSENT" ] || exit 0
	sort -u $$PROMPTSPOOL_LEFT_OUT
	echo "Left out: $$(sort -u $$PROMPTSPOOL_LEFT_OUT | wc -l | tr -d ' ') of the tests. Missing: $$PROMPTSPOOL_ABSENT"
	[ -n "$(QUICK)" ]

# With TAGS=bench,soak it looks at what no test compiles.
check:
	unformatted=$$(gofmt -l .)
	[ -z "$$unformatted" ] || { echo "gofmt these files:"; echo "$$unformatted"; exit 1; }
	staticcheck=$$(go tool -C $(e2e) -n honnef.co/go/tools/cmd/staticcheck)
	for module in . $(e2e) $(deploy); do
		go vet -C $$module -tags "$(TAGS)" ./...
		(cd $$module && $$staticcheck -tags "$(TAGS)" ./...)
	done

# Several packages run the program e2e/tools: it is built once.
packages:
	.ci/install packages
	go tool -C $(e2e) -n promptspool/$(e2e)/tools >/dev/null

# -count=1: scenes build and run the binary, which the test cache does not see. -vet=off: vet has been run.
GOTEST = go test $(1:%=-C %) -vet=off -count=1 -timeout 18m
RACE := $(if $(filter gcc,$(PROMPTSPOOL_ABSENT)),,-race)

# The packages in which threads meet have a race_test.go; TestWhereThreadsMeetIsRaced looks for those that lack
# one. In the others the race detector has nothing to find, and takes five times the processor. Of the raced
# packages, the tests in files that say !race are run without it: what one caller does takes up to twenty times as
# long there.
RACED = $(sort $(patsubst %/race_test.go,%,$(shell find api cmd metrics proxy registry spool -name race_test.go)))
UNRACED = $(shell grep -lE '^//go:build .*!race' $(RACED:%=%/*_test.go))

# The tests in files, as go test -run takes them.
TESTS = ^($$(sed -nE 's/^func (Test[A-Z]\w*)\(.*/\1/p' $(1) | grep -v '^TestMain$$' | paste -sd '|' -))$$

race:
	# The databases take longest, so they begin.
	CGO_ENABLED=$(if $(RACE),1,0) $(call GOTEST) $(RACE) $(patsubst %,./%,$(filter spool/database/%,$(RACED)) $(RACED))

# The scenes of processes have the race detector in the processes that need it (WatchForRaces).
scenes:
	# The dashboard takes longest, so it begins.
	$(call GOTEST,$(e2e)) -p 2 -parallel 2 ./dashboard ./durability ./...

plain:
	$(call GOTEST) $(filter-out $(RACED:%=promptspool/%),$(shell go list ./...))
	$(call GOTEST) -run "$(call TESTS,$(UNRACED))" \
		$(sort $(patsubst %/,./%,$(dir $(UNRACED))))
	$(call GOTEST,$(deploy)) ./...

# What other systems run instead of Linux's own.
portable:
	$(call GOTEST) -tags portable ./spool/... ./proxy/... ./registry/... ./api/edge ./api/ops
	$(call GOTEST,$(e2e)) -tags portable -run TestACallOnLocalhost ./delivery

# In this order: the pages are packed last.
generate:
	go test -vet=off ./api/filterline ./api/calls/otel/dialect -update
	go test -C $(e2e) -vet=off ./openapi -update
	go test -vet=off ./cmd/promptspool -run TestGeneratedPages -update
	go test -vet=off ./api/dashboard/docs -update

fixtures:
	$(call GOTEST,$(e2e)) ./releases -update

build:
	go build -tags urfave_cli_no_docs,nethttpomithttp2 -ldflags '-s -w' -o promptspool ./cmd/promptspool

# GoReleaser and what it calls are of the module beside their settings. What is released is a commit.
release:
	[ -n "$(VERSION)" ] || { echo "say which version: make release VERSION=x"; exit 1; }
	[ -z "$$(git status --porcelain)" ] || { echo "commit first: a release is built from a commit"; exit 1; }
	tools=$$(mktemp -d)
	trap 'rm -r "$$tools"' EXIT
	go build -C $(releasing) -trimpath -o $$tools github.com/goreleaser/goreleaser/v2 \
		github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod
	skip=
	[ -n "$(RELEASES_URL)" ] || skip=--skip=homebrew,scoop
	VERSION=$(VERSION) RELEASES_URL=$(RELEASES_URL) PATH=$$tools:$$PATH \
		goreleaser release --snapshot --clean $$skip --config $(releasing)/goreleaser.yaml
	cp $(releasing)/install.sh $(releasing)/install.ps1 .dist
	# GoReleaser's own notes, and the programs that are in the archives.
	rm -r .dist/artifacts.json .dist/metadata.json .dist/config.yaml .dist/promptspool_*/
	[ -z "$$skip" ] || echo "No Homebrew formula and no Scoop manifest: they need RELEASES_URL, where the release will be."
	echo "Nothing is signed yet. With your key (see the page Install): openssl dgst -sha256 -sign release-key.pem -out .dist/checksums.txt.sig .dist/checksums.txt"

releasing := $(deploy)/release

# What the real Helm makes of the chart, and the sums of what it was made from: the tests check
# both, and so need no Helm, which takes minutes to compile.
chart:
	cd $(deploy)
	helm() { go tool -modfile=release/helm.mod helm "$$@"; }
	cp kubernetes/monitoring/prometheusrule.yaml helm
	helm lint --strict --quiet helm testdata/helm/app
	helm template promptspool helm >testdata/helm/badger.yaml
	helm template promptspool helm --set server.postgresql=true >testdata/helm/postgresql.yaml
	helm template shop helm -f testdata/helm/everything-values.yaml >testdata/helm/everything.yaml
	helm template shop testdata/helm/app >testdata/helm/app.yaml
	find helm release/helm.mod testdata/helm -type f ! -name sums | LC_ALL=C sort | xargs sha256sum >sums
	mv sums testdata/helm/sums

# What no test looks at: benchmarks, long scenes, what is for other systems alone, the binary of each release
# beside that of this commit. And the same commit in two folders; what differs is named.
release-check: packages
	.ci/install
	for system in darwin windows; do GOOS=$$system go vet ./...; done
	$(MAKE) check TAGS=bench,soak
	$(MAKE) portable postgres-versions
	$(call GOTEST,$(e2e)) -tags soak -timeout 60m -run 'TwoReleases|TwoBuilds|TwoServers|AReleaseAnswers' ./releases ./durability
	twice=$$(mktemp -d)
	trap 'rm -rf "$$twice"' EXIT
	for clone in first second/deeper; do
		git clone --quiet . $$twice/$$clone
		$(MAKE) -C $$twice/$$clone chart
		git -C $$twice/$$clone diff --exit-code
		$(MAKE) -C $$twice/$$clone release VERSION=0.0.0-check RELEASES_URL=http://127.0.0.1
		(cd $$twice/$$clone/.dist && find . -type f | LC_ALL=C sort | xargs sha256sum) >$$twice/sums-$${clone%%/*}
	done
	diff $$twice/sums-first $$twice/sums-second
	cat $$twice/sums-first

# Scenes with the tag soak, and the long forms of those that ask how long they may take, one after the other, each
# for its part of the time.
SOAKED = $(shell grep -rlE --include='*_test.go' '^//go:build .*soak|harness\.(Soak|Rounds)' $(e2e))

soak: packages
	.ci/install
	PROMPTSPOOL_SOAK=$${PROMPTSPOOL_SOAK:-10m} go test -C $(e2e) -tags soak -count=1 -timeout 0 -p 1 -parallel 1 -v \
		-run "$(call TESTS,$(SOAKED))" ./... | grep -Ev '^ *=== '
	PROMPTSPOOL_SOAK=1 go test -count=1 -timeout 0 -run '^TestArchive|TwoServers' ./spool/database/badgerdb ./spool/database/postgres -rapid.checks 1000
	$(MAKE) portable

# Below /tmp, because root may not run PostgreSQL, and another user does not reach everybody's home.
postgres-versions:
	.ci/install
	folder=$$(mktemp -d /tmp/promptspool-postgres-XXXXXX)
	trap 'rm -r $$folder' EXIT
	cp spool/database/postgres/testdata/versions/*.json $$folder
	(cd $$folder && npm ci --ignore-scripts --no-audit --no-fund)
	chmod -R a+rX $$folder
	for version in $$folder/node_modules/postgres-*; do
		(cd $$version && node scripts/hydrate-symlinks.js) # the links of its libraries
		export PROMPTSPOOL_POSTGRES=$$version/native/bin
		$$PROMPTSPOOL_POSTGRES/postgres --version
		$(call GOTEST) ./spool/database/postgres
		$(call GOTEST,$(e2e)) -run "$(call TESTS,$(POSTGRES_TESTED))" ./durability ./releases ./clients
	done

POSTGRES_TESTED = $(shell grep -rl --include='*_test.go' 'postgrestest"' $(e2e))

# The benchmarks of processes are in the folder bench of the end-to-end tests.
bench:
	go test -tags bench -run '^$$' -bench . -benchmem ./...
	go test -C $(e2e) -tags bench -run '^$$' -bench . -benchmem ./...

screenshots: packages
	.ci/install
	mkdir -p $${SCREENSHOTS:=/tmp/promptspool-screenshots}
	PROMPTSPOOL_SCREENSHOTS=$$SCREENSHOTS go test -C $(e2e) -count=1 -run 'Dashboard|Overview|ARequestReads|RequestsAreFound|SignsUp|NoPageShuts|DaysAreDrawn|ImagesInARequest|YesterdaysFailures|SlowestCall|AConversationIs|ASpikeLeads|TemplatesOfABot' ./dashboard
	cp $$SCREENSHOTS/docs/*.webp api/dashboard/docs/pictures/
	echo "the screenshots are in $$SCREENSHOTS; those of the documentation were copied to api/dashboard/docs/pictures"

fuzz:
	for package in $$(go list ./...); do
		for target in $$(go test -list '^Fuzz' $$package | grep '^Fuzz' || true); do
			go test -run '^$$' -fuzz "^$$target$$" -fuzztime 1m $$package
		done
	done
