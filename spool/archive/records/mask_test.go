package records_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"promptspool/api/calls"
	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/records"
	"promptspool/spool/database/databasetest"
)

const (
	place = databasetest.KeyPlace
	name  = databasetest.KeyName
)

// withKey returns an event as an app sends it, with a key.
func withKey(e wire.Event) wire.Event {
	e.Body = databasetest.KeyedBody(e.Body)

	return e
}

// keyedEvents returns events of all kinds with a key in each, as an older sidecar or an export
// has them.
func keyedEvents() []wire.Event {
	request, long := databasetest.ID(1000), strings.Repeat("long ", 300)

	return []wire.Event{
		write(1, wire.KindRequest, `{"function_name":"openai.f",`+
			`"kwargs":{"`+name+`":"`+place+`","model":"m"},"tags":["`+place+`"],`+
			`"metadata":{"a":"`+place+`"},"error_type":"`+place+`","error_message":"401: `+place+`","api_key":"ps_x",`+
			`"request_response":{"choices":[{"message":{"content":"`+place+`"}}]}}`),
		write(2, wire.KindMetadata, `{"request_id":"`+request+`","metadata":{"note":"see `+place+`"}}`),
		write(3, wire.KindScore, `{"request_id":"`+request+`","name":"`+place+`","score":50}`),
		write(4, wire.KindPrompt, `{"request_id":"`+request+`","prompt_name":"p",`+
			`"prompt_input_variables":{"x":"`+place+`"}}`),
		write(5, wire.KindGroup, `{"request_id":"`+request+`","group_id":"`+place+`"}`),
		write(6, wire.KindScore, `{"request_id":"`+request+`","score":"`+place+`"}`),
		write(7, wire.KindMetadata, `{"request_id":"`+request+`","metadata":{"long":"`+place+" "+long+`"}}`),
		write(8, wire.KindPrompt, `{"request_id":"`+request+`","prompt_name":"p",`+
			`"prompt_input_variables":{"x":"`+place+" "+long+`"}}`),
	}
}

// holdsKey returns the places in which an archive still shows the key.
func holdsKey(t *testing.T, s server) (places []string) {
	t.Helper()
	look := func(where string, v any) {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), databasetest.Key) {
			places = append(places, where)
		}
	}

	err := s.ExportEvents(t.Context(), s.id, wire.Search{}, func(events []wire.Event) error {
		look("events", events)
		return nil
	}, func(string) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Export(t.Context(), s.id, wire.ExportQuery{}, func(e wire.Exported) error {
		look("export", e.Record)
		return nil
	}); err != nil {
		t.Fatal(err)
	}

	page, err := s.Search(t.Context(), s.id, wire.Search{PerPage: 10})
	if err != nil {
		t.Fatal(err)
	}
	look("search", page)

	return places
}

func TestTheArchiveMasksWhatArrives(t *testing.T) {
	s := newServer(t)
	for _, e := range keyedEvents() {
		s.record(t, withKey(e))
	}
	if places := holdsKey(t, s); len(places) > 0 {
		t.Errorf("the key is in %v", places)
	}

	rec, err := s.Request(t.Context(), s.id, databasetest.ID(1000))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(rec.Request), "api_key") ||
		!strings.Contains(string(rec.Request), `"apiKey":"[masked]","model":"m"`) {
		t.Errorf("the body is %s", rec.Request)
	}
}

// An event that was stored unmasked and arrives again masked is a duplicate, and so is one that
// was stored masked and arrives again unmasked.
func TestAMaskedEventIsTheOneThatItWas(t *testing.T) {
	body := `{"function_name":"f","kwargs":{"` + name + `":"hunter2"}}`
	masked := `{"function_name":"f","kwargs":{"apiKey":"[masked]"}}`
	for _, tt := range []struct {
		what        string
		stored      string
		first, next int // the events' places in time, under one request id
	}{
		{"unmasked, then masked", "old", 1, 2},
		{"unmasked, then masked of an earlier time", "old", 2, 1},
		{"masked, then unmasked", "new", 1, 2},
		{"masked, then unmasked of an earlier time", "new", 2, 1},
	} {
		t.Run(tt.what, func(t *testing.T) {
			db := openStore(t)
			s := serverOver(db)
			first, next := write(tt.first, wire.KindRequest, body), write(tt.next, wire.KindRequest, masked)
			if tt.stored == "old" {
				old := databasetest.WithKey(t, databasetest.Decode(t, first, databasetest.Start))
				mustApply(t, db, s.id.Account, old)
			} else {
				s.record(t, withKey(first))
				next = withKey(write(tt.next, wire.KindRequest, body))
			}

			again := first
			again.Body = next.Body
			if r := s.record(t, again); r[0].Code != wire.ResultDuplicate {
				t.Errorf("the same event again is %+v", r[0])
			}
			if r := s.record(t, next); r[0].Code != wire.ResultAccepted {
				t.Errorf("another event of the request is %+v", r[0])
			}

			s.record(t, write(7, wire.KindRequest, `{"function_name":"another","kwargs":{}}`))
			conflicts := func() (ids []string) {
				rec, err := s.Request(t.Context(), s.id, databasetest.ID(1000))
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range rec.Events {
					if e.Conflict {
						ids = append(ids, e.ID)
					}
				}

				return ids
			}
			if diff := cmp.Diff([]string{databasetest.ID(7)}, conflicts()); diff != "" {
				t.Errorf("conflicts (-want +got):\n%s", diff)
			}

			if _, err := s.Scan(t.Context(), s.id, wire.ScanQuery{Mask: true}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{databasetest.ID(7)}, conflicts()); diff != "" {
				t.Errorf("conflicts after masking (-want +got):\n%s", diff)
			}
		})
	}
}

// Cut in the middle, a secret no longer looks like one. So excerpts may end, and the state has
// only the beginning of a span's name.
func TestMaskingAlsoMasksWhatEndsWithinASecret(t *testing.T) {
	db := openStore(t)
	s := serverOver(db)
	text, name := strings.Repeat("x ", calls.ExcerptRunesMax/2-8), strings.Repeat("x ", 120)
	called := write(1, wire.KindRequest,
		`{"function_name":"f","kwargs":{"prompt":"`+text+place+`"},"request_response":"`+text+place+`"}`)
	spanned := write(2, wire.KindSpan, `{"resource":{},"scope":{},"span":{`+
		`"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203331","name":"`+name+place+`"}}`)
	spanned.RequestID = databasetest.ID(1001)

	request := databasetest.WithKey(t, databasetest.Decode(t, called, databasetest.Start))
	cut := (text + databasetest.Key)[:calls.ExcerptRunesMax]
	request.Request.InputExcerpt, request.Request.OutputExcerpt = cut, cut
	span := databasetest.WithKey(t, databasetest.Decode(t, spanned, databasetest.Start))
	span.Span.Name = (name + databasetest.Key)[:256]
	mustApply(t, db, s.id.Account, request, span)

	if _, err := s.Scan(t.Context(), s.id, wire.ScanQuery{Mask: true}); err != nil {
		t.Fatal(err)
	}
	page, err := s.Search(t.Context(), s.id, wire.Search{PerPage: 1})
	if err != nil {
		t.Fatal(err)
	}
	if row := page.Items[0]; row.InputExcerpt != text+"[masked]" || row.OutputExcerpt != text+"[masked]" {
		t.Errorf("the excerpts are %q and %q", row.InputExcerpt, row.OutputExcerpt)
	}
	trace, err := s.Trace(t.Context(), s.id, "0af7651916cd43dd8448eb211c80319c")
	if err != nil || len(trace.Spans) != 1 || trace.Spans[0].Name != name+"[masked]" {
		t.Errorf("the trace is %+v, %v", trace, err)
	}
}

func TestAScanFindsWhatIsStoredAndMasksIt(t *testing.T) {
	db := openStore(t)
	now := databasetest.Start.Add(time.Hour)
	tick := func() time.Time { // so that each call looks at two or three records
		now = now.Add(time.Second)
		return now
	}
	s := serverOver(db, at(tick), func(c *records.Config) { c.Audit = db })

	var all []archive.Event
	for i := range 7 {
		id := databasetest.ID(1000 + i)
		body := `{"function_name":"f","kwargs":{"model":"m"},"tags":["clean"]}`
		if i%2 == 0 {
			body = `{"function_name":"f","kwargs":{"` + name + `":"hunter2",` +
				`"messages":[{"content":"use ` + place + `"}]},"tags":["` + place + `"]}`
		}
		e := databasetest.Event(t, 10*i, wire.KindRequest, id, body)
		all = append(all, databasetest.WithKey(t, e))
	}
	orphan := databasetest.Event(t, 100, wire.KindMetadata, databasetest.ID(2000), `{"metadata":{"note":"`+place+`"}}`)
	all = append(all, databasetest.WithKey(t, orphan))
	mustApply(t, db, s.id.Account, all...)

	scan := func(mask bool) (sum wire.Scanned, calls int) {
		t.Helper()
		sum.Kinds = map[wire.SecretKind]int{}
		for {
			told, err := s.Scan(t.Context(), s.id, wire.ScanQuery{Mask: mask, Cursor: sum.Cursor})
			if err != nil {
				t.Fatal(err)
			}
			calls++

			sum.Seen, sum.Found, sum.Masked = sum.Seen+told.Seen, sum.Found+told.Found, sum.Masked+told.Masked
			sum.Items = append(sum.Items, told.Items...)
			for kind, n := range told.Kinds {
				sum.Kinds[kind] += n
			}
			if sum.Cursor = told.Cursor; told.Done {
				return sum, calls
			}
		}
	}

	sum, calls := scan(false)
	want := map[wire.SecretKind]int{wire.SecretName: 4, wire.SecretKey: 9}
	if diff := cmp.Diff(want, sum.Kinds); diff != "" ||
		sum.Seen != 8 || sum.Found != 5 || sum.Masked != 0 || calls < 3 {
		t.Errorf("after %d calls %+v; kinds (-want +got):\n%s", calls, sum, diff)
	}
	orphans := wire.FoundSecret{
		RequestID: databasetest.ID(2000),
		SecretFinding: wire.SecretFinding{
			Kind:   wire.SecretKey,
			Begins: "sk-p...",
		},
	}
	if !slices.Contains(sum.Items, orphans) {
		t.Errorf("the orphan's finding is not among %+v", sum.Items)
	}
	if text, _ := json.Marshal(sum); strings.Contains(string(text), databasetest.Key) ||
		strings.Contains(string(text), "hunter2") {
		t.Errorf("the answer shows a secret: %s", text)
	}

	if places := holdsKey(t, s); len(places) == 0 {
		t.Fatal("the key is not stored, so there is nothing to mask")
	}

	if sum, calls = scan(true); sum.Masked != 5 || calls < 3 {
		t.Errorf("after %d calls %d are masked, want 5", calls, sum.Masked)
	}
	if places := holdsKey(t, s); len(places) > 0 {
		t.Errorf("after masking, the key is in %v", places)
	}
	if sum, _ = scan(true); sum.Found != 0 || sum.Masked != 0 {
		t.Errorf("a second run finds %+v, want nothing", sum)
	}

	log, err := db.AuditLog(t.Context(), s.id.Account, "", 100)
	if err != nil || len(log) == 0 {
		t.Fatalf("the audit log is %+v (%v)", log, err)
	}
	if slices.ContainsFunc(log, func(e wire.AuditEntry) bool {
		return e.Actor != "key k1" || e.Action != "mask secrets" || !strings.Contains(e.Target, "record")
	}) {
		t.Errorf("the audit log is %+v", log)
	}
}

func TestAScanEndsAtItsLimit(t *testing.T) {
	db := openStore(t)
	s := serverOver(db)
	var all []archive.Event
	for n := range 5 {
		id := databasetest.ID(1000 + n)
		all = append(all, databasetest.Event(t, n, wire.KindRequest, id, `{"function_name":"f"}`))
	}
	for n := range 2 {
		id := databasetest.ID(2000 + n)
		all = append(all, databasetest.Event(t, 10+n, wire.KindMetadata, id, `{"metadata":{"a":"b"}}`))
	}
	mustApply(t, db, s.id.Account, all...)

	q, seen := wire.ScanQuery{Limit: 2}, 0
	for range 10 {
		told, err := s.Scan(t.Context(), s.id, q)
		if err != nil {
			t.Fatal(err)
		}
		if told.Seen > 2 {
			t.Fatalf("a scan of two looked at %d", told.Seen)
		}

		seen += told.Seen
		if q.Cursor = told.Cursor; told.Done {
			break
		}
	}
	if seen != 7 {
		t.Errorf("scans of two looked at %d of 7 records", seen)
	}
}
