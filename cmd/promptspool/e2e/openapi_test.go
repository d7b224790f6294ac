package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"sync"
	"testing"

	"promptspool/api/dashboard/docs"
	"promptspool/api/openapi"
)

// undescribed are the calls of the tests that do not match the description of the API.
type undescribed struct {
	mu  sync.Mutex
	all []error // under mu
}

// differences collects what compareCalls finds.
var differences undescribed

func (u *undescribed) add(err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.all = append(u.all, err)
}

// compareCalls compares each call that goes through net/http's default client with the
// description of the API.
func compareCalls() error {
	checker, err := openapi.NewChecker([]byte(docs.OpenAPI("test")))
	if err != nil {
		return err
	}

	http.DefaultTransport = &openapi.Transport{
		RoundTripper: http.DefaultTransport,
		Checker:      checker,
		Report:       differences.add,
	}
	return nil
}

// compared returns the address of a proxy to a listener, which also compares the calls of
// programs that are not written in Go.
func compared(t *testing.T, addr string) string {
	t.Helper()
	proxy := httptest.NewServer(httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: addr}))
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
