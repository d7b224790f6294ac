package dashboard

import (
	"context"
	"strings"
	"testing"
	"time"

	"promptspool/api/wire"
)

// dropped is a fleet of a sidecar and a server that dropped something today.
type dropped struct{ alive bool }

func (d dropped) Fleet(context.Context, wire.Identity) (wire.Fleet, error) {
	heartbeat := wire.Heartbeat{Name: "pod-1", DroppedToday: []wire.Drop{
		{Count: 1204, What: "log record", Why: "not about model calls"},
		{Count: 1, What: "gRPC connection", Why: "<x>"},
	}}
	return wire.Fleet{
		Items:        []wire.FleetSidecar{{Heartbeat: heartbeat, LastSeen: time.Now(), Alive: d.alive}},
		DroppedToday: []wire.Drop{{Count: 2, What: "metrics export", Why: "a"}},
	}, nil
}

func TestThePageOfSidecarsShowsWhatWasDroppedToday(t *testing.T) {
	s := openSite(t)
	for _, alive := range []bool{true, false} {
		s.config.Sidecars = dropped{alive}
		s.d = New(s.config)
		page := s.call("ann@example.com", "GET", "/sidecars", nil).Body.String()

		// What a silent one dropped may have been on another day.
		for text, want := range map[string]bool{
			"dropped today</a>: not about model calls": alive,
			"1 gRPC connection <a":                     alive,
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
