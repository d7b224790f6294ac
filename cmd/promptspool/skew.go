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

// watchSkew tells the metric and, when it matters, the log how far the sidecar's clock is from the server's, until ctx ends.
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
			switch was := wrong; {
			case known && ahead.Abs()-uncertain > skewMax:
				if wrong = true; !was {
					logger.Warn("this machine's clock and the server's differ; set them right. Until then the server orders what comes too early by its arrival", "ahead", ahead.Round(time.Millisecond).String())
				}
			case known && ahead.Abs() < skewMax:
				if wrong = false; was {
					logger.Info("this machine's clock and the server's agree again")
				}
			}
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
		}
	}
}

// clockAhead is what /statusz tells.
func clockAhead(upstream *client.Client) *float64 {
	ahead, _, known := upstream.Skew()
	if !known {
		return nil
	}
	seconds := ahead.Seconds()
	return &seconds
}
