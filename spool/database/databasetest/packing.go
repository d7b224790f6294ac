package databasetest

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"promptspool/api/wire"
	"promptspool/spool/archive"
)

// PackingBodies opens stores that pack the bodies of sessions against each other after each write, however
// little that saves. What scenes see of them is the same.
func PackingBodies(open Open) Open {
	return func(t *testing.T) (archive.Store, func() archive.Store) {
		s, reopen := open(t)
		return packing{s, t}, func() archive.Store { return packing{reopen(), t} }
	}
}

// A session is packed in one go, and then its records go, or change, one after the other: mostly the one
// that the others are packed against.
func packedSession(t *testing.T, open Open) {
	s, reopen := open(t)
	if eager, is := s.(packing); is {
		// All at once, rather than with each write.
		s = eager.Store
	}
	say := func(n int) string {
		metadata := fmt.Sprintf(`{"metadata":{"session_id":"s","user":"u%d"},`, n)
		return metadata + longBody(fmt.Sprint("turn ", n), 3000*(n+1))[1:]
	}
	var bodies []string
	for n := range 12 {
		bodies = append(bodies, say(n))
		apply(t, s, account, Event(t, n, wire.KindRequest, ID(1000+n), bodies[n]))
	}
	look := func(after string) {
		t.Helper()
		for n, body := range bodies {
			_, got, err := s.Bodies(t.Context(), account, ID(1000+n))
			switch {
			case body == "" && !wire.IsCode(err, wire.CodeNotFound):
				t.Errorf("after %s: record %d is there (%v)", after, n, err)
			case body != "" && (err != nil || string(got[ID(n)]) != body):
				t.Errorf("after %s: the body of record %d is %.60q (%v)", after, n, got[ID(n)], err)
			}
		}
	}

	packBodies(t, s)
	look("packing")
	for n := 11; n > 2; n-- {
		if n%3 == 0 {
			bodies[n] = say(20 + n)
			change := func(s *archive.State, b map[string]json.RawMessage) (bool, error) {
				b[ID(n)], s.History[0].Hash = json.RawMessage(bodies[n]), archive.HashBody([]byte(bodies[n]))
				return true, nil
			}
			if _, err := archive.Edit(t.Context(), s, account, []string{ID(1000 + n)}, true, change); err != nil {
				t.Fatal(err)
			}
			look(fmt.Sprint("a change of ", n))
			continue
		}
		bodies[n] = ""
		if _, err := archive.Delete(t.Context(), s, account, wire.Deletion{RequestID: ID(1000 + n)}); err != nil {
			t.Fatal(err)
		}
		look(fmt.Sprint("a deletion of ", n))
		if n == 7 {
			s = reopen()
			look("a restart")
		}
	}
}

type packing struct {
	archive.Store
	t *testing.T
}

// packBodies packs the bodies that wait.
func packBodies(t testing.TB, s any) {
	if err := s.(interface{ PackBodies(context.Context) error }).PackBodies(context.Background()); err != nil {
		t.Errorf("pack bodies: %v", err)
	}
}

func (p packing) Apply(ctx context.Context, account string, events []archive.Event) ([]wire.Result, error) {
	defer packBodies(p.t, p.Store)
	return p.Store.Apply(ctx, account, events)
}

func (p packing) Change(
	ctx context.Context, account string, ids []string, alone bool, decide func(*archive.Group, archive.Loader) error,
) error {
	defer packBodies(p.t, p.Store)
	return p.Store.Change(ctx, account, ids, alone, decide)
}
