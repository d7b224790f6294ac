package accounts_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"promptspool/api/wire"
	"promptspool/spool/database/accounts"
)

// noon has microseconds, which is as exact as PostgreSQL stores times.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)

// store is an *accounts.Store whose errors end the test.
type store struct {
	t *testing.T
	*accounts.Store
}

func (s store) create(hash [32]byte, k wire.Key) wire.Key {
	s.t.Helper()
	made, err := s.CreateKey(s.t.Context(), hash, k)
	if err != nil {
		s.t.Fatalf("CreateKey(%s): %v", k.ID, err)
	}
	return made
}

func (s store) find(hash [32]byte) wire.Key {
	s.t.Helper()
	k, err := s.KeyByHash(s.t.Context(), hash)
	if err != nil {
		s.t.Fatalf("KeyByHash: %v", err)
	}
	return k
}

func (s store) revoke(id string, at time.Time) wire.Key {
	s.t.Helper()
	k, err := s.RevokeKey(s.t.Context(), id, at)
	if err != nil {
		s.t.Fatalf("RevokeKey(%s): %v", id, err)
	}
	return k
}

func (s store) list() []wire.Key {
	s.t.Helper()
	keys, err := s.Keys(s.t.Context())
	if err != nil {
		s.t.Fatalf("Keys: %v", err)
	}
	return keys
}

// key returns a key of account, created n seconds after noon.
func key(n int, account string) wire.Key {
	return wire.Key{
		ID:          fmt.Sprintf("key_%d", n),
		AccountName: account,
		Name:        fmt.Sprintf("key number %d ✓", n),
		Scope:       wire.ScopeApp,
		CreatedAt:   noon.Add(time.Duration(n) * time.Second),
	}
}

// hash returns hashes that differ in their last byte only.
func hash(n byte) [32]byte { return [32]byte{0: 0xff, 31: n} }

// same reports a difference between what a store returned and what it should have.
func same(t *testing.T, name string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func wantCode(t *testing.T, err error, code wire.Code) {
	t.Helper()
	if !wire.IsCode(err, code) {
		t.Errorf("error is %v, want code %s", err, code)
	}
}

func TestANewKeyIsFoundByItsHashAsItWasGiven(t *testing.T) {
	s := store{t, open()}
	want := key(1, "team")
	made := s.create(hash(1), want)
	if _, err := wire.ParseID(made.AccountID); err != nil {
		t.Errorf("account id %q %v", made.AccountID, err)
	}

	// The store chooses the account's id, and keeps everything else.
	want.AccountID = made.AccountID
	same(t, "made", made, want)
	same(t, "found", s.find(hash(1)), want)
	_, err := s.KeyByHash(t.Context(), hash(2))
	wantCode(t, err, wire.CodeNotFound)
}

func TestKeysOfOneAccountNameShareTheAccountsIdOthersDoNot(t *testing.T) {
	s := store{t, open()}
	a, b := s.create(hash(1), key(1, "team")), s.create(hash(2), key(2, "team"))

	// A name that begins with another one is a name of its own.
	other := s.create(hash(3), key(3, "team.a"))

	if a.AccountID != b.AccountID {
		t.Errorf("two keys of one account have the account ids %s and %s", a.AccountID, b.AccountID)
	}
	if other.AccountID == a.AccountID {
		t.Errorf("two accounts have the id %s", a.AccountID)
	}
}

func TestTheSameHashAgainReturnsTheStoredKeyUnchanged(t *testing.T) {
	s := store{t, open()}
	first := s.create(hash(1), key(1, "team"))
	same(t, "made again", s.create(hash(1), key(2, "other")), first)
	same(t, "found", s.find(hash(1)), first)
	same(t, "listed", s.list(), []wire.Key{first})
}

func TestARevokedKeyIsStillFoundAndSaysWhenItWasRevoked(t *testing.T) {
	s := store{t, open()}
	want := s.create(hash(1), key(1, "team"))
	bystander := s.create(hash(2), key(2, "team"))

	at := noon.Add(time.Hour)
	want.RevokedAt = &at
	same(t, "revoked", s.revoke(want.ID, at), want)
	same(t, "revoked again", s.revoke(want.ID, at.Add(time.Hour)), want)
	same(t, "found", s.find(hash(1)), want)
	same(t, "found beside it", s.find(hash(2)), bystander)
}

func TestARevokedKeyCannotBeMadeAgain(t *testing.T) {
	s := store{t, open()}
	k := s.create(hash(1), key(1, "team"))
	k = s.revoke(k.ID, noon)

	// Otherwise PROMPTSPOOL_BOOTSTRAP_KEY would bring it back at the next start.
	_, err := s.CreateKey(t.Context(), hash(1), key(2, "team"))
	wantCode(t, err, wire.CodeConflict)
	same(t, "listed", s.list(), []wire.Key{k})
}

func TestRevokingAnUnknownIdIsNotFound(t *testing.T) {
	s := store{t, open()}
	want := s.create(hash(1), key(1, "team"))
	for _, id := range []string{"key_2", "key_", ""} {
		_, err := s.RevokeKey(t.Context(), id, noon)
		wantCode(t, err, wire.CodeNotFound)
	}

	same(t, "listed", s.list(), []wire.Key{want})
}

func TestARotatedKeyAndItsSuccessorAreStoredTogetherOrNeither(t *testing.T) {
	s := store{t, open()}
	want := key(1, "team")
	end, later := noon.Add(24*time.Hour), noon.Add(48*time.Hour)
	want.ExpiresAt, want.Prefix = &later, "support/"
	want = s.create(hash(1), want)
	bystander := s.create(hash(2), key(2, "team"))

	next := key(3, "team")
	next.AccountID, next.Prefix = want.AccountID, want.Prefix
	made, err := s.RotateKey(t.Context(), want.ID, hash(3), func(old *wire.Key) (wire.Key, error) {
		same(t, "given to change", *old, want)
		old.ExpiresAt, old.Successor = &end, next.ID
		return next, nil
	})
	if err != nil {
		t.Fatal(err)
	}

	want.ExpiresAt, want.Successor = &end, next.ID
	same(t, "made", made, next)
	same(t, "found", s.find(hash(3)), next)
	same(t, "the old one", s.find(hash(1)), want)

	// Nothing changes if the change is refused, or there is no such key.
	_, err = s.RotateKey(t.Context(), bystander.ID, hash(4), func(old *wire.Key) (wire.Key, error) {
		old.Successor = "key_4"
		return key(4, "team"), wire.Errorf(wire.CodeConflict, "no")
	})
	wantCode(t, err, wire.CodeConflict)
	_, err = s.RotateKey(t.Context(), "key_9", hash(4), func(*wire.Key) (wire.Key, error) {
		t.Error("a key that does not exist is changed")
		return wire.Key{}, nil
	})
	wantCode(t, err, wire.CodeNotFound)
	same(t, "listed", s.list(), []wire.Key{want, bystander, next})
}

func TestKeysAreListedOldestFirstRevokedOnesToo(t *testing.T) {
	s := store{t, open()}
	if keys := s.list(); len(keys) != 0 {
		t.Errorf("an empty store lists %v", keys)
	}

	// Of keys created at the same moment, the id decides.
	twin := key(2, "other")
	twin.ID = "key_3"
	third := s.create(hash(1), twin)
	second := s.create(hash(2), key(2, "team"))
	first := s.create(hash(3), key(1, "team"))

	second = s.revoke(second.ID, noon.Add(time.Hour))
	same(t, "listed", s.list(), []wire.Key{first, second, third})
}

func TestAKeyRemembersItsLastUseAndNoEarlierOne(t *testing.T) {
	s := store{t, open()}
	used, idle := s.create(hash(1), key(1, "team")), s.create(hash(2), key(2, "team"))
	late, early := noon.Add(time.Hour), noon.Add(time.Minute)

	// Servers write uses in batches, which may come in any order, and for keys that are
	// gone.
	for _, at := range []time.Time{late, early} {
		if err := s.TouchKeys(t.Context(), map[string]time.Time{used.ID: at, "key_9": at}); err != nil {
			t.Fatalf("TouchKeys: %v", err)
		}
	}

	used.LastUsedAt = &late
	same(t, "listed", s.list(), []wire.Key{used, idle})
	same(t, "found", s.find(hash(1)), used)
}

func TestWhatACallerDoesWithAKeyDoesNotReachTheStore(t *testing.T) {
	s := store{t, open()}
	k := s.create(hash(1), key(1, "team"))
	at := noon

	// Each way in or out could share the time's memory with the store.
	for _, mine := range []wire.Key{s.revoke(k.ID, at), s.find(hash(1)), s.list()[0]} {
		*mine.RevokedAt = noon.Add(time.Hour)
	}

	if got := s.find(hash(1)); !got.RevokedAt.Equal(noon) {
		t.Errorf("RevokedAt became %v, want %v", got.RevokedAt, noon)
	}
}

func TestCallersAtTheSameTimeMakeOneKeyOfOneHashAndOneAccountOfOneName(t *testing.T) {
	s := store{t, open()}
	const callers = 8
	made := make([]wire.Key, 2*callers)
	errs := make([]error, 2*callers)

	// The first half bring one hash, the others one each; all bring one account.
	var wg sync.WaitGroup
	for i := range 2 * callers {
		wg.Go(func() {
			h := hash(0)
			if i >= callers {
				h = hash(byte(i))
			}
			made[i], errs[i] = s.CreateKey(t.Context(), h, key(i, "team"))
		})
	}
	wg.Wait()

	for i := range made {
		switch {
		case errs[i] != nil:
			t.Errorf("caller %d: %v", i, errs[i])
		case made[i].AccountID != made[0].AccountID:
			t.Errorf("caller %d got account %s, caller 0 %s", i, made[i].AccountID, made[0].AccountID)
		case i < callers && made[i].ID != made[0].ID:
			t.Errorf("caller %d got key %s, caller 0 %s, by one hash", i, made[i].ID, made[0].ID)
		}
	}

	if keys := s.list(); len(keys) != callers+1 {
		t.Errorf("%d keys are stored, want %d", len(keys), callers+1)
	}
}
