package api

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/valyala/fasthttp"

	"promptspool/api/access"
	"promptspool/api/dashboard/docs"
	"promptspool/api/wire"
)

func TestPathsFindTheirRoutes(t *testing.T) {
	for _, c := range []struct{ method, path, route, ident string }{
		{"POST", "/rest/track-request", "track-request", ""},
		{"POST", "/track-request", "track-request", ""},
		{"POST", "//rest/track-request", "track-request", ""}, // a base URL with a slash at its end
		{"POST", "/library-track-score", "track-score", ""},
		{"POST", "/library-track-metadata", "track-metadata", ""},
		{"POST", "/library-track-prompt", "track-prompt", ""},
		{"POST", "/create-group", "create-group", ""},

		{"POST", "/prompt-templates/greet", "fetch-template", "greet"},
		{"POST", "/prompt-templates/team/greet", "fetch-template", "team/greet"},
		{"POST", "/prompt-templates/team%2Fgreet", "fetch-template", "team/greet"},
		{"POST", "/prompt-templates/100%25%20sure", "fetch-template", "100% sure"},
		{"POST", "/prompt-templates/a%252Fb", "fetch-template", "a%2Fb"}, // decoded once
		{"POST", "/prompt-templates/a//b/", "fetch-template", "a//b/"},
		{"GET", "/prompt-templates/greet", "raw-template", "greet"},
		{"GET", "/prompt-templates/team/greet", "raw-template", "team/greet"},
		{"GET", "/prompt-templates/team%2Fsnippet-usage", "raw-template", "team/snippet-usage"},
		{"GET", "/prompt-templates/snippet-usage", "raw-template", "snippet-usage"},
		{"POST", "/prompt-templates/team/snippet-usage", "fetch-template", "team/snippet-usage"},
		{"GET", "/prompt-templates", "list-templates", ""},
		{"GET", "/rest/prompts", "list-templates", ""},
		{"GET", "/library-get-prompt-template", "get-template", ""},
		{"POST", "/rest/prompt-templates", "publish-template", ""},
		{"POST", "/api/public/v2/requests/search", "search-requests", ""},
		{"GET", "/api/public/v2/requests/0198", "get-request", "0198"},
		{"POST", "/sync/events", "sync-events", ""},

		{"POST", "/rest/track-request/", "track-request", ""},
		{"POST", "/api/public/v2/requests/search//", "search-requests", ""},
		{"POST", "/api/public/v2/traces/0198/close/", "close-trace", "0198"},
		{"GET", "/prompt-templates/greet/labels/", "template-labels", "greet"},
		{"HEAD", "/api/public/v2/requests/0198", "get-request", "0198"},
		{"HEAD", "/prompt-templates/greet", "raw-template", "greet"},

		{"POST", "/v1/traces/", "otlp-traces", ""},
		{"POST", "/otlp/v1/traces", "otlp-traces", ""},
		{"POST", "/otlp/v1/logs/", "otlp-logs", ""},
		{"POST", "/api/public/otel/v1/traces/v1/metrics", "otlp-metrics", ""},
	} {
		r, ident, _, err := findRoute([]byte(c.method), []byte(c.path))
		if err != nil || r.name != c.route || ident != c.ident {
			t.Errorf("%s %s: %v %q %v, want %s %q", c.method, c.path, r, ident, err, c.route, c.ident)
		}
	}
}

func TestPathsThatAreNoRoutes(t *testing.T) {
	for _, c := range []struct {
		method, path string
		code         wire.Code
		allow        string
	}{
		{"GET", "/", wire.CodeNotFound, ""},
		{"POST", "/rest/track-requests", wire.CodeNotFound, ""},
		{"POST", "/prompt-templates/", wire.CodeNotFound, ""},
		{"GET", "/prompt-templates/", wire.CodeNotFound, ""},
		{"POST", "/prompt-templates/%zz", wire.CodeNotFound, ""},
		{"GET", "/prompt-templates/greet/snippet-usage", wire.CodeNotFound, ""},
		{"GET", "/prompt-templates/team/greet/snippet-usage", wire.CodeNotFound, ""},

		{"GET", "/rest/track-request", wire.CodeMethod, "POST"},
		{"HEAD", "/rest/track-request", wire.CodeMethod, "POST"},
		{"DELETE", "/prompt-templates/greet", wire.CodeMethod, "POST, GET"},
		{"PUT", "/prompt-templates", wire.CodeMethod, "GET"},
	} {
		_, _, allow, err := findRoute([]byte(c.method), []byte(c.path))
		if !wire.IsCode(err, c.code) || allow != c.allow {
			t.Errorf("%s %s: %v, Allow %q; want %s, %q", c.method, c.path, err, allow, c.code, c.allow)
		}
	}
}

// Whoever has a client of another service call this one reads what to do instead.
func TestAPathOfAnotherServiceSaysWhatToDo(t *testing.T) {
	for _, path := range []string{
		"/v1/chat/completions", "/v1/messages", "/v1beta/models/gemini-2.5-flash:generateContent",
		"/api/public/ingestion", "/runs/batch",
	} {
		_, _, _, err := findRoute([]byte("POST"), []byte(path))
		text := fmt.Sprint(err)
		if !wire.IsCode(err, wire.CodeNotFound) || !strings.Contains(text, "not relayed") ||
			!strings.Contains(text, "/v1/traces") {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// Every spelling of every route is called with a key of each right, and of all others. A 403 names
// a scope that would do.
func TestEveryRouteAsksForItsScope(t *testing.T) {
	for i := range routes {
		r := &routes[i]
		for right := wire.ScopeLog; right <= wire.ScopeManage; right <<= 1 {
			for _, scope := range []wire.Scope{right, wire.ScopeFull &^ right} {
				err := call(t, r, scope)
				if allowed := scope&access.Scope(r.name) != 0; allowed != (err == nil) {
					t.Errorf("%s %s with a key of scope %s: %v", r.method, r.path, scope, err)
				}
				if err == nil {
					continue
				}

				_, advice, _ := strings.Cut(err.Error(), "--scope ")
				better, bad := wire.ParseScope(strings.TrimRight(advice, "`."))
				if !wire.IsCode(err, wire.CodeForbidden) || bad != nil || call(t, r, better) != nil {
					t.Errorf("%s %s with a key of scope %s: %v", r.method, r.path, scope, err)
				}
			}
		}
	}
}

func TestTheTableOfAccessHasNoOtherRoutes(t *testing.T) {
	for _, e := range access.Table {
		for name := range strings.FieldsSeq(e.Routes) {
			if !slices.ContainsFunc(routes, func(r route) bool { return r.name == name }) {
				t.Errorf("there is no route %s", name)
			}
		}
	}
}

func TestEveryRouteTakesItsKeyAsBearer(t *testing.T) {
	for i := range routes {
		a := &API{c: Config{Authenticator: scopeKey(wire.ScopeFull)}}
		c := &exchange{ctx: new(fasthttp.RequestCtx), context: t.Context(), route: &routes[i]}
		c.ctx.Request.Header.Set("Authorization", "Bearer k")
		if err := a.authenticate(c); err != nil || c.id.Key != "k" {
			t.Errorf("%s %s: %v, with the key %q", c.route.method, c.route.path, err, string(c.id.Key))
		}
	}
}

// A key that has ended may only deliver, and ask what it is good for.
func TestAnExpiredKeyIsRefusedOnAllRoutesButTwo(t *testing.T) {
	var taken []string
	for i := range routes {
		a := &API{c: Config{Authenticator: expiredKey{}}}
		c := &exchange{ctx: new(fasthttp.RequestCtx), context: t.Context(), route: &routes[i]}
		c.ctx.Request.Header.Set("X-API-KEY", "k")
		err := a.authenticate(c)
		switch {
		case err == nil:
			taken = append(taken, c.route.path)
		case !wire.IsCode(err, wire.CodeUnauthorized) ||
			!strings.Contains(err.Error(), "expired on 2026-03-01 12:00 UTC"):
			t.Errorf("%s %s: %v", c.route.method, c.route.path, err)
		}
		if owner, bad := a.headKey(c)(); (bad == nil) != (err == nil) {
			t.Errorf("%s %s: a large body is of %q, %v", c.route.method, c.route.path, owner, bad)
		}
	}

	if want := []string{"/sync/events", "/sync/key"}; !slices.Equal(taken, want) {
		t.Errorf("an expired key is taken by %v; want %v", taken, want)
	}
}

// expiredKey is a key with all rights that ended a while ago.
type expiredKey struct{}

func (expiredKey) Authenticate(context.Context, wire.Secret) (wire.Identity, error) {
	end := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	return wire.Identity{Account: "a", Scope: wire.ScopeFull, Expires: end, Expired: true, Verified: true}, nil
}

// call authenticates a request to a route with a key of this scope.
func call(t *testing.T, r *route, scope wire.Scope) error {
	a := &API{c: Config{Authenticator: scopeKey(scope)}}
	c := &exchange{ctx: new(fasthttp.RequestCtx), context: t.Context(), route: r}
	c.ctx.Request.Header.Set("X-API-KEY", "k")

	return a.authenticate(c)
}

// scopeKey accepts every key, with this scope.
type scopeKey wire.Scope

func (s scopeKey) Authenticate(_ context.Context, key wire.Secret) (wire.Identity, error) {
	return wire.Identity{Account: "a", Scope: wire.Scope(s), Key: key, Verified: true}, nil
}

// The table's methods, paths and scopes, and whether there is a body, are compared with
// openapi.json.
func TestTheDescriptionHasEveryRouteAndNoOther(t *testing.T) {
	var description described
	if err := json.Unmarshal([]byte(docs.OpenAPI("test", "")), &description); err != nil {
		t.Fatal(err)
	}

	type facts struct {
		scope []string
		body  bodyKind
	}
	described := map[string]facts{}
	for path, methods := range description.Paths {
		for method, operation := range methods {
			body := noBody
			switch {
			case operation.RequestBody.Required:
				body = objectBody
			case operation.RequestBody.Content != nil:
				body = optionalBody
			}
			call := strings.ToUpper(method) + " " + identifier.ReplaceAllString(path, "{}")
			described[call] = facts{operation.Scope, body}
		}
	}

	// The other spellings are not described, but listed on a page.
	for _, line := range spelling.FindAllStringSubmatch(docs.Find("api").Source, -1) {
		method, _, _ := strings.Cut(line[1], " ")
		for path := range strings.FieldsFuncSeq(line[2], func(r rune) bool { return strings.ContainsRune("`, ", r) }) {
			described[method+" "+path] = described[identifier.ReplaceAllString(line[1], "{}")]
		}
	}

	served := map[string]facts{}
	for i, call := range Routes() {
		body := routes[i].body
		if body == batchBody || body == otlpBody {
			body = objectBody
		}
		served[call] = facts{routes[i].scope.Names(), body}
	}

	if diff := cmp.Diff(served, described, cmp.AllowUnexported(facts{})); diff != "" {
		t.Errorf("openapi.json (+) and the route table (-) differ:\n%s", diff)
	}
}

var (
	identifier = regexp.MustCompile(`\{[a-z_]+\}`)
	spelling   = regexp.MustCompile("(?m)^\\| `([A-Z]+ [^`]+)` \\| (`/[^|]+`) \\|$")
)
