package registry_test

import (
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"promptspool/api/wire"
)

func TestAPreviewRendersWhatIsNotPublished(t *testing.T) {
	r := newRegistry(t)
	publish(t, r, says("tone", "politely"))
	draft := says("greet", "Greet {who} @@@tone@@@")
	f := wire.TemplateFetch{Provider: "openai", Variables: map[string]json.RawMessage{"who": json.RawMessage(`"Ann"`)}}
	out, _, err := r.Preview(t.Context(), ann, draft, f)
	if err != nil || !strings.Contains(string(out.LLMKwargs), "Greet Ann politely") {
		t.Errorf("the preview is %s, %v", out.LLMKwargs, err)
	}
	if _, err := r.Head(t.Context(), ann, "greet"); !wire.IsCode(err, wire.CodeNotFound) {
		t.Errorf("a preview was kept: %v", err)
	}
	draft.Blueprint = json.RawMessage(`{"messages":[{"role":"king","content":"x"}]}`)
	if _, _, err := r.Preview(t.Context(), ann, draft, f); !wire.IsCode(err, wire.CodeInvalid) {
		t.Errorf("a draft that cannot be published is previewed: %v", err)
	}
}

func TestOfTwoWhoSaveOnTheSameBaseOneIsToldOfTheOther(t *testing.T) {
	r := newRegistry(t)
	base := 0
	p := says("greet", "Hello")
	p.Base = &base
	publish(t, r, p)
	if _, err := r.Publish(t.Context(), ann, p); !wire.IsCode(err, wire.CodeConflict) {
		t.Errorf("an existing template is made again: %v", err)
	}

	base = 1
	var won, lost atomic.Int32
	var all sync.WaitGroup
	for _, text := range []string{"Hi", "Hey", "Ho"} {
		all.Go(func() {
			p := says("greet", text)
			p.Base, p.Author = &base, text
			switch _, err := r.Publish(t.Context(), ann, p); {
			case err == nil:
				won.Add(1)
			case wire.IsCode(err, wire.CodeConflict) && strings.Contains(err.Error(), "version 2"):
				lost.Add(1)
			}
		})
	}

	all.Wait()
	if won.Load() != 1 || lost.Load() != 2 {
		t.Errorf("%d were saved, %d learned of the other version; want 1 and 2", won.Load(), lost.Load())
	}

	head, err := r.Head(t.Context(), ann, "greet")
	if err != nil || head.Latest() != 2 {
		t.Errorf("the head is %+v, %v", head, err)
	}
}
