package auth_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"promptspool/api/auth"
	"promptspool/api/wire"
)

// byIssuer makes the people of a server sign in at an issuer; boss@example.com may also use a password.
func (f *fixture) byIssuer() {
	f.People = auth.NewPeople(auth.PeopleConfig{
		Store:          f.store,
		Now:            func() time.Time { return f.now },
		SignInBy:       wire.SignInByIssuer,
		EmergencyOwner: "boss@example.com",
	})
}

// login is what the issuer says about someone.
func login(email string, grants ...wire.Grant) wire.Login {
	return wire.Login{Subject: "id of " + strings.ToLower(email), Email: email, Grants: grants, IDToken: "a.b.c"}
}

func (f *fixture) enter(l wire.Login) wire.SignedIn {
	f.t.Helper()
	s, err := f.EnterByIssuer(f.t.Context(), l, wire.Browser{})
	if err != nil {
		f.t.Fatalf("EnterByIssuer: %v", err)
	}
	return s
}

var (
	ownsDefault = wire.Grant{Project: "default", Role: wire.RoleOwner}
	editsApp    = wire.Grant{Project: "app", Role: wire.RoleEditor}
)

func TestASessionOfTheIssuerLastsAnHourAndFollowsTheGroups(t *testing.T) {
	f := newFixture(t, wire.SignUpInvite)
	first := f.enter(login("Eve@Example.com", ownsDefault, editsApp))
	if first.User.Role != wire.RoleOwner || !first.ByIssuer || first.IDToken != "a.b.c" {
		t.Errorf("eve's session is %+v", first)
	}
	f.logged(first.User,
		"eve@example.com: sign in eve@example.com with the identity provider",
		"eve@example.com: set role by groups eve@example.com owner")

	// She passes through the issuer in another browser, after a group was taken away.
	second := f.enter(login("eve@example.com", editsApp))
	for _, s := range []wire.SignedIn{first, second} {
		now, err := f.Session(t.Context(), s.Token)
		if err != nil || now.User.AccountName != "app" || now.User.Role != wire.RoleEditor {
			t.Errorf("without the group the session is %+v, %v", now.User, err)
		}
	}

	f.now = f.now.Add(time.Hour)
	ended, err := f.Session(t.Context(), first.Token)
	if !wire.IsCode(err, wire.CodeUnauthorized) || !ended.ByIssuer {
		t.Errorf("after an hour: %+v, %v", ended, err)
	}
	_, err = f.EnterByIssuer(t.Context(), login("eve@example.com"), wire.Browser{})
	refused(t, err, wire.CodeForbidden, "no role in a project")
}

func TestARemovalCountsImmediatelyInSessionsOfTheIssuer(t *testing.T) {
	f := newFixture(t, wire.SignUpInvite)
	ann := f.owner()
	eve := f.enter(login("eve@example.com", wire.Grant{Project: "default", Role: wire.RoleEditor}))
	if _, err := f.SetDisabled(t.Context(), ann, eve.User.ID, true); err != nil {
		t.Fatal(err)
	}

	if _, err := f.Session(t.Context(), eve.Token); !wire.IsCode(err, wire.CodeUnauthorized) {
		t.Errorf("eve's session after she was disabled: %v", err)
	}
	_, err := f.EnterByIssuer(t.Context(), login("eve@example.com", ownsDefault, editsApp), wire.Browser{})
	if !wire.IsCode(err, wire.CodeForbidden) {
		t.Errorf("eve enters again: %v", err)
	}
}

func TestWhoMayEnterAtTheIssuer(t *testing.T) {
	f := newFixture(t, wire.SignUpInvite)
	ann := f.owner()
	code, _, err := f.Invite(t.Context(), ann, wire.RoleViewer)
	if err != nil {
		t.Fatal(err)
	}
	f.enter(login("eve@example.com", editsApp))

	other := login("eve@example.com", editsApp)
	other.Subject = "another"
	for text, l := range map[string]wire.Login{
		"no role in a project": login("bob@example.com"),
		"which is none":        login("bob", editsApp),
		"people enable eve@":   other,
	} {
		_, err := f.EnterByIssuer(t.Context(), l, wire.Browser{})
		refused(t, err, wire.CodeForbidden, text)
	}

	// Bob follows an owner's link.
	l := login("bob@example.com")
	l.Invite = code
	bob := f.enter(l)
	if !bob.Joined || bob.User.Role != wire.RoleViewer || bob.User.AccountID != ann.AccountID {
		t.Errorf("bob joined: %t, as %+v", bob.Joined, bob.User)
	}
	if again := f.enter(login("bob@example.com")); again.Joined || again.User.Role != wire.RoleViewer {
		t.Errorf("bob comes again: %+v", again)
	}
}

func TestNoPasswordOpensWhatOnlyTheIssuerDoes(t *testing.T) {
	f := newFixture(t, wire.SignUpInvite)
	ann := f.owner()
	boss := f.guest(ann, "boss@example.com", wire.RoleOwner)
	annsSession, bossSession := f.signIn(ann.Email), f.signIn(boss.Email)
	reset, _, err := f.MakeReset(t.Context(), boss, ann.ID)
	if err != nil {
		t.Fatal(err)
	}
	invite, _, err := f.Invite(t.Context(), ann, wire.RoleViewer)
	if err != nil {
		t.Fatal(err)
	}

	// A person without a password has none that fits.
	f.enter(login("eve@example.com", ownsDefault))
	for _, password := range []string{"", goodPassword} {
		_, err := f.SignIn(t.Context(), "eve@example.com", password, wire.Browser{IP: office})
		refused(t, err, wire.CodeUnauthorized, "Wrong email or password")
	}

	f.byIssuer()
	by := wire.Browser{IP: office}
	_, err = f.SignIn(t.Context(), ann.Email, goodPassword, by)
	refused(t, err, wire.CodeUnauthorized, "Wrong email or password")
	_, err = f.Session(t.Context(), annsSession.Token)
	refused(t, err, wire.CodeUnauthorized, "expired")
	_, err = f.ResetPassword(t.Context(), reset, goodPassword, office)
	refused(t, err, wire.CodeForbidden, "No passwords")
	bob := wire.Application{Email: "bob@example.com", Password: goodPassword, Code: invite}
	_, err = f.Join(t.Context(), bob, office)
	refused(t, err, wire.CodeForbidden, "cannot sign up as bob@example.com with a password")
	_, _, err = f.MakeReset(t.Context(), boss, ann.ID)
	refused(t, err, wire.CodeForbidden, "No passwords")

	// The emergency's owner may, also after signing in at the issuer.
	if _, err := f.Session(t.Context(), bossSession.Token); err != nil {
		t.Errorf("the boss's session: %v", err)
	}
	f.enter(login("boss@example.com"))
	if s, err := f.SignIn(t.Context(), "boss@example.com", goodPassword, by); err != nil || s.ByIssuer {
		t.Errorf("the boss signs in by password: %+v, %v", s, err)
	}
}

// Whoever stands before the emergency door learns neither who may open it nor who exists, however often they try.
func TestTheEmergencyDoorTellsNobodyWhoMayOpenIt(t *testing.T) {
	f := newFixture(t, wire.SignUpInvite)
	ann := f.owner()
	f.guest(ann, "boss@example.com", wire.RoleOwner)
	f.enter(login("eve@example.com", ownsDefault))
	var invites []wire.Secret
	for range 4 {
		code, _, err := f.Invite(t.Context(), ann, wire.RoleOwner)
		if err != nil {
			t.Fatal(err)
		}
		invites = append(invites, code)
	}
	f.byIssuer()

	emails := []string{"boss@example.com", ann.Email, "eve@example.com", "nobody@example.com"}
	answers := func(try func(n int, email, ip string) error) {
		t.Helper()
		var first []string
		for n, email := range emails {
			var got []string
			for range 25 {
				err := wire.AsError(try(n, email, fmt.Sprintf("192.0.2.%d", n)))
				got = append(got, fmt.Sprint(err.Code, strings.ReplaceAll(err.Message, email, "EMAIL")))
			}
			if first == nil {
				first = got
			}
			if d := cmp.Diff(first, got); d != "" {
				t.Errorf("%s is answered otherwise than %s: %s", email, emails[0], d)
			}
			if got[len(got)-1] == got[0] {
				t.Errorf("tries with %s are not counted: %s", email, got[0])
			}
		}
	}
	answers(func(_ int, email, ip string) error {
		password := "not the password"
		if email != emails[0] {
			password = goodPassword // which is right for some, and opens nothing
		}
		_, err := f.SignIn(t.Context(), email, password, wire.Browser{IP: ip})
		return err
	})
	answers(func(n int, email, ip string) error {
		_, err := f.Join(t.Context(), wire.Application{Email: email, Password: goodPassword, Code: invites[n]}, ip)
		return err
	})
	for _, email := range emails {
		_, err := f.Join(t.Context(), wire.Application{Email: email, Password: goodPassword, Code: "none"}, office)
		refused(t, err, wire.CodeForbidden, "This code is invalid")
	}
}

// refused fails unless an error has a code, and a message that contains a text.
func refused(t *testing.T, err error, code wire.Code, text string) {
	t.Helper()
	if !wire.IsCode(err, code) || !strings.Contains(wire.AsError(err).Message, text) {
		t.Errorf("the error is %v; want %s with %q", err, code, text)
	}
}

// A stranger with an owner's invite could choose the one password that outlives the first sign-in
// at the issuer.
func TestNobodysInviteMakesTheEmergencysOwner(t *testing.T) {
	f := newFixture(t, wire.SignUpInvite)
	owner := f.owner()
	f.byIssuer()
	boss := wire.Application{Email: "boss@example.com", Password: goodPassword}
	var err error
	if boss.Code, _, err = f.Invite(t.Context(), owner, wire.RoleViewer); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Join(t.Context(), boss, office); !wire.IsCode(err, wire.CodeForbidden) ||
		!strings.Contains(err.Error(), "promptspool people invite") {
		t.Errorf("with an owner's invite: %v", err)
	}

	if boss.Code, _, err = f.Operator(nil).Invite(t.Context(), "default", wire.RoleOwner); err != nil {
		t.Fatal(err)
	}
	if u := f.join(boss); u.Role != wire.RoleOwner {
		t.Errorf("with the operator's: %+v", u)
	}
}
