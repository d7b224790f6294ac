# make test   everything that must pass; installs what is missing (Debian, as root)
# make build  the binary, static
# make soak   the spool broken for PROMPTSPOOL_SOAK (10m by default) on end: kills, power cuts, full and broken disks, a day in short, a fuzzer and hostile input on the listeners
# make bench  the benchmarks, beside their floors
# make screenshots  each page of the dashboard, light and dark, wide and narrow, in the folder SCREENSHOTS (/tmp/promptspool-screenshots);
#             the README's picture is the upper part of overview-light-1440.png
# make fuzz   each fuzz target for a minute

SHELL := /bin/bash
.ONESHELL:
.SHELLFLAGS := -euo pipefail -c
# What is compiled names no folder, so that a clone anywhere finds it in Go's cache.
export GOFLAGS := $(strip $(shell go env GOFLAGS) -trimpath)

.PHONY: test build soak bench screenshots fuzz deps fmt vet lint unit race scenes plain

test: deps fmt vet lint unit

# The race detector needs cgo; the examples of the documentation need curl and python3; the dashboard's tests need a browser; power cuts and full disks need images of disks, and root;
# the clients that providers publish need node and npm; the alarms are tested by Prometheus' own promtool; servers that share a database by a real one.
deps:
	# Only what is missing: where node came from its maker's own package, Debian's npm cannot stand beside it.
	missing=
	need() { command -v $$1 >/dev/null || missing="$$missing $$2"; }
	need curl curl
	need losetup mount
	need mount mount
	need mkfs.ext4 e2fsprogs
	need chromium chromium
	need node nodejs
	need npm npm
	need python3 python3
	echo '#include <stdlib.h>' | gcc -E - >/dev/null 2>&1 || missing="$$missing gcc libc6-dev"
	# promtool alone: its package would start a Prometheus.
	if ! command -v promtool >/dev/null; then
		dir=$$(mktemp -d)
		apt-get update -qq
		(cd $$dir && apt-get download -qq prometheus && dpkg-deb --fsys-tarfile prometheus_*.deb | tar -x ./usr/bin/promtool)
		install $$dir/usr/bin/promtool /usr/local/bin/promtool
		rm -r $$dir
	fi
	# nginx alone, for the same reason.
	if ! command -v nginx >/dev/null; then
		dir=$$(mktemp -d)
		apt-get update -qq
		(cd $$dir && apt-get download -qq nginx && dpkg-deb --fsys-tarfile nginx_*.deb | tar -x ./usr/sbin/nginx)
		install $$dir/usr/sbin/nginx /usr/local/bin/nginx
		rm -r $$dir
	fi
	# PostgreSQL's programs alone are needed: its package shall make and start no database.
	if ! ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1; then
		mkdir -p /etc/postgresql-common
		[ -e /etc/postgresql-common/createcluster.conf ] || echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf
		apt-get update -qq
		apt-get install -y --no-install-recommends postgresql
	fi
	if [ -n "$$missing" ]; then
		apt-get update -qq
		apt-get install -y --no-install-recommends ca-certificates $$missing
	fi
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
		mv -T $$half $$folder
	done

fmt:
	unformatted=$$(gofmt -l .)
	if [ -n "$$unformatted" ]; then echo "gofmt these files:"; echo "$$unformatted"; exit 1; fi

# Without cgo, vet, staticcheck and the tests without the race detector share what the shipped binary is compiled from.
vet:
	CGO_ENABLED=0 go vet ./...

lint:
	CGO_ENABLED=0 go tool staticcheck ./...

# Two runs side by side, each with its output in one piece; the first that ends makes room for plain.
unit:
	$(MAKE) --no-print-directory --output-sync=target -j 2 race scenes plain

# -count=1: the end-to-end tests build and run the binary, which the test cache does not see. -vet=off: vet has been run.
GOTEST := go test -vet=off -count=1 -timeout 18m

race:
	CGO_ENABLED=1 $(GOTEST) -race ./spool/... $$(go list ./... | grep -v '/cmd/promptspool/e2e$$')

# The scenes of processes have the race detector in the processes that need it (watchForRaces), not in the test itself.
scenes:
	CGO_ENABLED=0 $(GOTEST) -parallel 4 ./cmd/promptspool/e2e

# Files that say !race: what one caller does takes up to twenty times as long with the race detector.
unraced = grep -rl --include='*_test.go' '^//go:build !race' .
names = sed -n 's/^func \(Test[^(]*\)(t .*/\1/p' $$($(unraced)) | sort -u | paste -sd '|'

plain:
	CGO_ENABLED=0 $(GOTEST) -run "^($$($(names)))$$" $$(dirname $$($(unraced)) | sort -u)

build:
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o promptspool ./cmd/promptspool

# The same tests as in `make test`, one after the other, each for its part of the time.
soak: deps
	# Power is cut on other file systems as well.
	if ! command -v mkfs.xfs >/dev/null || ! command -v mkfs.btrfs >/dev/null; then
		apt-get update -qq
		apt-get install -y --no-install-recommends xfsprogs btrfs-progs
	fi
	PROMPTSPOOL_SOAK=$${PROMPTSPOOL_SOAK:-10m} go test -count=1 -timeout 0 -parallel 1 -v \
		-run 'Greedy|ThousandsOfSidecars|Killing|Dying|PowerCut|FullDisk|SingleFault|ADayInShort|SmallCgroup|AFuzzer|CostGrows|AnAttackedSidecar' ./cmd/promptspool/e2e | grep -Ev '^ *=== '
	go test -count=1 -timeout 0 -run '^TestArchive$$' ./spool/archive/badgerdb ./spool/archive/postgres -rapid.checks 1000

bench:
	go test -run '^$$' -bench . -benchmem ./...

screenshots: deps
	mkdir -p $${SCREENSHOTS:=/tmp/promptspool-screenshots}
	PROMPTSPOOL_SCREENSHOTS=$$SCREENSHOTS go test -count=1 -run 'Dashboard|Overview|ARequestReads|RequestsAreFound|SignsUp|NoPageShuts|DaysAreDrawn|ImagesInARequest' ./cmd/promptspool/e2e
	echo "the screenshots are in $$SCREENSHOTS"

fuzz:
	for package in $$(go list ./...); do
		for target in $$(go test -list '^Fuzz' $$package | grep '^Fuzz' || true); do
			go test -run '^$$' -fuzz "^$$target$$" -fuzztime 1m $$package
		done
	done
