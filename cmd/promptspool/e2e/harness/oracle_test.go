//go:build linux

package harness

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestTheOracleSeesWhatIsMissingDifferentAndTwice(t *testing.T) {
	server := StartServer(t, t.TempDir(), "127.0.0.1:0")
	sidecar := StartSidecar(t, t.TempDir(), server.Addr)
	elsewhere := StartServer(t, t.TempDir(), "127.0.0.1:0")

	post := func(path, text string) {
		t.Helper()
		r := elsewhere.Call("POST", path, text, "X-API-KEY", AdminKey, "Content-Type", OTLPJSON)
		if r.Status != 200 {
			t.Fatalf("%d %s", r.Status, r.Body)
		}
	}
	request := func(id string, changed bool) {
		text := string(contentOf(id, 100))
		if changed {
			text = strings.Replace(text, `2.50`, `2.51`, 1)
		}
		post("/rest/track-request", text)
	}
	span := func(id string, changed bool) {
		text := string(server.Record(id, Events(1)).Span)
		if changed {
			text = strings.Replace(text, `{"doubleValue":2.5}`, `{"doubleValue":2.51}`, 1)
		}
		resource, rest, _ := strings.Cut(text, `,"scope":`)
		scope, spans, _ := strings.Cut(rest, `,"span":`)
		post("/v1/traces", `{"resourceSpans":[`+resource+`,"scopeSpans":[{"scope":`+scope+
			`,"spans":[`+strings.TrimSuffix(spans, "}")+`]}]}]}`)
	}

	for _, c := range []struct {
		name string
		// spans is as of the oracle.
		spans int
		// send sends what has an id to the other server, perhaps with one byte changed.
		send func(id string, changed bool)
		// first is whether the first of the two that count as twice is changed. Of
		// requests the first stays, of spans the last.
		first bool
	}{
		{"requests", 0, request, false},
		{"spans", 1, span, true},
	} {
		o := StartOracle(t, AdminKey)
		o.Spans = c.spans
		o.Loaded(sidecar, 2, 100, 8)
		sidecar.Emptied()
		if a := o.WantAll(server); a.Unsure != 0 || a.There < 8 || a.Spans != c.spans*a.Acked {
			t.Fatalf("%s: the server holds everything, but the oracle says %+v", c.name, a)
		}

		missing := o.Verify(elsewhere)
		if missing.There != 0 || missing.Lost != missing.Acked || len(missing.Missing) < 8 {
			t.Fatalf("%s: the server holds nothing, but the oracle says %+v", c.name, missing)
		}

		// All but the first come as they were sent, the second twice, the third changed.
		ids := slices.Sorted(slices.Values(missing.Missing))
		c.send(ids[1], c.first)
		for i, id := range ids[1:] {
			c.send(id, i == 1)
		}

		a := o.Verify(elsewhere)
		asWanted := slices.Equal(a.Missing, ids[:1]) &&
			slices.Equal(a.Twice, ids[1:2]) &&
			slices.Equal(a.Different, ids[2:3])
		if !asWanted || a.There != a.Acked-3 {
			t.Errorf("%s: want missing %v, twice %v, different %v; the oracle says %+v",
				c.name, ids[:1], ids[1:2], ids[2:3], a)
		}
	}
}

func TestTheOracleSeesScoresThatAreOldOrMissing(t *testing.T) {
	server := StartPlainServer(t, FreePort(t))
	sidecar := StartSidecar(t, t.TempDir(), server.Addr)
	o := StartOracle(t, AdminKey)
	o.Spans = 0
	o.LoadBoth(sidecar, sidecar, 2, 100)
	sidecar.Eventually(
		func() bool { return o.Count().Acked >= 8 && o.Count().Scored >= 16 },
		func() string { return fmt.Sprintf("the load does not proceed: %+v", o.Count()) },
	)
	scored := o.Halt().Scored

	sidecar.Emptied()
	if a := o.WantAll(server); a.Scored != scored {
		t.Fatalf("the server holds everything, but the oracle says %+v, want %d scores", a, scored)
	}

	// A server that has the requests but none of the scores.
	elsewhere := StartPlainServer(t, FreePort(t))
	for i, id := range o.Verify(elsewhere).Missing {
		text := string(contentOf(id, 100))
		if r := elsewhere.Call("POST", "/rest/track-request", text, "X-API-KEY", AdminKey); r.Status != 200 {
			t.Fatalf("%d %s", r.Status, r.Body)
		}
		if i == 0 { // one more than were sent
			for range scoresMax + 1 {
				elsewhere.Track("/rest/track-score", AdminKey, Score(id, scoresMax))
			}
		}
	}

	if a := o.Verify(elsewhere); len(a.Older) == 0 || len(a.Twice) != 1 {
		t.Errorf("want missing scores, and one request scored too often; the oracle says %+v", a)
	}
}
