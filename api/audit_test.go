package api_test

import (
	"context"
	"slices"
	"testing"

	"promptspool/api"
	"promptspool/api/wire"
)

// auditLog keeps what was noted.
type auditLog struct{ entries []string }

func (l *auditLog) Audit(_ context.Context, _ string, e wire.AuditEntry) error {
	l.entries = append(l.entries, e.Action+" "+e.Target+": "+e.Detail)

	return nil
}

// A cursor must not keep an export out of the log.
func TestContinuedExportsAreNotedOnceInAnHour(t *testing.T) {
	log := &auditLog{}
	s := start(t, func(c *api.Config) { c.Records, c.Audit = querier{}, log })
	for _, body := range []string{`{"cursor":"x"}`, `{"cursor":"y"}`, `{}`} {
		res, said, err := s.read("POST", exportPath, body, "X-API-KEY", "full")
		if err != nil || res.StatusCode != 200 {
			t.Fatalf("%s: %d %s, %v", body, res.StatusCode, said, err)
		}
	}

	want := []string{"export requests events: continued, all", "export requests events: all"}
	if !slices.Equal(log.entries, want) {
		t.Errorf("the audit log has %q, want %q", log.entries, want)
	}
}

// repricer changes some records of each part, and nothing once it is done. It fails after the others.
type repricer struct{ wire.Records }

func (repricer) Reprice(_ context.Context, _ wire.Identity, cursor string) (wire.Repriced, error) {
	if cursor == "yz" {
		return wire.Repriced{Changed: 2}, wire.Errorf(wire.CodeUnavailable, "The database is away.")
	}
	return wire.Repriced{Success: true, Changed: len(cursor)}, nil
}

func TestRecordsThatArePricedAgainAreNoted(t *testing.T) {
	log := &auditLog{}
	s := start(t, func(c *api.Config) { c.Records, c.Audit = repricer{}, log })
	for _, body := range []string{`{"cursor":"x"}`, `{}`, `{"cursor":"yz"}`} {
		s.call("POST", "/api/public/v2/requests/reprice", body, "X-API-KEY", "full")
	}

	want := []string{"reprice requests 1 record: ", "reprice requests 2 records: "}
	if !slices.Equal(log.entries, want) {
		t.Errorf("the audit log has %q, want %q", log.entries, want)
	}
}
