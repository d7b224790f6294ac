package proxy_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"promptspool/api/wire"
)

// identity is that of a key, verified.
func (s *sidecar) identity(key wire.Secret) wire.Identity {
	s.t.Helper()
	id, _, err := s.authenticate(key)
	if err != nil || !id.Verified {
		s.t.Fatalf("%+v, %v; want a verified identity", id, err)
	}
	return id
}

// spooled reads all that waits in the spool.
func (s *sidecar) spooled() []wire.Event {
	s.t.Helper()
	var events []wire.Event
	for from := s.spool.Frontier(); from < s.spool.Status().Next; {
		entries, _, err := s.spool.Read(s.t.Context(), from, 1000, 1<<20)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, e := range entries {
			event, err := wire.ParseEvent(e.Data)
			if err != nil {
				s.t.Fatal(err)
			}
			events, from = append(events, event), e.Seq+1
		}
	}
	return events
}

func TestWhatRecordReturnsForIsInTheSpoolAsItCame(t *testing.T) {
	s := newSidecar(t, newServer(t))
	want := scores("e1", "e2")
	events := slices.Clone(want)
	for i := range events {
		events[i].Body = bytes.Clone(want[i].Body) // Record takes it
	}
	results, err := s.Record(t.Context(), s.identity(annsKey), events)
	if err != nil {
		t.Fatal(err)
	}
	for i := range events {
		clear(events[i].Body) // they are ours again
	}
	accepted := []wire.Result{{ID: want[0].ID, Code: wire.ResultAccepted}, {ID: want[1].ID, Code: wire.ResultAccepted}}
	if diff := cmp.Diff(accepted, results); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, s.spooled()); diff != "" {
		t.Errorf("spooled (-want +got):\n%s", diff)
	}
}

func TestWritesAreTakenAlsoWhenTheirCallersAreGone(t *testing.T) {
	s := newSidecar(t, newServer(t))
	id := s.identity(annsKey)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var writers sync.WaitGroup
	for range 50 { // most wait for the commit of another
		writers.Go(func() {
			if _, err := s.Record(ctx, id, scores("e")); err != nil {
				t.Error(err)
			}
		})
	}
	writers.Wait()
	if n := len(s.spooled()); n != 50 {
		t.Errorf("%d events are in the spool; want 50", n)
	}
}

func TestALargeBatchIsSeveralCommits(t *testing.T) {
	s := newSidecar(t, newServer(t))
	names := []string{strings.Repeat("a", 300<<10)}
	for range 200 {
		names = append(names, strings.Repeat("b", 2<<10))
	}
	events := scores(names...)

	if _, err := s.Record(t.Context(), s.identity(annsKey), events); err != nil {
		t.Fatal(err)
	}

	spooled := s.spooled()
	if len(spooled) != len(events) {
		t.Fatalf("%d events are in the spool; want %d", len(spooled), len(events))
	}
	for i, e := range spooled {
		if e.ID != events[i].ID {
			t.Fatalf("the event in place %d is another one", i)
		}
	}

	if n := s.metric("promptspool_spool_commit_events", ""); n != 3 { // 300 kB alone, then 400 kB in pieces of 256
		t.Errorf("the batch took %v commits; want 3", n)
	}
}

func TestAFullSpoolAsksToComeBackAndKeepsWhatItHas(t *testing.T) {
	bubble(t, func(t *testing.T, s *sidecar, srv *server) {
		names, err := s.fill(annsKey)
		wantUnavailable(t, err, "--spool-bytes-max")
		if len(names) < 30 {
			t.Errorf("the spool was full after %d events of 64 KiB; it takes %d bytes", len(names), spoolBytesMax)
		}
		s.drain()
		wantDelivered(t, srv, names...)
		<-time.After(2 * time.Second)
		if _, err := s.Record(t.Context(), s.identity(annsKey), padded(scores("after"))); err != nil {
			t.Error(err)
		}
	})
}

func TestAStoppedSidecarAsksToComeBack(t *testing.T) {
	s := newSidecar(t, newServer(t))
	id := s.identity(annsKey)
	if err := s.spool.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := s.Record(t.Context(), id, scores("e1"))
	wantUnavailable(t, err, "stopping")
}

func TestLinksCarryTheVersionThatTheyMeantWhenAccepted(t *testing.T) {
	s := newSidecar(t, newServer(t))
	ann, bob := s.identity(annsKey), s.identity(bobsKey)
	for _, tt := range []struct {
		scene string
		id    wire.Identity
		link  wire.PromptLink
		came  int // version that the event had already
		want  int
	}{
		{"the latest", ann, wire.PromptLink{Name: "greeting"}, 0, 3},
		{"a label", ann, wire.PromptLink{Name: "greeting", Label: "prod"}, 0, 2},
		{"a label wins over a version", ann, wire.PromptLink{Name: "greeting", Label: "prod", Version: 1}, 0, 2},
		{"a version needs no help", ann, wire.PromptLink{Name: "greeting", Version: 1}, 0, 0},
		{"a label that is not known here", ann, wire.PromptLink{Name: "greeting", Label: "dev"}, 0, 0},
		{"a template that is not known here", ann, wire.PromptLink{Name: "farewell"}, 0, 0},
		{"another account's template", bob, wire.PromptLink{Name: "greeting"}, 0, 0},
		{"a key that is not verified", wire.Identity{Account: "ann", Key: annsKey},
			wire.PromptLink{Name: "greeting"}, 0, 0},
		{"an event whose version another sidecar resolved", ann, wire.PromptLink{Name: "greeting"}, 1, 1},
		{"no link", ann, wire.PromptLink{}, 0, 0},
	} {
		t.Run(tt.scene, func(t *testing.T) {
			event := scores("e")[0]
			event.Link, event.Version = tt.link, tt.came
			events := []wire.Event{event}
			if _, err := s.Record(t.Context(), tt.id, events); err != nil {
				t.Fatal(err)
			}

			spooled := s.spooled()
			if got := spooled[len(spooled)-1].Version; got != tt.want {
				t.Errorf("the version is %d; want %d", got, tt.want)
			}
			if events[0].Version != tt.came {
				t.Error("the caller's event was changed")
			}
		})
	}
}
