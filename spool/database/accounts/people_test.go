package accounts_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/database/accounts"
)

// people is an *accounts.Store whose errors end the test.
type people struct {
	t *testing.T
	*accounts.Store
}

var noInvite [32]byte

// user returns a person who signs up n seconds after noon.
func user(n int, account string) wire.User {
	at := noon.Add(time.Duration(n) * time.Second)
	return wire.User{
		ID:           fmt.Sprintf("01900000-0000-7000-8000-%012d", n),
		AccountName:  account,
		Email:        fmt.Sprintf("p%d@example.com", n),
		Role:         wire.RoleOwner,
		CreatedAt:    at,
		SessionsFrom: at,
	}
}

// invite returns an invite that works for an hour from noon.
func invite(n int, account string, role wire.Role) wire.Invite {
	return wire.Invite{
		ID:          fmt.Sprintf("invite_%d", n),
		AccountName: account,
		Role:        role,
		CreatedAt:   noon,
		ExpiresAt:   noon.Add(time.Hour),
		By:          "ann@example.com",
	}
}

// must ends the test with an error of the named method.
func (s people) must(method string, err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("%s: %v", method, err)
	}
}

// invite stores an invite under hash(code).
func (s people) invite(code byte, i wire.Invite) {
	s.t.Helper()
	s.must("CreateInvite", s.CreateInvite(s.t.Context(), hash(code), i))
}

// join stores a person, with an invite unless it is noInvite.
func (s people) join(u wire.User, code [32]byte) wire.User {
	s.t.Helper()
	made, err := s.CreateUser(s.t.Context(), u, "hash of "+u.ID, code)
	s.must("CreateUser "+u.Email, err)
	return flat(made)
}

// find returns a person and checks that they still have the password that join gave them.
func (s people) find(email string) wire.User {
	s.t.Helper()
	u, password, err := s.UserByEmail(s.t.Context(), email)
	s.must("UserByEmail", err)
	if want := "hash of " + u.ID; password != want {
		s.t.Errorf("the password's hash of %s is %q, want %q", email, password, want)
	}
	return flat(u)
}

// flat returns a person without their projects, as lists have them.
func flat(u wire.User) wire.User {
	u.Projects = nil
	return u
}

func TestAFounderHasAnAccountOfTheirOwn(t *testing.T) {
	s := people{t, open()}
	if has, err := s.HasOwner(t.Context(), "team"); has || err != nil {
		t.Errorf("an empty account has an owner: %v, %v", has, err)
	}

	want := user(1, "team")
	made := s.join(want, noInvite)
	if _, err := wire.ParseID(made.AccountID); err != nil {
		t.Errorf("account id %q %v", made.AccountID, err)
	}
	want.AccountID = made.AccountID
	same(t, "made", made, want)
	same(t, "found", s.find(want.Email), want)

	want = user(3, "alone")
	want.Founder = true
	want.AccountID = s.join(want, noInvite).AccountID
	same(t, "found", s.find(want.Email), want)

	if other := s.join(user(2, "others"), noInvite); other.AccountID == made.AccountID {
		t.Errorf("two founders share the account %s", other.AccountID)
	}
	if has, err := s.HasOwner(t.Context(), "team"); !has || err != nil {
		t.Errorf("HasOwner: %v, %v", has, err)
	}

	_, _, err := s.UserByEmail(t.Context(), "p9@example.com")
	wantCode(t, err, wire.CodeNotFound)
}

func TestANameOrAnEmailThatIsTakenFoundsNothing(t *testing.T) {
	s := people{t, open()}
	first := s.join(user(1, "team"), noInvite)
	thief := user(2, "team")
	_, err := s.CreateUser(t.Context(), thief, "x", noInvite)
	wantCode(t, err, wire.CodeConflict)

	twin := user(3, "new")
	twin.Email = first.Email
	_, err = s.CreateUser(t.Context(), twin, "x", noInvite)
	wantCode(t, err, wire.CodeConflict)
	same(t, "found", s.find(first.Email), first)

	// The twin must not have taken the name of the account before their email was
	// refused.
	s.join(user(4, "new"), noInvite)
}

func TestAnInviteLetsOnePersonInIntoItsAccountAndRole(t *testing.T) {
	s := people{t, open()}
	owner := s.join(user(1, "team"), noInvite)
	i := invite(1, "team", wire.RoleViewer)
	s.invite(1, i)
	got, err := s.Invite(t.Context(), hash(1))
	s.must("Invite", err)
	same(t, "invite", got, i)

	guest := s.join(user(2, "elsewhere"), hash(1))
	want := user(2, "team")
	want.AccountID, want.Role = owner.AccountID, wire.RoleViewer
	same(t, "guest", guest, want)

	// Once it was used, it does not exist.
	_, err = s.CreateUser(t.Context(), user(3, ""), "x", hash(1))
	wantCode(t, err, wire.CodeNotFound)
	_, err = s.Invite(t.Context(), hash(1))
	wantCode(t, err, wire.CodeNotFound)
}

func TestASetupCodeEndsWithTheFirstOwnerOfItsAccount(t *testing.T) {
	s := people{t, open()}
	for n := range byte(3) {
		i := invite(int(n), "default", wire.RoleOwner)
		i.Setup = true
		s.invite(n+1, i)
	}

	// Neither an owner of another account nor a viewer of this one ends the setup.
	s.join(user(7, "founded"), noInvite)
	s.invite(8, invite(8, "default", wire.RoleViewer))
	s.join(user(8, ""), hash(8))
	if has, err := s.HasOwner(t.Context(), "default"); has || err != nil {
		t.Errorf("an account without an owner: %v, %v", has, err)
	}

	late := user(9, "")
	late.CreatedAt = noon.Add(2 * time.Hour)
	_, err := s.CreateUser(t.Context(), late, "x", hash(3))
	wantCode(t, err, wire.CodeNotFound)

	first := s.join(user(1, ""), hash(2))
	if first.AccountName != "default" || first.Role != wire.RoleOwner {
		t.Errorf("the first person is %+v", first)
	}

	// The other codes must not let in a second owner whom nobody invited.
	_, err = s.CreateUser(t.Context(), user(2, ""), "x", hash(1))
	wantCode(t, err, wire.CodeNotFound)
	list, err := s.Invites(t.Context(), "default")
	s.must("Invites", err)
	if len(list) != 0 {
		t.Errorf("the codes of a fresh server are listed: %v", list)
	}
}

func TestAnInviteThatIsLateUnknownOrTakenBackLetsNobodyIn(t *testing.T) {
	s := people{t, open()}
	s.join(user(1, "team"), noInvite)
	s.invite(1, invite(1, "team", wire.RoleEditor))
	s.invite(2, invite(2, "team", wire.RoleEditor))

	late := user(2, "")
	late.CreatedAt = noon.Add(2 * time.Hour)
	_, err := s.CreateUser(t.Context(), late, "x", hash(1))
	wantCode(t, err, wire.CodeNotFound)
	_, err = s.CreateUser(t.Context(), user(3, ""), "x", hash(9))
	wantCode(t, err, wire.CodeNotFound)

	s.must("DeleteInvite", s.DeleteInvite(t.Context(), "team", "invite_2"))
	_, err = s.CreateUser(t.Context(), user(3, ""), "x", hash(2))
	wantCode(t, err, wire.CodeNotFound)
	wantCode(t, s.DeleteInvite(t.Context(), "team", "invite_2"), wire.CodeNotFound)

	list, err := s.Invites(t.Context(), "team")
	s.must("Invites", err)
	for _, i := range list {
		if i.ID == "invite_2" {
			t.Error("an invite that was taken back is listed")
		}
	}
}

func TestPeopleAreListedByAccountTheFirstFirst(t *testing.T) {
	s := people{t, open()}
	a, other := s.join(user(5, "team"), noInvite), s.join(user(1, "others"), noInvite)
	s.invite(1, invite(1, "team", wire.RoleEditor))
	b := s.join(user(3, ""), hash(1))

	for account, want := range map[string][]wire.User{
		a.AccountID:     {b, a},
		other.AccountID: {other},
		"nobody's":      {},
	} {
		got, err := s.Users(t.Context(), account)
		s.must("Users", err)
		same(t, "users of "+account, got, want)
	}
}

func TestAChangeEndsSessionsAndTheLastOwnerStays(t *testing.T) {
	s := people{t, open()}
	u := s.join(user(1, "team"), noInvite)
	s.invite(1, invite(1, "team", wire.RoleOwner))
	second := s.join(user(2, ""), hash(1))

	at := noon.Add(time.Hour)
	yes, no := true, false
	viewer := wire.RoleViewer
	password := "hash of " + u.ID
	change := func(id string, c wire.UserChange) (wire.User, error) {
		c.At = at
		return s.ChangeUser(t.Context(), u.AccountID, id, c)
	}

	got, err := change(u.ID, wire.UserChange{Password: &password})
	s.must("ChangeUser", err)
	u.SessionsFrom = at
	same(t, "new password", got, u)

	got, err = change(second.ID, wire.UserChange{Disabled: &yes})
	s.must("ChangeUser", err)
	second.SessionsFrom, second.DisabledAt = at, &at
	same(t, "disabled", got, second)

	// Nobody could undo what the last owner did to themselves.
	for name, c := range map[string]wire.UserChange{"role": {Role: &viewer}, "disabled": {Disabled: &yes}} {
		if _, err := change(u.ID, c); !wire.IsCode(err, wire.CodeConflict) {
			t.Errorf("the last owner loses by %s: %v", name, err)
		}
	}

	got, err = change(second.ID, wire.UserChange{Disabled: &no})
	s.must("ChangeUser", err)
	second.DisabledAt = nil
	same(t, "enabled", got, second)

	got, err = change(u.ID, wire.UserChange{Role: &viewer})
	s.must("ChangeUser", err)
	u.Role = viewer
	same(t, "new role", got, u)
	same(t, "found", s.find(u.Email), u)
}

func TestAnotherAccountsPeopleAndInvitesCannotBeTouched(t *testing.T) {
	s := people{t, open()}
	a, b := s.join(user(1, "team"), noInvite), s.join(user(2, "others"), noInvite)
	viewer := wire.RoleViewer
	_, err := s.ChangeUser(t.Context(), b.AccountID, a.ID, wire.UserChange{Role: &viewer, At: noon})
	wantCode(t, err, wire.CodeNotFound)

	s.invite(1, invite(1, "team", wire.RoleEditor))
	wantCode(t, s.DeleteInvite(t.Context(), "others", "invite_1"), wire.CodeNotFound)
	list, err := s.Invites(t.Context(), "others")
	s.must("Invites", err)
	same(t, "invites of the others", list, []wire.Invite{})

	same(t, "found", s.find(a.Email), a)
}

func TestASessionIsFoundByItsTokenAndForAWhileAfterItsEnd(t *testing.T) {
	s := people{t, open()}
	u := s.join(user(1, "team"), noInvite)
	old := wire.Session{UserID: u.ID, CreatedAt: noon, ExpiresAt: noon.Add(time.Hour)}
	next := wire.Session{UserID: u.ID, CreatedAt: noon.Add(time.Minute), ExpiresAt: noon.Add(2 * time.Hour)}
	s.must("CreateSession", s.CreateSession(t.Context(), hash(1), old))
	s.must("CreateSession", s.CreateSession(t.Context(), hash(2), next))

	got, owner, err := s.Session(t.Context(), hash(1))
	s.must("Session", err)
	same(t, "session", got, old)
	same(t, "its person", flat(owner), u)

	// A new session deletes those that ended long ago. One that has just ended is kept,
	// so that its person learns why they must sign in again.
	soon := wire.Session{
		UserID:    u.ID,
		CreatedAt: noon.Add(wire.SessionKept),
		ExpiresAt: noon.Add(2 * wire.SessionKept),
	}
	s.must("CreateSession", s.CreateSession(t.Context(), hash(3), soon))
	_, _, err = s.Session(t.Context(), hash(1))
	s.must("Session, expired but remembered", err)

	late := soon
	late.CreatedAt = noon.Add(wire.SessionKept + 90*time.Minute)
	s.must("CreateSession", s.CreateSession(t.Context(), hash(4), late))
	_, _, err = s.Session(t.Context(), hash(1))
	wantCode(t, err, wire.CodeNotFound)

	// To end it a second time changes nothing.
	for _, at := range []time.Time{noon.Add(time.Hour), noon.Add(90 * time.Minute)} {
		s.must("EndSession", s.EndSession(t.Context(), hash(2), at))
		next.ExpiresAt = noon.Add(time.Hour)
		got, owner, err := s.Session(t.Context(), hash(2))
		s.must("Session", err)
		same(t, "ended session", got, next)
		same(t, "its person", flat(owner), u)
	}

	s.must("EndSession", s.EndSession(t.Context(), hash(9), noon))
	_, _, err = s.Session(t.Context(), hash(9))
	wantCode(t, err, wire.CodeNotFound)
	_, _, err = s.Session(t.Context(), hash(3))
	s.must("Session", err)
}

func TestFailedSignInsAreCountedUntilTheirTimeIsOver(t *testing.T) {
	s := people{t, open()}
	a, b, none := hash(1), hash(2), hash(3)
	until, later := noon.Add(time.Minute), noon.Add(time.Hour)
	want := func(name string, ofA, ofB wire.Failures) {
		t.Helper()
		got, err := s.Failures(t.Context(), [][32]byte{a, none, b})
		s.must("Failures", err)
		same(t, name, got, []wire.Failures{ofA, {}, ofB})
	}
	want("at first", wire.Failures{}, wire.Failures{})

	// Later failures must not keep a person out for longer than the first one says.
	s.must("AddFailure", s.AddFailure(t.Context(), [][32]byte{a, b}, noon, until))
	s.must("AddFailure", s.AddFailure(t.Context(), [][32]byte{b}, noon.Add(time.Second), later))
	want("after two", wire.Failures{Count: 1, Until: until}, wire.Failures{Count: 2, Until: until})

	s.must("ForgetFailures", s.ForgetFailures(t.Context(), a))
	s.must("ForgetFailures", s.ForgetFailures(t.Context(), none))
	want("after the first was forgotten", wire.Failures{}, wire.Failures{Count: 2, Until: until})

	s.must("AddFailure", s.AddFailure(t.Context(), [][32]byte{b, a}, until, later))
	want("after their time was over",
		wire.Failures{Count: 1, Until: later}, wire.Failures{Count: 1, Until: later})

	// Both orders at once: a store that locks what it counts must not deadlock.
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() { s.must("AddFailure", s.AddFailure(t.Context(), [][32]byte{a, b}, until, later)) })
		callers.Go(func() { s.must("AddFailure", s.AddFailure(t.Context(), [][32]byte{b, a}, until, later)) })
	}
	callers.Wait()
	want("after many at once", wire.Failures{Count: 17, Until: later}, wire.Failures{Count: 17, Until: later})

	// The count never falls below zero.
	s.must("TakeBackFailure", s.TakeBackFailure(t.Context(), [][32]byte{a, none}))
	want("after one was taken back",
		wire.Failures{Count: 16, Until: later}, wire.Failures{Count: 17, Until: later})
	for range 17 {
		s.must("TakeBackFailure", s.TakeBackFailure(t.Context(), [][32]byte{a}))
	}
	if got, err := s.Failures(t.Context(), [][32]byte{a}); err != nil || got[0].Count != 0 {
		t.Errorf("after all were taken back: %v, %v", got, err)
	}
}

func TestTheAuditLogPagesBackwardsAccountByAccount(t *testing.T) {
	s := people{t, open()}
	a, b := s.join(user(1, "team"), noInvite), s.join(user(2, "others"), noInvite)

	var want []wire.AuditEntry
	for n := range 5 {
		e := wire.AuditEntry{
			ID:     fmt.Sprintf("01900000-0000-7000-8000-%012d", n),
			At:     noon.Add(time.Duration(n) * time.Second),
			Actor:  a.Email,
			Action: "create key",
			Target: fmt.Sprint(n),
		}
		s.must("Audit", s.Audit(t.Context(), a.AccountID, e))
		want = append([]wire.AuditEntry{e}, want...)
	}

	// The id of a page's last entry leads to the next page.
	before := ""
	for _, page := range [][]wire.AuditEntry{want[:2], want[2:4], want[4:], {}} {
		got, err := s.AuditLog(t.Context(), a.AccountID, before, 2)
		s.must("AuditLog", err)
		same(t, "page", got, page)
		if len(got) > 0 {
			before = got[len(got)-1].ID
		}
	}

	got, err := s.AuditLog(t.Context(), b.AccountID, "", 2)
	s.must("AuditLog", err)
	same(t, "the others' page", got, []wire.AuditEntry{})
}

func TestTheAuditLogLosesWhatIsOldAndWhatIsTooMuch(t *testing.T) {
	s := people{t, open()}
	entries := func(account string, times ...time.Duration) (all []wire.AuditEntry) {
		for n, at := range times {
			e := wire.AuditEntry{ID: wire.NewIDAt(noon.Add(at)), At: noon.Add(at), Target: fmt.Sprint(n)}
			s.must("Audit", s.Audit(t.Context(), account, e))
			all = append(all, e)
		}

		return all
	}

	a, b := s.join(user(1, "team"), noInvite), s.join(user(2, "others"), noInvite)
	many := entries(a.AccountID, 4*time.Hour, 3*time.Hour, 2*time.Hour, time.Hour)
	few := entries(b.AccountID, 2*time.Hour, -time.Second, -24*time.Hour)
	c := s.join(user(3, "busy"), noInvite)
	busy := entries(c.AccountID, 9*time.Hour, 8*time.Hour, 7*time.Hour, 6*time.Hour, 5*time.Hour, time.Hour)

	// However many are fresh, none of them makes space for another.
	fresh := noon.Add(5*time.Hour - time.Minute)
	s.must("TrimAudit", s.TrimAudit(t.Context(), noon, fresh, 3))
	for account, want := range map[string][]wire.AuditEntry{
		a.AccountID: many[:3], b.AccountID: few[:1], c.AccountID: busy[:5],
	} {
		got, err := s.AuditLog(t.Context(), account, "", 10)
		s.must("AuditLog", err)
		same(t, "what is kept", got, want)
	}
}

// race calls fn from several goroutines. Exactly one call must succeed, all others must
// fail with the code.
func (s people) race(code wire.Code, fn func(ctx context.Context, n int) error) {
	s.t.Helper()
	const callers = 8
	errs := make([]error, callers)

	var wg sync.WaitGroup
	for n := range callers {
		wg.Go(func() { errs[n] = fn(s.t.Context(), n) })
	}
	wg.Wait()

	won := 0
	for _, err := range errs {
		if err == nil {
			won++
			continue
		}
		wantCode(s.t, err, code)
	}

	if won != 1 {
		s.t.Errorf("%d callers succeeded, want 1", won)
	}
}

func TestCallersAtTheSameTimeOneGetsTheEmail(t *testing.T) {
	s := people{t, open()}
	s.race(wire.CodeConflict, func(ctx context.Context, n int) error {
		u := user(n, fmt.Sprintf("team%d", n))
		u.Email = "ann@example.com"
		_, err := s.CreateUser(ctx, u, "x", noInvite)
		return err
	})
}

func TestCallersAtTheSameTimeOneSpendsTheInvite(t *testing.T) {
	s := people{t, open()}
	s.invite(1, invite(1, "team", wire.RoleEditor))
	s.race(wire.CodeNotFound, func(ctx context.Context, n int) error {
		_, err := s.CreateUser(ctx, user(n, ""), "x", hash(1))
		return err
	})
}
