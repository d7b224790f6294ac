package main

import (
	"testing"
	"testing/synctest"
	"time"
)

// A server that is away holds up no pod: its start waits for templates, and then goes on without.
func TestAStartWaitsForTemplatesForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &preload{deadline: time.Now().Add(preloadMax)}
		<-time.After(preloadMax - time.Second)
		if p.started() == nil {
			t.Error("it waits for nothing")
		}
		<-time.After(2 * time.Second)
		if err := p.started(); err != nil {
			t.Errorf("after %v it still says %v", preloadMax+time.Second, err)
		}
	})
}
