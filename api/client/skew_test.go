package client

import (
	"testing"
	"time"
)

func TestTheQuickestCallTellsTheSkew(t *testing.T) {
	var c Client
	local := time.Date(2026, 11, 21, 5, 0, 0, 0, time.UTC)
	server := func(at time.Time) string { return at.Add(-time.Hour).Format(time.RFC3339Nano) } // this clock is an hour ahead
	want := func(ahead, uncertain time.Duration) {
		t.Helper()
		if a, u, known := c.Skew(); !known || a != ahead || u != uncertain {
			t.Errorf("ahead by %v, uncertain by %v, known: %v; want %v and %v", a, u, known, ahead, uncertain)
		}
	}
	if _, _, known := c.Skew(); known {
		t.Error("it is known before the first answer")
	}
	c.skew.learn(local, local.Add(10*time.Second), server(local.Add(10*time.Second))) // a slow one, answered at its end
	want(time.Hour-5*time.Second, 5*time.Second)
	c.skew.learn(local, local.Add(2*time.Millisecond), server(local.Add(time.Millisecond)))
	want(time.Hour, time.Millisecond)
	c.skew.learn(local, local.Add(20*time.Second), server(local))
	c.skew.learn(local, local.Add(time.Millisecond), "yesterday")
	c.skew.learn(local, local.Add(time.Millisecond), "")
	want(time.Hour, time.Millisecond)
	local = local.Add(2 * time.Minute) // by then clocks may have moved
	c.skew.learn(local, local.Add(2*time.Second), server(local.Add(time.Second)))
	want(time.Hour, time.Second)
	c.skew.learn(local.Add(-2*time.Hour), local.Add(-2*time.Hour), server(local.Add(-2*time.Hour))) // this clock was set back
	want(time.Hour, 0)
}
