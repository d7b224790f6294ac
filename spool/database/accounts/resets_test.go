package accounts_test

import (
	"context"
	"testing"
	"time"

	"promptspool/api/wire"
)

// reset returns a link for a person, which works for an hour from noon.
func reset(u wire.User) wire.Reset {
	return wire.Reset{UserID: u.ID, By: "owner@example.com", CreatedAt: noon, ExpiresAt: noon.Add(time.Hour)}
}

// reset stores a link for a person, as the operator may.
func (s people) reset(code [32]byte, u wire.User) {
	s.t.Helper()
	_, err := s.CreateReset(s.t.Context(), "", nil, code, reset(u))
	s.must("CreateReset", err)
}

// passwordOf returns the stored hash of a person's password.
func (s people) passwordOf(u wire.User) string {
	s.t.Helper()
	_, password, err := s.UserByEmail(s.t.Context(), u.Email)
	s.must("UserByEmail", err)
	return password
}

func TestAResetLinkSetsAPasswordOnceAndEndsSessions(t *testing.T) {
	s := people{t, open()}
	u, other := s.join(user(1, "team"), noInvite), s.join(user(2, "others"), noInvite)
	s.reset(hash(1), u)
	s.reset(hash(2), other)
	r, whose, err := s.Reset(t.Context(), hash(1))
	s.must("Reset", err)
	same(t, "link", r, reset(u))
	same(t, "its person", flat(whose), u)

	// Whoever knew the old password must not stay signed in.
	at := noon.Add(time.Minute)
	u.SessionsFrom = at
	r, got, err := s.SpendReset(t.Context(), hash(1), "new hash", at)
	s.must("SpendReset", err)
	same(t, "spent link", r, reset(u))
	same(t, "changed person", flat(got), u)
	if stored := s.passwordOf(u); stored != "new hash" {
		t.Errorf("the password's hash is %q", stored)
	}

	_, _, err = s.Reset(t.Context(), hash(1))
	wantCode(t, err, wire.CodeNotFound)
	_, _, err = s.SpendReset(t.Context(), hash(1), "x", at)
	wantCode(t, err, wire.CodeNotFound)
	same(t, "the other person", s.find(other.Email), other)
	_, _, err = s.Reset(t.Context(), hash(2))
	s.must("Reset of the other", err)
}

func TestAResetLinkThatIsLateReplacedOrOvertakenSetsNothing(t *testing.T) {
	s := people{t, open()}
	u := s.join(user(1, "team"), noInvite)
	s.invite(1, invite(1, "team", wire.RoleOwner))
	second := s.join(user(2, ""), hash(1))
	at := noon.Add(time.Minute)
	spend := func(n byte, at time.Time) error {
		_, _, err := s.SpendReset(t.Context(), hash(n), "x", at)
		return err
	}

	s.reset(hash(1), u)
	wantCode(t, spend(1, noon.Add(2*time.Hour)), wire.CodeNotFound) // late
	wantCode(t, spend(9, at), wire.CodeNotFound)                    // unknown

	s.reset(hash(2), u)
	wantCode(t, spend(1, at), wire.CodeNotFound) // replaced

	viewer, password, yes := wire.RoleViewer, "hash of "+second.ID, true
	// Each of these changes was made with a purpose that an older link must not undo.
	for n, c := range []wire.UserChange{{Role: &viewer}, {Password: &password}, {Disabled: &yes}} {
		s.reset(hash(3), second)
		c.At = at
		_, err := s.ChangeUser(t.Context(), u.AccountID, second.ID, c)
		s.must("ChangeUser", err)
		if err := spend(3, at); !wire.IsCode(err, wire.CodeNotFound) {
			t.Errorf("change %d leaves the link: %v", n, err)
		}
	}

	_, err := s.CreateReset(t.Context(), u.AccountID, nil, hash(3), reset(second))
	wantCode(t, err, wire.CodeConflict) // disabled
	wantCode(t, spend(3, at), wire.CodeNotFound)

	// No link that failed has set a password: find compares it.
	for _, u := range []wire.User{u, second} {
		s.find(u.Email)
	}
	if err := spend(2, at); err != nil {
		t.Errorf("the link of somebody else ended as well: %v", err)
	}
}

func TestEverybodyIsListedAndAnAccountIsMadeOnce(t *testing.T) {
	s := people{t, open()}
	b, a := s.join(user(2, "team"), noInvite), s.join(user(1, "others"), noInvite)
	all, err := s.Everybody(t.Context())
	s.must("Everybody", err)
	same(t, "everybody", all, []wire.User{a, b})

	id, err := s.Account(t.Context(), "team")
	s.must("Account", err)
	same(t, "the account of team", id, b.AccountID)

	fresh, err := s.Account(t.Context(), "fresh")
	s.must("Account", err)
	if _, err := wire.ParseID(fresh); err != nil {
		t.Errorf("a new account's id is %q", fresh)
	}
	again, err := s.Account(t.Context(), "fresh")
	s.must("Account", err)
	same(t, "the same account", again, fresh)
}

func TestCallersAtTheSameTimeOneSpendsTheResetLink(t *testing.T) {
	s := people{t, open()}
	u := s.join(user(1, "team"), noInvite)
	s.reset(hash(1), u)
	s.race(wire.CodeNotFound, func(ctx context.Context, _ int) error {
		_, _, err := s.SpendReset(ctx, hash(1), "x", noon.Add(time.Minute))
		return err
	})
}
