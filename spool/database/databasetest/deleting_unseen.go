package databasetest

import (
	"testing"

	"promptspool/api/wire"
	"promptspool/spool/archive"
)

// deletingUnseen deletes more unknown records than a store remembers. Deletions that
// succeeded must hold, and known records must be deleted all the same.
func deletingUnseen(t *testing.T, open Open) {
	s, reopen := open(t)
	const most = 3
	bound := func() { s.(interface{ RememberUnseen(int) }).RememberUnseen(most) }
	bound()

	remove := func(account string, n int) (wire.Deleted, error) {
		return archive.Delete(t.Context(), s, account, wire.Deletion{RequestID: ID(n)})
	}
	here := Event(t, 1, wire.KindRequest, ID(1), `{"function_name":"f"}`)
	if _, err := s.Apply(t.Context(), "a", []archive.Event{here}); err != nil {
		t.Fatal(err)
	}

	// The same again does not count.
	for n := range most {
		for range 2 {
			if _, err := remove("a", 100+n); err != nil {
				t.Fatal(err)
			}
		}
	}

	// The second time after a restart.
	for range 2 {
		if _, err := remove("a", 200); !wire.IsCode(err, wire.CodeTooLarge) {
			t.Errorf("one more: %v", err)
		}
		if _, err := remove("a", 100); err != nil {
			t.Errorf("one that was deleted: %v", err)
		}
		s = reopen()
		bound()
	}
	if _, err := remove("b", 200); err != nil {
		t.Errorf("another account: %v", err)
	}
	if sum, err := remove("a", 1); err != nil || sum.Records != 1 {
		t.Errorf("one that is there: %+v, %v", sum, err)
	}

	// Only the last of these was not deleted.
	var late []archive.Event
	for i, n := range []int{1, 100, 101, 102, 200} {
		late = append(late, Event(t, 10+i, wire.KindRequest, ID(n), `{"function_name":"f"}`))
	}
	results, err := s.Apply(t.Context(), "a", late)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range results {
		want := wire.ResultDuplicate
		if i == len(late)-1 {
			want = wire.ResultAccepted
		}
		if r.Code != want {
			t.Errorf("%s: %+v, want %s", late[i].RequestID, r, want)
		}
	}
}
