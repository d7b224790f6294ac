//go:build linux

package cost

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
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
	"GET /sign-in":                "a form",
	"GET /sign-up":                "a form",
	"GET /reset-password":         "a form",
	"GET /password":               "a form",
	"POST /sign-out":              "a token",
	"POST /zone":                  "one of two words",
	"POST /requests/view":         "names of columns, and a line, which a search is attacked with",
	"POST /keys/{id}/revoke":      "an id",
	"POST /keys/{id}/rotate":      "an id and a duration",
	"POST /invites/{id}/delete":   "an id",
	"POST /people/{id}/role":      "an id and one of three words",
	"POST /people/{id}/disabled":  "an id and one of two words",
	"POST /people/{id}/reset":     "an id",
	"POST /sign-up":               "what sign-in takes, and it makes accounts",
	"POST /reset-password":        "what sign-in takes",
	"POST /password":              "what sign-in takes, and it ends the session",
	"POST /scores/{id}/remove":    "a name",
	"POST /queues/{id}/remove":    "a name",
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
	return []attack{
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
		{name: "agent: a deep record with long names", n: 2, send: func(p target, n int) int {
			step := `[{"` + strings.Repeat("n", 1000) + `":"` + strings.Repeat("t", 1000) + `"},`
			deep := strings.Repeat(step, 100) + "1" + strings.Repeat("]", 100)
			id, size := track(p, `"kwargs":{"a":[`+strings.Repeat(deep+",", n)+`1]}`)
			p.call("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get",`+
				`"arguments":{"id":"`+id+`"}}}`)
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
				"search", "analytics", "statistics", "reprice", "scan",
				"export",
			} {
				p.call("POST", "/api/public/v2/requests/"+path, `{"filter_group":`+body+`}`)
			}
			return 8 * len(body)
		}},
	}
}
