package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A server that is away holds up no pod: its start waits for templates for a while, and
// then goes on without.
func TestAStartWaitsForTemplatesForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &preload{wanted: []string{"greet"}, deadline: time.Now().Add(preloadMax)}
		<-time.After(preloadMax - time.Second)
		if p.started() == nil {
			t.Error("the start does not wait")
		}
		<-time.After(2 * time.Second)
		if err := p.started(); err != nil {
			t.Errorf("after %v the start still waits: %v", preloadMax+time.Second, err)
		}
	})
}

func TestAStopTakesRequestsUntilThereAreNone(t *testing.T) {
	for name, c := range map[string]struct {
		busyFor, want time.Duration // from the beginning of the stop
	}{
		"no caller":                 {0, stopQuiet},
		"callers for three seconds": {3 * time.Second, 3*time.Second + stopQuiet},
		"callers that go on":        {time.Hour, stopTaking},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				quiet := func() time.Duration { return max(0, time.Since(begun)-c.busyFor) }

				if err := new(process).linger(t.Context(), quiet); err != nil {
					t.Error(err)
				}
				if took := time.Since(begun); took < c.want || took > c.want+stopQuiet/10 {
					t.Errorf("requests were taken for %v; want %v", took, c.want)
				}
			})
		})
	}
}

func TestAFailureWhileAStopTakesRequestsEndsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := make(chan error, 1)
		p := &process{failed: failed}
		time.AfterFunc(time.Second, func() { failed <- errors.New("the disk failed") })

		begun := time.Now()
		err := p.linger(context.Background(), func() time.Duration { return 0 })
		if err == nil || !strings.Contains(err.Error(), "the disk failed") || time.Since(begun) != time.Second {
			t.Errorf("after %v: %v; want the failure, after a second", time.Since(begun), err)
		}
	})
}
