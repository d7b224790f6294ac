package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"promptspool/api"
)

func TestABasePathIsCutOffUnlessAProxyDidSo(t *testing.T) {
	_, addr := startTCP(t, func(c *api.Config) {
		c.Pages = onePage{}
		c.BasePath = "/team/prompts"
	})
	for target, want := range map[string]string{
		"/team/prompts/requests?a=/team/prompts": "the page for /requests",
		"/requests":                              "the page for /requests",
		"/team/prompts/rest/track-request":       `"error":"method_not_allowed"`,
		"/rest/track-request":                    `"error":"method_not_allowed"`,
		"/team/prompts//rest/track-request":      `"error":"method_not_allowed"`,
		"/team/prompts":                          "There is no route /.",
		"/team/prompts?a=b":                      "There is no route /.",
		"/team/promptspool/requests":             "There is no route /team/promptspool/requests.",
		"/team/prompts/team/prompts/requests":    "There is no route /team/prompts/requests.",
	} {
		res, body := visit(t, "GET", "http://"+addr+target, nil)
		if !strings.Contains(body, want) {
			t.Errorf("%s: %d %s, want %s", target, res.StatusCode, body, want)
		}
	}
}

// hostPage says at which host it was called, and refuses forms of other sites as the dashboard does.
type hostPage struct{ onePage }

func (hostPage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "host ", r.Host) }
	http.NewCrossOriginProtection().Handler(http.HandlerFunc(answer)).ServeHTTP(w, r)
}

func (hostPage) Serves(string) bool { return true }

func TestThePathOfACallNamesNoHost(t *testing.T) {
	_, addr := startTCP(t, func(c *api.Config) {
		c.Pages = hostPage{}
		c.BasePath = "/team"
	})
	for _, target := range []string{
		"//evil.example/docs/x?y=://", "/team//evil.example/docs/x?y=://", "/docs/x?y=//evil.example/://",
	} {
		for method, want := range map[string]int{"GET": http.StatusOK, "POST": http.StatusForbidden} {
			origin := map[string]string{"POST": "http://evil.example"}[method]
			res, body := visit(t, method, "http://"+addr+target, nil, "Origin", origin)
			if res.StatusCode != want || want == http.StatusOK && body != "host "+addr {
				t.Errorf("%s %s: %d %s, want %d at %s", method, target, res.StatusCode, body, want, addr)
			}
		}
	}
}

// callerPage says who called it.
type callerPage struct{ onePage }

func (callerPage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fmt.Fprint(w, r.RemoteAddr, " over ", r.Header.Get("X-Forwarded-Proto"), ";")
}

func TestPagesLearnTheClientFromTrustedProxiesOnly(t *testing.T) {
	for _, c := range []struct{ trusted, want, over string }{
		{"127.0.0.0/8", "192.0.2.1 ", "over https;"},
		{"10.0.0.0/8", "127.0.0.1:", "over ;"},
	} {
		_, addr := startTCP(t, func(config *api.Config) {
			config.Pages = callerPage{}
			if err := config.Proxies.Add(c.trusted); err != nil {
				t.Fatal(err)
			}
		})
		_, body := visit(t, "GET", "http://"+addr+"/requests", nil,
			"X-Forwarded-For", "198.51.100.9, 192.0.2.1", "X-Forwarded-Proto", "https")
		if !strings.HasPrefix(body, c.want) || !strings.HasSuffix(body, c.over) {
			t.Errorf("with %s trusted: %s, want %s", c.trusted, body, c.want)
		}
	}
}
