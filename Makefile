# make test   everything that must pass. As root on Debian it installs what is missing, and on a terminal asks first; elsewhere it leaves out the tests
#             that need it, says so in its last line, and fails, unless QUICK=1 is given
# make deps   the first step of it: installs what tests need
# make build  the binary, static
# make release VERSION=x  what a release consists of, in .dist; RELEASES_URL is where it will be, for Homebrew and Scoop (see the page Install)
# make release-check  a whole release, twice: the chart and every byte must come out the same
# make chart  renders the Helm chart anew for the tests, after a change to it
# make soak   the spool broken for PROMPTSPOOL_SOAK (10m by default) on end: kills, power cuts, full and broken disks, a day in short, a fuzzer and hostile input on the listeners
# make bench  the benchmarks, beside their floors
# make screenshots  each page of the dashboard, light and dark, wide and narrow, in the folder SCREENSHOTS (/tmp/promptspool-screenshots),
#             and the pictures of the README and the documentation, in their own folder
# make fuzz   each fuzz target for a minute

ifeq ($(filter oneshell,$(.FEATURES)),)
$(error GNU make 4 is needed. On macOS, `brew install make` has it as gmake)
endif

SHELL := /bin/bash
.ONESHELL:
.SHELLFLAGS := -euo pipefail -c
# What is compiled names no folder, so that a clone anywhere finds it in Go's cache.
export GOFLAGS := $(strip $(shell go env GOFLAGS) -trimpath)

.PHONY: test build soak bench screenshots release release-check chart fuzz absent deps install fmt vet lint cross unit race scenes plain portable portable-short

test:
	@$(MAKE) --no-print-directory deps
	export PROMPTSPOOL_ABSENT="$$($(MAKE) -s --no-print-directory absent | paste -sd ' ' -)"
	export PROMPTSPOOL_LEFT_OUT=$$(mktemp)
	trap 'rm $$PROMPTSPOOL_LEFT_OUT' EXIT
	$(MAKE) --no-print-directory fmt vet lint cross unit
	[ -n "$$PROMPTSPOOL_ABSENT" ] || exit 0
	sort -u $$PROMPTSPOOL_LEFT_OUT
	echo "Left out: $$(sort -u $$PROMPTSPOOL_LEFT_OUT | wc -l | tr -d ' ') of the tests. Missing: $$PROMPTSPOOL_ABSENT"
	[ -n "$(QUICK)" ]

# The parts that tests need beyond Go and that this machine lacks, by the names that metrics/parts.Need is given.
# The race detector needs cgo; the examples of the documentation need curl and python3; the dashboard's tests need a browser, and a proxy in front of it; power cuts and full disks
# need images of disks, and root; the clients that providers publish need node and npm; the alarms are tested by Prometheus' own promtool; servers that share a database by a real one;
# packages are installed by dpkg, and their units checked by systemd; checksums are signed with openssl.
absent:
	@for part in curl losetup mount mkfs.ext4 mkfs.xfs chromium nginx node npm python3 promtool dpkg unshare systemd-analyze openssl; do
		command -v $$part >/dev/null || echo $$part
	done
	echo '#include <stdlib.h>' | gcc -E - >/dev/null 2>&1 || echo gcc
	ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || echo postgres
	[ "$$(id -u)" = 0 ] || echo root

# Installs what is missing, or names it where that is not possible.
deps:
	@absent=$$($(MAKE) -s --no-print-directory absent | paste -sd ' ' -)
	if [ -n "$$absent" ]; then
		echo "Missing: $$absent"
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
			answer=y
			[ ! -t 0 ] || read -rp "Install them with apt-get? [y/N] " answer || answer=n
			case $$answer in
			[yY]*) $(MAKE) --no-print-directory install ABSENT="$$absent" ;;
			*) echo "Tests that need one of them are left out." ;;
			esac
		else
			echo "They are installed as root on Debian. Tests that need one of them are left out."
		fi
	fi
	command -v npm >/dev/null || exit 0
	# The packages that tests run with node, where npm_test.go looks for them. Here nothing else takes the processor.
	for lock in cmd/promptspool/e2e/testdata/*/package-lock.json; do
		dir=$$(dirname $$lock)
		folder=$${XDG_CACHE_HOME:-$$HOME/.cache}/promptspool-npm/$$(sha256sum $$lock | cut -c1-16)
		[ -e $$folder ] && continue
		mkdir -p $$(dirname $$folder)
		half=$$(mktemp -d $$(dirname $$folder)/half-XXXXXX)
		cp -r $$dir/. $$half
		(cd $$half && npm ci --ignore-scripts --no-audit --no-fund)
		chmod 755 $$half
		[ -e $$folder ] || mv $$half $$folder
	done

# Installs the parts in ABSENT. What is there is left alone: where node came from its maker's own package, Debian's npm cannot stand beside it.
install:
	@apt-get update -qq
	# The program of a package alone, where the package would start a server.
	program() {
		dir=$$(mktemp -d)
		(cd $$dir && apt-get download -qq $$1 && dpkg-deb --fsys-tarfile $$1_*.deb | tar -x ./$$2)
		install $$dir/$$2 /usr/local/bin/
		rm -r $$dir
	}
	packages=
	for part in $(ABSENT); do
		case $$part in
		promtool) program prometheus usr/bin/promtool ;;
		nginx) program nginx usr/sbin/nginx ;;
		# PostgreSQL's programs alone are needed: its package shall make and start no database.
		postgres)
			mkdir -p /etc/postgresql-common
			[ -e /etc/postgresql-common/createcluster.conf ] || echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf
			packages="$$packages postgresql" ;;
		losetup) packages="$$packages mount" ;;
		mkfs.ext4) packages="$$packages e2fsprogs" ;;
		mkfs.xfs) packages="$$packages xfsprogs" ;;
		node) packages="$$packages nodejs" ;;
		unshare) packages="$$packages util-linux" ;;
		systemd-analyze) packages="$$packages systemd" ;;
		gcc) packages="$$packages gcc libc6-dev" ;;
		*) packages="$$packages $$part" ;;
		esac
	done
	[ -z "$$packages" ] || apt-get install -y --no-install-recommends ca-certificates $$packages
	absent=$$($(MAKE) -s --no-print-directory absent | paste -sd ' ' -)
	if [ -n "$$absent" ]; then echo "Still missing, although it was installed: $$absent"; exit 1; fi

fmt:
	unformatted=$$(gofmt -l .)
	if [ -n "$$unformatted" ]; then echo "gofmt these files:"; echo "$$unformatted"; exit 1; fi

# Without cgo, vet, staticcheck and the tests without the race detector share what the shipped binary is compiled from.
# The benchmarks, which no test compiles, are looked at here.
vet:
	CGO_ENABLED=0 go vet -tags bench ./...

lint:
	CGO_ENABLED=0 go tool staticcheck -tags bench ./...

# The other systems that the program is for, with their tests: vetted, which compiles them first. What differs in the
# processor alone is type-checked by TestEveryPlatformCompiles, and compiled by release-check: to compile for one more
# platform takes two minutes of processor time where nothing is cached.
cross:
	for system in darwin/arm64 windows/amd64; do
		GOOS=$${system%/*} GOARCH=$${system#*/} CGO_ENABLED=0 go vet ./...
	done

# Two runs side by side, each with its output in one piece; the first that ends makes room for plain.
unit:
	$(MAKE) --no-print-directory --output-sync=target -j 2 race scenes plain portable-short

# -count=1: the end-to-end tests build and run the binary, which the test cache does not see. -vet=off: vet has been run.
GOTEST := go test -vet=off -count=1 -timeout 18m

race:
	cgo=1
	detector=-race
	case " $${PROMPTSPOOL_ABSENT:-} " in *" gcc "*)
		cgo=0
		detector= ;;
	esac
	CGO_ENABLED=$$cgo $(GOTEST) $$detector ./spool/queue ./spool/database/postgres ./spool/database/badgerdb ./proxy \
		$$($(concurrent) | grep -v '/e2e$$')

# The scenes of processes have the race detector in the processes that need it (watchForRaces), not in the test itself.
scenes:
	CGO_ENABLED=0 $(GOTEST) -parallel 4 ./cmd/promptspool/e2e

# The packages in which anything runs at the same time as anything else. In the others the race detector has nothing to
# find, and takes five times the processor.
concurrent = grep -rlE --include='*.go' '$(beside)' . | xargs dirname | sort -u
beside = ^\s+(go |t\.Parallel\()|\.Go\(|AfterFunc\(|"(sync|sync/atomic|golang.org/x/sync/.*|net/http/httptest|github.com/dgraph-io/badger/v4)"
tested = go list -f '{{if or .TestGoFiles .XTestGoFiles}}.{{slice .ImportPath 11}}{{end}}' ./... | sort

# Files that say !race: what one caller does takes up to twenty times as long with the race detector.
unraced = grep -ls '^//go:build !race' $$($(concurrent) | sed 's|$$|/*_test.go|')
names = sed -n 's/^func \(Test[^(]*\)(t .*/\1/p' $$($(unraced)) | sort -u | paste -sd '|'

plain:
	CGO_ENABLED=0 $(GOTEST) -run "^($$($(names)))$$" $$(dirname $$($(unraced)) | sort -u)
	CGO_ENABLED=0 $(GOTEST) $$(comm -13 <($(concurrent)) <($(tested)))

# What other systems run instead of Linux's own: in whole, and what of it takes little.
portable_job = ^(TestACallOnLocalhost|TestEnrichmentsMayCome|TestTheServerTakes|TestTemplatesAreServed|TestCommandsBeside)

portable:
	CGO_ENABLED=0 $(GOTEST) -tags portable ./spool/... ./proxy/... ./registry/... ./api/edge ./api/ops
	CGO_ENABLED=0 $(GOTEST) -tags portable -run '$(portable_job)' ./cmd/promptspool/e2e

portable-short:
	CGO_ENABLED=0 $(GOTEST) -tags portable ./spool/queue/generation ./spool/queue/lane ./spool/disk ./spool/rawlog ./api/edge
	CGO_ENABLED=0 $(GOTEST) -tags portable -run 'Ack|Append|Generation|Lane|Killed' ./spool/queue

build:
	CGO_ENABLED=0 go build -trimpath -tags urfave_cli_no_docs,nethttpomithttp2 -ldflags '-s -w' -o promptspool ./cmd/promptspool

# GoReleaser and what it calls are of the module beside their settings. What is released is a commit.
release:
	[ -n "$(VERSION)" ] || { echo "say which version: make release VERSION=x"; exit 1; }
	[ -z "$$(git status --porcelain)" ] || { echo "commit first: a release is built from a commit"; exit 1; }
	tools=$$(mktemp -d)
	trap 'rm -r "$$tools"' EXIT
	CGO_ENABLED=0 go build -C $(releasing) -o $$tools ./sbom github.com/goreleaser/goreleaser/v2
	skip=
	[ -n "$(RELEASES_URL)" ] || skip=--skip=homebrew,scoop
	VERSION=$(VERSION) RELEASES_URL=$(RELEASES_URL) PATH=$$tools:$$PATH \
		goreleaser release --snapshot --clean $$skip --config $(releasing)/goreleaser.yaml
	cp $(releasing)/install.sh $(releasing)/install.ps1 .dist
	# GoReleaser's own notes, and the programs that are in the archives.
	rm -r .dist/artifacts.json .dist/metadata.json .dist/config.yaml .dist/promptspool_*/
	[ -z "$$skip" ] || echo "No Homebrew formula and no Scoop manifest: they need RELEASES_URL, where the release will be."
	echo "Nothing is signed yet. With your key (see the page Install): openssl dgst -sha256 -sign release-key.pem -out .dist/checksums.txt.sig .dist/checksums.txt"

releasing := cmd/promptspool/deploy/release

# What the real Helm makes of the chart, and the sums of what it was made from: the tests check
# both, and so need no Helm, which takes minutes to compile.
chart:
	cd cmd/promptspool
	helm() { CGO_ENABLED=0 go tool -modfile=deploy/release/helm.mod helm "$$@"; }
	cp deploy/kubernetes/monitoring/prometheusrule.yaml deploy/helm
	helm lint --strict --quiet deploy/helm testdata/helm/app
	helm template promptspool deploy/helm >testdata/helm/badger.yaml
	helm template promptspool deploy/helm --set server.postgresql=true >testdata/helm/postgresql.yaml
	helm template shop deploy/helm -f testdata/helm/everything-values.yaml >testdata/helm/everything.yaml
	helm template shop testdata/helm/app >testdata/helm/app.yaml
	find deploy/helm deploy/release/helm.mod testdata/helm -type f ! -name sums | LC_ALL=C sort | xargs sha256sum >sums
	mv sums testdata/helm/sums

# The same commit in two folders. What differs is named.
release-check:
	twice=$$(mktemp -d)
	trap 'rm -rf "$$twice"' EXIT
	for clone in first second/deeper; do
		git clone --quiet . $$twice/$$clone
		$(MAKE) -C $$twice/$$clone --no-print-directory chart
		git -C $$twice/$$clone diff --exit-code
		$(MAKE) -C $$twice/$$clone --no-print-directory release VERSION=0.0.0-check RELEASES_URL=http://127.0.0.1
		(cd $$twice/$$clone/.dist && find . -type f | LC_ALL=C sort | xargs sha256sum) >$$twice/sums-$${clone%%/*}
	done
	diff $$twice/sums-first $$twice/sums-second
	cat $$twice/sums-first

# The same tests as in `make test`, one after the other, each for its part of the time.
soak: deps
	# Power is cut on other file systems as well.
	if ! command -v mkfs.btrfs >/dev/null; then
		apt-get update -qq
		apt-get install -y --no-install-recommends btrfs-progs
	fi
	PROMPTSPOOL_SOAK=$${PROMPTSPOOL_SOAK:-10m} go test -count=1 -timeout 0 -parallel 1 -v \
		-run 'Greedy|ThousandsOfSidecars|Killing|Dying|PowerCut|FullDisk|SingleFault|ADayInShort|SmallCgroup|AFuzzer|CostGrows|GeneratedShapes|LargeShapes|HugeLists|AnAttackedSidecar' ./cmd/promptspool/e2e | grep -Ev '^ *=== '
	go test -count=1 -timeout 0 -run '^TestArchive$$' ./spool/database/badgerdb ./spool/database/postgres -rapid.checks 1000

bench:
	go test -tags bench -run '^$$' -bench . -benchmem ./...

screenshots: deps
	mkdir -p $${SCREENSHOTS:=/tmp/promptspool-screenshots}
	PROMPTSPOOL_SCREENSHOTS=$$SCREENSHOTS go test -count=1 -run 'Dashboard|Overview|ARequestReads|RequestsAreFound|SignsUp|NoPageShuts|DaysAreDrawn|ImagesInARequest|YesterdaysFailures|SlowestCall|AConversationIs|ASpikeLeads|TemplatesOfABot' ./cmd/promptspool/e2e
	cp $$SCREENSHOTS/docs/*.webp api/dashboard/docs/pictures/
	echo "the screenshots are in $$SCREENSHOTS; those of the documentation were copied to api/dashboard/docs/pictures"

fuzz:
	for package in $$(go list ./...); do
		for target in $$(go test -list '^Fuzz' $$package | grep '^Fuzz' || true); do
			go test -run '^$$' -fuzz "^$$target$$" -fuzztime 1m $$package
		done
	done
