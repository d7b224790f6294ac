package accounts_test

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"promptspool/api/wire"
	"promptspool/spool/database/accounts"
	"promptspool/spool/database/keyed/keyedtest"
)

// troubles are what the server says of a sidecar that holds, has given up and has lost events.
var troubles = []string{
	"The server rejects the key of the events that it holds.",
	"The server rejects the content of its dead letters.",
	"A damaged disk lost events.",
}

// sidecarID returns the id of a test's nth sidecar.
func sidecarID(n int) string { return fmt.Sprintf("0195529c-1c00-7000-8000-%012x", n) }

func TestASidecarIsAliveThenSilentThenForgotten(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	f := fleet{t, accounts.New(&keyedtest.Memory{}, func() time.Time { return now })}
	ours, others := f.account("a", now), f.account("ab", now)
	f.beat(ours, 2, "b", now)
	f.beat(ours, 1, "a", now)
	f.beat(others, 3, "theirs", now)

	now = now.Add(wire.HeartbeatEvery)
	f.beat(ours, 1, "a2", now)

	now = now.Add(wire.AliveFor)
	f.want(ours, "a2 alive=true waiting=1; b alive=false waiting=2; ")
	f.want(others, "theirs alive=false waiting=3; ")
	if known, alive, err := f.FleetOfAll(t.Context()); known != 3 || alive != 1 || err != nil {
		t.Errorf("of all accounts %d are known and %d alive (%v), want 3 and 1", known, alive, err)
	}

	// Until those that are forgotten are deleted, they are only hidden.
	now = now.Add(30*24*time.Hour - wire.AliveFor - wire.HeartbeatEvery/2)
	f.want(ours, "a2 alive=false waiting=1; ")
	f.beat(ours, 4, "new", now)
	f.must(f.NotifyFleet(t.Context()))
	if known, _, err := f.FleetOfAll(t.Context()); known != 2 || err != nil {
		t.Errorf("of all accounts %d are known (%v), want 2", known, err)
	}
}

func TestASidecarInNeedIsKnown(t *testing.T) {
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	now := began
	f := fleet{t, accounts.New(&keyedtest.Memory{}, func() time.Time { return now })}
	id := f.account("a", now)
	keyed := wire.Identity{Account: id.Account, KeyID: "key_a"}
	needs := func(want string) {
		t.Helper()
		sidecars, err := f.Fleet(t.Context(), id)
		f.must(err)
		var got strings.Builder
		for _, s := range sidecars.Items {
			fmt.Fprintf(&got, "%s %v: %s\n", s.ID[len(s.ID)-1:], s.SameName, strings.Join(s.Needs, " "))
		}
		if diff := cmp.Diff(want, got.String()); diff != "" {
			t.Errorf("at %v (-want +got):\n%s", now.Sub(began), diff)
		}
	}

	f.must(f.Beat(t.Context(), keyed, wire.Heartbeat{ID: sidecarID(1), Name: "same", Version: "1", StartedAt: now}))
	now = now.Add(time.Minute)
	for n, events := range []int64{2: 0, 3: 7} {
		if n > 1 {
			f.must(f.Beat(t.Context(), keyed, wire.Heartbeat{
				ID: sidecarID(n), Name: "same", Version: "1", StartedAt: now, BacklogEvents: events,
			}))
		}
	}
	f.must(f.Beat(t.Context(), id, wire.Heartbeat{
		ID: sidecarID(4), Name: "z", Version: "1", StartedAt: now, HeldEvents: 1, Dropped: 1, LostEvents: 1,
	}))
	needs("1 true: \n2 true: \n3 true: \n4 false: " + strings.Join(troubles, " ") + "\n")

	// The first one was stopped before.
	now = now.Add(10 * time.Second)
	_, err := f.RevokeKey(t.Context(), "key_a", now)
	f.must(err)
	const revoked = "Its key was revoked, so apps get 401. Give it, or its apps, another one."
	f.beat(id, 4, "z", now)
	needs("1 true: \n2 true: " + revoked + "\n3 true: " + revoked + "\n4 false: \n")

	// Another key is another start.
	f.beat(id, 2, "same", now)
	now = now.Add(wire.AliveFor + time.Second)
	const offline = "It is offline, and events wait on its disk. Start it again on its data folder."
	needs("1 true: \n2 true: " + offline + "\n3 true: " + revoked + "\n4 false: " + offline + "\n")
}

func TestWhatASidecarTellsComesBackWhole(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	f := fleet{t, accounts.New(&keyedtest.Memory{}, func() time.Time { return now })}
	ahead := -0.25
	sent := wire.Heartbeat{
		ID:            sidecarID(1),
		Name:          "pod <1> ü",
		Version:       "v1",
		StartedAt:     now.Add(-time.Hour),
		BacklogEvents: 1,
		BacklogBytes:  2,
		OldestSeconds: 3.5,
		HeldEvents:    4,
		DeadLetters:   5,
		LostEvents:    6,
		ClockAhead:    &ahead,
		DroppedToday:  []wire.Drop{{Count: 7, What: "log record", Why: "b"}},
	}
	f.must(f.Beat(t.Context(), wire.Identity{Account: "a"}, sent))

	got, err := f.Fleet(t.Context(), wire.Identity{Account: "a"})
	f.must(err)
	want := wire.Fleet{
		Success: true,
		Items: []wire.FleetSidecar{{
			Heartbeat: sent,
			LastSeen:  now,
			Alive:     true,
			Needs:     troubles,
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the fleet (-want +got):\n%s", diff)
	}
}

// fleet is a Store whose errors end the test.
type fleet struct {
	t *testing.T
	*accounts.Store
}

func (f fleet) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// account creates an account with a key.
func (f fleet) account(name string, now time.Time) wire.Identity {
	f.t.Helper()
	k, err := f.CreateKey(f.t.Context(), sha256.Sum256([]byte(name)), wire.Key{
		ID:          "key_" + name,
		AccountName: name,
		Name:        name,
		Scope:       wire.ScopeApp,
		CreatedAt:   now,
	})
	f.must(err)

	return wire.Identity{Account: k.AccountID}
}

// beat sends a heartbeat of the nth sidecar, with n events waiting.
func (f fleet) beat(id wire.Identity, n int, name string, now time.Time) {
	f.t.Helper()
	f.must(f.Beat(f.t.Context(), id, wire.Heartbeat{
		ID:            sidecarID(n),
		Name:          name,
		Version:       "1",
		StartedAt:     now,
		BacklogEvents: int64(n),
	}))
}

// want compares the fleet of an account with its form as a text.
func (f fleet) want(id wire.Identity, want string) {
	f.t.Helper()
	sidecars, err := f.Fleet(f.t.Context(), id)
	f.must(err)

	var got strings.Builder
	for _, s := range sidecars.Items {
		fmt.Fprintf(&got, "%s alive=%v waiting=%d; ", s.Name, s.Alive, s.BacklogEvents)
	}
	if got.String() != want {
		f.t.Errorf("the fleet of %s is %q, want %q", id.Account, got.String(), want)
	}
}
