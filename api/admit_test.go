package api_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"promptspool/api"
	"promptspool/api/admission"
	"promptspool/api/wire"
)

// publisher takes a moment for each large template, and counts how many it has at once.
type publisher struct {
	wire.Templates
	now, most atomic.Int32
}

func (p *publisher) Publish(_ context.Context, _ wire.Identity, w wire.Publish) (wire.Published, error) {
	if len(w.Blueprint) > 1<<20 {
		now := p.now.Add(1)
		defer p.now.Add(-1)
		for most := p.most.Load(); now > most && !p.most.CompareAndSwap(most, now); most = p.most.Load() {
		}
		<-time.After(50 * time.Millisecond)
	}

	none := []string{}
	return wire.Published{
		Success: true, Name: w.Name, Blueprint: w.Blueprint, Tags: none, Labels: none, ExternalIDs: []wire.ExternalID{},
	}, nil
}

func TestLargeCallsArePassedOnFewAtATime(t *testing.T) {
	t.Parallel()
	templates := &publisher{}
	s := start(t, func(c *api.Config) {
		c.Templates, c.Room = templates, admission.NewRoom(20<<20, 64<<20)
	})
	publish := func(bytes int) answer {
		content, err := json.Marshal(strings.Repeat("x", bytes))
		if err != nil {
			t.Fatal(err)
		}

		body := `{"prompt_template":{"prompt_name":"n"},` +
			`"prompt_version":{"prompt_template":{"content":` + string(content) + `}}}`

		return s.call("POST", "/rest/prompt-templates", body, "X-API-KEY", "full")
	}

	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			if a := publish(2 << 20); a.Status != 201 {
				t.Errorf("a large call: %d %s", a.Status, a.Message)
			}
		})
		callers.Go(func() {
			if a := publish(100); a.Status != 201 {
				t.Errorf("a small call: %d %s", a.Status, a.Message)
			}
		})
	}
	callers.Wait()
	if most := templates.most.Load(); most != 1 {
		t.Errorf("%d large calls were worked on at once; there is room for one", most)
	}
}
