package databasetest

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"promptspool/api/wire"
	"promptspool/spool/archive"
)

// Key is a provider's key as an app may send it within a text. It was never issued.
const Key = "sk-proj-T3BlbkFJ9aQ2xZ7mK4nR8vL1cW6yB5dH0gU3sE"

// WithKey replaces these by Key and by the name of a credential's member.
const (
	KeyPlace = "KEY-PLACE"
	KeyName  = "KEY-NAME"
)

// withKey puts Key into its places.
var withKey = strings.NewReplacer(KeyPlace, Key, KeyName, "apiKey")

// KeyedBody returns a body with Key in each KeyPlace, and a credential's name in each
// KeyName.
func KeyedBody(body json.RawMessage) json.RawMessage {
	return json.RawMessage(withKey.Replace(string(body)))
}

// WithKey returns an event with a KeyedBody, as a server kept it that masked no secrets.
func WithKey(t rapid.TB, e archive.Event) archive.Event {
	t.Helper()
	e.Body = KeyedBody(e.Body)
	if e.Hash != "" {
		e.Hash = archive.HashBody(e.Body)
	}
	for key, value := range e.Metadata {
		e.Metadata[key] = withKey.Replace(value)
	}
	if e.Request == nil {
		return e
	}

	// The request was decoded from the body, so it has the places, too.
	text, err := json.Marshal(e.Request)
	if err == nil {
		*e.Request = archive.Request{}
		err = json.Unmarshal(KeyedBody(text), e.Request)
	}
	if err != nil {
		t.Fatal(err)
	}

	return e
}

// editing changes records as masking does. Everything derived from them must follow.
func editing(t *testing.T, open Open) {
	s, reopen := open(t)
	request := Event(t, 1, wire.KindRequest, ID(1000), requestBody("tag "+KeyPlace))
	other := Event(t, 2, wire.KindRequest, ID(1000), longBody("another "+KeyPlace, 5000))
	metadata := Event(t, 3, wire.KindMetadata, ID(1000), `{"metadata":{"note":"`+KeyPlace+`"}}`)
	waiting := Event(t, 4, wire.KindMetadata, ID(1001), `{"metadata":{"note":"`+KeyPlace+`"}}`)
	unread := Event(t, 5, wire.KindScore, ID(1001), `{"score":"`+KeyPlace+`"}`)
	clean := Event(t, 6, wire.KindRequest, ID(1002), requestBody("clean"))
	apply(t, s, account, WithKey(t, request), WithKey(t, other), WithKey(t, metadata), WithKey(t, waiting),
		WithKey(t, unread), clean)

	// A record without a key and one that does not exist are not changed.
	ids := []string{ID(1000), ID(1001), ID(1002), ID(1999)}
	for _, want := range []int{2, 0} {
		if changed := Mask(t, s, account, Key, ids...); changed != want {
			t.Fatalf("%d records changed, want %d", changed, want)
		}
	}

	// The second time after a restart.
	for range 2 {
		for _, id := range ids[:3] {
			state, bodies, err := s.Bodies(context.Background(), account, id)
			text, _ := json.Marshal([]any{state, bodies})
			if err != nil || bytes.Contains(text, []byte(Key)) {
				t.Errorf("record %s (%v): %s", id, err, text)
			}
		}
		if n := search(t, s, account, wire.Search{FilterGroup: tagged("tag masked")}).Total; n != 1 {
			t.Errorf("%d records have the new tag, want 1", n)
		}
		if n := search(t, s, account, wire.Search{FilterGroup: tagged("tag " + Key)}).Total; n != 0 {
			t.Errorf("%d records have the old tag", n)
		}

		// The edit changed the bytes of an orphan, so the tally must have changed with
		// them.
		var want archive.Orphans
		state, _, err := s.Bodies(context.Background(), account, ID(1001))
		if err != nil {
			t.Fatal(err)
		}
		want.Add(state.Waiting())
		if _, tally := listOrphans(t, s, account, 10); tally != want {
			t.Errorf("orphans are tallied as %+v, want %+v", tally, want)
		}

		s = reopen()
	}
}

// Mask replaces a word in records, as masking does, and returns how many had it.
func Mask(t rapid.TB, s archive.Store, account, word string, ids ...string) (changed int) {
	masked := func(text []byte) []byte { return bytes.ReplaceAll(text, []byte(word), []byte("masked")) }
	edit := func(state *archive.State, bodies map[string]json.RawMessage) (changed bool, err error) {
		for i := range state.History {
			h := &state.History[i]
			if body := bodies[h.ID]; bytes.Contains(body, []byte(word)) {
				bodies[h.ID] = masked(body)
				h.Bytes, h.Hash = len(bodies[h.ID]), archive.HashBody(bodies[h.ID])
				changed = true
			}
		}

		text, err := json.Marshal(state)
		if err != nil || !changed && !bytes.Contains(text, []byte(word)) {
			return false, err
		}
		*state = archive.State{}
		return true, json.Unmarshal(masked(text), state)
	}
	changed, err := archive.Edit(context.Background(), s, account, ids, true, edit)
	if err != nil {
		t.Fatal(err)
	}

	return changed
}

// rereading reads records again that another version read otherwise.
func rereading(t *testing.T, open Open) {
	s, reopen := open(t)
	events := []archive.Event{
		Event(t, 0, wire.KindRequest, ID(1000), requestBody("a")),
		Event(t, 1, wire.KindSpan, ID(1001), CallBody(traces[0], 1, "gpt-4o", "Hello")),
	}
	apply(t, s, "anew", events...)
	apply(t, s, account, events...)
	misread := func(state *archive.State, _ map[string]json.RawMessage) (bool, error) {
		state.Request.Value.Model, state.Request.Value.InputTokens = "gpt-4", nil
		return true, nil
	}
	if _, err := archive.Edit(t.Context(), s, account, []string{ID(1000), ID(1001)}, false, misread); err != nil {
		t.Fatal(err)
	}

	for _, changed := range []int{len(events), 0} {
		s = reopen() // which checks it
		got, err := overStore(s).Reprice(t.Context(), wire.Identity{Account: account}, "")
		if err != nil || got.Seen != len(events) || got.Changed != changed || !got.Done {
			t.Errorf("read again: %+v (%v), want %d changed", got, err, changed)
		}
	}
	anew, again := search(t, s, "anew", wire.Search{}), search(t, s, account, wire.Search{})
	if diff := cmp.Diff(anew.Rows, again.Rows); diff != "" {
		t.Errorf("read again, it is not as read anew (-want +got):\n%s", diff)
	}
}
