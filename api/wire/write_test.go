package wire

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"
)

// smallest are the smallest accepted bodies, by the name of their decoder.
var smallest = map[string]string{
	"request": `{"function_name":"openai.ChatCompletion.create","kwargs":{},"request_response":{},` +
		`"request_start_time":1772366400,"request_end_time":1772366401}`,
	"score":  `{"request_id":"` + someID + `","score":87}`,
	"meta":   `{"request_id":"` + someID + `","metadata":{}}`,
	"prompt": `{"request_id":"` + someID + `","prompt_name":"greeting","prompt_input_variables":{}}`,
	"group":  `{"request_id":"` + someID + `","group_id":"g"}`,
	"fetch":  `{}`,
	"search": `{}`,
}

// decodeWrite decodes a body with the decoder of its kind and returns the error.
func decodeWrite(t *testing.T, kind, body string) (err error) {
	t.Helper()
	switch kind {
	case "request":
		_, err = DecodeRequest(parse(t, body), true, noon)
	case "score":
		_, err = DecodeScore(parse(t, body))
	case "meta":
		_, err = Decode[MetadataWrite](parse(t, body))
	case "prompt":
		_, err = Decode[PromptWrite](parse(t, body))
	case "group":
		_, err = Decode[GroupWrite](parse(t, body))
	case "fetch":
		_, err = decodeFetch([]byte(body))
	case "search":
		_, err = decodeSearch([]byte(body))
	default:
		t.Fatalf("no decoder for %q", kind)
	}

	return err
}

// ofEachKind are values of all JSON kinds. Integers and fractions are kinds of their own.
var ofEachKind = map[string]string{
	"string":   `"x"`,
	"integer":  "7",
	"fraction": "1.5",
	"boolean":  "true",
	"array":    "[]",
	"object":   "{}",
}

func TestEveryFieldSaysWhatItTakes(t *testing.T) {
	const (
		everything = "string integer fraction boolean array object"
		str        = "must be a string"
		strOrInt   = "must be a string or an integer"
		object     = "must be an object"
		version    = "must be an integer of at least 1"
		moment     = "must be a number of seconds since 1970, or an ISO-8601 time"
		id         = "must be a UUIDv7, as track-request returned it"
		tags       = "must be an array of strings"
	)
	for _, tt := range []struct {
		kind, field string
		required    bool
		takes       string // kinds of value
		reason      string // given for all others
	}{
		{"request", "function_name", true, "string", str},
		{"request", "provider_type", false, "string", str},
		{"request", "kwargs", true, "object", object},
		{"request", "args", false, everything, ""},
		{"request", "request_response", true, "object", object},
		{"request", "request_start_time", true, "integer fraction", moment},
		{"request", "request_end_time", true, "integer fraction", moment},
		{"request", "tags", false, "array", tags},
		{"request", "metadata", false, "object", object},
		{"request", "prompt_id", false, "string integer", strOrInt},
		{"request", "prompt_version", false, "integer", version},
		{"request", "prompt_label", false, "string", str},
		{"request", "prompt_input_variables", false, "object", object},
		{"request", "group_id", false, "string integer", strOrInt},
		{"request", "status", false, "", "must be one of: SUCCESS, WARNING, ERROR"},
		{"request", "error_type", false, "string", str},
		{"request", "error_message", false, "string", str},
		{"request", "request_id", false, "", id},
		{"request", "session_id", false, "string integer", strOrInt},
		{"request", "user_id", false, "string integer", strOrInt},
		{"request", "environment", false, "string integer", strOrInt},
		{"request", "trace_id", false, "", "must be 32 hexadecimal digits"},
		{"request", "span_id", false, "", "must be 16 hexadecimal digits"},
		{"request", "parent_span_id", false, "", "must be 16 hexadecimal digits"},
		{"request", "time_to_first_token_ms", false, "integer fraction", "must be a number from 0 to 86400000"},
		{"request", "any", false, everything, ""}, // an unknown field may be anything

		{"score", "request_id", true, "", id},
		{"score", "score", true, "integer", "must be an integer from 0 to 100"},
		{"score", "name", false, "string", str},
		{"meta", "request_id", true, "", id},
		{"meta", "metadata", true, "object", object},
		{"prompt", "request_id", true, "", id},
		{"prompt", "prompt_name", true, "string integer", strOrInt},
		{"prompt", "prompt_input_variables", true, "object", object},
		{"prompt", "version", false, "integer", version},
		{"prompt", "label", false, "string", str},
		{"group", "request_id", true, "", id},
		{"group", "group_id", true, "string integer", strOrInt},

		{"fetch", "version", false, "integer", version},
		{"fetch", "label", false, "string", str},
		{"fetch", "provider", false, "string", str},
		{"fetch", "model", false, "string", str},
		{"fetch", "input_variables", false, "object", object},
		{"fetch", "model_parameter_overrides", false, "object", object},
		{"fetch", "metadata_filters", false, everything, ""},

		{"search", "page", false, "integer", "must be an integer from 1 to 100000"},
		{"search", "per_page", false, "integer", "must be an integer from 1 to 1000"},
		{"search", "cursor", false, "string", str},
		{"search", "filter_group", false, "object", object},
		{"search", "q", false, "string", str},
		{"search", "sort_by", false, "",
			"must be one of: list_time, accepted_at, request_start_time, input_tokens, output_tokens, " +
				"cost, latency_ms, time_to_first_token_ms, status, cache_write_tokens, score.NAME"},
		{"search", "sort_order", false, "", "must be one of: asc, desc"},
	} {
		t.Run(tt.kind+" "+tt.field, func(t *testing.T) {
			missing := []string(nil)
			if tt.required {
				missing = []string{tt.field + " is missing"}
			}

			wantFaults(t, decodeWrite(t, tt.kind, edit(t, smallest[tt.kind], tt.field, "")), missing...)
			wantFaults(t, decodeWrite(t, tt.kind, edit(t, smallest[tt.kind], tt.field, "null")), missing...)

			for kind, value := range ofEachKind {
				want := []string{tt.field + " " + tt.reason}
				if strings.Contains(tt.takes, kind) {
					want = nil
				}
				body := edit(t, smallest[tt.kind], tt.field, value)
				wantFaults(t, decodeWrite(t, tt.kind, body), want...)
			}
		})
	}
}

func TestBoundsAreTakenAndOneBeyondIsNot(t *testing.T) {
	list := func(n int) string { return "[" + strings.Repeat(`"t",`, n-1) + `"t"]` }
	object := func(n int) string { return manyMembersOf(n, `"v"`) }

	for _, tt := range []struct{ kind, field, value, want string }{
		{"request", "tags", list(256), ""},
		{"request", "tags", list(259), "dropped 3: tags has more than 256 entries"},
		{"request", "tags", `["a",` + text("é", 512) + `]`, ""},
		{"request", "tags", `["a",` + text("é", 513) + `]`, "tags[1] is longer than 512 characters"},
		{"request", "tags", `["a",1]`, "tags[1] must be a string"},
		{"request", "tags", `[null]`, "tags[0] must be a string"},
		{"request", "metadata", object(256), ""},
		{"request", "metadata", object(259), "dropped 3: metadata has more than 256 keys"},
		{"request", "metadata", manyMembersOf(6, text("x", 60_000)),
			"dropped 2: metadata has more than 262144 bytes in keys and values"},
		{"meta", "metadata", object(256), ""},
		{"meta", "metadata", object(257), "metadata has more than 256 keys"},
		{"meta", "metadata", `{"k":` + text("x", 64<<10+1) + `}`, "metadata.k is longer than 65536 bytes"},
		{"request", "metadata", `{` + text("é", 1024) + `:"v"}`, ""},
		{"request", "metadata", `{` + text("é", 1025) + `:"v"}`,
			"dropped 1: metadata has a key of more than 1024 characters"},
		{"request", "metadata", `{"k":` + text("x", 64<<10) + `}`, ""},
		{"request", "metadata", `{"k":` + text("x", 64<<10+1) + `}`,
			"dropped 1: metadata.k is longer than 65536 bytes"},
		{"request", "metadata", `{"k":` + text("é", 32<<10) + `}`, ""}, // a value is measured in bytes
		{"request", "metadata", `{"k":` + text("é", 32<<10+1) + `}`,
			"dropped 1: metadata.k is longer than 65536 bytes"},
		{"request", "metadata", `{"k":` + text(`\u0041`, 64<<10) + `}`, ""}, // and without its escapes
		{"request", "metadata", `{"k":"a","\u006b":"b"}`, "metadata.k is given twice"},
		{"request", "metadata", `{"k":1}`, ""},
		{"request", "metadata", `{"k":null}`, ""},
		{"request", "metadata", `{"k":[` + text("x", 64<<10) + `]}`,
			"dropped 1: metadata.k is longer than 65536 bytes"},
		{"request", "metadata", `{"":""}`, ""},
		{"request", "function_name", text("é", 1024), ""},
		{"request", "function_name", text("é", 1025), "function_name is longer than 1024 characters"},
		{"request", "function_name", `""`, "function_name must not be empty"},
		{"request", "provider_type", text("é", 513), "provider_type is longer than 512 characters"},
		{"request", "prompt_id", text("é", 512), ""},
		{"request", "prompt_id", text("é", 513), "prompt_id is longer than 512 characters"},
		{"request", "prompt_label", text("é", 513), "prompt_label is longer than 512 characters"},
		{"request", "group_id", text("é", 513), "group_id is longer than 512 characters"},
		{"request", "status", text("é", 513), "status must be one of: SUCCESS, WARNING, ERROR"},
		{"request", "status", `"Error"`, ""},
		{"request", "session_id", text("é", 256), ""},
		{"request", "session_id", text("é", 257), "session_id is longer than 256 characters"},
		{"request", "user_id", text("é", 257), "user_id is longer than 256 characters"},
		{"request", "environment", text("é", 257), "environment is longer than 256 characters"},
		{"request", "trace_id", text("0", 30), "trace_id must be 32 hexadecimal digits"},
		{"request", "span_id", text("g", 16), "span_id must be 16 hexadecimal digits"},
		{"request", "parent_span_id", text("0", 18), "parent_span_id must be 16 hexadecimal digits"},
		{"request", "time_to_first_token_ms", "86400000", ""},
		{"request", "time_to_first_token_ms", "8.64000001e7",
			"time_to_first_token_ms must be a number from 0 to 86400000"},
		{"request", "request_id", `"` + strings.ToUpper(someID) + `"`, ""},
		{"request", "request_id", `"` + someID + ` "`, "request_id must be a UUIDv7, as track-request returned it"},

		{"score", "name", text("é", 512), ""},
		{"score", "name", text("é", 513), "name is longer than 512 characters"},
		{"prompt", "prompt_name", text("é", 512), ""},
		{"prompt", "prompt_name", text("é", 513), "prompt_name is longer than 512 characters"},
		{"prompt", "prompt_name", `""`, "prompt_name must not be empty"},
		{"prompt", "label", text("é", 513), "label is longer than 512 characters"},
		{"group", "group_id", `""`, "group_id must not be empty"},
		{"group", "group_id", text("é", 513), "group_id is longer than 512 characters"},

		{"fetch", "label", text("é", 513), "label is longer than 512 characters"},
		{"fetch", "input_variables", manyMembersOf(1000, "1"), ""},
		{"fetch", "input_variables", manyMembersOf(1001, "1"), "input_variables has more than 1000 members"},
		{"search", "page", "100000", ""},
		{"search", "page", "100001", "page must be an integer from 1 to 100000"},
		{"search", "page", "0", "page must be an integer from 1 to 100000"},
		{"search", "per_page", "1000", ""},
		{"search", "per_page", "1001", "per_page must be an integer from 1 to 1000"},
	} {
		t.Run(fmt.Sprintf("%s %s %.40s %d", tt.kind, tt.field, tt.value, len(tt.value)), func(t *testing.T) {
			var want []string
			if tt.want != "" {
				want = []string{tt.want}
			}
			body := edit(t, smallest[tt.kind], tt.field, tt.value)
			if strings.HasPrefix(tt.want, "dropped ") {
				w, err := DecodeRequest(parse(t, body), true, noon)
				wantFaults(t, err)
				d := w.Dropped[0]
				same(t, "what is dropped", fmt.Sprintf("dropped %d: %s %s", d.Count, d.Field, d.Reason), tt.want)
				return
			}
			wantFaults(t, decodeWrite(t, tt.kind, body), want...)
		})
	}
}

func TestDecodeRequestReadsEveryField(t *testing.T) {
	got, err := DecodeRequest(parse(t, `{"request_id":"`+strings.ToUpper(someID)+`",`+
		`"function_name":"openai.ChatCompletion.create","provider_type":"openai",
		"kwargs":{"model":"gpt-4o"},"args":["a"],"request_response":{"id":"r"},`+
		`"request_start_time":1772366400.123456789,
		"request_end_time":"2026-03-01T13:00:01+01:00","tags":["eu","\u0070rod"],`+
		`"metadata":{"user_id":"u\n1"},"prompt_id":12,"prompt_version":"3",
		"prompt_label":"prod","prompt_input_variables":{"city":"Rome"},"group_id":7.0,`+
		`"status":"ERROR","error_type":"Timeout",
		"error_message":"too slow","return_pl_id":true}`), true, noon)
	wantFaults(t, err)

	same(t, "request", got, RequestWrite{
		FunctionName: "openai.ChatCompletion.create",
		ProviderType: "openai",
		Kwargs:       json.RawMessage(`{"model":"gpt-4o"}`),
		Args:         json.RawMessage(`["a"]`),
		Response:     json.RawMessage(`{"id":"r"}`),
		CallWrite: CallWrite{
			RequestID: someID,
			Start:     noon,
			End:       noon.Truncate(time.Second).Add(time.Second),
			Tags:      []string{"eu", "prod"},
			Metadata:  map[string]string{"user_id": "u\n1"},
			GroupID:   "7",
			Status:    "ERROR",
		},
		PromptLink: PromptLink{
			Name:           "12",
			Version:        3,
			Label:          "prod",
			InputVariables: json.RawMessage(`{"city":"Rome"}`),
		},
		ErrorType:    "Timeout",
		ErrorMessage: "too slow",
	})
}

func TestAFaultyRequestTellsAllFaultsAndKeepsWhatCouldBeRead(t *testing.T) {
	got, err := DecodeRequest(parse(t, `{"function_name":7,"kwargs":{"model":"m"},"request_response":"x",`+
		`"request_start_time":1772366400,
		"tags":["a",1,"b"],"metadata":{"k":"v","n":"`+strings.Repeat("x", 64<<10+1)+`"},`+
		`"prompt_id":1.5,"prompt_version":0,"group_id":"g","request_id":"r1"}`), true, noon)

	wantFaults(t, err,
		"function_name must be a string",
		"request_end_time is missing",
		"tags[1] must be a string",
		"request_id must be a UUIDv7, as track-request returned it",
		"prompt_id must be a string or an integer",
		"prompt_version must be an integer of at least 1",
		"request_response must be an object")
	same(t, "request", got, RequestWrite{
		Kwargs: json.RawMessage(`{"model":"m"}`),
		CallWrite: CallWrite{
			Start:    time.Unix(1772366400, 0).UTC(),
			Tags:     []string{"a", "b"},
			Metadata: map[string]string{"k": "v"},
			GroupID:  "g",
			Dropped:  []Dropped{{Field: "metadata.n", Reason: "is longer than 65536 bytes", Count: 1}},
		},
	})
}

func TestWhoseCallItWasIsKeptBeforeOtherMetadata(t *testing.T) {
	const last = `,"user_id":"u","session_id":"s","environment":"e"}`
	for _, metadata := range []string{
		strings.TrimSuffix(manyMembersOf(300, `"v"`), "}") + last,
		strings.TrimSuffix(manyMembersOf(200, `"`+strings.Repeat("x", 60_000)+`"`), "}") + last,
	} {
		got, err := DecodeRequest(parse(t, edit(t, smallest["request"], "metadata", metadata)), true, noon)
		wantFaults(t, err)
		m, size := got.Metadata, 0
		for key, value := range m {
			size += len(key) + len(value)
		}
		if m["user_id"] != "u" || m["session_id"] != "s" || m["environment"] != "e" || m["m0"] == "" ||
			len(m) > MetadataKeysMax+len(CallNames) || size > MetadataBytesMax+100 || len(got.Dropped) != 1 {
			t.Errorf("of %d bytes, %d keys are kept; dropped: %v", len(metadata), len(m), got.Dropped)
		}
	}
}

func TestOfManyFaultsTheFirstAreTold(t *testing.T) {
	tags := "[" + strings.Repeat("1,", 200) + "1]"
	_, err := DecodeRequest(parse(t, edit(t, smallest["request"], "tags", tags)), true, noon)
	if e := AsError(err); len(e.Fields) != 32 || e.Fields[0].Field != "tags[0]" {
		t.Errorf("%d faults are named, the first of %q; want 32, tags[0]",
			len(e.Fields), e.Fields[0].Field)
	}
}

func TestScores(t *testing.T) {
	for score, want := range map[string]int{
		"0": 0, "100": 100, "87": 87, "87.0": 87, "8.7e1": 87, "870e-1": 87, "1E2": 100,
		"-0": 0, "-0.0": 0, "0e400": 0, "1e-400": 0,
	} {
		w, err := DecodeScore(parse(t, edit(t, smallest["score"], "score", score)))
		wantFaults(t, err)
		same(t, score, w, ScoreWrite{RequestID: someID, Score: IntegerScore(DefaultScoreName, want)})
	}

	for _, score := range []string{
		"-1", "101", "87.5", "1e400", "-1e400", "0.1", `"87"`, `""`, "true", "[87]",
		"18446744073709551616", "18446744073709551703", "9223372036854775808",
	} {
		w, err := DecodeScore(parse(t, edit(t, smallest["score"], "score", score)))
		wantFaults(t, err, "score must be an integer from 0 to 100")
		same(t, score+": the decoded value", w.Score, Score{ScoreSlot: ScoreSlot{Name: DefaultScoreName}})
	}
}

func TestAScoreIsOfOneTarget(t *testing.T) {
	const trace, span = "52adf2cf8206e15bbdd5b2da7b55fa89", "00F067AA0BA902B7"
	ids := map[string]bool{}
	for body, want := range map[string]ScoreTarget{
		`"trace_id":"` + trace + `","span_id":"` + span + `"`: {TraceID: trace, SpanID: strings.ToLower(span)},
		`"trace_id":"` + trace + `","session_id":""`:          {TraceID: trace},
		`"session_id":"s-1","request_id":null`:                {SessionID: "s-1"},
		`"session_id":7`:                                      {SessionID: "7"},
	} {
		w, err := DecodeScore(parse(t, `{"score":87,`+body+`}`))
		wantFaults(t, err)
		same(t, body, *w.Target, want)
		id, err := ParseID(w.RequestID)
		if err != nil || ids[id] {
			t.Errorf("%s: the record is %q, %v", body, id, err)
		}
		ids[id] = true
	}

	const one = "request_id must be given alone, or in its place trace_id with span_id, trace_id, or session_id"
	for body, want := range map[string]string{
		`"request_id":"` + someID + `","session_id":"s-1"`: one,
		`"trace_id":"` + trace + `","session_id":"s-1"`:    one,
		`"span_id":"` + span + `"`:                         one,
		`"trace_id":"t"`:                                   "trace_id must be 32 hexadecimal digits",
		`"trace_id":""`:                                    "request_id is missing",
	} {
		w, err := DecodeScore(parse(t, `{"score":87,`+body+`}`))
		wantFaults(t, err, want)
		if w.Target != nil {
			t.Errorf("%s: the target is %+v", body, w.Target)
		}
	}
}

func TestAScoreHasADefaultName(t *testing.T) {
	for name, want := range map[string]string{
		"": "default", "null": "default", `""`: "default", `"speed"`: "speed",
	} {
		w, err := DecodeScore(parse(t, edit(t, smallest["score"], "name", name)))
		wantFaults(t, err)
		same(t, "name of "+name, w.Score.Name, want)
	}
}

func TestVersions(t *testing.T) {
	for version, want := range map[string]int{
		"1": 1, "3.0": 3, "2147483647": 2147483647, `"3"`: 3, `"0012"`: 12, `""`: 0, "null": 0,
	} {
		w, err := Decode[PromptWrite](parse(t, edit(t, smallest["prompt"], "version", version)))
		wantFaults(t, err)
		same(t, "version "+version, w.Version, want)
	}

	for _, version := range []string{
		"0", "-1", "1.5", "2147483648", "1e400", `"0"`, `"-1"`, `" 3"`, `"3 "`, `"1.0"`, `"1e1"`, `"0x10"`,
		`"0x10p0"`, `"1_0"`, `"+3"`, `"2147483648"`, `"latest"`,
	} {
		w, err := Decode[PromptWrite](parse(t, edit(t, smallest["prompt"], "version", version)))
		wantFaults(t, err, "version must be an integer of at least 1")
		same(t, "version "+version+": the decoded value", w.Version, 0)
	}
}

func TestNamesMayBeIntegers(t *testing.T) {
	for name, want := range map[string]string{
		`"a/b c"`: "a/b c", `"12"`: "12", "12": "12", "12.0": "12", "-5": "-5",
		"9223372036854775807": "9223372036854775807",
	} {
		w, err := Decode[PromptWrite](parse(t, edit(t, smallest["prompt"], "prompt_name", name)))
		wantFaults(t, err)
		same(t, "name "+name, w.Name, want)
	}

	for _, name := range []string{"1.5", "9223372036854775808", "1e300", "true"} {
		w, err := Decode[PromptWrite](parse(t, edit(t, smallest["prompt"], "prompt_name", name)))
		wantFaults(t, err, "prompt_name must be a string or an integer")
		same(t, "name "+name+": the decoded value", w.Name, "")
	}
}

func TestLinksMetadataAndGroupsAreRead(t *testing.T) {
	prompt, err := Decode[PromptWrite](parse(t, edit(t, smallest["prompt"], "label", `"prod"`)))
	wantFaults(t, err)
	same(t, "id", prompt.RequestID, someID)
	same(t, "prompt", prompt.Link(),
		PromptLink{Name: "greeting", Label: "prod", InputVariables: json.RawMessage("{}")})

	meta, err := Decode[MetadataWrite](parse(t,
		edit(t, smallest["meta"], "metadata", `{"a":"1","\u0062":"\ud83d\ude00"}`)))
	wantFaults(t, err)
	same(t, "metadata", meta, MetadataWrite{OfRequest{someID}, map[string]string{"a": "1", "b": "😀"}})

	// What is no string is its JSON, as LiteLLM's proxy sends it.
	meta, err = Decode[MetadataWrite](parse(t, edit(t, smallest["meta"], "metadata", `{"user_api_key_alias":"team-a",
		"spend":0.00042,"max_budget":null,"model_info":{"id":"gpt-4o", "db_model" : false},"tags":["a", "b"],
		"cache_hit":true}`)))
	wantFaults(t, err)
	same(t, "metadata", meta, MetadataWrite{OfRequest{someID}, map[string]string{
		"user_api_key_alias": "team-a",
		"spend":              "0.00042",
		"model_info":         `{"id":"gpt-4o","db_model":false}`,
		"tags":               `["a","b"]`,
		"cache_hit":          "true",
	}})

	group, err := Decode[GroupWrite](parse(t, edit(t, smallest["group"], "group_id", "12")))
	wantFaults(t, err)
	same(t, "group", group, GroupWrite{OfRequest{someID}, "12"})
}

func TestWhatAClientSaysBesideTheContract(t *testing.T) {
	for members, want := range map[string]RequestWrite{
		``:                              {},
		`,"span_id":null`:               {},
		`,"span_id":"0000000000000000"`: {},
		`,"span_id":""`:                 {},
		`,"span_id":"00F067AA0ba902b7"`: {CallWrite: CallWrite{
			Placed: Placed{TracePlace: TracePlace{SpanID: "00f067aa0ba902b7"}},
		}},
		`,"user_id":7,"session_id":"s","metadata":{"session_id":"t"},"time_to_first_token_ms":5e1`: {
			CallWrite: CallWrite{
				Metadata: map[string]string{"user_id": "7", "session_id": "s", "time_to_first_token_ms": "50"},
			},
		},
		`,"provider":"openai"`: {ProviderType: "openai"},
		`,"provider":{"a":1}`:  {},
		`,"provider":"x","provider_type":"openai","return_prompt_blueprint":true`: {
			ProviderType:    "openai",
			ReturnBlueprint: json.RawMessage("true"),
		},
	} {
		object, err := ParseObject([]byte(`{"function_name":"f","kwargs":{},"request_response":{},` +
			`"request_start_time":1772366400,"request_end_time":1772366401` + members + `}`))
		if err != nil {
			t.Fatal(err)
		}

		w, err := DecodeRequest(object, true, noon)
		if err != nil || w.SpanID != want.SpanID || w.ProviderType != want.ProviderType ||
			!maps.Equal(w.Metadata, want.Metadata) ||
			string(w.ReturnBlueprint) != string(want.ReturnBlueprint) {
			t.Errorf("%s: span_id %q, metadata %v, provider_type %q, return_prompt_blueprint %v, error %v",
				members, w.SpanID, w.Metadata, w.ProviderType, w.ReturnBlueprint, err)
		}
	}
}

func TestWhatAWriteSaysTwice(t *testing.T) {
	w, err := DecodeRequest(parse(t, edit(t, smallest["request"], "tags", `["a","","b","a",""]`)), true, noon)
	if err != nil || strings.Join(w.Tags, ",") != "a,b" {
		t.Errorf("tags %q, %v", w.Tags, err)
	}

	link := edit(t, edit(t, smallest["prompt"], "prompt_version", "3"), "prompt_label", `"prod"`)
	p, err := Decode[PromptWrite](parse(t, link))
	if err != nil || p.Version != 3 || p.Label != "prod" {
		t.Errorf("link %+v, %v", p.Link(), err)
	}

	for value, want := range map[string]string{
		"":       "",
		"0.5":    " The value counts; the score beside it is not read.",
		`"good"`: " The value counts; the score beside it is not read.",
	} {
		s, err := DecodeScore(parse(t, edit(t, smallest["score"], "value", value)))
		if err != nil || s.Note != want {
			t.Errorf("value %s: %q, %v", value, s.Note, err)
		}
	}
}
