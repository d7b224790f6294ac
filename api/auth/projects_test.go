package auth_test

import (
	"slices"
	"strings"
	"testing"

	"promptspool/api/auth"
	"promptspool/api/wire"
)

// A file is applied twice; the second time there is nothing to change.
func TestAFileOfProjectsIsAppliedOnce(t *testing.T) {
	f := newFixture(t, wire.SignUpInvite)
	f.owner()
	keys := auth.New(auth.Config{Store: f.store})
	apply := func(w wire.Wanted, dry bool) []string {
		t.Helper()
		done, err := f.Operator(keys).Apply(t.Context(), w, dry)
		if err != nil {
			t.Fatal(err)
		}
		return done
	}
	wanted := wire.Wanted{Projects: map[string]wire.WantedProject{
		"shop": {People: map[string]wire.Role{"Ann@example.com": wire.RoleViewer}},
		"support": {
			People: map[string]wire.Role{"bob@example.com": wire.RoleReviewer},
			Keys:   map[string]wire.WantedKey{"bot": {Scope: wire.ScopeApp, Prefix: "support/", Expires: "90d"}},
		},
	}}

	want := []string{
		"created project shop", "ann@example.com is viewer in shop", "created project support",
		"bob@example.com is reviewer in support", "created key bot of support",
	}
	if got := apply(wanted, true); !slices.Equal(got, want) {
		t.Errorf("it would do %q, want %q", got, want)
	}
	done := apply(wanted, false)
	secret, ok := strings.CutPrefix(done[len(done)-1], "created key bot of support: ")
	secret, _, _ = strings.Cut(secret, " ")
	id, err := keys.Authenticate(t.Context(), wire.Secret(secret))
	if !ok || err != nil || id.Scope != wire.ScopeApp || id.Prefix != "support/" || id.Expires.IsZero() {
		t.Errorf("the key %q is %+v, %v", secret, id, err)
	}
	if got := apply(wanted, false); len(got) != 0 {
		t.Errorf("the second time it does %q", got)
	}

	// A fault anywhere leaves everything as it is.
	for want, w := range map[string]wire.WantedProject{
		"revoke it, or choose another name": {Keys: map[string]wire.WantedKey{"bot": {Scope: wire.ScopeFull}}},
		"must be an email address":          {People: map[string]wire.Role{"bob": wire.RoleOwner}},
		"must be viewer, reviewer":          {People: map[string]wire.Role{"bob@example.com": "boss"}},
		"expires must be a time":            {Keys: map[string]wire.WantedKey{"x": {Scope: 1, Expires: "soon"}}},
		"scope must be":                     {Keys: map[string]wire.WantedKey{"x": {}}},
	} {
		faulty := wire.Wanted{Projects: map[string]wire.WantedProject{"a": {}, "support": w}}
		done, err := f.Operator(keys).Apply(t.Context(), faulty, false)
		if !wire.IsCode(err, wire.CodeInvalid) || !strings.Contains(err.Error(), want) || done != nil {
			t.Errorf("want %q: %v, %q", want, err, done)
		}
	}
	if all, err := f.Operator(nil).Projects(t.Context()); err != nil || len(all) != 3 {
		t.Errorf("there are %+v, %v; want default, shop and support", all, err)
	}
}

func TestTheKeysOfAnArchivedProjectAreRefused(t *testing.T) {
	f := newFixture(t, wire.SignUpInvite)
	keys := auth.New(auth.Config{Store: f.store})
	o := f.Operator(keys)
	secret, k, err := keys.CreateKey(t.Context(), wire.NewKey{Account: "shop", Scope: wire.ScopeApp})
	if err != nil {
		t.Fatal(err)
	}

	for _, archived := range []bool{true, false} {
		if _, err := o.ArchiveProject(t.Context(), "shop", archived); err != nil {
			t.Fatal(err)
		}
		_, err := keys.Authenticate(t.Context(), secret)
		if wire.IsCode(err, wire.CodeUnauthorized) != archived {
			t.Errorf("archived %t: %v", archived, err)
		}
		_, _, _, err = keys.RotateKey(t.Context(), k.ID, 0)
		if wire.IsCode(err, wire.CodeConflict) != archived {
			t.Errorf("archived %t, rotated: %v", archived, err)
		}
	}

	if _, err := o.RenameProject(t.Context(), auth.BootstrapAccount, "x"); !wire.IsCode(err, wire.CodeConflict) {
		t.Errorf("the project default is renamed: %v", err)
	}
}
