package main

import (
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
