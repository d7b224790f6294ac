package api_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"promptspool/api"
	"promptspool/api/webhook"
	"promptspool/api/wire"
	"promptspool/metrics"
	"promptspool/spool/archive/alerts"
	"promptspool/spool/database/accounts"
	"promptspool/spool/database/keyed/keyedtest"
)

const definitions = "/api/public/v2/score-definitions"

// A definition is made, listed and removed; meanwhile a score that is sent to the server has to fit.
func TestADefinitionRefusesWhatDoesNotFit(t *testing.T) {
	log := &auditLog{}
	s := start(t, func(c *api.Config) {
		c.Scoring, c.Audit = accounts.New(&keyedtest.Memory{}, time.Now), log
	})
	define := func(name, body string) answer {
		return s.call("PUT", definitions+"/"+name, body, "X-API-KEY", "full")
	}
	for name, body := range map[string]string{
		"tone":        `{"kind":"category","categories":["polite","rude"],"description":"how it sounds"}`,
		"ok":          `{"kind":"boolean","better":"higher"}`,
		"rag%2Ffaith": `{"kind":"number","min":0,"max":1}`,
	} {
		if got := define(name, body); got.Status != 200 {
			t.Fatalf("%s: %+v", name, got)
		}
	}

	for sent, wrong := range map[string]string{
		`"name":"tone","value":"polite"`:    "",
		`"name":"tone","value":"loud"`:      "value",
		`"name":"tone","value":null`:        "",
		`"name":"ok","value":false`:         "",
		`"name":"ok","score":1`:             "score",
		`"name":"rag/faith","value":0.5`:    "",
		`"name":"rag/faith","value":1.01`:   "value",
		`"name":"rag/faith","score":1`:      "",
		`"name":"rag/faith","value":"good"`: "value",
		`"name":"another","value":"loud"`:   "",
	} {
		body := fmt.Sprintf(`{"request_id":%q,%s}`, wire.NewID(), sent)
		got := s.call("POST", "/rest/track-score", body, "X-API-KEY", "app")
		if fits := wrong == ""; fits != (got.Status == 200) || !fits && got.Fields[0].Field != wrong {
			t.Errorf("%s: %+v", sent, got)
		}
	}

	// So has one that comes with its call.
	logged := `{"provider":"openai","model":"m","input":{"type":"chat","messages":[]},` +
		`"output":{"type":"chat","messages":[]},"request_start_time":1,"request_end_time":2,` +
		`"score_name":"ok","score":100}`
	if got := s.call("POST", "/log-request", logged, "X-API-KEY", "app"); got.Status != 422 ||
		!strings.Contains(got.Message, "true or false") {
		t.Errorf("/log-request: %+v", got)
	}

	if got := s.call("DELETE", definitions+"/tone", "", "X-API-KEY", "full"); got.Status != 200 {
		t.Errorf("remove: %+v", got)
	}
	if got := s.call("DELETE", definitions+"/tone", "", "X-API-KEY", "full"); got.Status != 404 {
		t.Errorf("remove it again: %+v", got)
	}
	_, list, err := s.read("GET", definitions, "", "X-API-KEY", "read")
	want := `{"success":true,"items":[{"name":"ok","kind":"boolean","better":"higher"},` +
		`{"name":"rag/faith","kind":"number","min":0,"max":1}]}` + "\n"
	if err != nil || list != want {
		t.Errorf("the list: %s, %v; want %s", list, err, want)
	}
	if !slices.Contains(log.entries, "define score rag/faith: a number from 0 to 1") ||
		!slices.Contains(log.entries, "remove score definition tone: ") {
		t.Errorf("the audit log has %q", log.entries)
	}
}

// What makes no sense is refused by its field.
func TestADefinitionHasToMakeSense(t *testing.T) {
	s := start(t, func(c *api.Config) { c.Scoring = accounts.New(&keyedtest.Memory{}, time.Now) })
	for body, wrong := range map[string]string{
		`{}`:                                    "kind",
		`{"kind":"integer"}`:                    "kind",
		`{"kind":"number","min":"0"}`:           "min",
		`{"kind":"number","min":2,"max":1}`:     "min",
		`{"kind":"boolean","max":1}`:            "min",
		`{"kind":"number","max":1e10}`:          "max",
		`{"kind":"number","categories":["a"]}`:  "categories",
		`{"kind":"category","categories":"a"}`:  "categories",
		`{"kind":"category","better":"higher"}`: "better",
		`{"kind":"number","better":"more"}`:     "better",
		`{"kind":"number","name":"other"}`:      "name",
		`{"kind":"number","range":1}`:           "range",

		`{"kind":"category","categories":["a","a"]}`:                                                    "categories",
		`{"kind":"category","categories":[" "]}`:                                                        "categories",
		`{"kind":"category","categories":["` + strings.Repeat(`x","`, wire.ScoreCategoriesMax) + `y"]}`: "categories",
		`{"kind":"number","description":"` + strings.Repeat("d", 1001) + `"}`:                           "description",
	} {
		got := s.call("PUT", definitions+"/tone", body, "X-API-KEY", "publish")
		if got.Status != 422 || got.Fields[0].Field != wrong {
			t.Errorf("%s: %+v", body, got)
		}
	}
	if got := s.call("PUT", definitions+"/%20", `{"kind":"number"}`, "X-API-KEY", "full"); got.Status != 422 {
		t.Errorf("a blank name: %+v", got)
	}
}

// elsewhere is the server of a sidecar.
type elsewhere struct {
	wire.Recorded
	wire.Scoring
	anyViews
	anyTargets
	anyAlerts
	anyFleet
}

// These have other names than their methods.
type (
	anyViews   interface{ wire.Views }
	anyTargets interface{ wire.Targets }
	anyAlerts  interface{ wire.Alerts }
	anyFleet   interface{ wire.Sidecars }
)

func (elsewhere) OpenExport(context.Context, wire.Identity, wire.Export) (io.ReadCloser, error) {
	return nil, io.EOF
}

// A sidecar passes definitions on, and takes every score: what only the server knows must not lose one.
func TestASidecarTakesEveryScore(t *testing.T) {
	s := start(t, func(c *api.Config) {
		c.Upstream = elsewhere{Scoring: accounts.New(&keyedtest.Memory{}, time.Now)}
	})
	if got := s.call("PUT", definitions+"/default", `{"kind":"boolean"}`, "X-API-KEY", "full"); got.Status != 200 {
		t.Fatalf("%+v", got)
	}
	if got := s.call("POST", "/rest/track-score", score); got.Status != 200 {
		t.Errorf("%+v", got)
	}
}

const views = "/api/public/v2/views"

// A view is saved without what passes, renamed, listed and deleted.
func TestAViewIsSavedRenamedAndDeleted(t *testing.T) {
	log := &auditLog{}
	s := start(t, func(c *api.Config) { c.Views, c.Audit = accounts.New(&keyedtest.Memory{}, time.Now), log })
	put := func(name, body string) answer { return s.call("PUT", views+"/"+name, body, "X-API-KEY", "publish") }
	for _, v := range []struct {
		name, body string
		status     int
	}{
		{"slow%2Ferrors", `{"address":"/requests?sort=cost&filter=status:error&cursor=x&n=51&done=scored"}`, 200},
		{"today", `{"address":"/"}`, 200},
		{"today", `{"address":"/users"}`, 200},
		{"by%20user", `{"name":"other","address":"/users"}`, 422},
		{"by%20user", `{"name":"by user","address":"/users"}`, 200},
	} {
		if got := put(v.name, v.body); got.Status != v.status {
			t.Errorf("%s %s: %+v, want %d", v.name, v.body, got, v.status)
		}
	}

	_, list, err := s.read("GET", views, "", "X-API-KEY", "read")
	want := `{"success":true,"items":[{"name":"by user","address":"/users"},` +
		`{"name":"slow/errors","address":"/requests?filter=status%3Aerror&sort=cost"},` +
		`{"name":"today","address":"/users"}]}` + "\n"
	if err != nil || list != want {
		t.Errorf("the list: %s, %v; want %s", list, err, want)
	}
	for _, want := range []int{200, 404} {
		if got := s.call("DELETE", views+"/by%20user", "", "X-API-KEY", "full"); got.Status != want {
			t.Errorf("delete: %+v, want %d", got, want)
		}
	}
	for _, want := range []string{"save view by user: /users", "delete view by user: "} {
		if !slices.Contains(log.entries, want) {
			t.Errorf("the audit log lacks %q: %q", want, log.entries)
		}
	}
}

// An address leads to a page of ours, or is refused by its field.
func TestAViewLeadsNowhereElse(t *testing.T) {
	s := start(t, func(c *api.Config) { c.Views = accounts.New(&keyedtest.Memory{}, time.Now) })
	for _, address := range []string{
		"", "requests", "//evil.example", "https://evil.example/requests", `/\evil.example`, "/requests/", "/keys",
		"/requests#x", "/\t/evil.example", "javascript:alert(1)", "/requests?filter=%zz", "/requests?a;b", "/sign-out",
		"/requests?filter=" + strings.Repeat("é", wire.ViewAddressMax/6),
	} {
		got := s.call("PUT", views+"/v", fmt.Sprintf(`{"address":%q}`, address), "X-API-KEY", "publish")
		if got.Status != 422 || got.Fields[0].Field != "address" {
			t.Errorf("%.40q: %+v", address, got)
		}
	}
	for _, name := range []string{"%20v", strings.Repeat("v", wire.ViewNameMax+1)} {
		got := s.call("PUT", views+"/"+name, `{"address":"/"}`, "X-API-KEY", "publish")
		if got.Status != 422 || got.Fields[0].Field != "name" {
			t.Errorf("%.40q: %+v", name, got)
		}
	}
	if got := s.call("PUT", views+"/v", `{"address":"/"}`, "X-API-KEY", "read"); got.Status != 403 {
		t.Errorf("a key that may only read: %+v", got)
	}
	if got := s.call("PUT", views+"/v", `{"address":1,"own":true}`, "X-API-KEY", "publish"); got.Status != 422 {
		t.Errorf("wrong fields: %+v", got)
	}
}

const targets = "/api/public/v2/targets"

// withTargets gives an API targets on this machine.
func withTargets(log *auditLog) func(*api.Config) {
	return func(c *api.Config) {
		c.Targets = webhook.New(webhook.Config{
			Key:     "key",
			Store:   accounts.New(&keyedtest.Memory{}, time.Now),
			Allow:   []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
			Metrics: metrics.New("server", "test"),
			Logger:  slog.New(slog.DiscardHandler),
		})
		c.Audit = log
	}
}

func TestATargetIsMadeTestedAndRemoved(t *testing.T) {
	log := &auditLog{}
	s := start(t, withTargets(log))
	status := http.StatusOK
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.Header.Get("Webhook-Signature"), "v1,") {
			t.Errorf("headers %v", r.Header)
		}
		w.WriteHeader(status)
	}))
	defer hook.Close()
	call := func(method, path, body string, want int) string {
		t.Helper()
		got, text, err := s.read(method, targets+path, body, "X-API-KEY", "full")
		if err != nil || got.StatusCode != want {
			t.Fatalf("%s %s: %d %s, %v; want %d", method, path, got.StatusCode, text, err, want)
		}
		return text
	}

	made := call("PUT", "/on-call", `{"kind":"webhook","url":"`+hook.URL+`/secret-path"}`, 200)
	if !strings.Contains(made, `"secret":"whsec_`) {
		t.Errorf("it was made by %s", made)
	}
	again := call("PUT", "/on-call", `{"kind":"webhook","types":["key.created"]}`, 200)
	if strings.Contains(again, "whsec") {
		t.Errorf("the secret is shown again: %s", again)
	}
	list := call("GET", "", "", 200)
	if !strings.Contains(list, `"types":["key.created"]`) || strings.Contains(list, "secret-path") {
		t.Errorf("the list is %s", list)
	}
	call("POST", "/on-call/test", "", 200)
	status = http.StatusGone
	if failed := call("POST", "/on-call/test", "", 409); !strings.Contains(failed, "it answered 410") {
		t.Errorf("a failed test: %s", failed)
	}
	for _, path := range []string{"/on-call/replay", "/on-call/discard"} {
		if taken := call("POST", path, "", 200); !strings.Contains(taken, `"count":0`) {
			t.Errorf("%s: %s", path, taken)
		}
	}
	call("GET", "/on-call/deliveries?dead=true", "", 200)
	call("DELETE", "/on-call", "", 200)
	for method, path := range map[string]string{
		"DELETE": "/on-call", "POST": "/on-call/test", "GET": "/on-call/deliveries",
	} {
		call(method, path, "", 404)
	}
	want := []string{
		"put target on-call: webhook", "put target on-call: webhook", "replay notices on-call: 0",
		"discard notices on-call: 0", "remove target on-call: ",
	}
	if !slices.Equal(log.entries, want) {
		t.Errorf("the audit log has %q, want %q", log.entries, want)
	}
}

func TestATargetHasToMakeSense(t *testing.T) {
	s := start(t, withTargets(&auditLog{}))
	for body, wrong := range map[string]string{
		`{}`:                                 "kind",
		`{"kind":"mail","url":"https://a"}`:  "kind",
		`{"kind":"slack"}`:                   "url",
		`{"kind":"slack","url":"ftp://a/b"}`: "url",
		`{"kind":"slack","url":"https://"}`:  "url",
		`{"kind":"slack","url":"/hook"}`:     "url",
		// It is made by the server.
		`{"kind":"webhook","url":"https://a","secret":"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}`: "secret",
		`{"kind":"webhook","url":"https://a","types":["alert"]}`:                                 "types",
		`{"kind":"webhook","url":"https://a","type":"alert.firing"}`:                             "type",
	} {
		got := s.call("PUT", targets+"/a", body, "X-API-KEY", "full")
		if got.Status != 422 || got.Fields[0].Field != wrong {
			t.Errorf("%s: %+v, want a fault of %s", body, got, wrong)
		}
	}
	got := s.call("PUT", targets+"/A%20name", `{"kind":"slack","url":"https://a"}`, "X-API-KEY", "full")
	if got.Status != 422 || got.Fields[0].Field != "name" {
		t.Errorf("a name: %+v", got)
	}
	if got := s.call("GET", targets, "", "X-API-KEY", "read"); got.Status != 403 {
		t.Errorf("who may only read: %+v", got)
	}
}

func TestAlertsAreMadeListedAndRemoved(t *testing.T) {
	const path = "/api/public/v2/alerts"
	log := &auditLog{}
	s := start(t, func(c *api.Config) {
		store := accounts.New(&keyedtest.Memory{}, time.Now)
		c.Alerts = alerts.New(alerts.Config{Store: store, Logger: slog.New(slog.DiscardHandler)})
		c.Audit = log
	})
	call := func(method, path, body string, status int, says ...string) {
		t.Helper()
		res, answer, err := s.read(method, path, body, "X-API-KEY", "full")
		if err != nil || res.StatusCode != status {
			t.Errorf("%s %s %s: %d %s, %v", method, path, body, res.StatusCode, answer, err)
		}
		for _, text := range says {
			if !strings.Contains(answer, text) {
				t.Errorf("%s %s %s is answered %s, without %s", method, path, body, answer, text)
			}
		}
	}

	rule := `{"measure":"cost","when":"above","threshold":10,"by":"metadata.customer"}`
	call("PUT", path+"/team%2Fcost", rule, 200)
	call("GET", path, "", 200, `"name":"team/cost"`, `"window_minutes":5`, `"severity":"warning"`)
	for body, fault := range map[string]string{
		`{}`: `"field":"threshold"`,
		`{"measure":"costs","when":"above","threshold":1}`:      `"field":"measure"`,
		`{"measure":"score.","when":"above","threshold":1}`:     `"field":"measure"`,
		`{"measure":"cost","threshold":1}`:                      `"field":"when"`,
		`{"measure":"cost","when":"over","threshold":1}`:        `"field":"when"`,
		`{"measure":"cost","when":"rises","threshold":0}`:       `"field":"threshold"`,
		`{"measure":"error_rate","when":"above","threshold":5}`: `0.05 is 5 percent`,
	} {
		call("PUT", path+"/a", body, 422, fault)
	}
	for member, fault := range map[string]string{
		`"window_minutes":1441`:              `"field":"window_minutes"`,
		`"by":"customer"`:                    `metadata.customer`,
		`"by":"metadata.a","no_data":"fire"`: `"field":"no_data"`,
		`"filter":"purple"`:                  `"field":"filter"`,
		`"windo":1`:                          `windo`,
		`"name":"other"`:                     `"field":"name"`,
	} {
		body := `{"measure":"cost","when":"above","threshold":1,` + member + `}`
		call("PUT", path+"/a", body, 422, fault)
	}
	call("DELETE", path+"/a", "", 404, "no alert")
	call("DELETE", path+"/team%2Fcost", "", 200)
	if got := strings.Join(log.entries, "; "); got != "save alert team/cost: all; remove alert team/cost: " {
		t.Errorf("the audit log has %s", got)
	}
	if got := s.call("PUT", path+"/a", `{}`, "X-API-KEY", "app"); got.Status != 403 {
		t.Errorf("an app's key: %+v", got)
	}
}
