package auth_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"promptspool/api/auth"
	"promptspool/api/wire"
	"promptspool/spool/database/accounts"
)

const (
	goodPassword = "correct horse battery"
	office       = "192.0.2.1"
)

// fixture is a server's people, and its clock.
type fixture struct {
	*auth.People
	t     *testing.T
	store *accounts.Store
	now   time.Time
}

func newFixture(t *testing.T, signUp wire.SignUp) *fixture {
	t.Helper()
	f := &fixture{t: t, store: newStore(), now: noon}
	f.People = auth.NewPeople(auth.PeopleConfig{
		Store:  f.store,
		SignUp: signUp,
		Now:    func() time.Time { return f.now },
	})

	return f
}

// owner signs up the first person.
func (f *fixture) owner() wire.User {
	f.t.Helper()
	code, err := f.Setup(f.t.Context())
	if err != nil {
		f.t.Fatalf("Setup: %v", err)
	}

	return f.join(wire.Application{Email: "Ann@Example.com ", Password: goodPassword, Code: code})
}

func (f *fixture) join(a wire.Application) wire.User {
	f.t.Helper()
	s, err := f.Join(f.t.Context(), a, office)
	if err != nil {
		f.t.Fatalf("Join: %v", err)
	}

	return s.User
}

// guest signs up a person with an invite of by.
func (f *fixture) guest(by wire.User, email string, role wire.Role) wire.User {
	f.t.Helper()
	code, _, err := f.Invite(f.t.Context(), by, role)
	if err != nil {
		f.t.Fatalf("Invite: %v", err)
	}

	return f.join(wire.Application{Email: email, Password: goodPassword, Code: code})
}

// logged fails unless the audit log that a person sees has these entries, the newest first.
func (f *fixture) logged(who wire.User, want ...string) {
	f.t.Helper()
	entries, err := f.AuditLog(f.t.Context(), who, "", 10)
	if err != nil {
		f.t.Fatal(err)
	}

	var log []string
	for _, e := range entries {
		log = append(log, e.Actor+": "+e.Action+" "+e.Target+" "+e.Detail)
	}
	if diff := cmp.Diff(want, log); diff != "" {
		f.t.Errorf("the audit log (-want +got):\n%s", diff)
	}
}

func (f *fixture) signIn(email string) wire.SignedIn {
	f.t.Helper()
	s, err := f.SignIn(f.t.Context(), email, goodPassword, wire.Browser{IP: office})
	if err != nil {
		f.t.Fatalf("SignIn: %v", err)
	}

	return s
}

func TestWhoMaySignUp(t *testing.T) {
	for _, tt := range []struct {
		signUp wire.SignUp
		a      wire.Application
		code   wire.Code // "" if it works
	}{
		{wire.SignUpInvite, wire.Application{}, wire.CodeForbidden},
		{wire.SignUpInvite, wire.Application{Account: "mine"}, wire.CodeForbidden},
		{wire.SignUpInvite, wire.Application{Code: "aaaaa-bbbbb-ccccc-ddddd"}, wire.CodeForbidden},
		{wire.SignUpClosed, wire.Application{Account: "mine"}, wire.CodeForbidden},
		{wire.SignUpOpen, wire.Application{Account: "mine"}, ""},
		{wire.SignUpOpen, wire.Application{}, wire.CodeInvalid},
		{wire.SignUpOpen, wire.Application{Account: "Not A Name"}, wire.CodeInvalid},
		{wire.SignUpOpen, wire.Application{Account: "default"}, wire.CodeConflict},
	} {
		f := newFixture(t, tt.signUp)
		f.owner()

		tt.a.Email, tt.a.Password = "bob@example.com", goodPassword
		s, err := f.Join(t.Context(), tt.a, office)
		u := s.User
		switch {
		case tt.code != "" && !wire.IsCode(err, tt.code):
			t.Errorf("%s %q %q: %v, want %s", tt.signUp, tt.a.Account, tt.a.Code, err, tt.code)
		case tt.code == "" && (err != nil || u.AccountName != tt.a.Account || u.Role != wire.RoleOwner):
			t.Errorf("%s %q: %+v, %v", tt.signUp, tt.a.Account, u, err)
		}
	}
}

func TestASignUpIsChecked(t *testing.T) {
	f := newFixture(t, wire.SignUpOpen)
	for email, password := range map[string]string{
		"":                                 goodPassword,
		"ann":                              goodPassword,
		"Ann <ann@example.com>":            goodPassword,
		strings.Repeat("a", 250) + "@b.cd": goodPassword,
		"ann@example.com":                  "too short",
		"bob@example.com":                  strings.Repeat("x", 1025),
		"cat@example.com":                  strings.Repeat("\xff", 12),
	} {
		_, err := f.Join(t.Context(), wire.Application{Email: email, Password: password, Account: "mine"}, office)
		wantError(t, err, wire.CodeInvalid, "must")
	}

	if all, _ := f.store.Everybody(t.Context()); len(all) > 0 {
		t.Error("somebody signed up nevertheless")
	}
}

func TestAnInviteOpensForAWeekAndOnlyAsItsRole(t *testing.T) {
	f := newFixture(t, "")
	owner := f.owner()
	code, i, err := f.Invite(t.Context(), owner, wire.RoleViewer)
	if err != nil {
		t.Fatal(err)
	}
	open, err := f.Invites(t.Context(), owner)
	if err != nil || len(open) != 1 || open[0].ID != i.ID {
		t.Errorf("the open invites are %v, %v", open, err)
	}

	f.now = f.now.Add(7 * 24 * time.Hour)
	late := wire.Application{Email: "bob@example.com", Password: goodPassword, Code: code}
	_, err = f.Join(t.Context(), late, office)
	wantError(t, err, wire.CodeForbidden, "code")

	viewer := f.guest(owner, "cat@example.com", wire.RoleViewer)
	if viewer.AccountID != owner.AccountID || viewer.Role != wire.RoleViewer {
		t.Errorf("the guest is %+v", viewer)
	}
	_, _, err = f.Invite(t.Context(), viewer, wire.RoleViewer)
	wantError(t, err, wire.CodeForbidden, "Only owners")
}

func TestASessionLastsUntilItIsEnded(t *testing.T) {
	f := newFixture(t, "")
	f.owner()

	first, second := f.signIn("ANN@example.com"), f.signIn("ann@example.com")
	if first.Token == second.Token || first.CSRF() == second.CSRF() {
		t.Error("two sessions share a token")
	}
	for csrf, want := range map[string]bool{first.CSRF(): true, second.CSRF(): false, "": false} {
		if _, ok := first.FormProject(csrf); ok != want {
			t.Errorf("a session takes its own or another one's CSRF: %t, want %t", ok, want)
		}
	}

	if err := f.SignOut(t.Context(), first.Token); err != nil {
		t.Fatal(err)
	}
	for token, want := range map[wire.Secret]bool{
		first.Token:  false,
		second.Token: true,
		"":           false,
		"nonsense":   false,
	} {
		if s, err := f.Session(t.Context(), token); (err == nil) != want {
			t.Errorf("session %+v, %v, want found: %v", s, err, want)
		}
	}

	f.now = f.now.Add(7 * 24 * time.Hour)
	_, err := f.Session(t.Context(), second.Token)
	wantError(t, err, wire.CodeUnauthorized, "Sign in")
}

func TestAWrongPasswordAndAnUnknownEmailLookTheSame(t *testing.T) {
	f := newFixture(t, "")
	f.owner()
	_, wrong := f.SignIn(t.Context(), "ann@example.com", "not the password", wire.Browser{IP: office})
	_, unknown := f.SignIn(t.Context(), "nobody@example.com", goodPassword, wire.Browser{IP: office})
	wantError(t, wrong, wire.CodeUnauthorized, "Wrong email or password")
	wantError(t, unknown, wire.CodeUnauthorized, "Wrong email or password")
	if wrong.Error() != unknown.Error() {
		t.Errorf("%q differs from %q", wrong, unknown)
	}
}

// Whoever has an IPv6 connection has 2^64 addresses.
func TestAddressesOfOneIPv6NetworkCountAsOne(t *testing.T) {
	for _, tt := range []struct {
		what, address string
		other         string // counts apart
	}{
		{"a /64", "2001:db8:0:7::%x", "2001:db8:0:8::1"},
		{"a /64 with zones", "fe80::%x%%eth0", "fe80:0:0:1::1"},
		{"IPv4 written as IPv6", "::ffff:192.0.2.9", "192.0.2.10"},
	} {
		t.Run(tt.what, func(t *testing.T) {
			f := newFixture(t, "")
			try := func(address string) error {
				_, err := f.Invitation(t.Context(), "wrong", address)
				return err
			}

			for n := range 55 {
				address := tt.address
				if strings.Contains(address, "%x") {
					address = fmt.Sprintf(address, n+1)
				}
				code := wire.CodeForbidden
				if n >= 50 {
					code = wire.CodeTooMany
				}
				if err := try(address); !wire.IsCode(err, code) {
					t.Fatalf("wrong code %d: %v, want %s", n+1, err, code)
				}
			}
			wantError(t, try(tt.other), wire.CodeForbidden, "invalid")
		})
	}

	f := newFixture(t, "")
	for n := range 50 {
		_, err := f.Invitation(t.Context(), "wrong", fmt.Sprintf("192.0.2.%d", n))
		wantError(t, err, wire.CodeForbidden, "invalid")
	}
	_, err := f.Invitation(t.Context(), "wrong", "192.0.2.200")
	wantError(t, err, wire.CodeForbidden, "invalid") // neighbours of IPv4 are other people
}

func TestConcurrentAttemptsGetNoFurtherThanOneByOne(t *testing.T) {
	f := newFixture(t, "")
	f.owner()

	var attempts sync.WaitGroup
	var judged atomic.Int32
	for range 30 {
		attempts.Go(func() {
			_, err := f.SignIn(t.Context(), "ann@example.com", "wrong", wire.Browser{IP: office})
			switch {
			case wire.IsCode(err, wire.CodeUnauthorized):
				judged.Add(1)
			case !wire.IsCode(err, wire.CodeTooMany):
				t.Errorf("SignIn: %v", err)
			}
		})
	}
	attempts.Wait()

	if n := judged.Load(); n > 10 {
		t.Errorf("%d concurrent attempts were verified, want at most 10", n)
	}
}

func TestStrangersCannotLockOutAKnownBrowser(t *testing.T) {
	f := newFixture(t, "")
	owner := f.owner()
	s := f.signIn(owner.Email)

	lock := func() {
		t.Helper()
		for range 10 {
			_, _ = f.SignIn(t.Context(), owner.Email, "wrong", wire.Browser{IP: "192.0.2.66"})
		}
		_, err := f.SignIn(t.Context(), owner.Email, goodPassword, wire.Browser{IP: office})
		wantError(t, err, wire.CodeTooMany, "Wait")
		if wait := wire.AsError(err).RetryAfter; wait <= 0 || wait > 15*time.Minute {
			t.Errorf("Retry-After is %v", wait)
		}
	}
	lock()

	known := wire.Browser{IP: "192.0.2.66", Session: s.Token}
	again, err := f.SignIn(t.Context(), owner.Email, goodPassword, known)
	if err != nil {
		t.Errorf("a browser with a session: %v", err)
	}
	f.now = f.now.Add(8 * 24 * time.Hour)
	lock()
	if _, err := f.SignIn(t.Context(), owner.Email, goodPassword, known); err != nil {
		t.Errorf("a browser whose session ended yesterday: %v", err)
	}
	if _, err := f.SetPassword(t.Context(), again.User, goodPassword, "another good password"); err != nil {
		t.Errorf("a change of password: %v", err)
	}

	// A known browser has no more attempts than others, and none at another person's password.
	for range 10 {
		_, err := f.SignIn(t.Context(), owner.Email, "wrong", known)
		wantError(t, err, wire.CodeUnauthorized, "Wrong email or password")
	}
	_, err = f.SignIn(t.Context(), owner.Email, "another good password", known)
	wantError(t, err, wire.CodeTooMany, "Wait")

	for range 10 {
		_, _ = f.SignIn(t.Context(), "bob@example.com", "wrong", wire.Browser{IP: office})
	}
	_, err = f.SignIn(t.Context(), "bob@example.com", "wrong", known)
	wantError(t, err, wire.CodeTooMany, "Wait")
}

func TestPeopleBehindOneAddressGetIn(t *testing.T) {
	f := newFixture(t, wire.SignUpOpen)
	owner := f.owner()
	for n := range 60 {
		email := fmt.Sprintf("p%d@example.com", n)
		_, err := f.SignIn(t.Context(), email, strings.Repeat("x", 1025), wire.Browser{IP: office})
		wantError(t, err, wire.CodeUnauthorized, "Wrong email or password")
	}
	f.signIn(owner.Email)

	eve := wire.Application{Email: "eve@example.com", Password: goodPassword, Account: "eve"}
	s, err := f.Join(t.Context(), eve, office)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := f.Session(t.Context(), s.Token); err != nil || got.User.Email != "eve@example.com" {
		t.Errorf("the session of a sign-up is %+v, %v", got, err)
	}
}

func TestOnlyCallersWithACodeLearnWhatIsTaken(t *testing.T) {
	f := newFixture(t, wire.SignUpOpen)
	owner := f.owner()
	known := wire.Application{Email: owner.Email, Password: goodPassword, Account: "fresh"}
	free := wire.Application{Email: "eve@example.com", Password: goodPassword, Account: "mine"}
	f.join(free)
	free.Email = "bob@example.com"

	_, email := f.Join(t.Context(), known, office)
	_, account := f.Join(t.Context(), free, office)
	wantError(t, email, wire.CodeConflict, "This email or this project's name is taken.")
	wantError(t, account, wire.CodeConflict, "This email or this project's name is taken.")

	code, _, err := f.Invite(t.Context(), owner, wire.RoleViewer)
	if err != nil {
		t.Fatal(err)
	}
	known.Code = code
	_, err = f.Join(t.Context(), known, office)
	wantError(t, err, wire.CodeConflict, "another email")
	free.Code = code
	f.join(free)

	known.Code = ""
	for n := 0; wire.IsCode(email, wire.CodeConflict); n++ {
		if n > 20 {
			t.Fatal("a stranger may try emails forever")
		}
		_, email = f.Join(t.Context(), known, office)
	}
	wantError(t, email, wire.CodeTooMany, "Too many sign-ups")
}

func TestTheDefaultAccountIsKeptForTheSetupCode(t *testing.T) {
	f := newFixture(t, wire.SignUpOpen)
	k, err := auth.New(auth.Config{Store: f.store}).Bootstrap(t.Context(), bootstrapKey)
	if err != nil {
		t.Fatal(err)
	}
	code, err := f.Setup(t.Context())
	if err != nil || code == "" {
		t.Fatal(code, err)
	}

	stranger := wire.Application{Email: "eve@example.com", Password: goodPassword, Account: "default"}
	_, err = f.Join(t.Context(), stranger, office)
	wantError(t, err, wire.CodeConflict, "setup code")

	stranger.Account = "eves"
	if eve := f.join(stranger); !eve.Founder {
		t.Errorf("somebody who signed up without a code is %+v", eve)
	}
	if again, err := f.Setup(t.Context()); again == "" || err != nil {
		t.Errorf("there is no setup code any more, %v", err)
	}

	ann := f.join(wire.Application{Email: "ann@example.com", Password: goodPassword, Code: code})
	if ann.AccountID != k.AccountID || ann.Role != wire.RoleOwner || ann.Founder {
		t.Errorf("the operator is %+v, want an owner of %s", ann, k.AccountID)
	}
	if again, err := f.Setup(t.Context()); again != "" || err != nil {
		t.Errorf("there is a setup code still (%v)", err)
	}
}

func TestChangesEndSessions(t *testing.T) {
	f := newFixture(t, "")
	owner := f.owner()
	bob := f.guest(owner, "bob@example.com", wire.RoleEditor)
	step := func() { f.now = f.now.Add(time.Second) }

	for what, change := range map[string]func() error{
		"role": func() error {
			_, err := f.SetRole(t.Context(), owner, bob.ID, wire.RoleViewer)
			return err
		},
		"disabled": func() error {
			_, err := f.SetDisabled(t.Context(), owner, bob.ID, true)
			return err
		},
	} {
		if _, err := f.SetDisabled(t.Context(), owner, bob.ID, false); err != nil {
			t.Fatal(err)
		}

		s := f.signIn(bob.Email)
		step()
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Session(t.Context(), s.Token); !wire.IsCode(err, wire.CodeUnauthorized) {
			t.Errorf("%s leaves the session: %v", what, err)
		}
	}

	old := f.signIn("ann@example.com")
	step()
	fresh, err := f.SetPassword(t.Context(), owner, goodPassword, "another good password")
	if err != nil {
		t.Fatal(err)
	}

	if _, err := f.Session(t.Context(), old.Token); !wire.IsCode(err, wire.CodeUnauthorized) {
		t.Errorf("a new password leaves the old session: %v", err)
	}
	if _, err := f.Session(t.Context(), fresh.Token); err != nil {
		t.Errorf("a new password ends its own session: %v", err)
	}
	_, err = f.SetPassword(t.Context(), owner, goodPassword, "yet another password")
	wantError(t, err, wire.CodeUnauthorized, "Wrong email or password")
}

func TestTheLastOwnerStaysAndTheLogRemembers(t *testing.T) {
	f := newFixture(t, "")
	owner := f.owner()
	_, err := f.SetRole(t.Context(), owner, owner.ID, wire.RoleViewer)
	wantError(t, err, wire.CodeConflict, "is the last owner of the project")

	bob := f.guest(owner, "bob@example.com", wire.RoleOwner)
	if _, err := f.SetRole(t.Context(), bob, owner.ID, wire.RoleEditor); err != nil {
		t.Fatal(err)
	}

	f.logged(bob,
		"bob@example.com: set role ann@example.com editor",
		"bob@example.com: join project default as owner, invited by ann@example.com",
		"ann@example.com: invite owner ",
		"ann@example.com: join project default as owner, with the setup code",
	)

	editor := owner
	editor.Role = wire.RoleEditor
	_, err = f.AuditLog(t.Context(), editor, "", 10)
	wantError(t, err, wire.CodeForbidden, "Only owners")
}

func TestNoPasswordIsStoredInClear(t *testing.T) {
	f := newFixture(t, "")
	u := f.owner()

	_, stored, err := f.store.UserByEmail(t.Context(), u.Email)
	isHash := strings.HasPrefix(stored, "$argon2id$v=19$m=")
	if err != nil || !isHash || strings.Contains(stored, goodPassword) {
		t.Errorf("stored is %q, %v", stored, err)
	}
}

func TestWhenAKeyWasLastUsedIsStored(t *testing.T) {
	f := newFixture(t, "")
	now := noon
	keys := auth.New(auth.Config{Store: f.store, Now: func() time.Time { return now }})
	secret, k, err := keys.CreateKey(t.Context(), wire.NewKey{Account: "team", Scope: wire.ScopeApp})
	if err != nil {
		t.Fatal(err)
	}

	now = noon.Add(time.Hour)
	if _, err := keys.Authenticate(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if err := keys.StoreUses(t.Context()); err != nil {
		t.Fatal(err)
	}

	all, err := keys.Keys(t.Context())
	if err != nil || len(all) != 1 || all[0].ID != k.ID {
		t.Fatalf("keys are %+v, %v", all, err)
	}
	if all[0].LastUsedAt == nil || !all[0].LastUsedAt.Equal(now) {
		t.Errorf("keys are %+v, %v; want last used at %v", all, err, now)
	}
}

func TestTheLastUseIsStoredWhenTheServerStops(t *testing.T) {
	f := newFixture(t, "")
	now := noon
	keys := auth.New(auth.Config{Store: f.store, Now: func() time.Time { return now }})
	secret, _, err := keys.CreateKey(t.Context(), wire.NewKey{Account: "team", Scope: wire.ScopeApp})
	if err != nil {
		t.Fatal(err)
	}

	// The second use is soon after one that is stored.
	for range 2 {
		now = now.Add(10 * time.Second)
		if _, err := keys.Authenticate(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if err := keys.Run(ctx); err != nil {
			t.Fatal(err)
		}

		all, err := keys.Keys(t.Context())
		if err != nil || len(all) != 1 || all[0].LastUsedAt == nil || !all[0].LastUsedAt.Equal(now) {
			t.Errorf("keys are %+v, %v; want last used at %v", all, err, now)
		}
	}
}
