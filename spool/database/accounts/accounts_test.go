package accounts_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/database/accounts"
	"promptspool/spool/database/keyed"
	"promptspool/spool/database/keyed/keyedtest"
)

func open() *accounts.Store { return accounts.New(&keyedtest.Memory{}, time.Now) }

// counting counts the values that are read.
type counting struct {
	keyedtest.Memory
	read int
}

func (c *counting) Scan(ctx context.Context, from keyed.Key, skip, limit int) ([]keyed.Entry, error) {
	page, err := c.Memory.Scan(ctx, from, skip, limit)
	c.read += len(page)
	return page, err
}

// Two reviewers, each at a server of their own, never get the same call.
func TestACallIsOnOneScreenForTwoMinutes(t *testing.T) {
	rows, now := &keyedtest.Memory{}, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	here := accounts.New(rows, func() time.Time { return now })
	elsewhere := accounts.New(rows, func() time.Time { return now })
	claim := func(s *accounts.Store, account, reviewer, want string) {
		t.Helper()
		got, err := s.Claim(t.Context(), account, reviewer, []string{"1", "2"})
		if err != nil || got != want {
			t.Errorf("%s gets call %q (%v), want %q", reviewer, got, err, want)
		}
	}

	claim(here, "team", "ann", "1")
	claim(elsewhere, "team", "bob", "2")
	claim(here, "team", "cat", "")
	claim(here, "other", "cat", "1")
	now = now.Add(time.Minute)
	claim(elsewhere, "team", "ann", "1") // her page is still open
	now = now.Add(time.Minute)
	claim(here, "team", "cat", "2") // bob has left his
	claim(here, "team", "bob", "")
	claim(here, "team", "ann", "1")
}

// What is kept may be a million entries, so they are passed once and not read.
func TestTrimmingTheAuditLogReadsOnlyWhatItDeletes(t *testing.T) {
	const kept, gone = 5000, 2500
	rows := &counting{}
	s := accounts.New(rows, time.Now)
	account, err := s.Account(t.Context(), "team")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for n := range kept + gone {
		at := now.Add(time.Duration(-n) * time.Second)
		if err := s.Audit(t.Context(), account, wire.AuditEntry{ID: wire.NewIDAt(at)}); err != nil {
			t.Fatal(err)
		}
	}

	rows.read = 0
	if err := s.TrimAudit(t.Context(), now.AddDate(-1, 0, 0), now, kept); err != nil {
		t.Fatal(err)
	}
	if rows.read > gone+10 {
		t.Errorf("%d entries were read to delete %d", rows.read, gone)
	}
	left, err := s.AuditLog(t.Context(), account, "", kept+gone)
	if err != nil || len(left) != kept {
		t.Errorf("%d are left, %v; want %d", len(left), err, kept)
	}
}

func TestCheckFindsWhatDoesNotBelongTogether(t *testing.T) {
	for kind, want := range map[keyed.Kind]string{
		"template names": "is missing", "template changes": "is missing", "template versions": "is missing",
		"templates": "and its template says",
	} {
		rows := &keyedtest.Memory{}
		s := accounts.New(rows, time.Now)
		publish := func(*wire.Template) (*wire.Version, bool, error) {
			return &wire.Version{Blueprint: json.RawMessage(`{}`), Metadata: json.RawMessage(`null`)}, true, nil
		}
		for i := range 3 {
			if _, err := s.UpdateTemplate(t.Context(), "acme", fmt.Sprint(i%2), publish); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Check(t.Context()); err != nil {
			t.Fatalf("what was published: %v", err)
		}

		all, err := rows.Walk(t.Context(), keyed.Key{Kind: kind}, 1)
		if err != nil || all[0].Kind != kind {
			t.Fatalf("%s: %+v, %v", kind, all, err)
		}
		if err := rows.Write(t.Context(), keyed.Entry{Key: all[0].Key}); err != nil {
			t.Fatal(err)
		}
		if err := s.Check(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("without one of the %s: %v", kind, err)
		}
	}
}

// 0.1.0 kept a person's name at the issuer without the issuer, and made one more person of them for each email.
func TestPeopleOf010AreWhoTheyWereFirst(t *testing.T) {
	rows := &keyedtest.Memory{}
	put := func(kind keyed.Kind, name string, value any) {
		t.Helper()
		e, err := keyed.EntryOf(keyed.Key{Kind: kind, Name: name}, value)
		if err == nil {
			err = rows.Write(t.Context(), e)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for id, membership := range map[string]string{
		"1": `{"account_id":"a","account_name":"app","role":"editor","disabled_at":"2026-03-01T12:00:00Z"}`,
		"2": `{"account_id":"a","account_name":"app","role":"editor"}`,
	} {
		put("people", id, json.RawMessage(`{"id":"`+id+`","email":"mal`+id+`@acme.example","subject":"mal",`+
			`"memberships":[`+membership+`]}`))
		put("emails", "mal"+id+"@acme.example", id)
	}

	s := accounts.New(rows, time.Now)
	login := wire.Login{
		Issuer:  "https://id.example",
		Subject: "mal",
		Grants:  []wire.Grant{{Project: "team", Role: wire.RoleOwner}},
	}
	for _, email := range []string{"mal2@acme.example", "mal1@acme.example", "mal3@acme.example"} {
		fresh := wire.User{ID: wire.NewID(), Email: email, CreatedAt: time.Now()}
		u, _, err := s.EnterUser(t.Context(), fresh, login, [32]byte{}, false)
		if u.ID != "1" || u.Role != "" || err != nil {
			t.Errorf("as %s the person who was disabled is %+v, %v", email, u, err)
		}
	}
}
