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
	put := func(id wire.Identity, name string, own bool) error {
		return s.PutView(ctx, id, wire.View{Name: name, Address: "/", Own: own})
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
		put(ann, "b", false), put(ann, "a", true), put(bob, "a", false), put(ann, "b", true), put(ann, "b", true),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	sees(ann, "a false", "b false", "a true", "b true")
	sees(bob, "a false", "b false")
	sees(wire.Identity{Account: "b", KeyID: "user:ann"}, []string{}...)

	wantCode(t, s.RemoveView(ctx, bob, wire.View{Name: "a", Own: true}), wire.CodeNotFound)
	for i := range wire.ViewsMax - 2 {
		if err := put(ann, fmt.Sprint(i), true); err != nil {
			t.Fatal(err)
		}
	}
	wantCode(t, put(ann, "more", true), wire.CodeConflict)
	if err := put(ann, "7", true); err != nil {
		t.Error(err)
	}
	if err := s.RemoveView(ctx, ann, wire.View{Name: "a"}); err != nil {
		t.Error(err)
	}
	sees(bob, "b false")
}
