package accounts_test

import (
	"fmt"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/database/accounts"
	"promptspool/spool/database/keyed/keyedtest"
)

// Definitions are read from memory, and another server's are known within a second. A project has so
// many at most, and so many queues.
func TestDefinitionsAndQueues(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	rows := &counting{Memory: keyedtest.Memory{}}
	here := accounts.New(rows, func() time.Time { return now })
	elsewhere := accounts.New(rows, func() time.Time { return now })
	ctx, id := t.Context(), wire.Identity{Account: "a"}
	count := func(s *accounts.Store, id wire.Identity, want int) {
		t.Helper()
		if all, err := s.ScoreDefinitions(ctx, id); err != nil || len(all) != want {
			t.Errorf("%d definitions, %v; want %d", len(all), err, want)
		}
	}

	count(elsewhere, id, 0)
	for n := range wire.ScoreDefinitionsMax {
		d := wire.ScoreDefinition{Name: fmt.Sprint("score-", n), Kind: "boolean"}
		if err := here.DefineScore(ctx, id, d); err != nil {
			t.Fatal(err)
		}
	}
	count(here, id, wire.ScoreDefinitionsMax)
	count(here, wire.Identity{Account: "b"}, 0)
	count(elsewhere, id, 0)
	now = now.Add(time.Second)
	count(elsewhere, id, wire.ScoreDefinitionsMax)
	rows.read = 0
	if count(elsewhere, id, wire.ScoreDefinitionsMax); rows.read > 0 {
		t.Errorf("%d were read again", rows.read)
	}

	changed := wire.ScoreDefinition{Name: "score-7", Kind: "number"}
	if err := here.DefineScore(ctx, id, wire.ScoreDefinition{Name: "more"}); !wire.IsCode(err, wire.CodeConflict) {
		t.Errorf("one more: %v", err)
	}
	if err := here.DefineScore(ctx, id, changed); err != nil {
		t.Errorf("another definition of one: %v", err)
	}
	all, err := here.ScoreDefinitions(ctx, id)
	if err != nil || all.Of("score-7").Kind != "number" || all.Of("more") != nil {
		t.Errorf("%+v, %v", all.Of("score-7"), err)
	}
	if err := here.UndefineScore(ctx, id, "more"); !wire.IsCode(err, wire.CodeNotFound) {
		t.Errorf("what is not there is removed: %v", err)
	}

	for n := range wire.ReviewQueuesMax {
		if err := here.PutReviewQueue(ctx, id, wire.ReviewQueue{Name: fmt.Sprint(n)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := here.PutReviewQueue(ctx, id, wire.ReviewQueue{Name: "more"}); !wire.IsCode(err, wire.CodeConflict) {
		t.Errorf("one more queue: %v", err)
	}
	if err := here.RemoveReviewQueue(ctx, id, "7"); err != nil {
		t.Error(err)
	}
	queues, err := elsewhere.ReviewQueues(ctx, id)
	if err != nil || len(queues) != wire.ReviewQueuesMax-1 {
		t.Errorf("%d queues, %v", len(queues), err)
	}
}
