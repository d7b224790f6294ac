package postgres

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/registry"
	"promptspool/spool/archive"
	"promptspool/spool/database/databasetest"
	"promptspool/spool/database/postgres/connection"
)

var silent = slog.New(slog.NewTextHandler(io.Discard, nil))

// servers opens one database several times, as several servers do.
func servers(t *testing.T, n int) []*DB {
	t.Helper()
	dsn := Empty(t)
	dbs := make([]*DB, n)
	var opening sync.WaitGroup
	for i := range dbs {
		opening.Go(func() {
			db, err := Open(t.Context(), Config{DSN: dsn, Logger: silent})
			if err != nil {
				t.Error(err)
				return
			}
			dbs[i] = db
		})
	}
	opening.Wait()
	if t.Failed() {
		t.FailNow()
	}

	t.Cleanup(func() {
		for _, db := range dbs {
			_ = db.Close()
		}
	})
	return dbs
}

// publish adds a version without going through a Registry.
func publish(ctx context.Context, db *DB, account, name string) (wire.Template, error) {
	return db.UpdateTemplate(ctx, account, name, func(*wire.Template) (*wire.Version, bool, error) {
		return &wire.Version{Blueprint: []byte(`{}`), Metadata: []byte(`null`), CreatedAt: time.Now()}, true, nil
	})
}

// A reader at a revision must never miss a lower one that is committed later. Each template is
// published once, so a change that the reader misses is not repeated.
func TestAReaderOfTheChangesMissesNone(t *testing.T) {
	dbs := servers(t, 3)
	const publishersEach, templatesEach = 3, 20
	var publishers sync.WaitGroup
	for s, db := range dbs {
		for p := range publishersEach {
			publishers.Go(func() {
				for i := range templatesEach {
					if _, err := publish(t.Context(), db, "acme", fmt.Sprintf("t%d-%d-%d", s, p, i)); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}

	all := len(dbs) * publishersEach * templatesEach
	seen := map[string]bool{}
	for position := uint64(0); position < uint64(all) && !t.Failed(); {
		c, err := dbs[len(seen)%len(dbs)].TemplateChanges(t.Context(), "acme", position)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range c.Names {
			seen[name] = true
		}
		position = c.Revision
	}
	publishers.Wait()
	if len(seen) != all {
		t.Errorf("the reader saw %d templates, want %d", len(seen), all)
	}
}

// watched returns a registry over a database that others write to too.
func watched(t *testing.T, db *DB) *registry.Registry {
	t.Helper()
	r := registry.New(registry.Config{Store: db, Logger: silent})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Watch(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return r
}

func TestAChangeAtOneServerWakesWhoWaitsAtAnother(t *testing.T) {
	dbs := servers(t, 2)
	here := watched(t, dbs[1])
	answers := make(chan wire.Changes, 1)
	go func() {
		q := wire.ChangesQuery{Wait: 30 * time.Second}
		c, err := here.Changes(context.Background(), wire.Identity{Account: "acme"}, q)
		if err != nil {
			t.Error(err)
		}
		answers <- c
	}()

	begun := time.Now()
	if _, err := publish(t.Context(), dbs[0], "acme", "greet"); err != nil {
		t.Fatal(err)
	}
	if c := <-answers; c.Revision != 1 || time.Since(begun) > 5*time.Second {
		t.Errorf("after %v it received %+v", time.Since(begun), c)
	}
}

// Two reviewers ask for their next call at the same moment, each at another server, and never get the same.
func TestReviewersAtTwoServersNeverHaveOneCall(t *testing.T) {
	dbs := servers(t, 2)
	for round := range 20 {
		calls := []string{fmt.Sprint(round, "-a"), fmt.Sprint(round, "-b")}
		var got [2]string
		var asking sync.WaitGroup
		for i, db := range dbs {
			asking.Go(func() {
				var err error
				if got[i], err = db.Claim(t.Context(), "team", fmt.Sprint("reviewer-", i), calls); err != nil {
					t.Error(err)
				}
			})
		}
		asking.Wait()
		if slices.Sort(got[:]); !slices.Equal(got[:], calls) {
			t.Errorf("of %q the reviewers got %q", calls, got)
		}
	}
}

func TestALookWakesOnlyAccountsThatChanged(t *testing.T) {
	dbs := servers(t, 2)
	for _, account := range []string{"a", "b", "c"} {
		if _, err := publish(t.Context(), dbs[0], account, "greet"); err != nil {
			t.Fatal(err)
		}
	}
	var woken []string
	look := func(seen map[string]uint64) map[string]uint64 {
		woken = nil
		wake := func(account string) { woken = append(woken, account) }
		return dbs[1].look(t.Context(), []string{"a", "b", "nobody"}, seen, wake)
	}

	seen := look(nil)
	if len(woken) != 2 {
		t.Errorf("the first look woke %v", woken)
	}
	if seen = look(seen); woken != nil {
		t.Errorf("a look without a change woke %v", woken)
	}

	for _, account := range []string{"b", "c"} { // no caller waits for c
		if _, err := publish(t.Context(), dbs[0], account, "greet"); err != nil {
			t.Fatal(err)
		}
	}
	if look(seen); len(woken) != 1 || woken[0] != "b" {
		t.Errorf("after a change of b it woke %v", woken)
	}
}

// Maintenance of a large database takes minutes; a sign-up does not wait for it.
func TestSigningUpDoesNotWaitForMaintenance(t *testing.T) {
	db := servers(t, 1)[0]

	err := db.withLock(t.Context(), connection.RunLock, func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()

		_, err := db.CreateUser(ctx, wire.User{
			ID:           wire.NewID(),
			AccountName:  "team",
			Email:        "ann@example.com",
			Role:         wire.RoleOwner,
			CreatedAt:    time.Now(),
			SessionsFrom: time.Now(),
		}, "hash", [32]byte{})

		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// Each server looks at what came over others before it began, too. One is packing while another deletes.
func TestServersPackASessionTogether(t *testing.T) {
	dbs := servers(t, 3)
	said, bodies := "", []string(nil)
	for n := range 12 {
		said += fmt.Sprintf("%d: %s. ", n, strings.Repeat(fmt.Sprint("what was said ", n), 50))
		bodies = append(bodies, `{"kwargs":{"prompt":"`+said+`"},"metadata":{"session_id":"s"}}`)
		e := databasetest.Event(t, n, wire.KindRequest, databasetest.ID(1000+n), bodies[n])
		if _, err := dbs[n%3].Apply(t.Context(), "acme", []archive.Event{e}); err != nil {
			t.Fatal(err)
		}
	}

	var working sync.WaitGroup
	for _, db := range dbs {
		working.Go(func() {
			if err := db.packer.Recall(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	working.Go(func() {
		for n := 11; n > 8; n-- {
			d := wire.Deletion{RequestID: databasetest.ID(1000 + n)}
			if _, err := archive.Delete(t.Context(), dbs[0], "acme", d); err != nil {
				t.Error(err)
			}
		}
	})
	working.Wait()

	for n, body := range bodies[:9] {
		_, got, err := dbs[n%3].Bodies(t.Context(), "acme", databasetest.ID(1000+n))
		if err != nil || string(got[databasetest.ID(n)]) != body {
			t.Errorf("body %d is %.60q (%v)", n, got[databasetest.ID(n)], err)
		}
	}
	if err := dbs[0].Check(t.Context()); err != nil {
		t.Error(err)
	}
}
