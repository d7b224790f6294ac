package auth_test

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"promptspool/api/auth"
	"promptspool/api/wire"
	"promptspool/spool/archive/badgerdb"
)

const (
	goodPassword = "correct horse battery"
	office       = "192.0.2.1"
)

// town is a server's people and the time there.
type town struct {
	*auth.People
	t     *testing.T
	store *badgerdb.DB
	now   time.Time
}

func newTown(t *testing.T, signUp wire.SignUp) *town {
	t.Helper()
	db, err := badgerdb.Open(badgerdb.Config{Dir: t.TempDir(), Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	tn := &town{t: t, store: db, now: noon}
	tn.People = auth.NewPeople(auth.PeopleConfig{Store: db, SignUp: signUp, Now: func() time.Time { return tn.now }})
	return tn
}

// owner signs the first person up.
func (tn *town) owner() wire.User {
	tn.t.Helper()
	code, err := tn.Setup(tn.t.Context())
	if err != nil {
		tn.t.Fatalf("Setup: %v", err)
	}
	return tn.join(wire.Application{Email: "Ann@Example.com ", Password: goodPassword, Code: code})
}

func (tn *town) join(a wire.Application) wire.User {
	tn.t.Helper()
	s, err := tn.Join(tn.t.Context(), a, office)
	if err != nil {
		tn.t.Fatalf("Join: %v", err)
	}
	return s.User
}

// guest lets somebody in with an invite of by.
func (tn *town) guest(by wire.User, email string, role wire.Role) wire.User {
	tn.t.Helper()
	code, _, err := tn.Invite(tn.t.Context(), by, role)
	if err != nil {
		tn.t.Fatalf("Invite: %v", err)
	}
	return tn.join(wire.Application{Email: email, Password: goodPassword, Code: code})
}

func (tn *town) signIn(email string) wire.SignedIn {
	tn.t.Helper()
	s, err := tn.SignIn(tn.t.Context(), email, goodPassword, wire.Browser{IP: office})
	if err != nil {
		tn.t.Fatalf("SignIn: %v", err)
	}
	return s
}

func TestTheFirstPersonOwnsTheDefaultAccount(t *testing.T) {
	tn := newTown(t, "")
	keys := auth.New(auth.Config{Store: tn.store})
	k, err := keys.Bootstrap(t.Context(), bootstrapKey)
	if err != nil {
		t.Fatal(err)
	}
	u := tn.owner()
	if u.Email != "ann@example.com" || u.Role != wire.RoleOwner || u.AccountID != k.AccountID {
		t.Errorf("the first person is %+v, want the owner of %s", u, k.AccountID)
	}
	if code, err := tn.Setup(t.Context()); code != "" || err != nil {
		t.Errorf("there is a setup code still (%v)", err)
	}
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
		tn := newTown(t, tt.signUp)
		tn.owner()
		tt.a.Email, tt.a.Password = "bob@example.com", goodPassword
		s, err := tn.Join(t.Context(), tt.a, office)
		u := s.User
		switch {
		case tt.code != "" && !wire.IsCode(err, tt.code):
			t.Errorf("%s %q %q: %v, want %s", tt.signUp, tt.a.Account, tt.a.Code, err, tt.code)
		case tt.code == "" && (err != nil || u.AccountName != tt.a.Account || u.Role != wire.RoleOwner):
			t.Errorf("%s %q: %+v, %v", tt.signUp, tt.a.Account, u, err)
		}
	}
}

func TestWhatSomebodySignsUpWithIsChecked(t *testing.T) {
	tn := newTown(t, wire.SignUpOpen)
	for email, password := range map[string]string{
		"": goodPassword, "ann": goodPassword, "Ann <ann@example.com>": goodPassword, strings.Repeat("a", 250) + "@b.cd": goodPassword,
		"ann@example.com": "too short", "bob@example.com": strings.Repeat("x", 1025), "cat@example.com": "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
	} {
		_, err := tn.Join(t.Context(), wire.Application{Email: email, Password: password, Account: "mine"}, office)
		wantError(t, err, wire.CodeInvalid, "must")
	}
	if all, _ := tn.store.Everybody(t.Context()); len(all) > 0 {
		t.Error("somebody signed up all the same")
	}
}

func TestAnInviteOpensForAWeekAndOnlyAsItsRole(t *testing.T) {
	tn := newTown(t, "")
	owner := tn.owner()
	code, i, err := tn.Invite(t.Context(), owner, wire.RoleViewer)
	if err != nil {
		t.Fatal(err)
	}
	open, err := tn.Invites(t.Context(), owner)
	if err != nil || len(open) != 1 || open[0].ID != i.ID {
		t.Errorf("the open invites are %v, %v", open, err)
	}
	tn.now = tn.now.Add(7 * 24 * time.Hour)
	_, err = tn.Join(t.Context(), wire.Application{Email: "bob@example.com", Password: goodPassword, Code: code}, office)
	wantError(t, err, wire.CodeForbidden, "code")
	viewer := tn.guest(owner, "cat@example.com", wire.RoleViewer)
	if viewer.AccountID != owner.AccountID || viewer.Role != wire.RoleViewer {
		t.Errorf("the guest is %+v", viewer)
	}
	_, _, err = tn.Invite(t.Context(), viewer, wire.RoleViewer)
	wantError(t, err, wire.CodeForbidden, "Only owners")
}

func TestASessionLastsUntilItIsEnded(t *testing.T) {
	tn := newTown(t, "")
	tn.owner()
	first, second := tn.signIn("ANN@example.com"), tn.signIn("ann@example.com")
	if first.Token == second.Token || first.CSRF() == second.CSRF() {
		t.Error("two sessions share a token")
	}
	if !first.Bears(first.CSRF()) || first.Bears(second.CSRF()) || first.Bears("") {
		t.Error("a session bears another one's CSRF, or not its own")
	}
	if err := tn.SignOut(t.Context(), first.Token); err != nil {
		t.Fatal(err)
	}
	for token, want := range map[wire.Secret]bool{first.Token: false, second.Token: true, "": false, "nonsense": false} {
		if s, err := tn.Session(t.Context(), token); (err == nil) != want {
			t.Errorf("session %+v, %v, want found: %v", s, err, want)
		}
	}
	tn.now = tn.now.Add(7 * 24 * time.Hour)
	_, err := tn.Session(t.Context(), second.Token)
	wantError(t, err, wire.CodeUnauthorized, "Sign in")
}

func TestAWrongPasswordAndAnUnknownEmailLookTheSame(t *testing.T) {
	tn := newTown(t, "")
	tn.owner()
	_, wrong := tn.SignIn(t.Context(), "ann@example.com", "not the password", wire.Browser{IP: office})
	_, unknown := tn.SignIn(t.Context(), "nobody@example.com", goodPassword, wire.Browser{IP: office})
	wantError(t, wrong, wire.CodeUnauthorized, "Wrong email or password")
	wantError(t, unknown, wire.CodeUnauthorized, "Wrong email or password")
	if wrong.Error() != unknown.Error() {
		t.Errorf("%q differs from %q", wrong, unknown)
	}
}

func TestTooManyFailuresMakeAnEmailWait(t *testing.T) {
	tn := newTown(t, "")
	tn.owner()
	for range 10 {
		_, err := tn.SignIn(t.Context(), "ann@example.com", "wrong", wire.Browser{IP: office})
		wantError(t, err, wire.CodeUnauthorized, "Wrong email or password")
	}
	_, err := tn.SignIn(t.Context(), "ann@example.com", goodPassword, wire.Browser{IP: "192.0.2.7"})
	wantError(t, err, wire.CodeTooMany, "Wait")
	if wait := wire.AsError(err).RetryAfter; wait <= 0 || wait > 15*time.Minute {
		t.Errorf("Retry-After is %v", wait)
	}
	tn.now = tn.now.Add(15 * time.Minute)
	tn.signIn("ann@example.com")
}

func TestOfManyAttemptsAtOnceNoMoreAreJudgedThanOneByOne(t *testing.T) {
	tn := newTown(t, "")
	tn.owner()
	var attempts sync.WaitGroup
	var judged atomic.Int32
	for range 30 {
		attempts.Go(func() {
			_, err := tn.SignIn(t.Context(), "ann@example.com", "wrong", wire.Browser{IP: office})
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
		t.Errorf("%d attempts at once were judged, want at most 10", n)
	}
}

func TestNobodyCanLockOutThoseWhoAreKnown(t *testing.T) {
	tn := newTown(t, "")
	owner := tn.owner()
	s := tn.signIn(owner.Email)
	lock := func() {
		t.Helper()
		for range 10 {
			_, _ = tn.SignIn(t.Context(), owner.Email, "wrong", wire.Browser{IP: "192.0.2.66"})
		}
		_, err := tn.SignIn(t.Context(), owner.Email, goodPassword, wire.Browser{IP: office})
		wantError(t, err, wire.CodeTooMany, "Wait")
	}
	lock()

	known := wire.Browser{IP: "192.0.2.66", Session: s.Token}
	again, err := tn.SignIn(t.Context(), owner.Email, goodPassword, known)
	if err != nil {
		t.Errorf("a browser with a session: %v", err)
	}
	tn.now = tn.now.Add(8 * 24 * time.Hour)
	lock()
	if _, err := tn.SignIn(t.Context(), owner.Email, goodPassword, known); err != nil {
		t.Errorf("a browser whose session ended yesterday: %v", err)
	}
	if _, err := tn.SetPassword(t.Context(), again.User, goodPassword, "another good password"); err != nil {
		t.Errorf("a change of password: %v", err)
	}

	// Whoever is known has no more attempts than others, and none at anybody else.
	for range 10 {
		_, err := tn.SignIn(t.Context(), owner.Email, "wrong", known)
		wantError(t, err, wire.CodeUnauthorized, "Wrong email or password")
	}
	_, err = tn.SignIn(t.Context(), owner.Email, "another good password", known)
	wantError(t, err, wire.CodeTooMany, "Wait")
	for range 10 {
		_, _ = tn.SignIn(t.Context(), "bob@example.com", "wrong", wire.Browser{IP: office})
	}
	_, err = tn.SignIn(t.Context(), "bob@example.com", "wrong", known)
	wantError(t, err, wire.CodeTooMany, "Wait")
}

func TestPeopleBehindOneAddressGetIn(t *testing.T) {
	tn := newTown(t, wire.SignUpOpen)
	owner := tn.owner()
	for n := range 60 {
		_, err := tn.SignIn(t.Context(), fmt.Sprintf("p%d@example.com", n), strings.Repeat("x", 1025), wire.Browser{IP: office})
		wantError(t, err, wire.CodeUnauthorized, "Wrong email or password")
	}
	tn.signIn(owner.Email)

	s, err := tn.Join(t.Context(), wire.Application{Email: "eve@example.com", Password: goodPassword, Account: "eve"}, office)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := tn.Session(t.Context(), s.Token); err != nil || got.User.Email != "eve@example.com" {
		t.Errorf("the session of a sign-up is %+v, %v", got, err)
	}
}

func TestWhatIsTakenIsToldToThoseWithACodeOnly(t *testing.T) {
	tn := newTown(t, wire.SignUpOpen)
	owner := tn.owner()
	known := wire.Application{Email: owner.Email, Password: goodPassword, Account: "fresh"}
	free := wire.Application{Email: "eve@example.com", Password: goodPassword, Account: "mine"}
	tn.join(free)
	free.Email = "bob@example.com"

	_, email := tn.Join(t.Context(), known, office)
	_, account := tn.Join(t.Context(), free, office)
	wantError(t, email, wire.CodeConflict, "This email or this account's name is taken.")
	wantError(t, account, wire.CodeConflict, "This email or this account's name is taken.")

	code, _, err := tn.Invite(t.Context(), owner, wire.RoleViewer)
	if err != nil {
		t.Fatal(err)
	}
	known.Code = code
	_, err = tn.Join(t.Context(), known, office)
	wantError(t, err, wire.CodeConflict, "another email")
	free.Code = code
	tn.join(free)

	known.Code = ""
	for n := 0; wire.IsCode(email, wire.CodeConflict); n++ {
		if n > 20 {
			t.Fatal("a stranger may try emails for ever")
		}
		_, email = tn.Join(t.Context(), known, office)
	}
	wantError(t, email, wire.CodeTooMany, "Too many sign-ups")
}

func TestTheDefaultAccountIsKeptForTheSetupCode(t *testing.T) {
	tn := newTown(t, wire.SignUpOpen)
	code, err := tn.Setup(t.Context())
	if err != nil || code == "" {
		t.Fatal(code, err)
	}
	stranger := wire.Application{Email: "eve@example.com", Password: goodPassword, Account: "default"}
	_, err = tn.Join(t.Context(), stranger, office)
	wantError(t, err, wire.CodeConflict, "setup code")

	stranger.Account = "eves"
	if eve := tn.join(stranger); !eve.Founder {
		t.Errorf("somebody who signed up without a code is %+v", eve)
	}
	if again, err := tn.Setup(t.Context()); again == "" || err != nil {
		t.Errorf("there is no setup code any more, %v", err)
	}
	ann := tn.join(wire.Application{Email: "ann@example.com", Password: goodPassword, Code: code})
	if ann.AccountName != "default" || ann.Role != wire.RoleOwner || ann.Founder {
		t.Errorf("the operator is %+v", ann)
	}
	if again, err := tn.Setup(t.Context()); again != "" || err != nil {
		t.Errorf("there is a setup code still (%v)", err)
	}
}

func TestChangesEndSessions(t *testing.T) {
	tn := newTown(t, "")
	owner := tn.owner()
	bob := tn.guest(owner, "bob@example.com", wire.RoleEditor)
	step := func() { tn.now = tn.now.Add(time.Second) }
	for what, change := range map[string]func() error{
		"role":     func() error { _, err := tn.SetRole(t.Context(), owner, bob.ID, wire.RoleViewer); return err },
		"disabled": func() error { _, err := tn.SetDisabled(t.Context(), owner, bob.ID, true); return err },
	} {
		if _, err := tn.SetDisabled(t.Context(), owner, bob.ID, false); err != nil {
			t.Fatal(err)
		}
		s := tn.signIn(bob.Email)
		step()
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if _, err := tn.Session(t.Context(), s.Token); !wire.IsCode(err, wire.CodeUnauthorized) {
			t.Errorf("%s leaves the session: %v", what, err)
		}
	}
	old := tn.signIn("ann@example.com")
	step()
	fresh, err := tn.SetPassword(t.Context(), owner, goodPassword, "another good password")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tn.Session(t.Context(), old.Token); !wire.IsCode(err, wire.CodeUnauthorized) {
		t.Errorf("a new password leaves the old session: %v", err)
	}
	if _, err := tn.Session(t.Context(), fresh.Token); err != nil {
		t.Errorf("a new password ends its own session: %v", err)
	}
	_, err = tn.SetPassword(t.Context(), owner, goodPassword, "yet another password")
	wantError(t, err, wire.CodeUnauthorized, "Wrong email or password")
}

func TestTheLastOwnerStaysAndTheLogRemembers(t *testing.T) {
	tn := newTown(t, "")
	owner := tn.owner()
	_, err := tn.SetRole(t.Context(), owner, owner.ID, wire.RoleViewer)
	wantError(t, err, wire.CodeConflict, "at least one owner")
	bob := tn.guest(owner, "bob@example.com", wire.RoleOwner)
	if _, err := tn.SetRole(t.Context(), bob, owner.ID, wire.RoleEditor); err != nil {
		t.Fatal(err)
	}
	entries, err := tn.AuditLog(t.Context(), bob, "", 10)
	if err != nil || len(entries) != 2 {
		t.Fatalf("the log is %v, %v", entries, err)
	}
	if e := entries[0]; e.Actor != bob.Email || e.Action != "set role" || e.Target != owner.Email || e.Detail != "editor" {
		t.Errorf("the newest entry is %+v", e)
	}
	editor := owner
	editor.Role = wire.RoleEditor
	_, err = tn.AuditLog(t.Context(), editor, "", 10)
	wantError(t, err, wire.CodeForbidden, "Only owners")
}

func TestNoPasswordIsStoredInClear(t *testing.T) {
	tn := newTown(t, "")
	u := tn.owner()
	_, stored, err := tn.store.UserByEmail(t.Context(), u.Email)
	if err != nil || !strings.HasPrefix(stored, "$argon2id$v=19$m=19456,t=2,p=1$") || strings.Contains(stored, goodPassword) {
		t.Errorf("stored is %q, %v", stored, err)
	}
}

func TestWhenAKeyWasLastUsedIsStored(t *testing.T) {
	tn := newTown(t, "")
	now := noon
	keys := auth.New(auth.Config{Store: tn.store, Now: func() time.Time { return now }})
	secret, k, err := keys.CreateKey(t.Context(), "team", "", wire.ScopeApp)
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
	if err != nil || len(all) != 1 || all[0].ID != k.ID || all[0].LastUsedAt == nil || !all[0].LastUsedAt.Equal(now) {
		t.Errorf("keys are %+v, %v; want last used at %v", all, err, now)
	}
}
