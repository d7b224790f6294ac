package main

import (
	"context"
	"log/slog"
	"time"

	"promptspool/api/client"
	"promptspool/metrics"
)

const (
	skewMax   = 5 * time.Second // what the server allows before it orders writes by their arrival
	skewEvery = 5 * time.Second
)

// watchSkew returns what keeps the metric of how far the sidecar's clock is from the server's up to date, and logs when
// the clocks disagree, until its ctx ends.
func watchSkew(upstream *client.Client, m *metrics.Metrics, logger *slog.Logger) func(context.Context) error {
	return func(ctx context.Context) error {
		tick := time.NewTicker(skewEvery)
		defer tick.Stop()

		wrong := false
		for {
			ahead, uncertain, known := upstream.Skew()
			if known {
				m.ClockSkew.Set(ahead.Seconds())
			}

			// Between the two bounds the last verdict stays.
			switch {
			case !known:
			case ahead.Abs()-uncertain > skewMax:
				if !wrong {
					logger.Warn("this machine's clock and the server's differ; set them right. "+
						"Until then the server orders what comes too early by its arrival",
						"ahead", ahead.Round(time.Millisecond).String())
				}
				wrong = true
			case ahead.Abs() < skewMax:
				if wrong {
					logger.Info("this machine's clock and the server's agree again")
				}
				wrong = false
			}

			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
		}
	}
}

// clockAhead is by how many seconds the clock is ahead of the server's; nil before its first answer.
func clockAhead(upstream *client.Client) *float64 {
	ahead, _, known := upstream.Skew()
	if !known {
		return nil
	}
	seconds := ahead.Seconds()
	return &seconds
}
