package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/metrics"
)

func TestAnArchiveIsShownWithoutItsPasswords(t *testing.T) {
	for _, tt := range []struct{ given, want string }{
		{"badger", "badger"},
		{"", ""},
		{"postgres://ann@db/records", "postgres://ann@db/records"},
		{"postgres://ann:geheim@db1,db2:5433/records?target_session_attrs=any",
			"postgres://ann:xxxxx@db1,db2:5433/records?target_session_attrs=any"},
		{"postgres://db/records?user=ann&password=geheim&sslpassword=geheim",
			"postgres://db/records?password=xxxxx&sslpassword=xxxxx&user=ann"},
		{"postgres://ann:ge%heim@db/records", "[not a URL]"},
		{"host=db password=geheim", "[not a URL]"},
		{"mysql://ann:geheim@db/records", "mysql://ann:xxxxx@db/records"},
		{"postgresql://ann:geheim@/records?host=/run/postgresql&options=-c%20jit=",
			"postgresql://ann:xxxxx@/records?host=%2Frun%2Fpostgresql&options=-c+jit%3D"},
	} {
		if got := config.ShowArchive(tt.given); got != tt.want || strings.Contains(got, "geheim") {
			t.Errorf("%q is shown as %q, want %q", tt.given, got, tt.want)
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
			t.Errorf("after %v it returns %v", err, h.err())
		}
	}
	if text := log.String(); strings.Count(text, "does not answer") != 1 || strings.Count(text, "is back") != 1 {
		t.Errorf("the log says\n%s", text)
	}
}
