package proxy

import (
	"log/slog"
	"sync/atomic"
	"time"

	"promptspool/metrics"
)

// reach is what deliveries have found out about the server as a whole. Safe for concurrent use.
type reach struct {
	metrics *metrics.Metrics
	logger  *slog.Logger
	away    atomic.Bool   // the last attempt found no server
	turned  chan struct{} // away has changed
	newest  atomic.Int64  // when the newest event that the server has was accepted, in milliseconds since 1970
}

// delivered notes that the server has an event that was accepted at this time.
func (r *reach) delivered(at time.Time) {
	for ms := at.UnixMilli(); ; {
		before := r.newest.Load()
		if ms <= before {
			return
		}
		if r.newest.CompareAndSwap(before, ms) {
			r.metrics.ForwardDelivered.Set(float64(ms) / 1000)
			return
		}
	}
}

// note takes in whether an attempt found the server, and tells people when the server goes away and when it is back.
func (r *reach) note(away bool, err error) {
	if away {
		r.metrics.UpstreamUp.Set(0)
	} else {
		r.metrics.UpstreamUp.Set(1)
	}
	if was := r.away.Swap(away); was == away {
		return
	}

	select {
	case r.turned <- struct{}{}:
	default: // it is told already
	}
	if away {
		r.logger.Warn("the server cannot be reached; events wait in the spool and are tried again", "error", err)
	} else {
		r.logger.Info("the server answers again")
	}
}
