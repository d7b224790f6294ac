package databasetest

import (
	"context"
	"encoding/json"
	stderrors "errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/database/keyed"
	"promptspool/spool/database/transfer"
)

// Server is all that a server's database keeps.
type Server interface {
	transfer.Mover

	CreateKey(ctx context.Context, hash [32]byte, k wire.Key) (wire.Key, error)
	Beat(ctx context.Context, id wire.Identity, h wire.Heartbeat) error
	KeyByHash(ctx context.Context, hash [32]byte) (wire.Key, error)
	RevokeKey(ctx context.Context, id string, at time.Time) (wire.Key, error)
	CreateUser(ctx context.Context, u wire.User, password string, invite [32]byte) (wire.User, error)
	CreateInvite(ctx context.Context, hash [32]byte, i wire.Invite) error
	CreateSession(ctx context.Context, hash [32]byte, s wire.Session) error
	Audit(ctx context.Context, account string, e wire.AuditEntry) error
	UpdateTemplate(
		ctx context.Context, account, name string,
		change func(t *wire.Template) (v *wire.Version, changed bool, err error),
	) (wire.Template, error)
	Size(ctx context.Context) (archive.Size, error)
}

// RunMove checks that transfer.Copy copies everything to another database, which then
// works as if it had always had it. from and to open them, and close them through
// t.Cleanup.
func RunMove(t *testing.T, from, to func(t *testing.T) Server) {
	for name, scene := range map[string]func(t *testing.T, from, to func(t *testing.T) Server){
		"a copy holds everything, and goes on with it":          copied,
		"a copy that broke off anywhere goes on where it ended": resumed,
		"what is not empty is left alone":                       notEmpty,
		"a server that nobody used is no obstacle":              startedOnce,
		"a source that changed is found out":                    changedMeanwhile,
	} {
		t.Run(name, func(t *testing.T) { scene(t, from, to) })
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var moveKey = [32]byte{1}

// filled puts some of everything into a database. It returns the account that most of it
// belongs to, and the events of its records.
func filled(t *testing.T, s Server) (account string, events []archive.Event) {
	t.Helper()

	// More exact than PostgreSQL stores times.
	at := Start.Add(1234567 * time.Nanosecond)
	account = fillKeys(t, s, at)
	people := fillPeople(t, s, at)
	must(t, s.Beat(t.Context(), wire.Identity{Account: account}, wire.Heartbeat{
		ID:        ID(5003),
		Name:      "pod-1",
		Version:   "1",
		StartedAt: at,
	}))
	fillTemplates(t, s, account, at)

	// The seeds are fixed, so that the history is always the same.
	history := rapid.Custom(func(t *rapid.T) []archive.Event {
		return Events(t, movedRequests, 2*movedEvents)
	})
	for seed := 0; len(events) < movedEvents; seed++ {
		events = history.Example(seed)
	}
	apply(t, s, account, events...)
	apply(t, s, people, events[:len(events)/2]...)

	// Tombstones of both kinds.
	_, err := archive.Delete(t.Context(), s, account, wire.Deletion{RequestID: events[0].RequestID})
	must(t, err)
	user := wire.Deletion{Key: "user_id", Value: "Ada", Before: Start.Add(time.Hour)}
	_, err = archive.Delete(t.Context(), s, account, user)
	must(t, err)

	return account, events
}

// fillKeys creates two accounts with a key each, one of them revoked. It returns the
// other.
func fillKeys(t *testing.T, s Server, at time.Time) (account string) {
	t.Helper()
	key, err := s.CreateKey(t.Context(), moveKey, wire.Key{
		ID:          "key_1",
		AccountName: "team",
		Name:        "ü",
		Scope:       wire.ScopeFull,
		CreatedAt:   at,
	})
	must(t, err)

	_, err = s.CreateKey(t.Context(), [32]byte{3}, wire.Key{
		ID:          "key_2",
		AccountName: "others",
		Scope:       wire.ScopeApp,
		CreatedAt:   at,
	})
	must(t, err)
	_, err = s.RevokeKey(t.Context(), "key_2", at)
	must(t, err)

	return key.AccountID
}

// fillPeople creates an account with a person, who is signed in and has invited another
// one.
func fillPeople(t *testing.T, s Server, at time.Time) (account string) {
	t.Helper()
	ctx := t.Context()
	u, err := s.CreateUser(ctx, wire.User{
		ID:           ID(5000),
		AccountName:  "people",
		Email:        "ann@example.com",
		Role:         wire.RoleOwner,
		CreatedAt:    at,
		SessionsFrom: at,
	}, "its hash", [32]byte{})
	must(t, err)

	must(t, s.CreateInvite(ctx, [32]byte{4}, wire.Invite{
		ID:          ID(5001),
		AccountName: "people",
		Role:        wire.RoleViewer,
		CreatedAt:   at,
		ExpiresAt:   at.Add(time.Hour),
	}))
	must(t, s.CreateSession(ctx, [32]byte{2}, wire.Session{
		UserID:    u.ID,
		CreatedAt: at,
		ExpiresAt: at.Add(time.Hour),
	}))
	must(t, s.Audit(ctx, u.AccountID, wire.AuditEntry{
		ID:     ID(5002),
		At:     at,
		Actor:  u.Email,
		Action: "create key",
		Target: "<&>\x00",
	}))

	return u.AccountID
}

// fillTemplates publishes versions of templates in turn. A label follows the latest ones.
func fillTemplates(t *testing.T, s Server, account string, at time.Time) {
	t.Helper()
	for i := range movedVersions {
		publish := func(head *wire.Template) (*wire.Version, bool, error) {
			number := head.Latest() + 1
			head.Labels = []wire.Label{{ID: wire.LabelID(head.ID, 1), Name: "prod", Version: number}}
			head.LabelsMade = 1
			head.Moves = append(head.Moves, wire.Move{Label: "prod", Version: number, At: at, By: "ann"})
			head.Tags, head.CreatedAt, head.UpdatedAt = []string{"a"}, at, at

			// A copy must not decode and encode the text, which would lose the number's
			// form.
			return &wire.Version{
				Blueprint:     json.RawMessage(`{"n":1.50,"t":"<é\u2028\u0000>"}`),
				Metadata:      json.RawMessage(`null`),
				CommitMessage: fmt.Sprint(i),
				CreatedAt:     at,
			}, true, nil
		}
		name := fmt.Sprintf("t/%d", i%movedTemplates)
		if _, err := s.UpdateTemplate(t.Context(), account, name, publish); err != nil {
			t.Fatal(err)
		}
	}
}

// More than a part of a copy has, so that it takes several steps.
const (
	movedRequests = 2 * transfer.RecordsMax
	movedEvents   = 3 * transfer.RecordsMax
)

// More versions than one page of an Export has, of templates whose numbers have one digit and two:
// they must be read in one order, page by page.
const (
	movedTemplates = 12
	movedVersions  = 125
)

func noProgress(transfer.Progress) {}

func copied(t *testing.T, from, to func(t *testing.T) Server) {
	source, target := from(t), to(t)
	account, events := filled(t, source)
	ctx := t.Context()

	stages := map[string]bool{}
	sums, err := transfer.Copy(ctx, source, target, func(p transfer.Progress) { stages[p.Stage] = true })
	must(t, err)
	if sums["records"].Items == 0 || sums["tombstones"].Items < 2 || sums["template versions"].Items != movedVersions ||
		sums["keys"].Items != 2 || sums["sessions"].Items != 1 || !stages["copying"] {
		t.Errorf("it says that it copied %+v, in the stages %v", sums, stages)
	}
	for _, s := range []Server{source, target} {
		if unfinished, err := transfer.Unfinished(ctx, s); unfinished || err != nil {
			t.Errorf("after the copy it is said to be unfinished (%v)", err)
		}
	}

	before, err := source.Size(ctx)
	must(t, err)
	after, err := target.Size(ctx)
	must(t, err)
	if before.Records != after.Records || before.Bytes != after.Bytes ||
		before.Tombstones != after.Tombstones {
		t.Errorf("the source holds %+v, the copy %+v", before, after)
	}

	sameSettings(t, source, target)
	sameRecords(t, source, target, account)

	// The copy must know the events and the deletions, so that nothing comes twice or
	// back.
	for _, e := range events {
		for _, r := range apply(t, target, account, e) {
			if r.Code != wire.ResultDuplicate && !deletedOf(t, source, account, e) {
				t.Fatalf("an event that was copied is %q when it comes again: %+v", r.Code, e.Event)
			}
		}
	}
	sameLists(t, source, target, account)

	// The next template gets the next numbers, which apps may have stored.
	for _, s := range []Server{source, target} {
		head, err := s.UpdateTemplate(ctx, account, "new", func(*wire.Template) (*wire.Version, bool, error) {
			return &wire.Version{
				Blueprint: json.RawMessage(`{}`),
				Metadata:  json.RawMessage(`null`),
				CreatedAt: Start,
			}, true, nil
		})
		must(t, err)
		if head.ID != movedTemplates+1 || head.Revision != movedVersions+1 || head.Versions[0].ID != movedVersions+1 {
			t.Errorf("the next template is %+v", head)
		}
	}
}

// sameRecords compares records, orphans and what was deleted.
func sameRecords(t *testing.T, source, target Server, account string) {
	t.Helper()
	for i := range movedRequests {
		id := ID(1000 + i)
		want, bodies, err := source.Bodies(t.Context(), account, id)
		got, copied, err2 := target.Bodies(t.Context(), account, id)
		if wire.IsCode(err, wire.CodeNotFound) && wire.IsCode(err2, wire.CodeNotFound) {
			continue
		}
		if err := stderrors.Join(err, err2); err != nil {
			t.Fatal(err)
		}

		diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(archive.State{}))
		if diff != "" || !cmp.Equal(bodies, copied) {
			t.Fatalf("record %s (-source +copy):\n%s", id, diff)
		}
	}
}

// sameLists compares what searches find, the spans and traces, and the orphans.
func sameLists(t *testing.T, source, target Server, account string) {
	t.Helper()
	for _, w := range []wire.Search{{}, {FilterGroup: tagged("production")}} {
		if diff := cmp.Diff(search(t, source, account, w), search(t, target, account, w)); diff != "" {
			t.Errorf("search (-source +copy):\n%s", diff)
		}
	}

	if diff := cmp.Diff(allSpans(t, source, account), allSpans(t, target, account)); diff != "" {
		t.Errorf("spans (-source +copy):\n%s", diff)
	}
	for _, trace := range traces {
		want := ofTrace(t, source, account, trace)
		if diff := cmp.Diff(want, ofTrace(t, target, account, trace)); diff != "" || len(want) == 0 {
			t.Errorf("trace %s of %d spans (-source +copy):\n%s", trace, len(want), diff)
		}
	}

	want, tally := listOrphans(t, source, account, 100)
	got, copiedTally := listOrphans(t, target, account, 100)
	if diff := cmp.Diff(want, got); diff != "" || tally != copiedTally {
		t.Errorf("orphans: %+v and %+v (-source +copy):\n%s", tally, copiedTally, diff)
	}
}

// deletedOf reports whether the source has deleted the record of an event. Late events of
// such a record are dropped, or wait for its request.
func deletedOf(t *testing.T, source Server, account string, e archive.Event) bool {
	_, _, err := source.Bodies(t.Context(), account, e.RequestID)
	return wire.IsCode(err, wire.CodeNotFound)
}

// sameSettings compares keys, people, templates and sidecars.
func sameSettings(t *testing.T, source, target Server) {
	t.Helper()
	if diff := cmp.Diff(settings(t, source), settings(t, target)); diff != "" {
		t.Errorf("what is no record (-source +copy):\n%s", diff)
	}
}

// settings returns everything that a database holds besides records.
func settings(t *testing.T, s Server) (all []keyed.Entry) {
	t.Helper()
	for after := (keyed.Key{}); ; after = all[len(all)-1].Key {
		page, err := s.Small().Walk(t.Context(), after, 100)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			return all
		}
		all = append(all, page...)
	}
}

// breaking is a Mover whose writes fail once left is used up, after storing what they bring or
// before.
type breaking struct {
	Server
	left int
	kept bool
}

var errBroken = stderrors.New("the plug was pulled")

func (b *breaking) store(write func() error) error {
	if b.left--; b.left >= 0 {
		return write()
	}
	if b.kept {
		return stderrors.Join(write(), errBroken)
	}
	return errBroken
}

func (b *breaking) Bury(ctx context.Context, account string, tombstones []transfer.Tombstone) error {
	return b.store(func() error { return b.Server.Bury(ctx, account, tombstones) })
}

func (b *breaking) Change(
	ctx context.Context, account string, ids []string, alone bool, decide func(*archive.Group, archive.Reader) error,
) error {
	return b.store(func() error { return b.Server.Change(ctx, account, ids, alone, decide) })
}

func (b *breaking) Small() keyed.Store { return breakingSmall{b.Server.Small(), b} }

type breakingSmall struct {
	keyed.Store
	of *breaking
}

func (b breakingSmall) Write(ctx context.Context, entries ...keyed.Entry) error {
	// Not the last step, which deletes the mark: behind it the copy is finished.
	if entries[0].Value == nil {
		return b.Store.Write(ctx, entries...)
	}
	return b.of.store(func() error { return b.Store.Write(ctx, entries...) })
}

// resumed breaks off at every batch, and begins again.
func resumed(t *testing.T, from, to func(t *testing.T) Server) {
	source, target := from(t), to(t)
	filled(t, source)

	for try := 0; ; try++ {
		if try > 100 {
			t.Fatal("it does not come to an end")
		}

		// What is brought is stored first, perhaps in several steps, then the place after it. Every
		// second time it was stored, and only the answer was lost.
		b := &breaking{Server: target, left: try * try, kept: try%2 == 0}
		sums, err := transfer.Copy(t.Context(), source, b, noProgress)
		if err == nil {
			if try < 2 || sums["records"].Items == 0 {
				t.Errorf("after %d tries it has copied %+v", try, sums)
			}
			return
		}

		if !stderrors.Is(err, errBroken) {
			t.Fatal(err)
		}
		if unfinished, err := transfer.Unfinished(t.Context(), target); err != nil || !unfinished && try > 0 {
			t.Fatalf("a copy that broke off is not said to be unfinished (%v)", err)
		}
	}
}

func notEmpty(t *testing.T, from, to func(t *testing.T) Server) {
	source, target := from(t), to(t)
	filled(t, source)
	_, err := target.CreateKey(t.Context(), [32]byte{9}, wire.Key{
		ID:          "key_9",
		AccountName: "mine",
		Scope:       wire.ScopeApp,
		CreatedAt:   Start,
	})
	if err != nil {
		t.Fatal(err)
	}

	_, err = transfer.Copy(t.Context(), source, target, noProgress)
	if !wire.IsCode(err, wire.CodeConflict) {
		t.Errorf("a copy over something else: %v", err)
	}
	if _, err := target.KeyByHash(t.Context(), moveKey); !wire.IsCode(err, wire.CodeNotFound) {
		t.Errorf("something was copied all the same: %v", err)
	}
}

// startedOnce copies to a database in which a server has run, and left a setup code.
func startedOnce(t *testing.T, from, to func(t *testing.T) Server) {
	source, target := from(t), to(t)
	filled(t, source)
	for n, s := range []Server{source, target} {
		if err := s.CreateInvite(t.Context(), [32]byte{7, byte(n)}, wire.Invite{
			ID:          ID(6000 + n),
			AccountName: "default",
			Role:        wire.RoleOwner,
			CreatedAt:   Start,
			ExpiresAt:   Start.AddDate(10, 0, 0),
			Setup:       true,
		}); err != nil {
			t.Fatal(err)
		}
	}

	sums, err := transfer.Copy(t.Context(), source, target, noProgress)
	if err != nil || sums["invites"].Items != 1 { // the one that filled makes
		t.Errorf("a copy to a database with a setup code: %+v, %v", sums, err)
	}
}

// changedMeanwhile deletes a record of the target while it is copied to.
func changedMeanwhile(t *testing.T, from, to func(t *testing.T) Server) {
	source, target := from(t), to(t)
	account, events := filled(t, source)
	present := slices.IndexFunc(events, func(e archive.Event) bool {
		_, _, err := source.Record(t.Context(), account, e.RequestID)
		return err == nil
	})

	deletion := wire.Deletion{RequestID: events[present].RequestID}
	mover := &breaking{Server: target, left: 1 << 30}
	_, err := transfer.Copy(t.Context(), source, mover, func(p transfer.Progress) {
		if p.Stage == "copying" && p.Done["records"].Items > 0 {
			if _, err := archive.Delete(t.Context(), target, account, deletion); err != nil {
				t.Error(err)
			}
		}
	})
	if !wire.IsCode(err, wire.CodeInternal) {
		t.Errorf("a target in which a record was deleted meanwhile: %v", err)
	}
	if unfinished, err := transfer.Unfinished(t.Context(), target); !unfinished || err != nil {
		t.Errorf("it is said to be finished (%v)", err)
	}
}
