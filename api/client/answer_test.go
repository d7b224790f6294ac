package client

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"promptspool/api/wire"
)

// wantAway checks that an error says that the server is away, and why. It must not reveal
// the key.
func wantAway(t *testing.T, what string, err error, want wire.Away) {
	t.Helper()

	var away *wire.Away
	if !wire.IsCode(err, wire.CodeUnavailable) || !errors.As(err, &away) {
		t.Errorf("%s: got %v, want a server that is away", what, err)
		return
	}
	if away.Status != want.Status || !errors.Is(away.Err, want.Err) {
		t.Errorf("%s: got %+v, want %+v", what, *away, want)
	}

	if e := wire.AsError(err); e.RetryAfter < time.Second || !strings.Contains(e.Message, "http://127.0.0.1:") {
		t.Errorf("%s: %q, to be repeated after %v, does not help", what, e.Message, e.RetryAfter)
	}
	if strings.Contains(err.Error(), string(key)) {
		t.Errorf("%s: the key is revealed: %v", what, err)
	}
}

func TestTheServersErrorArrivesWhole(t *testing.T) {
	at := time.Now().Add(30 * time.Minute).UTC().Format(http.TimeFormat)
	const later = `"error":"unavailable","message":"Later."`
	away := wire.Error{Code: wire.CodeUnavailable, Message: "Later."}
	inSeconds, ofAccount, ofKey := away, away, away
	inSeconds.RetryAfter, ofAccount.Affects, ofKey.Affects = 7*time.Second, wire.AffectsAccount, wire.AffectsKey

	// A date is exact to the second, less the time until it is read.
	isSame := func(a, b time.Duration) bool {
		return a == b || (a-b).Abs() < time.Minute && a > time.Minute
	}

	for name, tt := range map[string]struct {
		status     int
		body       string
		retryAfter string
		want       wire.Error
	}{
		"fields": {422, `{"success":false,"error":"invalid","message":"score is missing.",` +
			`"fields":[{"field":"score","reason":"is missing"}]}`, "",
			wire.Error{Code: wire.CodeInvalid, Message: "score is missing.",
				Fields: []wire.FieldError{{Field: "score", Reason: "is missing"}}}},
		"Retry-After in seconds": {503, "{" + later + "}", "7", inSeconds},
		"Retry-After as a date": {429, `{"error":"too_many_requests","message":"Slow."}`, at,
			wire.Error{Code: wire.CodeTooMany, Message: "Slow.", RetryAfter: 30 * time.Minute}},
		"not ours to retry": {401, `{"error":"unauthorized","message":"No.","fields":[]}`, "",
			wire.Error{Code: wire.CodeUnauthorized, Message: "No.", Fields: []wire.FieldError{}}},
		"a header that is too large": {431, `{"error":"too_large","message":"Big."}`, "",
			wire.Error{Code: wire.CodeTooLarge, Message: "Big."}},

		"of one account":               {503, "{" + later + `,"affects":"account"}`, "", ofAccount},
		"of one key":                   {503, "{" + later + `,"affects":"key"}`, "", ofKey},
		"of what a newer server names": {503, "{" + later + `,"affects":"planet"}`, "7", inSeconds},
		"of something that is no text": {503, `{"affects":{"account":["key"]},` + later + "}", "", away},

		"of a long text": {503, `{"affects":"` + strings.Repeat("account", 50_000) + `",` + later + "}", "", away},

		"a newer server's code goes by its status": {422, `{"error":"too_colourful","message":"Paler."}`, "",
			wire.Error{Code: wire.CodeInvalid, Message: "Paler."}},
		"a newer server's code and status": {418, `{"error":"teapot","message":"Tea."}`, "",
			wire.Error{Code: wire.CodeInternal, Message: "Tea."}},
	} {
		_, err := serve(t, answer(tt.status, tt.body, "Retry-After", tt.retryAfter)).Verdict(t.Context(), key)
		if diff := cmp.Diff(&tt.want, wire.AsError(err), cmp.Comparer(isSame)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestAnswersOfOthersAreNotTheServers(t *testing.T) {
	const html = "<html><body>Please log in.</body></html>"
	const ours = `{"success":false,"error":"unauthorized","message":"No."}`
	unmarked := func(status int, body string, header ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Del("Promptspool-Version")
			answer(status, body, header...)(w, r)
		}
	}

	for name, tt := range map[string]struct {
		handler http.HandlerFunc
		status  int
	}{
		"a login page":                 {unmarked(200, html), 200},
		"a proxy that refuses":         {unmarked(403, html), 403},
		"a proxy with a smaller bound": {unmarked(413, html), 413},
		"a proxy without a server":     {unmarked(502, html), 502},
		"somebody else's JSON":         {unmarked(200, `{"success":true,"account":"mallory","scope":"full"}`), 200},
		"somebody else's JSON error":   {unmarked(401, ours), 401},
		"an empty answer":              {unmarked(204, ""), 204},
		"a redirect":                   {unmarked(302, "", "Location", "/elsewhere"), 302},
		"marked, but not JSON":         {answer(200, html), 200},
		"marked, but cut":              {answer(200, `{"success":true,"account":"a`), 200},
		"marked, two objects":          {answer(200, `{"success":true,"account":"a"}{}`), 200},
		"marked, null":                 {answer(200, `null`), 200},
		"marked, but empty":            {answer(200, ``), 200},
		"marked, of another shape":     {answer(200, `{"success":true,"account":7}`), 200},
		"marked, without an account":   {answer(200, `{"success":true,"scope":"full"}`), 200},
		"marked, an error in HTML":     {answer(403, html), 403},
		"marked, a foreign error":      {answer(401, `{"detail":"no"}`), 401},
	} {
		_, err := serve(t, tt.handler).Verdict(t.Context(), key)
		wantAway(t, name, err, wire.Away{Status: tt.status})
	}
}

func TestAProxyWithoutAServerIsCalledOne(t *testing.T) {
	for status, want := range map[int]string{
		403: "Something else than a promptspool server answered at URL, with status 403. " +
			"Check the URL, and any proxy in between: a foreign answer with status 403",
		413: "A proxy at URL answered with status 413: it lets only smaller bodies through. Raise its limit" +
			": a foreign answer with status 413",
		502: "A proxy at URL answered with status 502: it does not reach the server, which may be restarting. " +
			"If this lasts, check the URL and the proxy: a foreign answer with status 502",
	} {
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Del("Promptspool-Version")
			answer(status, "<html>")(w, r)
		})
		_, err := c.Verdict(t.Context(), key)
		got := strings.Replace(err.Error(), c.base, "URL", 1)
		same(t, "error", got, "unavailable: "+want)
	}
}

func TestAProxysRetryAfterIsKept(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Del("Promptspool-Version")
		answer(503, "busy", "Retry-After", "20")(w, r)
	})
	_, err := c.Verdict(t.Context(), key)
	same(t, "delay", wire.AsError(err).RetryAfter, 20*time.Second)
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"":                              0,
		"0":                             0,
		"120":                           2 * time.Minute,
		"-5":                            0,
		"1.5":                           0,
		"soon":                          0,
		"4294967295":                    time.Hour,
		"99999999999999":                0,
		"Sun, 01 Mar 2026 12:00:30 GMT": 30 * time.Second,
		"Sun, 01 Mar 2026 11:00:00 GMT": 0,
		"Mon, 01 Mar 2027 12:00:00 GMT": time.Hour,
	} {
		same(t, "after "+header, parseRetryAfter(header, now), want)
	}
}
