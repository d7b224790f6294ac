package accounts_test

import (
	"context"
	"testing"
	"time"

	"promptspool/api/wire"
)

// joins makes a person a member of one more account, with an invite.
func (s people) joins(u wire.User, code byte, account string, role wire.Role) wire.User {
	s.t.Helper()
	s.invite(code, invite(int(code), account, role))
	u, err := s.JoinAccount(s.t.Context(), u.ID, hash(code), noon.Add(time.Duration(code)*time.Minute))
	s.must("JoinAccount", err)
	return u
}

// ann returns a person who owns the account team, and edits the account others, which bob owns.
func (s people) ann() (inTeam, inOthers, bob wire.User) {
	s.t.Helper()
	inTeam, bob = s.join(user(1, "team"), noInvite), s.join(user(2, "others"), noInvite)
	return inTeam, s.joins(inTeam, 1, "others", wire.RoleEditor), bob
}

// begins stores a session of a person, and returns what opened looks up.
func (s people) begins(u wire.User, account string, byIssuer bool) [32]byte {
	s.t.Helper()
	token := hash(99)
	s.must("CreateSession", s.CreateSession(s.t.Context(), token, wire.Session{
		UserID: u.ID, Account: account, ByIssuer: byIssuer, CreatedAt: noon, ExpiresAt: noon.Add(time.Hour),
	}))
	return token
}

// opened returns the account and the role that a session has open, and the accounts that it may open.
func (s people) opened(token [32]byte) (account string, role wire.Role, may []string) {
	s.t.Helper()
	_, u, err := s.Session(s.t.Context(), token)
	s.must("Session", err)
	for _, m := range u.Projects {
		may = append(may, m.AccountName+" "+string(m.Role))
	}
	return u.AccountName, u.Role, may
}

func (s people) change(account string, u wire.User, c wire.UserChange) wire.User {
	s.t.Helper()
	c.At = noon
	u, err := s.ChangeUser(s.t.Context(), account, u.ID, c)
	s.must("ChangeUser", err)
	return u
}

func TestAPersonInTwoAccountsIsInEachWhatTheyAreThere(t *testing.T) {
	s := people{t, open()}
	team, others, bob := s.ann()
	want := team
	want.AccountID, want.AccountName, want.Role = bob.AccountID, "others", wire.RoleEditor
	want.CreatedAt = noon.Add(time.Minute)
	same(t, "ann in others", others, want)

	for account, want := range map[string][]wire.User{team.AccountID: {team}, bob.AccountID: {bob, others}} {
		got, err := s.Users(t.Context(), account)
		s.must("Users", err)
		same(t, "the people of "+account, got, want)
	}
	all, err := s.Everybody(t.Context())
	s.must("Everybody", err)
	same(t, "everybody", all, []wire.User{team, bob, others})

	// Nobody joins twice, whatever the role, and the code stays for someone else.
	s.invite(2, invite(2, "others", wire.RoleOwner))
	_, err = s.JoinAccount(t.Context(), team.ID, hash(2), noon)
	wantCode(t, err, wire.CodeConflict)
	_, err = s.Invite(t.Context(), hash(2))
	s.must("Invite", err)
	for code, at := range map[byte]time.Time{2: noon.Add(2 * time.Hour), 9: noon} { // late; unknown
		_, err := s.JoinAccount(t.Context(), team.ID, hash(code), at)
		wantCode(t, err, wire.CodeNotFound)
	}

	// A role, and being disabled, belong to one account.
	viewer, yes, no := wire.RoleViewer, true, false
	others = s.change(bob.AccountID, team, wire.UserChange{Role: &viewer, Disabled: &yes})
	if others.Role != viewer || others.DisabledAt == nil {
		t.Errorf("changed in others, ann is %+v", others)
	}
	if got := s.find(team.Email); got.AccountName != "team" || got.Role != wire.RoleOwner || got.DisabledAt != nil {
		t.Errorf("changed in others, ann is %+v", got)
	}
	_, err = s.JoinAccount(t.Context(), team.ID, hash(2), noon)
	wantCode(t, err, wire.CodeConflict) // an invite enables nobody
	s.change(bob.AccountID, team, wire.UserChange{Disabled: &no})
}

func TestASessionHasOneAccountOpenOrTheFirstThatIsLeft(t *testing.T) {
	s := people{t, open()}
	team, others, _ := s.ann()
	is := func(token [32]byte, account string, role wire.Role, may ...string) {
		t.Helper()
		a, r, all := s.opened(token)
		same(t, "what is open", []string{a, string(r)}, []string{account, string(role)})
		same(t, "what may be opened", all, may)
	}

	token := s.begins(team, others.AccountID, false)
	is(token, "others", wire.RoleEditor, "team owner", "others editor")
	s.must("OpenAccount", s.OpenAccount(t.Context(), token, team.AccountID))
	is(token, "team", wire.RoleOwner, "team owner", "others editor")
	s.must("OpenAccount", s.OpenAccount(t.Context(), token, others.AccountID))
	wantCode(t, s.OpenAccount(t.Context(), hash(98), team.AccountID), wire.CodeNotFound)

	yes := true
	s.change(others.AccountID, team, wire.UserChange{Disabled: &yes})
	is(token, "team", wire.RoleOwner, "team owner")
	second := s.join(user(3, "third"), noInvite)
	s.joins(second, 3, "team", wire.RoleOwner)
	s.change(team.AccountID, team, wire.UserChange{Disabled: &yes})
	is(token, "", "", []string(nil)...)
}

func TestTheRoleOfGroupsCountsInSessionsOfTheIssuerOnly(t *testing.T) {
	s := people{t, open()}
	for _, tt := range []struct {
		hand, group  wire.Role
		password, at wire.Role // what counts after a password, and at the issuer
	}{
		{wire.RoleViewer, "", wire.RoleViewer, wire.RoleViewer},
		{"", wire.RoleOwner, "", wire.RoleOwner},
		{wire.RoleEditor, wire.RoleOwner, wire.RoleEditor, wire.RoleOwner},
		{wire.RoleOwner, wire.RoleViewer, wire.RoleOwner, wire.RoleOwner},
		{"", "", "", ""},
	} {
		m := wire.Membership{Role: tt.hand, GroupRole: tt.group}
		if m.RoleIn(false) != tt.password || m.RoleIn(true) != tt.at {
			t.Errorf("%+v gives %q and %q", m, m.RoleIn(false), m.RoleIn(true))
		}
	}

	// A membership that has lost its role is none.
	team, others, bob := s.ann()
	none := wire.Role("")
	s.change(bob.AccountID, team, wire.UserChange{Role: &none})
	if account, _, may := s.opened(s.begins(team, others.AccountID, true)); account != "team" || len(may) != 1 {
		t.Errorf("without a role in others, %q of %q is open", account, may)
	}
	s.joins(team, 4, "others", wire.RoleViewer)
}

func TestAPersonIsDisabledEverywhereUnlessAnAccountWouldLoseItsLastOwner(t *testing.T) {
	s := people{t, open()}
	team, others, bob := s.ann()
	yes, no := true, false
	_, err := s.ChangeUser(t.Context(), "", team.ID, wire.UserChange{Disabled: &yes, At: noon})
	wantCode(t, err, wire.CodeConflict) // team has no other owner
	if got := s.accounts(others); got != 2 {
		t.Errorf("after a refused change, ann may open %d accounts", got)
	}

	s.joins(bob, 2, "team", wire.RoleOwner)
	if got := s.change("", team, wire.UserChange{Disabled: &yes}); got.DisabledAt == nil || s.accounts(team) != 0 {
		t.Errorf("disabled everywhere, ann is %+v", got)
	}
	if got := s.change("", team, wire.UserChange{Disabled: &no}); got.DisabledAt != nil || s.accounts(team) != 2 {
		t.Errorf("enabled everywhere, ann is %+v", got)
	}
}

// accounts returns how many accounts a person may open.
func (s people) accounts(u wire.User) int {
	s.t.Helper()
	u, _, err := s.UserByEmail(s.t.Context(), u.Email)
	s.must("UserByEmail", err)
	return len(u.Projects)
}

func TestAnOwnerResetsThePasswordOfAPersonWhoseAccountsAreTheirsOnly(t *testing.T) {
	s := people{t, open()}
	team, _, bob := s.ann()
	create := func(account string, owned ...string) error {
		_, err := s.CreateReset(t.Context(), account, owned, hash(1), reset(team))
		return err
	}
	wantCode(t, create("nobody's", "nobody's"), wire.CodeNotFound)
	wantCode(t, create(bob.AccountID, bob.AccountID), wire.CodeForbidden)
	s.must("CreateReset", create(bob.AccountID, bob.AccountID, team.AccountID))
	s.must("CreateReset", create(""))

	// A link that was made before the person joined does not open that account.
	s.joins(bob, 2, "third", wire.RoleViewer)
	s.joins(team, 3, "third", wire.RoleViewer)
	_, _, err := s.SpendReset(t.Context(), hash(1), "x", noon)
	wantCode(t, err, wire.CodeNotFound)
}

func TestCallersAtTheSameTimeOneJoinsAnAccountOnce(t *testing.T) {
	s := people{t, open()}
	u := s.join(user(1, "team"), noInvite)
	for n := range byte(8) {
		s.invite(n, invite(int(n), "others", wire.RoleEditor))
	}
	s.race(wire.CodeConflict, func(ctx context.Context, n int) error {
		_, err := s.JoinAccount(ctx, u.ID, hash(byte(n)), noon)
		return err
	})
}
