//go:build linux

package harness

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// Oracle is the tests' end of a witness, which is a process of its own. So nothing of the
// tests dies or pauses with what it watches. It makes ids, sends each once, remembers
// which were answered 200, and later compares what a server holds with what it sent, byte
// for byte.
type Oracle struct {
	t       *testing.T
	in      *json.Encoder
	answers *bufio.Reader

	// spans is how many writes there are for each batch of spans; 0 means requests alone.
	// Spans may be sent again, so a spool may hold more events than were acked.
	Spans int
}

// Order is a command to the oracle, as one line of JSON; one answer follows each.
type Order struct {
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

// Account is an oracle's answer.
type Account struct {
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

// StartOracle starts an oracle whose writes carry key, by re-executing this test binary.
func StartOracle(t *testing.T, key string) *Oracle {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), HelperVariable+"=oracle", "ORACLE_KEY="+key)
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

	return &Oracle{t: t, in: json.NewEncoder(in), answers: bufio.NewReader(out), Spans: 4}
}

func (o *Oracle) tell(command Order) Account {
	o.t.Helper()
	if err := o.in.Encode(command); err != nil {
		o.t.Fatal("the oracle: ", err)
	}

	line, err := o.answers.ReadBytes('\n')
	if err != nil {
		o.t.Fatal("the oracle: ", err)
	}

	var a Account
	if err := json.Unmarshal(line, &a); err != nil {
		o.t.Fatal("the oracle: ", err)
	}
	if a.Error != "" {
		o.t.Fatal("the oracle: ", a.Error)
	}

	return a
}

// Load starts writers, which write to a sidecar until acks in all were answered 200. If
// acks is 0, they write until Halt.
func (o *Oracle) Load(n *Node, writers, bytes, acks int) {
	o.t.Helper()
	o.tell(Order{Do: "load", Addr: n.Addr, Writers: writers, Bytes: bytes, Spans: o.Spans, Acks: acks})
}

// LoadBoth has writers write to one sidecar and score at both, until Halt.
func (o *Oracle) LoadBoth(a, b *Node, writers, bytes int) {
	o.t.Helper()
	o.tell(Order{Do: "load", Addr: a.Addr, Also: b.Addr, Writers: writers, Bytes: bytes, Spans: o.Spans})
}

// Halt ends the load, including calls in flight, and counts.
func (o *Oracle) Halt() Account { o.t.Helper(); return o.tell(Order{Do: "halt"}) }

// Count returns how far the load has come.
func (o *Oracle) Count() Account { o.t.Helper(); return o.tell(Order{Do: "count"}) }

// Loaded loads a sidecar and waits until acks in all were answered 200.
func (o *Oracle) Loaded(n *Node, writers, bytes, acks int) Account {
	o.t.Helper()
	o.Load(n, writers, bytes, acks)
	n.Eventually(
		func() bool { return !o.Count().Loading },
		func() string { return fmt.Sprintf("the load does not end: %+v", o.Count()) },
	)

	return o.Halt()
}

// Verify compares what a server holds with what was sent.
func (o *Oracle) Verify(server *Node) Account {
	o.t.Helper()
	return o.tell(Order{Do: "verify", Addr: server.Addr})
}

// WantAll fails the test unless the server holds every acked id once and as it was sent.
// An unsure one may be missing, but must not have other bytes.
func (o *Oracle) WantAll(server *Node) Account {
	o.t.Helper()
	a := o.Verify(server)
	if a.Acked == 0 || a.There != a.Acked || len(a.Different)+len(a.Twice)+len(a.Older) > 0 {
		o.t.Errorf("of %d acked writes %d are at the server as sent, %d are not: "+
			"missing %v, different %v, twice %v, scores that are not the newest %v",
			a.Acked, a.There, a.Lost, a.Missing, a.Different, a.Twice, a.Older)
	}

	return a
}
