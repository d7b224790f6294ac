package openapitest

import (
	"strings"
	"testing"
)

func TestARecorderSeesWhatDiffers(t *testing.T) {
	group := Exchange{
		Test:        "a test",
		Method:      "POST",
		Path:        "/rest/create-group",
		Status:      200,
		ContentType: "application/json",
		Answer: []byte(`{"success": true, "message": "Group created.", ` +
			`"id": "0198c5a0-7a3c-7b62-9d0e-5f8a4c2b1e90"}`),
	}
	var r Recorder
	r.Note(group)
	if err := r.Check(); err != nil {
		t.Errorf("an answer as described: %v", err)
	}

	group.Answer = []byte(`{"success": true}`)
	r.Note(group)
	if err := r.Check(); err == nil || !strings.Contains(err.Error(), "a test: POST /rest/create-group") {
		t.Errorf("an answer that differs: %v", err)
	}
}
