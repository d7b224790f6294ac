package databasetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"promptspool/api/wire"
)

// corpusBytes is the size of the text that the records of a benchmark are cut from.
const corpusBytes = 12 << 20

// corpus returns English text: the comments of Go's own source, in the order of its
// files.
func corpus(b testing.TB) []byte {
	b.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		b.Fatal("the folder of Go: ", err)
	}

	var text []byte
	source := filepath.Join(strings.TrimSpace(string(root)), "src")
	err = filepath.WalkDir(source, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || len(text) >= corpusBytes {
			return err
		}

		// Every file begins with the same words about its license.
		file, err := os.ReadFile(path)
		for line := range bytes.Lines(file) {
			comment, ok := bytes.CutPrefix(bytes.TrimLeft(line, "\t "), []byte("// "))
			if ok && !bytes.Contains(comment, []byte("license")) {
				text = append(text, comment...)
			}
		}
		return err
	})
	if err != nil || len(text) < corpusBytes {
		b.Fatalf("the corpus has %d bytes of %d (%v)", len(text), corpusBytes, err)
	}

	return text[:corpusBytes]
}

// Calls makes the events of a benchmark. They are calls of a chat model of about 4 KB,
// every fourth with a score. Safe for concurrent use.
type Calls struct {
	Begin time.Time
	Step  time.Duration // between two records
	Slow  time.Duration // up to which calls take longer than usual, all times equally often
	Lived bool          // calls belong to sessions, traces and users: see Session
	Short bool          // texts have 40 bytes
	// Scores is integers or floats for three scores of each call, all of that kind.
	Scores string
	// Marked returns what stands in the answer of the nth record besides, at its beginning and its end.
	Marked func(n int) (head, tail string)
	text   []byte
}

// NewCalls returns Calls from begin on, with step between two records.
func NewCalls(b testing.TB, begin time.Time, step time.Duration) *Calls {
	b.Helper()
	return &Calls{Begin: begin, Step: step, text: corpus(b)}
}

// What calls have at random. Tags are tag-0 to tag-49, the metadata key user has user-0
// to user-199, and templates are versions 1 to 10 of template-0 to template-19. One call
// of 100,000 has the rare tag or word.
const (
	CallTags      = 50
	CallUsers     = 200
	CallTemplates = 20
	CallVersions  = 10

	RareTag  = "one in a hundred thousand"
	RareWord = "zyzzogeton"
)

// ID returns the id of the nth record, for kind 0, or of one of its events.
func (c *Calls) ID(n int, kind byte) string {
	ms := uint64(c.At(n).UnixMilli())
	return fmt.Sprintf("%08x-%04x-7%03x-8%03x-%02x%010x", ms>>16, ms&0xffff, n&0xfff, (n>>12)&0xfff, kind, n)
}

// Session returns the session of the nth record, its trace and its user. Ten records have one session
// and trace, among a thousand others at the time, and five sessions one user.
func (c *Calls) Session(n int) (session, trace, user string) {
	s := n/10_000*1000 + n%1000
	return fmt.Sprintf("session-%d", s), fmt.Sprintf("%032x", 1+uint64(s)*0x9e3779b97f4a7c15),
		fmt.Sprintf("user-%d", s/5000*1000+s%1000)
}

// At returns the time at which the nth record is accepted.
func (c *Calls) At(n int) time.Time { return c.Begin.Add(time.Duration(n) * c.Step) }

// Events returns the events of the nth record. They depend on n only.
func (c *Calls) Events(n int) []wire.Event {
	r := rand.New(rand.NewPCG(uint64(n), 1))
	events := []wire.Event{{
		ID:         c.ID(n, 1),
		Kind:       wire.KindRequest,
		RequestID:  c.ID(n, 0),
		AcceptedAt: c.At(n),
		Sidecar:    "host-a",
		Body:       c.body(n, r),
	}}

	switch {
	case c.Scores != "":
		for i, name := range []string{"faithfulness", "relevance", "tone"} {
			value := fmt.Sprintf(`"score":%d`, r.IntN(101))
			if c.Scores == "floats" {
				value = fmt.Sprintf(`"value":%.4f`, r.Float64())
			}
			events = append(events, wire.Event{
				ID:         c.ID(n, byte(2+i)),
				Kind:       wire.KindScore,
				RequestID:  c.ID(n, 0),
				AcceptedAt: c.At(n).Add(time.Second),
				Sidecar:    "host-a",
				Body:       fmt.Appendf(nil, `{"request_id":%q,"name":%q,%s}`, c.ID(n, 0), name, value),
			})
		}
	case n%4 == 0:
		const body = `{"request_id":%q,"name":"quality","score":%d}`
		events = append(events, wire.Event{
			ID:         c.ID(n, 2),
			Kind:       wire.KindScore,
			RequestID:  c.ID(n, 0),
			AcceptedAt: c.At(n).Add(time.Second),
			Sidecar:    "host-a",
			Body:       fmt.Appendf(nil, body, c.ID(n, 0), r.IntN(101)),
		})
	}

	return events
}

// body returns the request of the nth record.
func (c *Calls) body(n int, r *rand.Rand) json.RawMessage {
	// Each text is another piece of the corpus, so that bodies do not compress too well.
	cut := func(size int) string {
		if c.Short {
			size = 40
		}
		at := r.IntN(len(c.text) - size)
		return string(c.text[at : at+size])
	}

	template := r.IntN(CallTemplates)
	models := []string{"gpt-4o-2024-08-06", "gpt-4o-mini-2024-07-18", "gpt-4.1", "gpt-4.1-mini"}
	question, answer := cut(1500+r.IntN(400)), cut(1000+r.IntN(400))
	if n%100_000 == 77_000 {
		answer += " " + RareWord
	}
	if c.Marked != nil {
		head, tail := c.Marked(n)
		answer = head + " " + answer + " " + tail
	}
	tags := []string{fmt.Sprintf("tag-%d", r.IntN(CallTags))}
	if n%100_000 == 50_000 {
		tags = append(tags, RareTag)
	}

	start := c.At(n).Add(-time.Duration(500+r.ExpFloat64()*1500) * time.Millisecond)
	status := "SUCCESS"
	if r.IntN(50) == 0 {
		status = "ERROR"
	}
	input, output := 500+r.IntN(400), 200+r.IntN(300)

	// Drawn in this order, on which the benchmarks' figures of earlier versions depend.
	id, version := fmt.Sprintf("chatcmpl-%x", r.Uint64()), 1+r.IntN(CallVersions)
	user, session := fmt.Sprintf("user-%d", r.IntN(CallUsers)), fmt.Sprintf("%08x", r.Uint32())
	if c.Slow > 0 {
		start = start.Add(-time.Duration(r.Int64N(int64(c.Slow))))
	}

	call := map[string]any{
		"function_name": "openai.chat.completions.create",
		"provider_type": "openai",
		"args":          []any{},
		"kwargs": map[string]any{
			"model":       models[template%4],
			"temperature": 0.2,
			"messages": []any{
				map[string]any{
					"role":    "system",
					"content": string(c.text[template*2000 : template*2000+600]),
				},
				map[string]any{"role": "user", "content": question},
			},
		},
		"request_response": map[string]any{
			"id":      id,
			"object":  "chat.completion",
			"created": c.At(n).Unix(),
			"model":   models[template%4],
			"choices": []any{map[string]any{
				"index":         0,
				"finish_reason": "stop",
				"message":       map[string]any{"role": "assistant", "content": answer},
			}},
			"usage": map[string]any{
				"prompt_tokens":         input,
				"completion_tokens":     output,
				"total_tokens":          input + output,
				"prompt_tokens_details": map[string]any{"cached_tokens": 128},
			},
		},
		"request_start_time":     float64(start.UnixMilli()) / 1000,
		"request_end_time":       float64(c.At(n).UnixMilli()) / 1000,
		"tags":                   tags,
		"status":                 status,
		"prompt_id":              fmt.Sprintf("template-%d", template),
		"prompt_version":         version,
		"prompt_input_variables": map[string]any{"topic": question[:40]},
		"metadata":               map[string]string{"user": user, "session": session},
	}
	if c.Lived {
		call["session_id"], call["trace_id"], call["user_id"] = c.Session(n)
	}
	body, _ := json.Marshal(call)

	return body
}
