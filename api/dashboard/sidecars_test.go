package dashboard

import (
	"context"
	"strings"
	"testing"
	"time"

	"promptspool/api/wire"
)

// dropped is a fleet of a sidecar and a server that dropped something today.
type dropped struct {
	wire.Sidecars
	alive bool
}

func (d dropped) Fleet(context.Context, wire.Identity) (wire.Fleet, error) {
	heartbeat := wire.Heartbeat{Name: "pod-1", DroppedToday: []wire.Drop{
		{Count: 1204, What: "log record", Why: "not about model calls"},
		{Count: 1, What: "faulty item", Why: "<x>"},
	}}
	return wire.Fleet{
		Items:        []wire.FleetSidecar{{Heartbeat: heartbeat, LastSeen: time.Now(), Alive: d.alive}},
		DroppedToday: []wire.Drop{{Count: 2, What: "metrics export", Why: "a"}},
	}, nil
}

func TestThePageOfSidecarsShowsWhatWasDroppedToday(t *testing.T) {
	s := openSite(t)
	for _, alive := range []bool{true, false} {
		s.config.Sidecars = dropped{alive: alive}
		s.d = New(s.config)
		page := s.call("ann@example.com", "GET", "/sidecars", nil).Body.String()

		// What a silent one dropped may have been on another day.
		for text, want := range map[string]bool{
			"dropped today</a>: not about model calls": alive,
			"1 faulty item <a":                         alive,
			"dropped today</a>: &lt;x&gt;":             alive,
			"This server: 2 metrics exports <a":        true,
			">online<":                                 alive,
		} {
			if strings.Contains(page, text) != want {
				t.Errorf("alive %v: the page has %q: %v", alive, text, !want)
			}
		}
	}
}

func TestASidecarInNeedIsSeen(t *testing.T) {
	const email = "ann@example.com"
	s := openSite(t)
	const badge = "in need of attention: </span>"
	if page := s.call(email, "GET", "/requests", nil).Body.String(); strings.Contains(page, badge) {
		t.Error("without a sidecar, one needs attention")
	}

	secret, key, err := s.config.Keys.CreateKey(t.Context(), wire.NewKey{
		Account: s.signed[email].User.AccountName, Name: "app", Scope: wire.ScopeApp,
	})
	if err != nil || secret == "" {
		t.Fatal(err)
	}
	id := s.as(email)
	id.KeyID = key.ID
	for _, sidecar := range []string{wire.NewID(), wire.NewID()} {
		beat := wire.Heartbeat{ID: sidecar, Name: "pod", Version: "1", StartedAt: time.Now()}
		if err := s.store.Beat(t.Context(), id, beat); err != nil {
			t.Fatal(err)
		}
		id.KeyID = "" // the second goes by another key
	}
	if page := s.call(email, "GET", "/sidecars", nil).Body.String(); strings.Contains(page, badge) ||
		strings.Count(page, "<small class=\"soft\">") != 2 || strings.Contains(page, "How to fix this") {
		t.Errorf("of two that are well:\n%s", page)
	}

	if _, err := s.config.Keys.RevokeKey(t.Context(), key.ID); err != nil {
		t.Fatal(err)
	}
	page := s.call(email, "GET", "/sidecars", nil).Body.String()
	for _, want := range []string{
		"<dt>Need attention</dt><dd>1</dd>", "</b> Its key was revoked", "How to fix this", badge + "1</b>",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	if page := s.call(email, "GET", "/requests", nil).Body.String(); !strings.Contains(page, badge+"1</b>") {
		t.Error("the menu does not say so on another page")
	}
	if page := s.call("mallory@example.com", "GET", "/templates", nil).Body.String(); strings.Contains(page, badge) {
		t.Error("another project sees it")
	}
}
