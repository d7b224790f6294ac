//go:build linux

package delivery

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"promptspool/api/wire"
	"promptspool/cmd/promptspool/e2e/harness"
)

func TestAnExportOfOneServerMakesTheSameRecordsOnAnother(t *testing.T) {
	t.Parallel()
	from, to := harness.StartServer(t, t.TempDir(), "127.0.0.1:0"), harness.StartServer(t, t.TempDir(), "127.0.0.1:0")
	var ids []string
	for i := range 30 {
		id := from.Track("/rest/track-request", harness.AdminKey, map[string]any{
			"function_name":      "openai.Completion.create",
			"kwargs":             map[string]any{"engine": "gpt-4o", "prompt": fmt.Sprint("<ü> ", i)},
			"request_response":   map[string]any{"usage": map[string]any{"prompt_tokens": i}},
			"request_start_time": 1.5,
			"request_end_time":   2,
			"tags":               []string{[]string{"even", "odd"}[i%2]},
			"metadata":           map[string]string{"n": fmt.Sprint(i)},
		})
		ids = append(ids, id)
		from.Track("/rest/track-score", harness.AdminKey, map[string]any{"request_id": id, "score": i % 101})
		from.Track("/rest/track-score", harness.AdminKey,
			map[string]any{"request_id": id, "score": 7}) // overtakes the first
		from.Track("/rest/track-metadata", harness.AdminKey, map[string]any{
			"request_id": id, "metadata": map[string]string{"by": "<me>"},
		})
		from.Track("/rest/track-group", harness.AdminKey,
			map[string]any{"request_id": id, "group_id": fmt.Sprint("g", i%3)})
		from.Track("/rest/track-prompt", harness.AdminKey, map[string]any{
			"request_id": id, "prompt_name": "greet", "version": 3,
			"prompt_input_variables": map[string]any{"name": i},
		})
	}
	// Two batches, each a trace.
	traces := [][16]byte{{1}, {2}}
	for _, trace := range traces {
		spans := []*harness.SpanSent{harness.NewSpan(trace), harness.NewSpan(trace), harness.NewSpan(trace)}
		r := from.Call("POST", "/v1/traces", harness.ExportOf(spans, 500, harness.OTLPJSON),
			"X-API-KEY", harness.AdminKey, "Content-Type", harness.OTLPJSON)
		if r.Status != 200 {
			t.Fatalf("%d %s", r.Status, r.Body)
		}
		for _, s := range spans {
			ids = append(ids, s.RecordID())
		}
	}
	from.Track("/rest/track-score", harness.AdminKey, map[string]any{"session_id": "s-1", "score": 5})
	from.Track("/rest/track-score", harness.AdminKey,
		map[string]any{"trace_id": fmt.Sprintf("%x", traces[0]), "score": 5})
	orphan := wire.NewID()
	from.Track("/rest/track-score", harness.AdminKey, map[string]any{"request_id": orphan, "score": 5})

	env := []string{"PROMPTSPOOL_KEY=" + harness.AdminKey}
	file := filepath.Join(t.TempDir(), "events")
	out, errs, code := harness.RunWith(t, env, "requests", "export", file, "--url", "http://"+from.Addr)
	if code != 0 || !strings.Contains(errs, "189 events") {
		t.Fatalf("export: %d\n%s%s", code, out, errs)
	}
	for round, want := range []string{"accepted         189", "already present  189"} {
		out, errs, code = harness.RunWith(t, env, "requests", "import", file, "--url", "http://"+to.Addr)
		if code != 0 || !strings.Contains(out, want) {
			t.Fatalf("import, round %d: %d\n%s%s", round, code, out, errs)
		}
	}

	read := func(n *harness.Node, id string) (r wire.Record) {
		answer := n.Get("/api/public/v2/requests/" + id)
		if answer.Status != 200 || json.Unmarshal(answer.Body, &r) != nil {
			t.Fatalf("%d %s", answer.Status, answer.Body)
		}
		return r
	}
	for _, id := range ids {
		here, there := read(to, id), read(from, id)
		if diff := cmp.Diff(there, here, cmpopts.IgnoreFields(wire.RecordEvent{}, "ArrivedAt")); diff != "" {
			t.Fatalf("record %s, there (-) and here (+):\n%s", id, diff)
		}
	}

	if n := to.Total(map[string]any{}); n != 30 {
		t.Errorf("%d requests arrived, of 30", n)
	}
	for _, trace := range traces {
		path := fmt.Sprintf("/api/public/v2/traces/%x", trace)
		there, here := from.Get(path), to.Get(path)
		if string(here.Body) != string(there.Body) || strings.Count(string(here.Body), `"span_id"`) != 3 {
			t.Errorf("a trace is %s, there it was %s", here.Body, there.Body)
		}
	}
	scored := to.Get(fmt.Sprintf("/api/public/v2/traces/%x", traces[0]))
	if !strings.Contains(string(scored.Body), `"score":5`) {
		t.Errorf("the trace has lost its score: %s", scored.Body)
	}

	var orphans wire.OrphanPage
	r := to.Get("/api/public/v2/requests/orphans")
	if json.Unmarshal(r.Body, &orphans) != nil || orphans.Total != 1 || orphans.Items[0].RequestID != orphan {
		t.Errorf("orphans: %s", r.Body)
	}
}
