//go:build linux

package cost

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"promptspool/api"
	"promptspool/api/dashboard"
	"promptspool/api/wire"
)

// withoutInput are the routes that are not attacked: they take nothing whose size a
// caller chooses, and show nothing of such a size.
var withoutInput = map[string]string{
	"GET /sync/key":               "it answers what the key is",
	"GET /docs":                   "a list of our own pages",
	"GET /docs/{page}":            "a name of a page of ours, which is rendered once",
	"GET /llms.txt":               "a text of ours",
	"GET /openapi.json":           "a text of ours",
	"GET /openapi.yaml":           "a text of ours, which is made once",
	"GET /sign-in":                "a form",
	"GET /sign-up":                "a form",
	"GET /reset-password":         "a form",
	"GET /password":               "a form",
	"POST /sign-out":              "a token",
	"POST /zone":                  "one of two words",
	"POST /requests/view":         "names of columns, and a line, which a search is attacked with",
	"POST /keys/{id}/revoke":      "an id",
	"POST /invites/{id}/delete":   "an id",
	"POST /people/{id}/role":      "an id and one of three words",
	"POST /people/{id}/disabled":  "an id and one of two words",
	"POST /people/{id}/reset":     "an id",
	"POST /sign-up":               "what sign-in takes, and it makes accounts",
	"POST /reset-password":        "what sign-in takes",
	"POST /password":              "what sign-in takes, and it ends the session",
	"POST /template/label/delete": "two names",
	"POST /template/archive":      "a name",
	"POST /template/restore":      "a name",
}

// servedRoutes returns all routes of the API and of the dashboard.
func servedRoutes() []string {
	all := api.Routes()
	for _, r := range dashboard.Routes() {
		all = append(all, r.Pattern)
	}

	return all
}

// Each route has an attack, or a reason why it has none.
func TestEveryRouteIsAttacked(t *testing.T) {
	var mu sync.Mutex
	visited := map[string]bool{}
	recorder := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		visited[r.Method+" "+r.URL.EscapedPath()] = true
		fmt.Fprint(w, "{}")
	}))
	defer recorder.Close()
	p := target{t: t, addr: strings.TrimPrefix(recorder.URL, "http://"), client: recorder.Client()}
	for _, a := range attacks {
		if size := a.send(p, 2); size == 0 && a.most == 0 {
			t.Errorf("%s sends nothing", a.name)
		}
	}

	attacked := map[string]bool{}
	routes := servedRoutes()
	slices.SortStableFunc(routes, func(a, b string) int { // exact ones come first, as in the dashboard's own table
		return strings.Count(a, "{") - strings.Count(b, "{")
	})
	for call := range visited {
		i := slices.IndexFunc(routes, func(route string) bool { return routePattern(route).MatchString(call) })
		if i < 0 {
			t.Errorf("%s is attacked, but there is no such route", call)
			continue
		}
		attacked[routes[i]] = true
	}
	for _, route := range routes {
		switch why := withoutInput[route]; {
		case !attacked[route] && why == "":
			t.Errorf("%s has no attack: add one to attacks, or say in withoutInput why it needs none", route)
		case attacked[route] && why != "":
			t.Errorf("%s is attacked, and withoutInput says that it is not", route)
		}
	}
	for route := range withoutInput {
		if !slices.Contains(routes, route) {
			t.Errorf("withoutInput names %s, which is not served", route)
		}
	}
}

// pathPlace is a quoted {id} of a page, which is one segment; {} of the API may be several.
var pathPlace = regexp.MustCompile(`\\\{[^}]+\\\}`)

// routePattern returns a pattern that matches the calls of a route.
func routePattern(route string) *regexp.Regexp {
	pattern := regexp.QuoteMeta(strings.TrimSuffix(route, "{$}"))
	pattern = strings.ReplaceAll(pattern, `\{\}`, ".+")

	return regexp.MustCompile("^" + pathPlace.ReplaceAllString(pattern, "[^/]+") + "$")
}

func TestARoutesPatternFitsItsCalls(t *testing.T) {
	for _, c := range []struct {
		route, call string
		want        bool
	}{
		{"GET /{$}", "GET /", true},
		{"GET /{$}", "GET /keys", false},
		{"POST /prompts/{}/label", "POST /prompts/a/label", true},
		{"POST /prompts/{}/label", "POST /prompts/a", false},
		{"GET /requests/{id}", "POST /requests/a", false},
		{"GET /requests/{id}", "GET /requests/a/raw", false},
	} {
		if got := routePattern(c.route).MatchString(c.call); got != c.want {
			t.Errorf("%s fits %s: %v", c.call, c.route, got)
		}
	}
}

// inHead bounds what an attack puts into a call's head, of which 16 KiB are read.
const inHead = 3000

// routeAttacks are attacks on routes that no other attack calls.
func routeAttacks() []attack {
	all := []attack{
		{name: "label: many of a template", n: 50, most: 400, send: func(p target, n int) int {
			size := publish(p, "labelled", "hello")
			for i := range n {
				body := fmt.Sprintf(`{"name":"l%d","prompt_version_number":1}`, i)
				_, answer := p.call("POST", "/prompts/labelled/label", body)
				size += len(body)
				var label struct{ ID int64 }
				if json.Unmarshal([]byte(answer), &label) == nil && i%10 == 0 {
					p.call("PATCH", fmt.Sprint("/prompt-labels/", label.ID), `{"prompt_version_number":1}`)
				}
			}
			p.call("DELETE", "/prompt-labels/1", "")
			p.call("GET", "/prompt-templates/labelled/labels", "")
			for _, path := range []string{"/template", "/template/statistics", "/template/backtest", "/template/edit"} {
				p.call("GET", path+"?name=labelled", "")
			}
			return size
		}},
		{name: "template: many versions", n: 20, most: 160, send: func(p target, n int) int {
			size := 0
			for i := range n {
				size += publish(p, "versions", fmt.Sprint("version ", i, strings.Repeat(" and more", 50)))
			}
			p.call("GET", "/prompt-templates/versions", "")
			p.call("GET", "/rest/get-prompt-template?prompt_name=versions", "")
			p.call("GET", "/library-get-prompt-template?prompt_name=versions", "")
			p.call("GET", "/prompt-templates?per_page=1000", "")
			p.call("GET", "/rest/prompts?name="+strings.Repeat("v", n), "")
			p.call("GET", "/templates?name="+strings.Repeat("v", n), "")
			p.call("GET", "/sync/changes?since=0", "")
			return size
		}},
		{name: "backtest: many variables", n: 500, send: func(p target, n int) int {
			size := publish(p, "tested", "{% for k in range(50) %}{{ m1 }}{% endfor %}")
			body := `"prompt_name":"tested","prompt_input_variables":{` + members(n, `"abcd"`) + `}`
			for range 20 {
				_, one := track(p, body)
				size += one
			}
			p.call("POST", "/rest/backtest", `{"prompt_name":"tested","version":1,"last":20}`)
			p.call("GET", "/template/backtest?name=tested&v=1&sent=1", "")
			return size
		}},
		{name: "orphans: many", n: 400, most: 1600, send: func(p target, n int) int {
			size := batch(p, n, func(int) wire.Event {
				body := json.RawMessage(`{"score":1,"name":"n"}`)
				return wire.Event{Kind: wire.KindScore, RequestID: wire.NewID(), Body: body}
			})
			p.call("GET", "/api/public/v2/requests/orphans?per_page=1000", "")
			return size
		}},
		{name: "fleet: many sidecars", n: 100, most: 800, send: func(p target, n int) int {
			size := 0
			for range n {
				body := `{"id":"` + wire.NewID() + `","name":"` + strings.Repeat("n", 200) +
					`","version":"v","started_at":"2026-01-01T00:00:00Z","backlog_events":0,"backlog_bytes":0,` +
					`"oldest_seconds":0,"held_events":0,"dead_letters":0,"lost_events":0,"clock_ahead_seconds":null}`
				p.call("POST", "/sync/heartbeat", body)
				size += len(body)
			}
			p.call("GET", "/sync/fleet", "")
			p.call("GET", "/sidecars", "")
			return size
		}},
		{name: "delete: many", n: 100, most: 400, send: func(p target, n int) int {
			size := 0
			for range n {
				id, one := track(p, `"metadata":{"user":"gone"}`)
				p.call("DELETE", "/api/public/v2/requests/"+id, "")
				size += one
			}
			value := strings.Repeat("v", n)
			p.call("DELETE", "/api/public/v2/requests?metadata_key=user&metadata_value="+value, "")
			p.call("GET", "/requests/delete?key=user&value="+value, "")
			return size + p.submit("/requests/delete", url.Values{"key": {"user"}, "value": {value}})
		}},
		{name: "search: deep filters", n: 100, most: 400, send: func(p target, n int) int {
			body := strings.Repeat(`{"logic":"AND","filters":[`, n) +
				`{"field":"tags","operator":"is","value":"a"}` + strings.Repeat(`]}`, n)
			for _, path := range []string{
				"search", "analytics", "template-statistics", "reprice", "reread", "scan", "export",
			} {
				p.call("POST", "/api/public/v2/requests/"+path, `{"filter_group":`+body+`}`)
			}
			return 7 * len(body)
		}},
		{name: "pages: long filters", n: 100, most: inHead, send: func(p target, n int) int {
			query := "&filter=" + strings.Repeat("tag:a+", n/12) + strings.Repeat("w", n/2)
			for _, path := range []string{
				"/", "/requests", "/requests/export", "/suggestions",
				"/requests/" + wire.NewID() + "/raw", "/audit", "/keys", "/people",
			} {
				p.call("GET", path+"?"+query[1:], "")
			}
			return 8 * len(query)
		}},
		{name: "editor: messages", n: 200, send: func(p target, n int) int {
			form := url.Values{
				"name": {"edited"}, "new": {"true"}, "kind": {"chat"}, "do": {"preview"},
				"settings": {"{}"}, "variables": {"{}"},
			}
			for range n {
				form.Add("role", "user")
				form.Add("text", "Say {a} and {b}.")
			}
			return p.submit("/template/edit", form) + p.submit("/template/preview", form)
		}},
		{name: "forms: long names", n: 100_000, send: func(p target, n int) int {
			name := strings.Repeat("n", n)
			size := p.submit("/keys", url.Values{"name": {name}, "scope": {"app"}})
			size += p.submit("/invites", url.Values{"role": {name}})
			size += p.submit("/undo", url.Values{"undo": {name + "." + name}})
			size += p.submit("/requests/"+wire.NewID()+"/score", url.Values{"name": {name}, "score": {name}})
			return size + p.submit("/template/label", url.Values{"name": {name}, "label": {name}, "version": {"1"}})
		}},
		{name: "patch: tags", n: 20_000, send: func(p target, n int) int {
			publish(p, "patched", "hello")
			body := `{"tags":[` + elements(n, `"tag"`) + `]}`
			p.call("PATCH", "/rest/prompt-templates/patched", body)
			p.call("DELETE", "/rest/prompt-templates/patched", "")
			p.call("POST", "/rest/prompt-templates/patched/restore", `{"a":`+quoted(strings.Repeat("b", n))+`}`)
			return len(body) + n
		}},
	}

	// What is attached to a request, by each spelling of its route: the most members, and
	// a long value.
	for _, path := range []string{
		"/rest/track-request", "/rest/track-score", "/library-track-score",
		"/rest/track-metadata", "/library-track-metadata", "/rest/track-prompt", "/library-track-prompt",
		"/rest/create-group", "/create-group", "/rest/track-group", "/track-group",
		"/library-publish-prompt-template", "/rest/publish-prompt-template",
	} {
		all = append(all, attack{name: "members: " + path, n: 20_000, send: func(p target, n int) int {
			id, _ := track(p, `"tags":[]`) // only few events may wait for a request that does not come
			long := strings.Repeat("v", n)
			body := `{"request_id":"` + id + `","score":1,"name":"n","function_name":"f","prompt_name":"p",` +
				`"group_id":"g","kwargs":{},"request_response":{},` +
				`"metadata":{` + members(min(n, 250), `"abcd"`) + `},` +
				`"prompt_input_variables":{` + members(n, `"abcd"`) + `},"long":"` + long + `"}`
			p.call("POST", path, body)
			return len(body)
		}})
	}

	// Each kind of event, all of one record.
	for kind, body := range map[wire.Kind]string{
		wire.KindMetadata: `{"metadata":{"k%d":"v"}}`,
		wire.KindPrompt:   `{"prompt_name":"p%d","version":1,"prompt_input_variables":{"a":"b"}}`,
		wire.KindGroup:    `{"group_id":"g%d"}`,
	} {
		name := "batch: " + string(kind) + " of one record"
		all = append(all, attack{name: name, n: 400, most: 400, send: func(p target, n int) int {
			id := wire.NewID()
			return batch(p, n, func(i int) wire.Event {
				return wire.Event{Kind: kind, RequestID: id, Body: json.RawMessage(fmt.Sprintf(body, i))}
			})
		}})
	}

	return all
}
