package accounts_test

import (
	"slices"
	"testing"

	"promptspool/api/wire"
)

// names returns the names of all projects, sorted.
func (s people) names() (names []string) {
	s.t.Helper()
	all, err := s.Projects(s.t.Context())
	s.must("Projects", err)
	for _, a := range all {
		names = append(names, a.Name)
	}
	slices.Sort(names)

	return names
}

func TestAProjectIsRenamedWithItsPeopleAndInvites(t *testing.T) {
	s := people{t, open()}
	inTeam, _, _ := s.ann()
	token := s.begins(inTeam, inTeam.AccountID, false)
	s.invite(7, invite(7, "team", wire.RoleViewer))

	for name, want := range map[string]wire.Code{"team": wire.CodeConflict, "nobody": wire.CodeNotFound} {
		if _, err := s.ChangeProject(t.Context(), name, wire.ProjectChange{Name: "others"}); !wire.IsCode(err, want) {
			t.Errorf("%s takes the name others: %v", name, err)
		}
	}
	a, err := s.ChangeProject(t.Context(), "team", wire.ProjectChange{Name: "crew"})
	s.must("ChangeProject", err)
	if a.ID != inTeam.AccountID || a.Name != "crew" {
		t.Errorf("the project is %+v", a)
	}
	same(t, "all projects", s.names(), []string{"crew", "others"})

	// The session goes on, and the invite leads into the project under its new name.
	name, role, may := s.opened(token)
	if name != "crew" || role != wire.RoleOwner {
		t.Errorf("the session has %s open, as %s", name, role)
	}
	same(t, "what may be opened", may, []string{"crew owner", "others editor"})
	carol := s.join(user(3, ""), hash(7))
	if carol.AccountID != inTeam.AccountID || carol.AccountName != "crew" {
		t.Errorf("the invite leads to %+v", carol)
	}
}

func TestAnArchivedProjectIsNobodysUntilThatIsTakenBack(t *testing.T) {
	s := people{t, open()}
	inTeam, _, _ := s.ann()
	token := s.begins(inTeam, inTeam.AccountID, false)
	archive := func(archived bool) {
		_, err := s.ChangeProject(t.Context(), "team", wire.ProjectChange{Archive: &archived, At: noon})
		s.must("ChangeProject", err)
	}

	archive(true)
	_, _, may := s.opened(token)
	same(t, "what may be opened", may, []string{"others editor"})
	if _, err := s.Account(t.Context(), "team"); !wire.IsCode(err, wire.CodeConflict) {
		t.Errorf("an archived project is used: %v", err)
	}
	grants := []wire.Grant{{Project: "team", Role: wire.RoleOwner}, {Project: "others", Role: wire.RoleOwner}}
	u, _, err := s.EnterUser(t.Context(), user(1, ""), wire.Login{Subject: "s", Grants: grants}, noInvite, true)
	s.must("EnterUser", err)
	if len(u.Projects) != 1 || u.Projects[0].AccountName != "others" {
		t.Errorf("groups open %+v", u.Projects)
	}

	archive(false)
	_, _, may = s.opened(s.begins(inTeam, inTeam.AccountID, false))
	same(t, "what may be opened then", may, []string{"team owner", "others editor"})
}

func TestARoleIsGivenToWhoeverHasAnEmail(t *testing.T) {
	s := people{t, open()}
	inTeam, _, bob := s.ann()
	u, err := s.SetMember(t.Context(), "new@example.com", "fresh", wire.RoleReviewer, noon)
	s.must("SetMember", err)
	if u.AccountName != "fresh" || u.Role != wire.RoleReviewer || u.ID == "" {
		t.Errorf("the new person is %+v", u)
	}
	if _, password, err := s.UserByEmail(t.Context(), "new@example.com"); err != nil || password != "" {
		t.Errorf("the new person has the password %q, %v", password, err)
	}

	again, err := s.SetMember(t.Context(), inTeam.Email, "fresh", wire.RoleEditor, noon)
	s.must("SetMember", err)
	if again.ID != inTeam.ID || again.Role != wire.RoleEditor || s.accounts(inTeam) != 3 {
		t.Errorf("ann is %+v there, in %d accounts", again, s.accounts(inTeam))
	}
	_, err = s.SetMember(t.Context(), bob.Email, "others", wire.RoleViewer, noon)
	if !wire.IsCode(err, wire.CodeConflict) {
		t.Errorf("the last owner: %v", err)
	}
}
