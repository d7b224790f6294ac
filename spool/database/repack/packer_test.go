package repack_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/database/compress"
	"promptspool/spool/database/repack"
)

// asked is a store that notes how many records of an account it is asked to pack together.
type asked struct {
	archive.Store
	away  bool
	asked map[string]int
}

func (s *asked) Repack(
	_ context.Context, account string, ids []archive.UUID, _ func([]repack.Body) ([]repack.Body, error),
) error {
	if s.away {
		return wire.Unavailable(time.Second, "The database is away.")
	}
	s.asked[account] += len(ids)
	return nil
}

func (s *asked) Packed(context.Context) (time.Time, error)  { return time.Time{}, nil }
func (s *asked) SetPacked(context.Context, time.Time) error { return nil }

func TestWhatWaitsIsKeptWhileTheDatabaseIsAway(t *testing.T) {
	codec, err := compress.New(1)
	if err != nil {
		t.Fatal(err)
	}
	s := &asked{away: true, asked: map[string]int{}}
	p := repack.NewPacker(s, codec, slog.New(slog.DiscardHandler), time.Now)
	for n := range 30 {
		id := archive.UUID{15: byte(n)}
		p.Add(fmt.Sprint("account-", n%3), []archive.Came{{Of: "session", ID: id, Bytes: 1000}})
	}

	if err := p.PackAll(t.Context()); !wire.IsCode(err, wire.CodeUnavailable) {
		t.Errorf("PackAll returns %v while the database is away", err)
	}
	s.away = false
	if err := p.PackAll(t.Context()); err != nil || len(s.asked) != 3 || s.asked["account-0"] != 10 {
		t.Errorf("PackAll returns %v, and asks for %v of 10 records of each account", err, s.asked)
	}
}
