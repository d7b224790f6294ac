package accounts_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"promptspool/api/wire"
	"promptspool/spool/database/accounts"
	"promptspool/spool/database/keyed/keyedtest"
)

// People see the project's views, and their own after them. Each owner has so many at most.
func TestViewsAreOfTheProjectOrOfOnePerson(t *testing.T) {
	s := accounts.New(&keyedtest.Memory{}, time.Now)
	ctx, ann := t.Context(), wire.Identity{Account: "a", KeyID: "user:ann"}
	bob := wire.Identity{Account: "a", KeyID: "user:bob"}
	put := func(id wire.Identity, was, name string, own bool) error {
		return s.PutView(ctx, id, was, wire.View{Name: name, Address: "/", Own: own})
	}
	sees := func(id wire.Identity, want ...string) {
		t.Helper()
		all, err := s.Views(ctx, id)
		got := []string{}
		for _, v := range all {
			got = append(got, fmt.Sprint(v.Name, " ", v.Own))
		}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", id.KeyID, err, diff)
		}
	}

	for _, err := range []error{
		put(ann, "b", "b", false), put(ann, "c", "c", true), put(bob, "a", "a", false), put(ann, "b", "b", true),
		put(ann, "c", "a", true),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	sees(ann, "a false", "b false", "a true", "b true")
	sees(bob, "a false", "b false")
	sees(wire.Identity{Account: "b", KeyID: "user:ann"}, []string{}...)

	wantCode(t, s.RemoveView(ctx, bob, wire.View{Name: "a", Own: true}), wire.CodeNotFound)
	wantCode(t, put(ann, "a", "b", true), wire.CodeConflict)
	for i := range wire.ViewsMax - 2 {
		if err := put(ann, fmt.Sprint(i), fmt.Sprint(i), true); err != nil {
			t.Fatal(err)
		}
	}
	wantCode(t, put(ann, "more", "more", true), wire.CodeConflict)
	if err := put(ann, "7", "more", true); err != nil {
		t.Error(err)
	}
	if err := s.RemoveView(ctx, ann, wire.View{Name: "a"}); err != nil {
		t.Error(err)
	}
	sees(bob, "b false")
}
