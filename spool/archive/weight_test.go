package archive_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/rowcode"
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

// Neither a state nor a row holds long values, but the record shows them whole.
func TestLongValuesAreKeptOutOfTheRow(t *testing.T) {
	id, long := databasetest.ID(1000), strings.Repeat("ä", 30_000)
	request := databasetest.Event(t, 1, wire.KindRequest, id,
		`{"function_name":"x.y","metadata":{"a":"`+long+`","b":"short"}}`)
	metadata := databasetest.Event(t, 2, wire.KindMetadata, id, `{"metadata":{"c":"`+long+`"}}`)
	prompt := databasetest.Event(t, 3, wire.KindPrompt, id,
		`{"prompt_name":"p","version":1,"prompt_input_variables":{"x":"`+long+`"}}`)
	states, bodies := databasetest.Fold([]archive.Event{request, metadata, prompt})
	s := states[id]

	text, err := json.Marshal(s)
	if err != nil || len(text) > 5000 || s.Weight() > 5000 {
		t.Errorf("the state has %d bytes, and weighs %d (%v)", len(text), s.Weight(), err)
	}
	row, _ := s.Row()
	if n := len(rowcode.Encode(&row)); n > 2000 {
		t.Errorf("the row has %d bytes", n)
	}

	whole := databasetest.Whole(s, bodies)
	view := whole.View(context.Background(), request.Body)
	for key, want := range map[string]string{"a": long, "b": "short", "c": long} {
		if view.Metadata[key] != want {
			t.Errorf("%s is %.20q of %d bytes", key, view.Metadata[key], len(view.Metadata[key]))
		}
	}
	if want := `{"x":"` + long + `"}`; string(view.Prompt.InputVariables) != want {
		t.Errorf("the variables are %.20s", view.Prompt.InputVariables)
	}

	// Without the bodies, the record shows how the values begin.
	for _, key := range []string{"a", "c"} {
		got := s.View(context.Background(), nil).Metadata[key]
		if !strings.HasPrefix(got, "ää") || !strings.HasSuffix(got, "ä…") || len(got) > 300 {
			t.Errorf("%s is shown as %q", key, got)
		}
	}
}

// A value that looks like the reference to a long value must stay what it is.
func TestAValueThatLooksLikeAReference(t *testing.T) {
	spoof := rowcode.StoredValue("k", strings.Repeat("x", 5000))
	e := databasetest.Event(t, 1, wire.KindMetadata, databasetest.ID(1000), `{"metadata":{"k":"`+spoof+`"}}`)
	var s archive.State
	s.Take(e)
	if s.Metadata["k"].Value == spoof ||
		rowcode.HashStored("k", s.Metadata["k"].Value) != rowcode.HashValue("k", spoof) {
		t.Errorf("it is stored as %q", s.Metadata["k"].Value)
	}
	if s.Restore(map[string]json.RawMessage{e.ID: e.Body}); s.Whole()["k"] != spoof {
		t.Errorf("it is shown as %q", s.Whole()["k"])
	}
}
