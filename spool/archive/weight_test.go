package archive_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/database/databasetest"
)

func TestALongSidecarIsCut(t *testing.T) {
	var s archive.State
	for i := range 12 {
		e := wire.Event{
			ID:         databasetest.ID(i),
			Kind:       wire.KindScore,
			RequestID:  databasetest.ID(1000),
			AcceptedAt: time.Now(),
			Sidecar:    strings.Repeat("ä", 10<<20),
			Body:       json.RawMessage(`{"request_id":"` + databasetest.ID(1000) + `","score":1}`),
		}
		if r := s.Take(databasetest.Decode(t, e, time.Now())); r.Code != wire.ResultAccepted {
			t.Fatalf("it is not accepted: %+v", r)
		}
	}

	text, err := json.Marshal(s)
	if err != nil || len(text) > 12*1000 {
		t.Errorf("the state has %d bytes (%v)", len(text), err)
	}
	if !strings.HasPrefix(s.History[0].Sidecar, "ää") || len(s.History[0].Sidecar) > 255 {
		t.Errorf("the sidecar is %d bytes", len(s.History[0].Sidecar))
	}
}

// What a state holds beside the bodies counts too.
func TestARecordIsFullOfWhateverItHolds(t *testing.T) {
	s := archive.State{RequestID: databasetest.ID(1000)}
	for i := range 5 { // heavier than any event is
		s.History = append(s.History, archive.Entry{
			Stamp:   archive.Stamp{At: databasetest.Start, ID: databasetest.ID(i)},
			Kind:    wire.KindScore,
			Sidecar: strings.Repeat("s", archive.RecordBytesMax/4),
		})
	}

	e := databasetest.Event(t, 9, wire.KindScore, databasetest.ID(1000), `{"score":1}`)
	if r := s.Take(e); r.Code != wire.ResultInvalid {
		t.Errorf("one more event is %+v", r)
	}
}

// Many values that later ones have replaced weigh much more than the bodies that they came in.
func TestARecordIsFullOfOvertakenValues(t *testing.T) {
	past := make([]archive.Stamped[string], 4)
	for i := range past {
		past[i] = archive.Stamped[string]{
			Stamp: archive.Stamp{At: databasetest.Start, ID: databasetest.ID(i)},
			Value: strings.Repeat("v", archive.RecordBytesMax/4-100),
		}
	}
	s := archive.State{RequestID: databasetest.ID(1000), Past: map[string][]archive.Stamped[string]{"key": past}}
	e := databasetest.Event(t, 9, wire.KindMetadata, databasetest.ID(1000), `{"metadata":{"key":"now"}}`)
	if r := s.Take(e); r.Code != wire.ResultInvalid || r.Reason == "" {
		t.Errorf("one more event is %+v", r)
	}
}

func TestMetadataOfOneWriteIsBounded(t *testing.T) {
	metadata := func(values int) string {
		var pairs []string
		for i := range values {
			pairs = append(pairs, fmt.Sprintf(`"key-%03d":%q`, i, strings.Repeat("v", 60_000)))
		}

		return `{"metadata":{` + strings.Join(pairs, ",") + `}}`
	}

	for values, want := range map[int]bool{4: true, 5: false} {
		object, err := wire.ParseObject([]byte(`{"request_id":"` + databasetest.ID(1) + `",` + metadata(values)[1:]))
		if err != nil {
			t.Fatal(err)
		}
		if _, err = wire.DecodeMetadata(object); (err == nil) != want {
			t.Errorf("%d values of 60,000 bytes: %v", values, err)
		}
	}

	// An event that waits in a spool was accepted by an earlier version, and is kept whole.
	e := databasetest.Event(t, 1, wire.KindMetadata, databasetest.ID(1000), metadata(100))
	var s archive.State
	r := s.Take(e)
	s.Restore(map[string]json.RawMessage{e.ID: e.Body})
	if r.Code != wire.ResultAccepted || len(s.Whole()["key-099"]) != 60_000 {
		t.Errorf("of 100 values %d are kept: %+v", len(s.Metadata), r)
	}
}
