package api

import "testing"

func TestAQuotaIsForEachOwnerAndForAll(t *testing.T) {
	q := newQuota(3, 2)
	want := func(owner string, ok, own bool) {
		t.Helper()
		if gotOK, gotOwn := q.begin(owner); gotOK != ok || gotOwn != own {
			t.Errorf("%s: %v, its own: %v", owner, gotOK, gotOwn)
		}
	}

	want("ann", true, false)
	want("ann", true, false)
	want("ann", false, true)
	want("bob", true, false)
	want("bob", false, false)
	q.end("ann")
	want("bob", true, false)
	want("bob", false, true)
	q.end("ann")
	q.end("bob")
	q.end("bob")
	if q.all != 0 || len(q.ofOwner) != 0 {
		t.Errorf("%+v is left", q)
	}
}
