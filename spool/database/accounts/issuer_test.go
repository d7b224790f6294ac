package accounts_test

import (
	"testing"
	"time"

	"promptspool/api/wire"
)

// enters lets p1@example.com in, who is u at the issuer, with these grants.
func (s people) enters(u string, invite [32]byte, grants ...wire.Grant) (wire.User, []wire.Membership, error) {
	return s.EnterUser(s.t.Context(), user(1, ""), wire.Login{Subject: u, Grants: grants}, invite, false)
}

// roles returns what a person is in which account, in sessions of the issuer and in those with a password.
func (s people) roles(u wire.User) (issuer, password []string) {
	s.t.Helper()
	_, _, issuer = s.opened(s.begins(u, "", true))
	_, _, password = s.opened(s.begins(u, "", false))
	return issuer, password
}

func TestAPersonEntersByGroupsOfTheIssuer(t *testing.T) {
	s := people{t, open()}
	_, _, err := s.enters("u1", noInvite)
	wantCode(t, err, wire.CodeNotFound)

	editor := wire.Grant{Project: "team", Role: wire.RoleEditor}
	owner := wire.Grant{Project: "new", Role: wire.RoleOwner}
	less := wire.Grant{Project: "team", Role: wire.RoleViewer}
	u, changed, err := s.enters("u1", noInvite, less, editor, owner, less)
	s.must("EnterUser", err)
	if u.Role != wire.RoleEditor || len(changed) != 2 || s.passwordOf(u) != "" {
		t.Errorf("the person is %+v, of whom %+v changed; password %q", u, changed, s.passwordOf(u))
	}
	issuer, password := s.roles(u)
	same(t, "roles at the issuer", issuer, []string{"team editor", "new owner"})
	same(t, "roles with a password", password, []string(nil))

	// A role by hand stays when the group is taken away.
	s.invite(1, invite(1, "team", wire.RoleViewer))
	_, err = s.JoinAccount(t.Context(), u.ID, hash(1), noon)
	s.must("JoinAccount", err)
	same(t, "nothing new", s.changes("u1", editor, owner), []string(nil))
	same(t, "without groups", s.changes("u1"), []string{"team ", "new "})
	issuer, _ = s.roles(u)
	same(t, "roles without groups", issuer, []string{"team viewer"})
	if has, err := s.HasOwner(t.Context(), "new"); has || err != nil {
		t.Errorf("new has an owner: %t, %v", has, err)
	}

	// Someone else has the email now.
	_, _, err = s.enters("u2", noInvite, owner)
	wantCode(t, err, wire.CodeConflict)
	no := false
	s.change("", u, wire.UserChange{Disabled: &no})
	same(t, "a new login", s.changes("u2", owner), []string{"new owner"})
}

// changes lets p1@example.com in, and returns the roles that have changed.
func (s people) changes(u string, grants ...wire.Grant) (changed []string) {
	s.t.Helper()
	_, all, err := s.enters(u, noInvite, grants...)
	s.must("EnterUser", err)
	for _, m := range all {
		changed = append(changed, m.AccountName+" "+string(m.GroupRole))
	}
	return changed
}

// A person is who they are at the issuer, whatever their email is there, and whoever had it before.
func TestAPersonEntersWithAnotherEmail(t *testing.T) {
	s := people{t, open()}
	const a, b = "https://a.example", "https://b.example"
	editor := wire.Grant{Project: "team", Role: wire.RoleEditor}
	enter := func(n int, issuer, subject string) (wire.User, error) {
		fresh := user(n, "")
		fresh.ID = wire.NewID()
		l := wire.Login{Issuer: issuer, Subject: subject, Grants: []wire.Grant{editor}}
		u, _, err := s.EnterUser(t.Context(), fresh, l, noInvite, false)
		return u, err
	}
	mal, err := enter(1, a, "mal")
	s.must("EnterUser", err)
	eve, err := enter(2, a, "eve")
	s.must("EnterUser", err)
	planned, err := s.SetMember(t.Context(), user(3, "").Email, "other", wire.RoleOwner, noon)
	s.must("SetMember", err)

	// One email is new, one is of a person who was never at the issuer, and one of another there.
	for _, disabled := range []bool{false, true} {
		if disabled {
			s.change(mal.AccountID, mal, wire.UserChange{Disabled: &disabled})
		}
		for _, n := range []int{1, 2, 3, 4} {
			u, err := enter(n, a, "mal")
			if u.ID != mal.ID || u.Email != mal.Email || (u.Role == "") != disabled || err != nil {
				t.Errorf("with the email of %d, disabled %t, mal is %+v, %v", n, disabled, u, err)
			}
		}
	}

	// The same name elsewhere is of another person, and their email is taken.
	u, err := enter(4, b, "mal")
	if u.ID == mal.ID || u.Role != wire.RoleEditor || err != nil {
		t.Errorf("the mal of another issuer is %+v, %v", u, err)
	}
	for _, n := range []int{2, 4} {
		_, err = enter(n, b, "zoe")
		wantCode(t, err, wire.CodeConflict)
	}

	// 0.1.0 did not keep the issuer.
	old, err := enter(5, "", "old")
	s.must("EnterUser", err)
	if u, err := enter(6, a, "old"); u.ID != old.ID || err != nil {
		t.Errorf("the person of 0.1.0 is %+v, %v", u, err)
	}

	// An issuer may get another address, with the same people.
	if u, err := enter(2, b, "eve"); u.ID != eve.ID || err != nil {
		t.Errorf("eve at the issuer's other address is %+v, %v", u, err)
	}
	if u, err := enter(3, b, "joe"); u.ID != planned.ID || err != nil {
		t.Errorf("the person with a role by hand is %+v, %v", u, err)
	}
}

func TestAPersonEntersByAnInvite(t *testing.T) {
	s := people{t, open()}
	owner := s.join(user(2, "team"), noInvite)
	s.invite(1, invite(1, "team", wire.RoleViewer))
	u, _, err := s.enters("u1", hash(1))
	s.must("EnterUser", err)
	if u.Role != wire.RoleViewer || u.AccountID != owner.AccountID {
		t.Errorf("the person is %+v", u)
	}
	_, err = s.Invite(t.Context(), hash(1))
	wantCode(t, err, wire.CodeNotFound)

	// A setup code and a group lead into the same account, which is made by that.
	setup := invite(2, "fresh", wire.RoleOwner)
	setup.Setup = true
	s.invite(2, setup)
	bob := user(3, "")
	bob, _, err = s.EnterUser(t.Context(), bob, wire.Login{
		Subject: "u3", Grants: []wire.Grant{{Project: "fresh", Role: wire.RoleViewer}},
	}, hash(2), false)
	s.must("EnterUser", err)
	issuer, password := s.roles(bob)
	same(t, "roles at the issuer", issuer, []string{"fresh owner"})
	same(t, "roles with a password", password, []string{"fresh owner"})

	// Disabled in all accounts, no group lets the person in.
	yes := true
	s.change(owner.AccountID, u, wire.UserChange{Disabled: &yes})
	u, changed, err := s.enters("u1", noInvite, wire.Grant{Project: "new", Role: wire.RoleOwner})
	if u.Role != "" || changed != nil || err != nil {
		t.Errorf("disabled, the person is %+v, %+v, %v", u, changed, err)
	}
}

func TestAnIDTokenIsForgottenWithItsSession(t *testing.T) {
	s := people{t, open()}
	u := s.join(user(1, "team"), noInvite)
	for n, end := range []time.Duration{time.Minute, 2 * time.Hour} { // of a session of an hour
		s.must("CreateSession", s.CreateSession(t.Context(), hash(byte(n)), wire.Session{
			UserID: u.ID, ByIssuer: true, IDToken: "a.b.c", CreatedAt: noon, ExpiresAt: noon.Add(time.Hour),
		}))
		got, _, err := s.Session(t.Context(), hash(byte(n)))
		if err != nil || got.IDToken != "a.b.c" {
			t.Errorf("the session is %+v, %v", got, err)
		}
		s.must("EndSession", s.EndSession(t.Context(), hash(byte(n)), noon.Add(end)))
		got, _, err = s.Session(t.Context(), hash(byte(n)))
		want := noon.Add(min(end, time.Hour))
		if err != nil || got.IDToken != "" || !got.ByIssuer || !got.ExpiresAt.Equal(want) {
			t.Errorf("the session that ended is %+v, %v; want its end at %s", got, err, want)
		}
	}
}

func TestAPersonWhoEntersAtTheIssuerLosesThePasswordBefore(t *testing.T) {
	s := people{t, open()}
	// Who set the password has not proved that the email is theirs.
	planted := s.join(user(1, "team"), noInvite)
	session := s.begins(planted, planted.AccountID, false)
	fresh := user(1, "")
	fresh.CreatedAt = noon.Add(60e9)
	for _, keep := range []bool{true, false} {
		no := false
		s.change("", planted, wire.UserChange{Disabled: &no})
		_, _, err := s.EnterUser(t.Context(), fresh, wire.Login{Subject: "u1"}, noInvite, keep)
		s.must("EnterUser", err)
		if kept := s.passwordOf(planted) != ""; kept != keep {
			t.Errorf("the password was kept: %t, want %t", kept, keep)
		}
	}
	begun, u, err := s.Session(t.Context(), session)
	s.must("Session", err)
	if !begun.CreatedAt.Before(u.SessionsFrom) {
		t.Errorf("the session of %s is still good: sessions count from %s", begun.CreatedAt, u.SessionsFrom)
	}
}
