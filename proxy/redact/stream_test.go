package redact

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"promptspool/metrics/cputimetest"
)

// shape is a form in which chunks of a provider's stream carry pieces of a text.
type shape struct {
	name  string
	chunk string // with PIECE in place of the JSON string
	first string // chunks that come before it, with a comma; "" for none
}

var shapes = []shape{
	{"chat", `{"id":"x","choices":[{"index":0,"delta":{"role":"assistant","content":PIECE}}]}`, ""},
	{"chat without index", `{"choices":[{"delta":{"content":PIECE}}]}`, ""},
	{"chat reasoning", `{"choices":[{"delta":{"reasoning_content":PIECE,"content":null}}]}`, ""},
	{"chat tool call",
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"function":{"arguments":PIECE}}]}}]}`, ""},
	{"chat function call", `{"choices":[{"delta":{"function_call":{"arguments":PIECE}}}]}`, ""},
	{"completion", `{"choices":[{"text":PIECE,"index":0}]}`, ""},
	{"responses", `{"type":"response.output_text.delta","output_index":0,"delta":PIECE}`,
		`{"type":"response.created"},`},
	{"anthropic", `{"delta":{"text":PIECE,"type":"text_delta"},"index":0,"type":"content_block_delta"}`,
		`{"type":"message_start","message":{"content":[]}},`},
	{"anthropic tool call", `{"type":"content_block_delta","index":1,"delta":{"partial_json":PIECE}}`,
		`{"type":"message_start"},`},
	{"gemini", `{"candidates":[{"content":{"role":"model","parts":[{"text":PIECE}]}}]}`, ""},
	{"bedrock", `{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"text":PIECE}}}`,
		`{"messageStart":{"role":"assistant"}},`},
	{"bedrock tool call", `{"contentBlockDelta":{"contentBlockIndex":1,"delta":{"toolUse":{"input":PIECE}}}}`,
		`{"messageStart":{}},`},
}

// streamed returns a write with a text in pieces.
func (s shape) streamed(pieces []string) string {
	chunks := make([]string, len(pieces))
	for i, p := range pieces {
		quoted, _ := json.Marshal(p)
		chunks[i] = strings.Replace(s.chunk, "PIECE", string(quoted), 1)
	}
	return `{"request_response":[` + s.first + strings.Join(chunks, ",") + `]}`
}

// joined returns the text of a write in pieces.
func (s shape) joined(t testing.TB, body string) string {
	var out strings.Builder
	before, after, _ := strings.Cut(s.chunk, "PIECE")
	rest := strings.TrimSuffix(strings.TrimPrefix(body, `{"request_response":[`+s.first), `]}`)
	for rest != "" {
		rest = strings.TrimPrefix(rest, ",")
		if !strings.HasPrefix(rest, before) {
			t.Fatalf("%s: a chunk is %s", s.name, rest)
		}
		d := json.NewDecoder(strings.NewReader(rest[len(before):]))
		var piece string
		if err := d.Decode(&piece); err != nil {
			t.Fatalf("%s: %v in %s", s.name, err, rest)
		}
		out.WriteString(piece)
		rest = strings.TrimPrefix(rest[len(before)+int(d.InputOffset()):], after)
	}
	return out.String()
}

func TestPersonalDataIsSeenAcrossThePiecesOfAStream(t *testing.T) {
	r := rulesOf(t, all(Mask)...)
	for _, s := range shapes {
		body := apply(t, r, s.streamed([]string{"mail ann", "@", "b.", "io now, ", "41", "11 1111 1111", " 1111"}))
		if got, want := s.joined(t, body), "mail [email] now, [card]"; got != want {
			t.Errorf("%s: the text is %q, want %q", s.name, got, want)
		}
		if !strings.Contains(body, `"mail [email]"`) || !strings.Contains(body, `"[card]"`) {
			t.Errorf("%s: a mask is not in the first piece of what it stands for: %s", s.name, body)
		}
	}
}

func TestPiecesOfAToolsArgumentsAreReadAsJSON(t *testing.T) {
	r := rulesOf(t, all(Mask)...)
	for _, s := range shapes {
		body := apply(t, r, s.streamed([]string{`{"to":"ann\u00`, `40b.io","phone":1415`, `5550132,"n":1}`}))
		if got, want := s.joined(t, body), `{"to":"[email]","phone":"[phone]","n":1}`; got != want {
			t.Errorf("%s: the arguments are %s, want %s", s.name, got, want)
		}
	}
}

func TestPiecesOfDifferentCallsAreNotJoined(t *testing.T) {
	r := rulesOf(t, all(Mask)...)
	body := `{"request_response":[` +
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"ann@"}},` +
		`{"index":1,"function":{"arguments":"bob@"}}]}}]},` +
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"function":{"arguments":"d.io"}},` +
		`{"index":0,"function":{"arguments":"b.io"}}]}}]},` +
		`{"choices":[{"index":1,"delta":{"content":"x.io"}}]}]}`
	want := strings.NewReplacer(
		`"ann@"`, `"[email]"`, `"bob@"`, `"[email]"`, `"d.io"`, `""`, `"b.io"`, `""`,
	).Replace(body)
	if got := apply(t, r, body); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestRedactingPiecesIsRedactingTheirText cuts texts at any place.
func TestRedactingPiecesIsRedactingTheirText(t *testing.T) {
	words := []string{
		"ann@example.com", "4111 1111 1111 1111", "+14155550132", "Bearer abcdefgh1234", "PROJ-12", " ", ", ",
		"x", "é", "\\u0040b.io", "ann", `{"a":"ann@b.io"}`, `"`, "\\", "12", "@", "b.io", "[email]",
	}
	rapid.Check(t, func(rt *rapid.T) {
		action := rapid.SampledFrom([]string{Mask, Hash, Drop}).Draw(rt, "action")
		r := rulesOf(t, append(all(action), Rule{Pattern: `PROJ-\d+`, Action: action}, Rule{Pattern: `\[e\w+`})...)
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 1, 12).Draw(rt, "words"), "")
		if rapid.Bool().Draw(rt, "arguments") {
			quoted, _ := json.Marshal(map[string]string{"to": text})
			text = string(quoted)
		}

		runes := []rune(text)
		var pieces []string
		for len(runes) > 0 {
			n := min(rapid.IntRange(0, 6).Draw(rt, "piece"), len(runes))
			pieces, runes = append(pieces, string(runes[:n])), runes[n:]
		}
		s := rapid.SampledFrom(shapes).Draw(rt, "shape")

		quoted, _ := json.Marshal(text)
		var whole struct{ A string }
		if err := json.Unmarshal([]byte(apply(t, r, `{"a":`+string(quoted)+`}`)), &whole); err != nil {
			rt.Fatal(err)
		}
		if got := s.joined(t, apply(t, r, s.streamed(pieces))); got != whole.A {
			rt.Fatalf("%s: %q in pieces became %q, whole %q", s.name, text, got, whole.A)
		}
	})
}

func TestPathsReachIntoAStream(t *testing.T) {
	content := Rule{Path: "request_response[*].choices[*].delta.content", Action: Mask}
	r := rulesOf(t, content, Rule{Builtin: []string{"email"}})
	got := apply(t, r, `{"request_response":[{"choices":[{"delta":{"content":"ann@","refusal":"a@b"}}]},`+
		`{"choices":[{"delta":{"content":"b.io","refusal":".io"}}]}]}`)
	want := `{"request_response":[{"choices":[{"delta":{"content":"[masked]","refusal":"[email]"}}]},` +
		`{"choices":[{"delta":{"content":"[masked]","refusal":""}}]}]}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestStreamsTakeTimeInProportion has long names, long indexes, many lanes, and arrays in
// arrays.
func TestStreamsTakeTimeInProportion(t *testing.T) {
	r := rulesOf(t, all(Mask)...)
	long := strings.Repeat("n", 1<<20)
	many := func(chunk func(i int) string) string {
		chunks := make([]string, 30_000)
		for i := range chunks {
			chunks[i] = chunk(i)
		}
		return `{"r":[` + strings.Join(chunks, ",") + `]}`
	}
	pieces := strings.TrimSuffix(strings.Repeat(`{"content":"a"},`, 30_000), ",")

	for name, body := range map[string]string{
		"many pieces": many(func(int) string { return `{"choices":[{"delta":{"content":"4"}}]}` }),
		"many lanes": many(func(i int) string {
			return `{"choices":[{"index":` + strconv.Itoa(i) + `,"delta":{"content":"@"}}]}`
		}),
		"a long name":  `{"r":[{"choices":[],"` + long + `":[` + pieces + `]}]}`,
		"a long index": `{"r":[{"choices":[],"x":{"index":"` + long + `","c":[` + pieces + `]}}]}`,
		"deep": `{"r":` + strings.Repeat(`[{"choices":1,"x":`, 200) + `"` + long + `"` +
			strings.Repeat(`}]`, 200) + `}`,
		"deep in depth": `{"r":[{"choices":` + strings.Repeat(`{"a":`, 400) + `"` + long + `"` +
			strings.Repeat(`}`, 400) + `}]}`,
	} {
		start := cputimetest.Used()
		apply(t, r, body)
		if took := cputimetest.Used() - start; took > 10*time.Second {
			t.Errorf("%s: %d bytes took %v", name, len(body), took)
		}
	}
}
