package queue_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"promptspool/spool/queue"
)

// model is what the spool should hold.
type model struct {
	t        *rapid.T
	spool    *queue.Queue
	dir      string
	events   []string // all that were ever appended
	frontier int      // how many of them are acknowledged
}

// reopen opens the spool.
func (m *model) reopen() {
	s, err := tryOpen(m.dir, generationBytes(2000))
	if err != nil {
		m.t.Fatal(err)
	}
	m.spool = s
}

// Append appends one to three events at once.
func (m *model) Append(t *rapid.T) {
	var data [][]byte
	for range rapid.IntRange(1, 3).Draw(t, "events") {
		d := bytes.Repeat([]byte{byte('a' + len(m.events)%26)}, rapid.IntRange(0, 600).Draw(t, "bytes"))
		data = append(data, d)
		m.events = append(m.events, string(d))
	}
	if err := m.spool.Append(7, data...); err != nil {
		t.Fatal(err)
	}
}

// Read reads from anywhere above the frontier.
func (m *model) Read(t *rapid.T) {
	if m.frontier == len(m.events) {
		return
	}
	from := rapid.IntRange(m.frontier, len(m.events)-1).Draw(t, "from")
	n := rapid.IntRange(1, 5).Draw(t, "max")
	entries, err := await(t.Context(), m.spool, uint64(from+1), n, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m.events[from:min(from+n, len(m.events))], texts(entries)); diff != "" {
		t.Fatalf("events (-want +got):\n%s", diff)
	}
}

// Ack acknowledges some of what waits.
func (m *model) Ack(t *rapid.T) {
	m.frontier += rapid.IntRange(0, len(m.events)-m.frontier).Draw(t, "acked")
	if err := m.spool.Ack(uint64(m.frontier)); err != nil {
		t.Fatal(err)
	}
}

// Restart closes the spool and opens it again.
func (m *model) Restart(t *rapid.T) {
	if err := m.spool.Close(); err != nil {
		t.Fatal(err)
	}
	m.reopen()
}

// Check compares the counts.
func (m *model) Check(t *rapid.T) {
	bytes := 0
	for _, e := range m.events[m.frontier:] {
		bytes += len(e)
	}
	st := m.spool.Status()
	if st.Events != len(m.events)-m.frontier || st.Bytes != int64(bytes) || st.Gaps != 0 ||
		st.Frontier != uint64(m.frontier+1) || st.Next != uint64(len(m.events)+1) {
		t.Fatalf("status %+v; want %d events from %d on, %d bytes",
			st, len(m.events)-m.frontier, m.frontier+1, bytes)
	}
	if events, b := m.spool.KeyUsage(7); events != st.Events || b != st.Bytes {
		t.Fatalf("the key has %d events, %d bytes; the spool %+v", events, b, st)
	}
}

func TestTheSpoolBehavesAsAQueue(t *testing.T) {
	limitChecks(t, 15)
	rapid.Check(t, func(rt *rapid.T) {
		m := &model{t: rt, dir: t.TempDir()}
		m.reopen()
		defer func() {
			if err := m.spool.Close(); err != nil {
				rt.Fatal(err)
			}
		}()
		rt.Repeat(rapid.StateMachineActions(m))
	})
}
