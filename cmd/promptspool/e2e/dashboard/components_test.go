//go:build linux

package dashboard

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"promptspool/cmd/promptspool/e2e/harness"
)

// All components of the design stand on one page, which is made by the tests of package frame.
func TestAllComponentsAreLookedAt(t *testing.T) {
	frame := filepath.FromSlash("../../../../api/dashboard/frame")
	mux := http.NewServeMux()
	mux.Handle("/static/", http.FileServer(http.Dir(frame)))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, filepath.Join(frame, "testdata/components-shown.html"))
	})
	pages := httptest.NewServer(mux)
	t.Cleanup(pages.Close)

	b := openBrowser(t, &harness.Node{Addr: strings.TrimPrefix(pages.URL, "http://")})
	b.soon = true // one component says so for ever
	b.visit("/")
	b.accessible(axe(t), "the page of all components")
	for _, width := range []int64{390, 1280, 1920} {
		b.do("another window", chromedp.EmulateViewport(width, 900))
		b.holds("nothing is wider than the window", `document.documentElement.scrollWidth <= innerWidth`)
	}
	b.screenshots("components")
}
