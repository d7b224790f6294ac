package frame

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestPagesShowTimesInTheReadersZone(t *testing.T) {
	page := []byte(`<time datetime="2026-11-19T05:47:03.000Z">2026-11-19 05:47:03 UTC</time>` +
		` until <time datetime="2026-11-29T03:00:00.000Z" class="day">Nov 29</time>` +
		` &lt;time datetime="2026-11-19T05:47:03.000Z"&gt;logged&lt;/time&gt;`)
	for cookies, want := range map[string]string{
		"":                                  "2026-11-19 05:47:03 UTC until Nov 29",
		"zone=America%2FLos_Angeles":        "2026-11-18 21:47:03 until Nov 28",
		"zone=Asia%2FKolkata":               "2026-11-19 11:17:03 until Nov 29",
		"zone=America%2FLos_Angeles; utc=1": "2026-11-19 05:47:03 UTC until Nov 29",
		"zone=Moon%2FBase":                  "2026-11-19 05:47:03 UTC until Nov 29",
		"zone=Local":                        "2026-11-19 05:47:03 UTC until Nov 29",
	} {
		r := httptest.NewRequest(http.MethodGet, "/requests", nil)
		r.Header.Set("Cookie", cookies)
		c := Exchange{Request: r}

		shown := string(c.zone().localize(page))
		if !strings.HasSuffix(shown, "logged&lt;/time&gt;") {
			t.Errorf("%s: what was logged is changed: %s", cookies, shown)
		}
		for _, part := range strings.Split(want, " until ") {
			if !strings.Contains(shown, ">"+part+"</time>") {
				t.Errorf("%s: %s is not shown in %s", cookies, part, shown)
			}
		}
	}
}
