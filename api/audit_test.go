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

// rereader changes some records of each part, and nothing once it is done.
type rereader struct{ api.Records }

func (rereader) Reprice(_ context.Context, _ wire.Identity, cursor string) (wire.Repriced, error) {
	return wire.Repriced{Success: true, Changed: len(cursor)}, nil
}

func (rereader) Reread(_ context.Context, _ wire.Identity, cursor string) (wire.Reread, error) {
	return wire.Reread{Changed: len(cursor)}, wire.Errorf(wire.CodeUnavailable, "The database is away.")
}

func TestRecordsThatAreReadAgainAreNoted(t *testing.T) {
	log := &auditLog{}
	s := start(t, func(c *api.Config) { c.Records, c.Audit = rereader{}, log })
	for _, body := range []string{`{"cursor":"x"}`, `{}`, `{"cursor":"yz"}`} {
		for _, route := range []string{"reprice", "reread"} {
			s.call("POST", "/api/public/v2/requests/"+route, body, "X-API-KEY", "full")
		}
	}

	want := []string{
		"reprice requests 1 record: ", "reread spans 1 record: ",
		"reprice requests 2 records: ", "reread spans 2 records: ",
	}
	if !slices.Equal(log.entries, want) {
		t.Errorf("the audit log has %q, want %q", log.entries, want)
	}
}
