package auth_test

import (
	"testing"
	"time"

	"promptspool/api/wire"
)

const newPassword = "a new one to remember"

// resetLink makes a link with which who chooses a new password.
func (f *fixture) resetLink(by, who wire.User) wire.Secret {
	f.t.Helper()
	code, u, err := f.MakeReset(f.t.Context(), by, who.ID)
	if err != nil || u.Email != who.Email {
		f.t.Fatalf("MakeReset: %+v, %v", u, err)
	}

	return code
}

func TestAResetLinkWorksOnceAndForADay(t *testing.T) {
	f := newFixture(t, "")
	owner := f.owner()
	bob := f.guest(owner, "bob@example.com", wire.RoleEditor)
	old := f.signIn(bob.Email)

	late := f.resetLink(owner, bob)
	f.now = f.now.Add(24 * time.Hour)
	_, err := f.ResetPassword(t.Context(), late, newPassword, office)
	wantError(t, err, wire.CodeForbidden, "Ask an owner")

	replaced, code := f.resetLink(owner, bob), f.resetLink(owner, bob)
	_, err = f.ResetPassword(t.Context(), replaced, newPassword, office)
	wantError(t, err, wire.CodeForbidden, "Ask an owner")
	_, err = f.ResetPassword(t.Context(), code, "short", office)
	wantError(t, err, wire.CodeInvalid, "at least 12")

	// The person tries the forgotten password.
	for range 10 {
		_, _ = f.SignIn(t.Context(), bob.Email, "wrong", wire.Browser{IP: office})
	}
	_, err = f.SignIn(t.Context(), bob.Email, goodPassword, wire.Browser{IP: office})
	wantError(t, err, wire.CodeTooMany, "link to reset")

	// The code has what is pasted with it.
	fresh, err := f.ResetPassword(t.Context(), " "+code+"\n", newPassword, office)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Session(t.Context(), fresh.Token); err != nil {
		t.Errorf("the new session: %v", err)
	}
	if _, err := f.Session(t.Context(), old.Token); !wire.IsCode(err, wire.CodeUnauthorized) {
		t.Errorf("the old session: %v", err)
	}
	if _, err := f.SignIn(t.Context(), bob.Email, newPassword, wire.Browser{IP: office}); err != nil {
		t.Errorf("the new password: %v", err)
	}

	_, err = f.SignIn(t.Context(), bob.Email, goodPassword, wire.Browser{IP: office})
	wantError(t, err, wire.CodeUnauthorized, "Wrong email or password")
	_, err = f.ResetPassword(t.Context(), code, newPassword, office)
	wantError(t, err, wire.CodeForbidden, "Ask an owner")
}

func TestAnOperatorHelpsPeopleWhoAreLockedOut(t *testing.T) {
	f := newFixture(t, "")
	owner, operator := f.owner(), f.Operator(nil)

	code, u, err := operator.MakeReset(t.Context(), " Ann@Example.com")
	if err != nil || u.ID != owner.ID {
		t.Fatalf("MakeReset: %+v, %v", u, err)
	}
	if _, err := f.ResetPassword(t.Context(), code, newPassword, office); err != nil {
		t.Fatal(err)
	}
	_, _, err = operator.MakeReset(t.Context(), "nobody@example.com")
	wantError(t, err, wire.CodeNotFound, "people list")

	_, err = operator.SetDisabled(t.Context(), owner.Email, true)
	wantError(t, err, wire.CodeConflict, "people invite --project default --role owner")
	invite, i, err := operator.Invite(t.Context(), "default", wire.RoleOwner)
	if err != nil || i.AccountName != "default" || i.Role != wire.RoleOwner {
		t.Fatalf("Invite: %+v, %v", i, err)
	}

	bob := f.join(wire.Application{Email: "bob@example.com", Password: goodPassword, Code: invite})
	session := f.signIn(bob.Email)
	f.now = f.now.Add(time.Second)
	if gone, err := operator.SetDisabled(t.Context(), bob.Email, true); err != nil || gone.DisabledAt == nil {
		t.Errorf("SetDisabled: %+v, %v", gone, err)
	}
	if _, err := f.Session(t.Context(), session.Token); !wire.IsCode(err, wire.CodeUnauthorized) {
		t.Errorf("a disabled person's session: %v", err)
	}
	_, _, err = operator.MakeReset(t.Context(), bob.Email)
	wantError(t, err, wire.CodeConflict, "is disabled")

	f.logged(owner,
		"operator: disable member bob@example.com ",
		"bob@example.com: sign in bob@example.com ",
		"bob@example.com: join project default as owner, invited by operator",
		"operator: invite owner ",
		"ann@example.com: reset password ann@example.com with a link made by operator",
		"operator: make reset link ann@example.com ",
		"ann@example.com: join project default as owner, with the setup code",
	)
}

func TestAnOperatorListsAndInvitesByAccount(t *testing.T) {
	f := newFixture(t, wire.SignUpOpen)
	owner := f.owner()
	other := f.join(wire.Application{Email: "cat@example.com", Password: goodPassword, Account: "other"})

	for account, want := range map[string]int{"": 2, "default": 1, "other": 1, "nobodys": 0} {
		people, err := f.Operator(nil).People(t.Context(), account)
		if err != nil || len(people) != want {
			t.Errorf("the people of %q are %+v, %v", account, people, err)
		}
	}

	code, _, err := f.Operator(nil).Invite(t.Context(), "fresh", wire.RoleOwner)
	if err != nil {
		t.Fatal(err)
	}
	first := f.join(wire.Application{Email: "dan@example.com", Password: goodPassword, Code: code})
	if first.AccountName != "fresh" || first.AccountID == owner.AccountID || first.AccountID == other.AccountID {
		t.Errorf("the first person of a new account is %+v", first)
	}
	_, _, err = f.Operator(nil).Invite(t.Context(), "Not A Name", "king")
	wantError(t, err, wire.CodeInvalid, "must be")
}

func TestAFormsSessionIsRememberedForAWhile(t *testing.T) {
	f := newFixture(t, "")
	owner := f.owner()
	s := f.signIn(owner.Email)

	form := s.FormSession()
	if form == s.FormSession() {
		t.Error("a form names its session the same each time")
	}
	known := func() error {
		u, err := f.MadeFor(t.Context(), form)
		if err == nil && u.ID != owner.ID {
			t.Errorf("the form is of %+v", u)
		}
		return err
	}

	if err := known(); err != nil {
		t.Error(err)
	}
	if err := f.SignOut(t.Context(), s.Token); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Session(t.Context(), s.Token); !wire.IsCode(err, wire.CodeUnauthorized) {
		t.Errorf("the session: %v", err)
	}

	f.now = f.now.Add(wire.SessionKept - time.Second)
	if err := known(); err != nil {
		t.Errorf("a week after signing out: %v", err)
	}
	f.now = f.now.Add(time.Second)
	wantError(t, known(), wire.CodeNotFound, "no longer known")

	for _, other := range []string{"", "x", s.CSRF(), wire.SignedIn{Token: "y"}.FormSession()} {
		_, err := f.MadeFor(t.Context(), other)
		wantError(t, err, wire.CodeNotFound, "")
	}
	if _, ok := s.FormProject(form); ok {
		t.Error("the name of a session takes the place of its CSRF token")
	}
}
