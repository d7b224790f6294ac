package wire

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"
)

// drawID draws a UUIDv7.
func drawID(t *rapid.T, label string) string {
	id := uuid.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, label))
	id[6], id[8] = id[6]&0x0f|0x70, id[8]&0x3f|0x80
	return id.String()
}

// drawBody draws a JSON object of strings.
func drawBody(t *rapid.T) json.RawMessage {
	body, err := json.Marshal(rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "body"))
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func TestAnEventComesBackFromItsLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seconds := rapid.Int64Range(
			at(1, 1, 1, 0, 0, 1, 0).Unix(),
			at(9999, 12, 31, 23, 59, 59, 0).Unix(),
		).Draw(t, "seconds")
		nanos := rapid.Int64Range(0, 1e9-1).Draw(t, "nanos")
		want := Event{
			ID:         drawID(t, "id"),
			RequestID:  drawID(t, "request_id"),
			Kind:       Kind(rapid.StringN(1, -1, -1).Draw(t, "kind")),
			AcceptedAt: time.Unix(seconds, nanos).In(time.FixedZone("", 3600)),
			Sidecar:    rapid.String().Draw(t, "sidecar"),
			Clock:      rapid.StringN(0, -1, clockBytesMax).Draw(t, "clock"),
			Version:    rapid.IntRange(0, 1<<31-1).Draw(t, "version"),
			Body:       drawBody(t),
		}

		line := want.AppendLine([]byte("before "))
		line, ok := bytes.CutPrefix(line, []byte("before "))
		if !ok || bytes.IndexByte(line, '\n') != len(line)-1 {
			t.Fatalf("AppendLine did not append one line: %q", line)
		}

		got, err := ParseEvent(line)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "event", got, want)
		same(t, "zone", got.AcceptedAt.Location().String(), "UTC")
	})
}

// The line is the contract between sidecars and servers of all versions.
func TestALineIsTheContract(t *testing.T) {
	e := Event{
		ID:         someID,
		Kind:       KindPrompt,
		RequestID:  someID,
		AcceptedAt: noon,
		Sidecar:    `pod "1" <ü>`,
		Version:    3,
		Body:       json.RawMessage(`{"n": 1.50, "s":"<\u0041>"}`),
	}
	want := `{"id":"` + someID + `","kind":"prompt","request_id":"` + someID +
		`","accepted_at":"2026-03-01T12:00:00.123456789Z","sidecar":"pod \"1\" <ü>",` +
		`"version":3,"body":{"n": 1.50, "s":"<\u0041>"}}` + "\n"
	same(t, "line", string(e.AppendLine(nil)), want)

	e.Version, e.Sidecar = 0, ""
	want = strings.Replace(strings.Replace(want, `"version":3,`, "", 1), `pod \"1\" <ü>`, "", 1)
	same(t, "line without a version", string(e.AppendLine(nil)), want)
}

// someLine is a valid event with an empty body.
const someLine = `{"id":"` + someID + `","kind":"score","request_id":"` + someID +
	`","accepted_at":"2026-03-01T12:00:00Z","sidecar":"s","body":{}}`

func TestParseEventTakesWhatOtherVersionsWrite(t *testing.T) {
	for _, tt := range []struct{ what, line string }{
		{"unknown members", edit(t, someLine, "shard", `{"a":1}`)},
		{"an unknown kind", edit(t, someLine, "kind", `"blessing"`)},
		{"no sidecar", edit(t, someLine, "sidecar", "")},
		{"another zone", edit(t, someLine, "accepted_at", `"2026-03-01T14:00:00+02:00"`)},
		{"ids in capitals", edit(t, someLine, "id", `"`+strings.ToUpper(someID)+`"`)},
		{"a line break at the end", someLine + "\r\n"},
	} {
		e, err := ParseEvent([]byte(tt.line))
		if err != nil || e.ID != someID || e.RequestID != someID || !e.AcceptedAt.Equal(at(2026, 3, 1, 12, 0, 0, 0)) {
			t.Errorf("%s: the event is %+v, error %v", tt.what, e, err)
		}
	}
}

func TestParseEventNamesWhatIsWrong(t *testing.T) {
	for _, tt := range []struct{ what, line, says string }{
		{"nothing", "", "not an event"},
		{"text", "hello", "not an event"},
		{"an array", "[]", "not an event"},
		{"two events", someLine + someLine, "not an event"},
		{"cut short", someLine[:len(someLine)-1], "not an event"},
		{"null", "null", "id must be a UUIDv7"},

		{"no id", edit(t, someLine, "id", ""), "id must be a UUIDv7"},
		{"an id of another version", edit(t, someLine, "id", `"0195517d-2c00-4abc-8def-0123456789ab"`),
			"id must be a UUIDv7"},
		{"an id that is a number", edit(t, someLine, "id", "1"), "not an event"},
		{"no request_id", edit(t, someLine, "request_id", ""), "request_id must be a UUIDv7"},
		{"no kind", edit(t, someLine, "kind", ""), "kind is missing"},
		{"no time", edit(t, someLine, "accepted_at", ""), "accepted_at is missing"},
		{"an invalid time", edit(t, someLine, "accepted_at", `"noon"`), "not an event"},
		{"a time beyond the year 9999 in UTC",
			edit(t, someLine, "accepted_at", `"9999-12-31T23:59:59-01:00"`), "accepted_at"},
		{"a negative version", edit(t, someLine, "version", "-1"), "version must not be negative"},

		{"no body", edit(t, someLine, "body", ""), "body must be a JSON object"},
		{"a body that is null", edit(t, someLine, "body", "null"), "body must be a JSON object"},
		{"a body that is an array", edit(t, someLine, "body", "[]"), "body must be a JSON object"},
	} {
		if _, err := ParseEvent([]byte(tt.line)); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: error %v, want %q", tt.what, err, tt.says)
		}
	}
}

func TestTheBodyOfAParsedEventIsACopy(t *testing.T) {
	line := []byte(someLine)
	e, err := ParseEvent(line)
	if err != nil {
		t.Fatal(err)
	}
	clear(line)
	same(t, "body after its line was cleared", string(e.Body), "{}")
}

func TestAnAnswerCountsEveryResult(t *testing.T) {
	invalid, later := Result{ID: "3", Code: ResultInvalid, Reason: "bad"}, Result{ID: "4", Code: ResultLater}
	got := Answer([]Result{
		{ID: "1", Code: ResultAccepted},
		{ID: "2", Code: ResultDuplicate},
		invalid,
		later,
		{ID: "5", Code: ResultAccepted},
	})
	same(t, "answer", got, BatchAnswer{
		Success:   true,
		Accepted:  2,
		Duplicate: 1,
		Refused:   []Result{invalid, later},
	})

	empty, err := json.Marshal(Answer(nil))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "answer to nothing", string(empty), `{"success":true,"accepted":0,"duplicate":0,"refused":[]}`)
}

// FuzzParseEvent checks that every accepted event is the same after it was written and
// read again.
func FuzzParseEvent(f *testing.F) {
	f.Fuzz(func(t *testing.T, line []byte) {
		first, err := ParseEvent(line)
		if err != nil {
			return
		}

		again, err := ParseEvent(first.AppendLine(nil))
		if err != nil {
			t.Fatalf("the event cannot be read again: %v", err)
		}
		same(t, "event", again, first)
	})
}
