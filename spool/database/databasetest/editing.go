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
	must(t, err)

	return e
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
	must(t, err)

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
		state.Request.Value.Model, state.Request.Value.Tokens.Input = "gpt-4", nil
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
