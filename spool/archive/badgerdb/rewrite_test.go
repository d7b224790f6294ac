package badgerdb_test

import (
	"bytes"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"promptspool/spool/archive"
	"promptspool/spool/archive/archivetest"
	"promptspool/spool/archive/badgerdb"
)

// setExcerpts returns a Change that gives all records this excerpt.
func setExcerpts(excerpt string) archive.Change {
	return func(_ time.Time, r *archive.Request, _ func() ([]byte, error)) (bool, error) {
		r.InputExcerpt = excerpt
		return true, nil
	}
}

// A damaged record must not keep those behind it from being renewed.
func TestADamagedRecordDoesNotStopTheRenewal(t *testing.T) {
	const records, spoilt = 130, 60
	db, err := badgerdb.Open(badgerdb.Config{Dir: filepath.Join(t.TempDir(), "archive"), Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() // not checked: it is damaged

	var events []archive.Event
	for n := range records {
		events = append(events, request(t, n, 20))
	}
	if _, err := db.Apply(t.Context(), "a", events); err != nil {
		t.Fatal(err)
	}
	if _, _, err := db.Rewrite(t.Context(), "a", nil, records, setExcerpts("")); err != nil {
		t.Fatal(err)
	}
	damaged := archivetest.ID(1_000_000 + spoilt)
	if err := db.SpoilState(t.Context(), "a", damaged); err != nil {
		t.Fatal(err)
	}

	var log bytes.Buffer
	if err := archive.Renew(t.Context(), db, time.Hour, slog.New(slog.NewTextHandler(&log, nil))); err != nil {
		t.Fatal(err)
	}
	if r, err := db.Renewal(t.Context()); err != nil || !r.Done {
		t.Errorf("the renewal is at %+v, %v", r, err)
	}
	if n := strings.Count(log.String(), damaged); n != 1 || strings.Count(log.String(), "\n") != 1 {
		t.Errorf("the log is %s", log.String())
	}

	for n := range records {
		if n == spoilt {
			continue
		}
		state, _, err := db.Bodies(t.Context(), "a", archivetest.ID(1_000_000+n))
		if err != nil || state.Request.Value.InputExcerpt == "" {
			t.Fatalf("record %d has no excerpt, %v", n, err)
		}
	}
}

// All other writers wait for a step, so heavy records get more and smaller ones.
func TestAStepOfARewriteIsBoundedByBytes(t *testing.T) {
	const records = 12
	db := open(t, t.TempDir())
	for n := range records {
		if _, err := db.Apply(t.Context(), "a", []archive.Event{request(t, n, 1<<20)}); err != nil {
			t.Fatal(err)
		}
	}

	// What was changed before an error stays if it was changed in an earlier step.
	seen, failed := 0, errors.New("enough")
	set := setExcerpts("new")
	_, _, err := db.Rewrite(t.Context(), "a", nil, records,
		func(at time.Time, r *archive.Request, body func() ([]byte, error)) (bool, error) {
			if seen++; seen == records {
				return false, failed
			}
			return set(at, r, body)
		})
	if !errors.Is(err, failed) {
		t.Fatal(err)
	}

	changed := 0
	for n := range records {
		state, _, err := db.Bodies(t.Context(), "a", archivetest.ID(1_000_000+n))
		if err != nil {
			t.Fatal(err)
		}
		if state.Request.Value.InputExcerpt == "new" {
			changed++
		}
	}
	if changed < records-4 {
		t.Errorf("%d of %d records are in steps of their own, want all but the last few", changed, records)
	}
}
