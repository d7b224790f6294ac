package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/metrics"
	"promptspool/spool/archive/transfer"
)

func TestAnArchiveIsShownWithoutItsPasswords(t *testing.T) {
	for given, want := range map[string]string{
		"badger":                    "badger",
		"":                          "",
		"postgres://ann@db/records": "postgres://ann@db/records",
		"postgres://ann:geheim@db1,db2:5433/records?target_session_attrs=any":     "postgres://ann:xxxxx@db1,db2:5433/records?target_session_attrs=any",
		"postgres://db/records?user=ann&password=geheim&sslpassword=geheim":       "postgres://db/records?password=xxxxx&sslpassword=xxxxx&user=ann",
		"postgres://ann:ge%heim@db/records":                                       "[not a URL]",
		"host=db password=geheim":                                                 "[not a URL]",
		"mysql://ann:geheim@db/records":                                           "mysql://ann:xxxxx@db/records",
		"postgresql://ann:geheim@/records?host=/run/postgresql&options=-c%20jit=": "postgresql://ann:xxxxx@/records?host=%2Frun%2Fpostgresql&options=-c+jit%3D",
	} {
		if got := config.ShowArchive(given); got != want || strings.Contains(got, "geheim") {
			t.Errorf("%q is shown as %q, want %q", given, got, want)
		}
	}
}

func TestDBHealthLogsWhenTheDatabaseGoesAndComes(t *testing.T) {
	var log bytes.Buffer
	h := &dbHealth{metrics: metrics.New("server", "test"), logger: slog.New(slog.NewTextHandler(&log, nil))}
	away := wire.Unavailable(time.Second, "The database is away.")
	for _, err := range []error{nil, away, away, nil, nil} {
		h.set(err)
		if (h.err() == nil) != (err == nil) {
			t.Errorf("told %v it says %v", err, h.err())
		}
	}
	if text := log.String(); strings.Count(text, "does not answer") != 1 || strings.Count(text, "is back") != 1 {
		t.Errorf("the log says\n%s", text)
	}
}

func TestACopyTellsHowFarItIs(t *testing.T) {
	var out bytes.Buffer
	now := time.Now()
	tell := tellCopy(&out, 10_000, func() time.Time { return now })
	for n := range 5 {
		tell(transfer.Progress{Stage: "copying", Done: transfer.Contents{"records": {Items: int64(1000 * n)}}})
		now = now.Add(700 * time.Millisecond)
	}
	lines := strings.Split(out.String(), "\r")
	if last := strings.TrimSpace(lines[len(lines)-1]); len(lines) != 4 || last != fmt.Sprintf("copying: 4,000 of 10,000 records, %s a second, 4s left", "1,428") {
		t.Errorf("it says %q", lines)
	}
}
