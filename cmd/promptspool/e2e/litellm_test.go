//go:build linux

package e2e

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"promptspool/api/wire"
)

// TestLiteLLMsMetadataArrives sends what LiteLLM's callback "promptlayer" sends behind each
// call: the metadata of its proxy, of which the least are strings.
func TestLiteLLMsMetadataArrives(t *testing.T) {
	t.Parallel()
	server := startServer(t, t.TempDir(), freePort(t))
	sidecar := startSidecar(t, t.TempDir(), server.addr)
	id := sidecar.track("/rest/track-request", adminKey, chat())
	metadata := `{"user_api_key": "88dc28d0f030c55ed4ab77ed8faf098196cb1c05",
		"user_api_key_alias": "team-a", "user_api_key_spend": 0.00042, "user_api_key_max_budget": null,
		"user_api_key_metadata": {"tier": 2, "owner": null}, "cache_hit": false, "tags": ["a", "b"],
		"headers": {"host": "proxy", "authorization": "Bearer litellm-virtual-key"},
		"hidden_params": {"model_id": "7", "additional_headers": {"x-ratelimit": 10}}}`
	answer := sidecar.call("POST", "/rest/track-metadata",
		`{"request_id": "`+id+`", "api_key": "`+adminKey+`", "metadata": `+metadata+`}`)
	if answer.Status != 200 {
		t.Fatalf("%d %s", answer.Status, answer.Body)
	}

	record := server.record(id, func(r wire.Record) bool { return r.Metadata["cache_hit"] != "" })
	want := map[string]string{
		"user_api_key":          "[masked]",
		"user_api_key_alias":    "team-a",
		"user_api_key_spend":    "0.00042",
		"user_api_key_metadata": `{"tier":2,"owner":null}`,
		"cache_hit":             "false",
		"tags":                  `["a","b"]`,
		"headers":               `{"host":"proxy","authorization":"[masked]"}`,
		"hidden_params":         `{"model_id":"7","additional_headers":{"x-ratelimit":10}}`,
	}
	if diff := cmp.Diff(want, record.Metadata); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if found := inFolder(t, sidecar.data, []string{"litellm-virtual-key", "88dc28d0f030c55e"}); found != nil {
		t.Errorf("on the sidecar's disk: %v", found)
	}
}
