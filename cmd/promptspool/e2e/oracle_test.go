//go:build linux

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// oracle is the harness's end of a witness: a process of its own, so that nothing of the
// harness dies or pauses with what it watches. It makes ids, sends each once, remembers
// which were answered 200, and later compares what a server holds with what it sent, byte
// for byte.
type oracle struct {
	t       *testing.T
	in      *json.Encoder
	answers *bufio.Reader

	// spans is how many writes there are for each batch of spans; 0 means requests alone.
	// Spans may be sent again, so a spool may hold more events than were acked.
	spans int
}

// order is a command to the oracle, as one line of JSON; one answer follows each.
type order struct {
	Do   string `json:"do"`             // load, count, halt, verify
	Addr string `json:"addr,omitempty"` // of the sidecar to load, of the server to verify
	// Also is another sidecar: each request that was answered 200 is scored at both in
	// turn.
	Also    string `json:"also,omitempty"`
	Writers int    `json:"writers,omitempty"` // connections
	Bytes   int    `json:"bytes,omitempty"`   // of a request, on average; see contentOf
	Spans   int    `json:"spans,omitempty"`   // as of the oracle
	Acks    int    `json:"acks,omitempty"`    // the load ends when this many were answered 200; 0: at halt
}

// account is an oracle's answer.
type account struct {
	Acked   int    `json:"acked"`   // ids answered 200
	Spans   int    `json:"spans"`   // of them, those of spans
	Unsure  int    `json:"unsure"`  // ids sent and not answered 200: each may be there or not
	Loading bool   `json:"loading"` // writers are at work
	Refusal string `json:"refusal"` // the last answer other than 200

	// Only of verify. Of the ids of each kind, the first few.
	There     int      `json:"there"`     // acked ids that the server holds once and as they were sent
	Missing   []string `json:"missing"`   // acked, and the server does not know them
	Different []string `json:"different"` // the server holds other bytes than were sent; unsure ids as well
	Twice     []string `json:"twice"`     // the server counts more events than were sent
	Older     []string `json:"older"`     // an acked score is not there, or an earlier one won
	Scored    int      `json:"scored"`    // scores answered 200
	Lost      int      `json:"lost"`      // how many are missing
	Error     string   `json:"error"`     // why it could not compare
}

// startOracle starts an oracle whose writes carry key, by re-executing this test binary.
func startOracle(t *testing.T, key string) *oracle {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperVariable+"=oracle", "ORACLE_KEY="+key)
	cmd.Stderr = os.Stderr

	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		_ = in.Close() // which ends it
		_ = cmd.Wait()
	})

	return &oracle{t: t, in: json.NewEncoder(in), answers: bufio.NewReader(out), spans: 4}
}

func (o *oracle) tell(command order) account {
	o.t.Helper()
	if err := o.in.Encode(command); err != nil {
		o.t.Fatal("the oracle: ", err)
	}

	line, err := o.answers.ReadBytes('\n')
	if err != nil {
		o.t.Fatal("the oracle: ", err)
	}

	var a account
	if err := json.Unmarshal(line, &a); err != nil {
		o.t.Fatal("the oracle: ", err)
	}
	if a.Error != "" {
		o.t.Fatal("the oracle: ", a.Error)
	}

	return a
}

// load has writers write to a sidecar until acks in all were answered 200, or until halt
// if acks is 0. It does not wait.
func (o *oracle) load(n *node, writers, bytes, acks int) {
	o.t.Helper()
	o.tell(order{Do: "load", Addr: n.addr, Writers: writers, Bytes: bytes, Spans: o.spans, Acks: acks})
}

// loadBoth has writers write to one sidecar and score at both, until halt.
func (o *oracle) loadBoth(a, b *node, writers, bytes int) {
	o.t.Helper()
	o.tell(order{Do: "load", Addr: a.addr, Also: b.addr, Writers: writers, Bytes: bytes, Spans: o.spans})
}

// halt ends the load, including calls in flight, and counts.
func (o *oracle) halt() account { o.t.Helper(); return o.tell(order{Do: "halt"}) }

// count returns how far the load has come.
func (o *oracle) count() account { o.t.Helper(); return o.tell(order{Do: "count"}) }

// loaded loads a sidecar and waits until acks in all were answered 200.
func (o *oracle) loaded(n *node, writers, bytes, acks int) account {
	o.t.Helper()
	o.load(n, writers, bytes, acks)
	n.eventually(
		func() bool { return !o.count().Loading },
		func() string { return fmt.Sprintf("the load does not end: %+v", o.count()) },
	)

	return o.halt()
}

// verify compares what a server holds with what was sent.
func (o *oracle) verify(server *node) account {
	o.t.Helper()
	return o.tell(order{Do: "verify", Addr: server.addr})
}

// wantAll fails the test unless the server holds every acked id once and as it was sent,
// and no unsure one with other bytes.
func (o *oracle) wantAll(server *node) account {
	o.t.Helper()
	a := o.verify(server)
	if a.Acked == 0 || a.There != a.Acked || len(a.Different)+len(a.Twice)+len(a.Older) > 0 {
		o.t.Errorf("of %d acked writes %d are at the server as sent, %d are not: "+
			"missing %v, different %v, twice %v, scores that are not the newest %v",
			a.Acked, a.There, a.Lost, a.Missing, a.Different, a.Twice, a.Older)
	}

	return a
}

func TestTheOracleSeesWhatIsMissingDifferentAndTwice(t *testing.T) {
	server := startServer(t, t.TempDir(), "127.0.0.1:0")
	sidecar := startSidecar(t, t.TempDir(), server.addr)
	elsewhere := startServer(t, t.TempDir(), "127.0.0.1:0")

	post := func(path, text string) {
		t.Helper()
		r := elsewhere.call("POST", path, text, "X-API-KEY", adminKey, "Content-Type", otlpJSON)
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
		text := string(server.record(id, events(1)).Span)
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
		o := startOracle(t, adminKey)
		o.spans = c.spans
		o.loaded(sidecar, 2, 100, 8)
		sidecar.emptied()
		if a := o.wantAll(server); a.Unsure != 0 || a.There < 8 || a.Spans != c.spans*a.Acked {
			t.Fatalf("%s: the server holds everything, but the oracle says %+v", c.name, a)
		}

		missing := o.verify(elsewhere)
		if missing.There != 0 || missing.Lost != missing.Acked || len(missing.Missing) < 8 {
			t.Fatalf("%s: the server holds nothing, but the oracle says %+v", c.name, missing)
		}

		// All but the first come as they were sent, the second twice, the third changed.
		ids := slices.Sorted(slices.Values(missing.Missing))
		c.send(ids[1], c.first)
		for i, id := range ids[1:] {
			c.send(id, i == 1)
		}

		a := o.verify(elsewhere)
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
	server := startPlainServer(t, freePort(t))
	sidecar := startSidecar(t, t.TempDir(), server.addr)
	o := startOracle(t, adminKey)
	o.spans = 0
	o.loadBoth(sidecar, sidecar, 2, 100)
	sidecar.eventually(
		func() bool { return o.count().Acked >= 8 && o.count().Scored >= 16 },
		func() string { return fmt.Sprintf("the load does not proceed: %+v", o.count()) },
	)
	scored := o.halt().Scored

	sidecar.emptied()
	if a := o.wantAll(server); a.Scored != scored {
		t.Fatalf("the server holds everything, but the oracle says %+v, want %d scores", a, scored)
	}

	// A server that has the requests but none of the scores.
	elsewhere := startPlainServer(t, freePort(t))
	for i, id := range o.verify(elsewhere).Missing {
		text := string(contentOf(id, 100))
		if r := elsewhere.call("POST", "/rest/track-request", text, "X-API-KEY", adminKey); r.Status != 200 {
			t.Fatalf("%d %s", r.Status, r.Body)
		}
		if i == 0 { // one more than were sent
			for range scoresMax + 1 {
				elsewhere.track("/rest/track-score", adminKey, score(id, scoresMax))
			}
		}
	}

	if a := o.verify(elsewhere); len(a.Older) == 0 || len(a.Twice) != 1 {
		t.Errorf("want missing scores, and one request scored too often; the oracle says %+v", a)
	}
}
