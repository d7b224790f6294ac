//go:build linux

package harness

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"sync"
	"testing"

	"promptspool/api/openapitest"
	"promptspool/cmd/promptspool/e2e/description"
)

// undescribed are the calls of the tests that do not match the description of the API.
type undescribed struct {
	mu  sync.Mutex
	all []error // under mu
}

// differences collects what the transports of comparing find.
var differences undescribed

func (u *undescribed) add(err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.all = append(u.all, err)
}

// first returns the first difference, or nil if all calls so far were as described.
func (u *undescribed) first() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.all) == 0 {
		return nil
	}

	return u.all[0]
}

// checker knows the description of the API.
var checker = sync.OnceValues(description.Current)

// Comparing returns a transport that compares each call with the description of the API. The clients of
// all scenes have it; those of benchmarks do not.
func Comparing(transport http.RoundTripper) http.RoundTripper {
	c, err := checker()
	if err != nil {
		panic(err) // the tests of package docs fail for the same reason
	}

	return &openapitest.Transport{RoundTripper: transport, Note: func(e openapitest.Exchange) {
		if err := c.Check(e); err != nil {
			differences.add(err)
		}
	}}
}

// uncompared is the client for earlier releases: the description is that of this version. Main has not changed the
// transport yet.
var uncompared = &http.Client{Transport: http.DefaultTransport}

// ComparingProxy returns the address of a proxy to a listener. It compares the calls of
// programs that are not written in Go.
func ComparingProxy(t *testing.T, addr string) string {
	t.Helper()
	forward := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: addr})
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The body is read first. Otherwise an early answer closes it while it is still being
		// forwarded, and Go's transport then breaks the answer off.
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)

	return proxy.Listener.Addr().String()
}

// report prints the differences. The run fails if there are any: they belong to no single
// test.
func (u *undescribed) report(code int) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	for i, err := range u.all {
		if i == 20 {
			fmt.Fprintf(os.Stderr, "and %d more\n", len(u.all)-i)
			break
		}
		fmt.Fprintf(os.Stderr, "the description of the API differs: %v\n", err)
	}
	if code == 0 && len(u.all) > 0 {
		return 1
	}

	return code
}
