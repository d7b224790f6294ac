package proxy

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"promptspool/metrics"
)

// reach is what deliveries have found out about the server as a whole. Safe
// for concurrent use.
type reach struct {
	metrics *metrics.Metrics
	logger  *slog.Logger
	away    atomic.Bool   // the last attempt found no server
	turned  chan struct{} // gets an element when away has changed

	mu     sync.Mutex
	newest time.Time // when the newest delivered event was accepted; under mu
	server string    // why all events wait for the server, or ""; under mu
	ofKey  string    // why those of the oldest key with any wait, or ""; under mu
}

// delivered notes that the server has an event that was accepted at this time.
func (r *reach) delivered(at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// Deliveries end in any order, and the metric must not go back.
	if at.After(r.newest) {
		r.newest = at
		r.metrics.ForwardDelivered.Set(float64(at.UnixMilli()) / 1000)
	}
}

// note remembers whether an attempt found the server and, if events wait for it, why. It logs when
// the server goes away and when it is back.
func (r *reach) note(away bool, why string) {
	r.mu.Lock()
	r.server = why
	r.mu.Unlock()

	up := 1.0
	if away {
		up = 0
	}
	r.metrics.UpstreamUp.Set(up)
	if was := r.away.Swap(away); was == away {
		return
	}

	// Once for each change, however many deliveries find it out.
	select {
	case r.turned <- struct{}{}:
	default: // the dispatch has yet to see the change before
	}
	if away {
		r.logger.Warn("The server cannot be reached. Events wait in the spool and are sent again.",
			"error", why)
	} else {
		r.logger.Info("The server answers again.")
	}
}
