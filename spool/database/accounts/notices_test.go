package accounts_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"promptspool/api/auth"
	"promptspool/api/wire"
	"promptspool/spool/database/accounts"
	"promptspool/spool/database/keyed"
	"promptspool/spool/database/keyed/keyedtest"
)

// waiting returns the notices of an account that no server has put into queues yet, in their order.
func waiting(t *testing.T, rows keyed.Store, account string) (all []wire.Notice) {
	t.Helper()
	items, err := keyed.List[wire.Notice](t.Context(), rows, keyed.Key{Kind: "notices", Account: account})
	for _, item := range items {
		all = append(all, *item.Of)
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestANoticeIsToldIfItsTransactionIsCommitted(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	rows, ctx := &keyedtest.Memory{}, t.Context()
	refused := errors.New("refused")
	for _, end := range []error{nil, refused} {
		err := rows.Change(ctx, "a", true, func(tx *keyed.Tx) error {
			for _, title := range []string{"first", "second", "third"} {
				n := wire.Notice{Type: wire.NoticeAlertFiring, Title: title}
				if err := accounts.Notify(tx, "a", now, n); err != nil {
					return err
				}
			}
			return end
		})
		if !errors.Is(err, end) {
			t.Fatal(err)
		}
	}

	all := waiting(t, rows, "a")
	if len(all) != 3 || all[0].Title != "first" || all[1].Title != "second" || all[2].Title != "third" {
		t.Fatalf("waiting: %+v", all)
	}
	if _, err := wire.ParseID(all[0].ID); err != nil || !all[0].Time.Equal(now) {
		t.Errorf("id %q (%v), time %v", all[0].ID, err, all[0].Time)
	}
	if others := waiting(t, rows, "b"); len(others) > 0 {
		t.Errorf("another account has %+v", others)
	}
}

// wantTold checks the notices that an account is told next, by their types and titles, and takes them.
func wantTold(t *testing.T, rows keyed.Store, account string, want ...string) {
	t.Helper()
	got := []string{}
	for _, n := range waiting(t, rows, account) {
		got = append(got, n.Type+": "+n.Title)
		gone := keyed.Entry{Key: keyed.Key{Kind: "notices", Account: account, Name: n.ID}}
		if err := rows.Write(t.Context(), gone); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

func TestAProjectIsToldOfItsKeys(t *testing.T) {
	rows, ctx := &keyedtest.Memory{}, t.Context()
	keys := auth.New(auth.Config{Store: accounts.New(rows, time.Now)})
	secret, k, err := keys.CreateKey(ctx, wire.NewKey{Account: "acme", Name: "bot", Scope: wire.ScopeApp})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range waiting(t, rows, k.AccountID) {
		if text, _ := json.Marshal(n); bytes.Contains(text, []byte(secret)) {
			t.Errorf("the key itself is told: %s", text)
		}
	}
	wantTold(t, rows, k.AccountID, "key.created: The key bot was created")

	if _, _, _, err := keys.RotateKey(ctx, k.ID, time.Hour); err != nil {
		t.Fatal(err)
	}
	wantTold(t, rows, k.AccountID, "key.created: The key bot was created")
	// It is made again at each start.
	for range 2 {
		boot, err := keys.Bootstrap(ctx, "0123456789abcdef0123456789abcdef")
		if err != nil {
			t.Fatal(err)
		}
		k.AccountID = boot.AccountID
	}
	wantTold(t, rows, k.AccountID, "key.created: The key bootstrap was created")
}

func TestAProjectIsToldOfVersionsAndLabels(t *testing.T) {
	rows, ctx := &keyedtest.Memory{}, t.Context()
	s := accounts.New(rows, time.Now)
	publish := func(v *wire.Version, moves ...wire.Move) {
		t.Helper()
		_, err := s.UpdateTemplate(ctx, "a", "greet", func(head *wire.Template) (*wire.Version, bool, error) {
			head.Moves = append(head.Moves, moves...)
			return v, v != nil || len(moves) > 0, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	publish(&wire.Version{}, wire.Move{Label: "prod", Version: 1})
	wantTold(t, rows, "a", "template.published: greet has version 1", "label.moved: prod of greet points to version 1")
	publish(&wire.Version{})
	publish(nil, wire.Move{Label: "prod", Version: 2})
	publish(nil)
	publish(nil, wire.Move{Label: "prod"})
	wantTold(t, rows, "a", "template.published: greet has version 2", "label.moved: prod of greet points to version 2",
		"label.moved: prod of greet was removed")
}

// A silence is told once, and its end, by whichever server looks; losses are told as they grow.
func TestAProjectIsToldOfItsSidecars(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	rows, ctx, id := &keyedtest.Memory{}, t.Context(), wire.Identity{Account: "a"}
	clock := func() time.Time { return now }
	servers := []*accounts.Store{accounts.New(rows, clock), accounts.New(rows, clock)}
	beat := wire.Heartbeat{ID: sidecarID(1), Name: "pod", Version: "1", StartedAt: now}
	after := func(elapsed time.Duration, change func(h *wire.Heartbeat)) {
		t.Helper()
		now = now.Add(elapsed)
		if change != nil {
			change(&beat)
			if err := servers[0].Beat(ctx, id, beat); err != nil {
				t.Fatal(err)
			}
		}
		for _, s := range append(servers, servers...) {
			if err := s.NotifyFleet(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	heard := func(*wire.Heartbeat) {}

	after(0, heard)
	after(4*time.Minute, nil)
	wantTold(t, rows, "a")
	after(2*time.Minute, nil)
	wantTold(t, rows, "a", "sidecar.silent: The sidecar pod is silent")
	after(time.Hour, nil)
	after(time.Minute, heard)
	wantTold(t, rows, "a", "sidecar.online: The sidecar pod is heard again")

	after(time.Minute, func(h *wire.Heartbeat) { h.LostEvents = 2 })
	after(time.Minute, func(h *wire.Heartbeat) { h.Dropped = 3 })
	after(time.Minute, heard)
	// It starts again, and counts from zero.
	after(time.Minute, func(h *wire.Heartbeat) { h.StartedAt, h.LostEvents, h.Dropped = now, 0, 0 })
	after(time.Minute, func(h *wire.Heartbeat) { h.LostEvents = 1 })
	wantTold(t, rows, "a",
		"sidecar.losses: The sidecar pod lost 2 events", "sidecar.losses: The sidecar pod lost 3 events",
		"sidecar.losses: The sidecar pod lost 1 event")

	// One that stopped with an empty spool is not missed, and one with events left is.
	after(time.Minute, func(h *wire.Heartbeat) { h.Stopped = true })
	after(time.Hour, nil)
	wantTold(t, rows, "a")
	after(time.Minute, func(h *wire.Heartbeat) { h.BacklogEvents = 1 })
	after(time.Hour, nil)
	wantTold(t, rows, "a", "sidecar.silent: The sidecar pod is silent")
}
