// Command promptspool is the sidecar and the server.
package main

import (
	_ "github.com/dgraph-io/badger/v4"
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/klauspost/compress/gzip"
	_ "github.com/klauspost/compress/zstd"
	_ "github.com/prometheus/client_golang/prometheus/promhttp"
	_ "github.com/urfave/cli/v2"
	_ "github.com/valyala/fasthttp"
	_ "github.com/valyala/fasthttp/fasthttpadaptor"
	_ "go.uber.org/goleak"
	_ "golang.org/x/sync/singleflight"
	_ "golang.org/x/sys/unix"
	_ "pgregory.net/rapid"
	_ "promptspool/metrics"
)

func main() {}
