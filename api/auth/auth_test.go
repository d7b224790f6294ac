package auth_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"promptspool/api/auth"
	"promptspool/api/wire"
	"promptspool/spool/database/accounts"
	"promptspool/spool/database/keyed/keyedtest"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func newStore() *accounts.Store { return accounts.New(&keyedtest.Memory{}, time.Now) }

func newAuth() *auth.Auth { return auth.New(auth.Config{Store: newStore(), Now: clock()}) }

// clock returns a clock that advances one second each time it is read.
func clock() func() time.Time {
	now := noon
	return func() time.Time {
		now = now.Add(time.Second)
		return now
	}
}

func create(t *testing.T, a *auth.Auth, account string, scope wire.Scope) (wire.Secret, wire.Key) {
	t.Helper()
	secret, k, err := a.CreateKey(t.Context(), wire.NewKey{Account: account, Name: "laptop", Scope: scope})
	if err != nil {
		t.Fatalf("CreateKey: %v", err)
	}

	return secret, k
}

func wantError(t *testing.T, err error, code wire.Code, message string) {
	t.Helper()
	if !wire.IsCode(err, code) || !strings.Contains(wire.AsError(err).Message, message) {
		t.Errorf("error is %v, want code %s with %q", err, code, message)
	}
}

func TestAKeyHasTheDocumentedForm(t *testing.T) {
	a := newAuth()
	secret, k := create(t, a, "team", wire.ScopeApp)

	if !regexp.MustCompile(`^ps_[A-Za-z0-9_-]{43}$`).MatchString(string(secret)) {
		t.Errorf("a secret of %d characters does not consist of ps_ and 32 bytes of base64url", len(secret))
	}
	if !regexp.MustCompile(`^key_[a-z2-7]{12}$`).MatchString(k.ID) {
		t.Errorf("id is %q", k.ID)
	}
	if want := noon.Add(time.Second); k.CreatedAt != want || k.Name != "laptop" || k.AccountName != "team" {
		t.Errorf("key is %+v, want name laptop, account team, made at %v", k, want)
	}

	again, k2 := create(t, a, "team", wire.ScopeFull)
	if again == secret || k2.ID == k.ID {
		t.Error("two keys are the same")
	}
	want := wire.Identity{Account: k.AccountID, KeyID: k2.ID, Scope: wire.ScopeFull, Key: again, Verified: true}
	if got, err := a.Authenticate(t.Context(), again); err != nil || got != want {
		t.Errorf("the identity is %+v, %v; want %+v", got, err, want)
	}
}

func TestAnInvalidKeyIsRefusedWithTheNextStep(t *testing.T) {
	a := newAuth()
	known, _ := create(t, a, "team", wire.ScopeApp)
	revoked, k := create(t, a, "team", wire.ScopeApp)
	gone, err := a.RevokeKey(t.Context(), k.ID)
	if err != nil || gone.RevokedAt == nil {
		t.Fatalf("RevokeKey: %+v, %v", gone, err)
	}
	_, err = a.RevokeKey(t.Context(), "key_nosuch")
	wantError(t, err, wire.CodeNotFound, "promptspool keys list")

	for _, tt := range []struct {
		who  string
		key  wire.Secret
		says string
	}{
		{"nobody", "", "is missing"},
		{"unknown", "ps_nobody", "not known"},
		{"nearly known", known + " ", "not known"},
		{"in another case", wire.Secret(strings.ToUpper(string(known))), "not known"},
		{"revoked", revoked, "was revoked"},
		{"not text", "\xff\x00", "not known"},
		{"the longest", wire.Secret(strings.Repeat("k", 4096)), "not known"},
		{"too long", wire.Secret(strings.Repeat("k", 4097)), "longer than any key"},
	} {
		id, err := a.Authenticate(t.Context(), tt.key)
		wantError(t, err, wire.CodeUnauthorized, tt.says)
		wantError(t, err, wire.CodeUnauthorized, "promptspool keys create")
		if id != (wire.Identity{}) || tt.key != "" && strings.Contains(err.Error(), string(tt.key)) {
			t.Errorf("%s: the key got the identity %+v, or is in the error: %v", tt.who, id, err)
		}
	}
}

// brokenStore answers every look-up with err.
type brokenStore struct {
	auth.Store
	err error
}

func (s brokenStore) KeyByHash(context.Context, [32]byte) (wire.Key, error) {
	return wire.Key{}, s.err
}

func TestAStoreThatCannotAnswerIsNotARefusal(t *testing.T) {
	for _, want := range []error{
		wire.Unavailable(time.Second, "The database is away."),
		errors.New("disk on fire"),
		context.Canceled,
	} {
		a := auth.New(auth.Config{Store: brokenStore{err: want}})
		if _, err := a.Authenticate(t.Context(), "ps_somebody"); !errors.Is(err, want) {
			t.Errorf("error is %v, want %v", err, want)
		}
	}
}

func TestTheStoreNeverSeesASecret(t *testing.T) {
	store := newStore()
	a := auth.New(auth.Config{Store: store})
	secret, k := create(t, a, "team", wire.ScopeApp)

	found, err := store.KeyByHash(t.Context(), sha256.Sum256([]byte(secret)))
	if err != nil {
		t.Fatalf("the key is not stored under the SHA-256 of its secret: %v", err)
	}
	if diff := cmp.Diff(k, found); diff != "" {
		t.Error(diff)
	}
	if strings.Contains(fmt.Sprintf("%#v %+v", store, found), string(secret)) {
		t.Error("the store holds the secret")
	}
}

func TestNamesAndScopesAreChecked(t *testing.T) {
	for _, tt := range []struct {
		what, account, name string
		scope               wire.Scope
		field               string // at fault; "" if none
	}{
		{"everything valid", "a", "", wire.ScopeApp, ""},
		{"every character that is allowed", "az09._-", "my laptop ✓", wire.ScopeFull, ""},
		{"the longest account", strings.Repeat("a", 64), "", wire.ScopeApp, ""},
		{"the longest name, in characters", "a", strings.Repeat("é", 128), wire.ScopeApp, ""},
		{"no project", "", "", wire.ScopeApp, "project"},
		{"project too long", strings.Repeat("a", 65), "", wire.ScopeApp, "project"},
		{"project in capitals", "Team", "", wire.ScopeApp, "project"},
		{"project with a slash", "te/am", "", wire.ScopeApp, "project"},
		{"project with a line break at its end", "team\n", "", wire.ScopeApp, "project"},
		{"name too long", "a", strings.Repeat("é", 129), wire.ScopeApp, "name"},
		{"name that moves a terminal's cursor", "a", "\x1b[2J", wire.ScopeApp, "name"},
		{"name that is not UTF-8", "a", "\xff", wire.ScopeApp, "name"},
		{"no scope", "a", "", 0, "scope"},
		{"unknown scope", "a", "", 1 << 7, "scope"},
	} {
		a := newAuth()
		secret, _, err := a.CreateKey(t.Context(), wire.NewKey{Account: tt.account, Name: tt.name, Scope: tt.scope})
		if tt.field == "" {
			if err != nil || secret == "" {
				t.Errorf("%s is refused: %v", tt.what, err)
			}
			continue
		}

		wantError(t, err, wire.CodeInvalid, tt.field+" must be")
		if keys, _ := a.Keys(t.Context()); secret != "" || len(keys) != 0 {
			t.Errorf("%s: a key was made nevertheless: %v", tt.what, keys)
		}
	}
}

func TestAPrefixIsForKeysThatDoNotSeeEverything(t *testing.T) {
	for _, tt := range []struct {
		prefix string
		scope  wire.Scope
		ok     bool
	}{
		{"support/", wire.ScopeApp | wire.ScopePublish, true},
		{"support/", wire.ScopeFetch, true},
		{strings.Repeat("é", 512), wire.ScopeFetch, true},
		{"support/", wire.ScopeApp | wire.ScopeRead, false},
		{"support/", wire.ScopeManage, false},
		{strings.Repeat("é", 513), wire.ScopeFetch, false},
		{"a\nb", wire.ScopeFetch, false},
		{"17", wire.ScopeFetch, false}, // would fit the ids of all templates
	} {
		_, k, err := newAuth().CreateKey(t.Context(), wire.NewKey{Account: "a", Scope: tt.scope, Prefix: tt.prefix})
		if tt.ok && (err != nil || k.Prefix != tt.prefix) {
			t.Errorf("%.10q with %s is refused: %v", tt.prefix, tt.scope, err)
		}
		if !tt.ok {
			wantError(t, err, wire.CodeInvalid, "prefix must be")
		}
	}
}

// hourly returns an Auth whose clock is at the moment that the second result points to.
func hourly() (*auth.Auth, *time.Time) {
	now := noon
	return auth.New(auth.Config{Store: newStore(), Now: func() time.Time { return now }}), &now
}

func TestAnExpiredKeyIsKnownForThirtyDaysMore(t *testing.T) {
	a, now := hourly()
	end := noon.Add(time.Hour)
	secret, k, err := a.CreateKey(t.Context(), wire.NewKey{
		Account: "team", Scope: wire.ScopeLog, Prefix: "p/", ExpiresAt: &end,
	})
	if err != nil {
		t.Fatal(err)
	}

	for after, expired := range map[time.Duration]bool{
		0: false, time.Hour - 1: false, time.Hour: true, time.Hour + wire.KeyGrace - 1: true,
	} {
		*now = noon.Add(after)
		want := wire.Identity{
			Account: k.AccountID, KeyID: k.ID, Scope: wire.ScopeLog, Prefix: "p/", Expires: end, Expired: expired,
			Key: secret, Verified: true,
		}
		if got, err := a.Authenticate(t.Context(), secret); err != nil || got != want {
			t.Errorf("after %v the identity is %+v, %v; want %+v", after, got, err, want)
		}
	}

	*now = end.Add(wire.KeyGrace)
	_, err = a.Authenticate(t.Context(), secret)
	wantError(t, err, wire.CodeUnauthorized, "expired on 2026-03-01 13:00 UTC")
	wantError(t, err, wire.CodeUnauthorized, "promptspool keys rotate")
	_, _, err = a.CreateKey(t.Context(), wire.NewKey{Account: "team", Scope: wire.ScopeLog, ExpiresAt: now})
	wantError(t, err, wire.CodeInvalid, "expires_at must be in the future")
}

func TestARotatedKeyEndsAfterTheOverlap(t *testing.T) {
	a, now := hourly()
	end := noon.Add(10 * time.Hour)
	first, old, err := a.CreateKey(t.Context(), wire.NewKey{
		Account: "team", Name: "shop", Scope: wire.ScopeApp, Prefix: "shop/", ExpiresAt: &end,
	})
	if err != nil {
		t.Fatal(err)
	}

	*now = noon.Add(time.Hour)
	second, made, was, err := a.RotateKey(t.Context(), old.ID, 3*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	want, ends, newEnds := old, noon.Add(4*time.Hour), noon.Add(11*time.Hour)
	want.ID, want.CreatedAt, want.ExpiresAt = made.ID, *now, &newEnds
	old.ExpiresAt, old.Successor = &ends, made.ID
	if diff := cmp.Diff([]wire.Key{want, old}, []wire.Key{made, was}); diff != "" || second == first {
		t.Errorf("rotated (-want +got):\n%s", diff)
	}
	for secret, k := range map[wire.Secret]wire.Key{first: old, second: made} {
		if id, err := a.Authenticate(t.Context(), secret); err != nil || id.KeyID != k.ID || id.Expired {
			t.Errorf("%s: %+v, %v", k.ID, id, err)
		}
	}

	// A key has one successor, and ends no later than it would have.
	_, _, _, err = a.RotateKey(t.Context(), old.ID, 0)
	wantError(t, err, wire.CodeConflict, made.ID+" replaces it")
	_, last, was, err := a.RotateKey(t.Context(), made.ID, 1000*time.Hour)
	if err != nil || !was.ExpiresAt.Equal(newEnds) || last.Scope != wire.ScopeApp {
		t.Errorf("the second rotation: %+v, %+v, %v", last, was, err)
	}

	for _, id := range []string{"key_nosuch", ""} {
		_, _, _, err = a.RotateKey(t.Context(), id, 0)
		wantError(t, err, wire.CodeNotFound, "promptspool keys list")
	}
	_, _, _, err = a.RotateKey(t.Context(), last.ID, -1)
	wantError(t, err, wire.CodeInvalid, "overlap must not be negative")
	if _, err := a.RevokeKey(t.Context(), last.ID); err != nil {
		t.Fatal(err)
	}
	_, _, _, err = a.RotateKey(t.Context(), last.ID, 0)
	wantError(t, err, wire.CodeConflict, "is revoked")
}

const bootstrapKey wire.Secret = "0123456789abcdef0123456789abcdef" // 32 characters, the fewest

func TestBootstrapMakesTheDefaultAccountOnce(t *testing.T) {
	a := newAuth()

	first, err := a.Bootstrap(t.Context(), bootstrapKey)
	if err != nil {
		t.Fatalf("Bootstrap: %v", err)
	}
	if first.AccountName != "default" || first.Scope != wire.ScopeFull {
		t.Errorf("key is %+v, want account default, scope full", first)
	}

	again, err := a.Bootstrap(t.Context(), bootstrapKey)
	if err != nil || again != first {
		t.Errorf("the second call gives %+v, %v; want %+v", again, err, first)
	}
	id, err := a.Authenticate(t.Context(), bootstrapKey)
	if err != nil || id.Account != first.AccountID {
		t.Errorf("identity is %+v, %v", id, err)
	}

	other, err := a.Bootstrap(t.Context(), bootstrapKey+"2")
	if err != nil || other.ID == first.ID || other.AccountID != first.AccountID {
		t.Errorf("a second bootstrap key is %+v, %v; want another key of the same account", other, err)
	}
}

func TestBootstrapRefusesUnusableKeys(t *testing.T) {
	a := newAuth()
	appKey, _ := create(t, a, "default", wire.ScopeApp)
	othersKey, _ := create(t, a, "team", wire.ScopeFull)
	revoked, err := a.Bootstrap(t.Context(), bootstrapKey)
	if err != nil {
		t.Fatalf("Bootstrap: %v", err)
	}
	if _, err := a.RevokeKey(t.Context(), revoked.ID); err != nil {
		t.Fatalf("RevokeKey: %v", err)
	}

	for _, tt := range []struct {
		what string
		key  wire.Secret
		code wire.Code
		says string
	}{
		{"empty", "", wire.CodeInvalid, "has 0 bytes; give it 32 to 4096"},
		{"one character short", bootstrapKey[1:], wire.CodeInvalid, "has 31 bytes"},
		{"longer than a key may be", wire.Secret(strings.Repeat("k", 4097)), wire.CodeInvalid, "has 4097 bytes"},
		{"with the line break of a file", bootstrapKey + "\n", wire.CodeInvalid, "line break"},
		{"with a blank", bootstrapKey + " x", wire.CodeInvalid, "blank"},
		{"not ASCII", bootstrapKey + "é", wire.CodeInvalid, "ASCII"},
		{"revoked", bootstrapKey, wire.CodeConflict, "was revoked"},
		{"a key of scope app", appKey, wire.CodeConflict, "with scope app"},
		{"a key of another project", othersKey, wire.CodeConflict, "of project team"},
	} {
		_, err := a.Bootstrap(t.Context(), tt.key)
		wantError(t, err, tt.code, tt.says)
		wantError(t, err, tt.code, "PROMPTSPOOL_BOOTSTRAP_KEY")
		if tt.key != "" && strings.Contains(err.Error(), string(tt.key)) {
			t.Errorf("%s: the error reveals the key", tt.what)
		}
	}
}
