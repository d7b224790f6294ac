package databasetest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"promptspool/api/calls"
	"promptspool/api/wire"
	"promptspool/metrics"
	"promptspool/spool/archive"
	"promptspool/spool/archive/records"
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

	edit := func(state *archive.State, bodies map[string]json.RawMessage) (bool, error) {
		changed := false
		for i := range state.History {
			h := &state.History[i]
			if body := bodies[h.ID]; bytes.Contains(body, []byte(Key)) {
				bodies[h.ID] = bytes.ReplaceAll(body, []byte(Key), []byte("gone"))
				h.Bytes, h.Hash = len(bodies[h.ID]), archive.HashBody(bodies[h.ID])
				changed = true
			}
		}

		text, err := json.Marshal(state)
		if err != nil || !changed && !bytes.Contains(text, []byte(Key)) {
			return false, err
		}
		*state = archive.State{}
		return true, json.Unmarshal(bytes.ReplaceAll(text, []byte(Key), []byte("gone")), state)
	}

	// A record without a key and one that does not exist are not changed.
	ids := []string{ID(1000), ID(1001), ID(1002), ID(1999)}
	if changed, err := archive.Edit(context.Background(), s, account, ids, true, edit); err != nil || changed != 2 {
		t.Fatalf("%d records changed (%v), want 2", changed, err)
	}
	if changed, err := archive.Edit(context.Background(), s, account, ids, true, edit); err != nil || changed != 0 {
		t.Fatalf("%d records changed again (%v)", changed, err)
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
		if n := search(t, s, account, wire.Search{FilterGroup: tagged("tag gone")}).Total; n != 1 {
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

// perToken is a price list on which each token of any model costs a billionth of a dollar.
type perToken struct{}

func (perToken) Cost(_, _, _ string, _ time.Time, u calls.Usage) (cost calls.Dollars, ok bool) {
	if u.Input == nil || u.Output == nil {
		return 0, false
	}
	return calls.Dollars(*u.Input + *u.Output), true
}

// rereading reads records again that another version read otherwise, some at a time. The server ends after
// the first, and its caller begins again.
func rereading(t *testing.T, open Open) {
	s, reopen := open(t)
	call := func(n int, more string) archive.Event {
		return Event(t, n, wire.KindRequest, ID(1000+n), `{"function_name":"openai.chat.completions.create",`+
			`"kwargs":{"model":"gpt-4o","messages":[{"role":"user","content":"Is it warm?"}]},"request_response":`+
			`{"model":"gpt-4o","choices":[{"finish_reason":"stop","message":{"role":"assistant","content":"Yes."}}],`+
			`"usage":{"prompt_tokens":12,"completion_tokens":4}},"request_start_time":1772366400,`+
			`"request_end_time":1772366402,"prompt_id":"weather","prompt_version":2,"tags":["a"],`+
			`"metadata":{"user_id":"ann","session_id":"s-1"},"group_id":"g"`+more+`}`)
	}
	events := []archive.Event{
		call(0, ""), call(1, `,"status":"ERROR","error_type":"Timeout"`), call(2, ""), call(3, ""),
		Event(t, 4, wire.KindSpan, ID(1004), CallBody(traces[0], 1, "gpt-4o", "Hello")),
		Event(t, 5, wire.KindRequest, ID(1005), `{"provider":"openai","model":"gpt-4o","price":7,`+
			`"input":{"type":"chat","messages":[]},"output":{"type":"chat","messages":[]},`+
			`"input_tokens":1,"output_tokens":1}`),
	}
	for i := range events {
		events[i].Request.SetPrice(perToken{}, events[i].OrderTime)
	}
	apply(t, s, "anew", events...)
	apply(t, s, account, events...)

	// As another version read them.
	seven, model := int64(7), "gpt-4"
	otherwise := []func(r *archive.Request){
		func(r *archive.Request) { r.InputTokens, r.Model = &seven, model },
		func(r *archive.Request) { r.Status, r.ErrorType = "SUCCESS", "" },
		func(r *archive.Request) { r.OutputExcerpt, r.OutputShape, r.Unreadable = "", "", true },
		func(*archive.Request) {},
		func(r *archive.Request) { r.OutputTokens, r.Provider = nil, "" },
		func(r *archive.Request) { r.Model = model },
	}
	var ids []string
	for i := range events {
		ids = append(ids, ID(1000+i))
	}
	edit := func(state *archive.State, _ map[string]json.RawMessage) (bool, error) {
		r := &state.Request.Value
		for i, id := range ids {
			if id == state.RequestID {
				otherwise[i](r)
			}
		}
		r.SetPrice(perToken{}, state.Request.At)
		return true, nil
	}
	if _, err := archive.Edit(t.Context(), s, account, ids, false, edit); err != nil {
		t.Fatal(err)
	}

	s = reopen() // which checks it
	if page := search(t, s, account, wire.Search{}); page.Rows[len(page.Rows)-1].Engine != model {
		t.Errorf("what is stored shows %+v", page.Rows)
	}
	shown := func(account string) (all []any) {
		id, svc := wire.Identity{Account: account}, overStore(s)
		statistics, err := svc.Analyze(t.Context(), id, wire.StatisticsQuery{})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, statistics, search(t, s, account, wire.Search{}).Rows)
		for _, of := range wire.RollupKinds {
			page, err := svc.Rollups(t.Context(), id, wire.RollupSearch{Of: of})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, page)
		}
		return all
	}
	if cmp.Equal(shown("anew"), shown(account)) {
		t.Fatal("the records are not as another version read them")
	}

	var sum wire.Repriced
	// A part takes 2 s: one record, by a clock that goes on by 3 s whenever it is asked.
	repricing := func(end func(wire.Repriced) bool) {
		t.Helper()
		now := Start
		svc := records.New(records.Config{
			Store:   s,
			Prices:  perToken{},
			Metrics: metrics.New("server", "test"),
			Logger:  slog.New(slog.NewTextHandler(io.Discard, nil)),
			Now:     func() time.Time { now = now.Add(3 * time.Second); return now },
		})
		part := wire.Repriced{}
		for !end(part) {
			var err error
			if part, err = svc.Reprice(t.Context(), wire.Identity{Account: account}, part.Cursor); err != nil {
				t.Fatal(err)
			}
			sum.Seen, sum.Changed = sum.Seen+part.Seen, sum.Changed+part.Changed
			sum.Parts.Add(part.Parts)
		}
	}
	repricing(func(part wire.Repriced) bool { return part.Seen == 1 })
	if sum.Seen != 1 {
		t.Fatalf("the first part is %+v", sum)
	}
	s = reopen()
	repricing(func(part wire.Repriced) bool { return part.Done })
	want := wire.Repriced{
		Seen:    1 + len(events),
		Changed: len(events) - 1,
		Parts:   wire.RepricedParts{Tokens: 2, Price: 2, Status: 1, Model: 3, Text: 1},
	}
	if diff := cmp.Diff(want, sum); diff != "" {
		t.Errorf("what was read again (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(shown("anew"), shown(account)); diff != "" {
		t.Errorf("read again, it is not as read anew (-want +got):\n%s", diff)
	}

	sum = wire.Repriced{}
	repricing(func(part wire.Repriced) bool { return part.Done })
	if sum.Changed != 0 || sum.Seen != len(events) {
		t.Errorf("a second time: %+v", sum)
	}
}
