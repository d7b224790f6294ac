package client

import (
	"testing"
	"time"
)

func TestTheQuickestCallTellsTheSkew(t *testing.T) {
	var c Client
	local := time.Date(2026, 11, 21, 5, 0, 0, 0, time.UTC)

	// This clock is an hour ahead.
	server := func(at time.Time) string { return at.Add(-time.Hour).Format(time.RFC3339Nano) }

	want := func(ahead, uncertain time.Duration) {
		t.Helper()
		if a, u, known := c.Skew(); !known || a != ahead || u != uncertain {
			t.Errorf("ahead by %v, uncertain by %v, known: %v; want %v and %v", a, u, known, ahead, uncertain)
		}
	}

	if _, _, known := c.Skew(); known {
		t.Error("it is known before the first answer")
	}

	// A slow call, answered at its end.
	c.skew.learn(local, local.Add(10*time.Second), server(local.Add(10*time.Second)))
	want(time.Hour-5*time.Second, 5*time.Second)

	c.skew.learn(local, local.Add(2*time.Millisecond), server(local.Add(time.Millisecond)))
	want(time.Hour, time.Millisecond)

	// A slower one, and answers without a time.
	c.skew.learn(local, local.Add(20*time.Second), server(local))
	c.skew.learn(local, local.Add(time.Millisecond), "yesterday")
	c.skew.learn(local, local.Add(time.Millisecond), "")
	want(time.Hour, time.Millisecond)

	// By then clocks may have moved.
	local = local.Add(2 * time.Minute)
	c.skew.learn(local, local.Add(2*time.Second), server(local.Add(time.Second)))
	want(time.Hour, time.Second)

	// This clock was set back.
	local = local.Add(-2 * time.Hour)
	c.skew.learn(local, local, server(local))
	want(time.Hour, 0)
}
