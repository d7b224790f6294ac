package api

import "sync"

// quota counts what callers have under way at the same time: each owner, and all of them. Safe for concurrent use.
type quota struct {
	max, ofOwnerMax int

	mu      sync.Mutex
	all     int            // under mu
	ofOwner map[string]int // under mu; none is 0
}

func newQuota(max, ofOwnerMax int) *quota {
	return &quota{max: max, ofOwnerMax: ofOwnerMax, ofOwner: map[string]int{}}
}

// begin reports whether an owner may have one more; then end must be called. If not, own reports whether the owner's
// share is used up, rather than that of all.
func (q *quota) begin(owner string) (ok, own bool) {
	q.mu.Lock()
	defer q.mu.Unlock()

	if q.ofOwner[owner] >= q.ofOwnerMax {
		return false, true
	}
	if q.all >= q.max {
		return false, false
	}
	q.all++
	q.ofOwner[owner]++

	return true, false
}

func (q *quota) end(owner string) {
	q.mu.Lock()
	defer q.mu.Unlock()

	q.all--
	if q.ofOwner[owner]--; q.ofOwner[owner] == 0 {
		delete(q.ofOwner, owner)
	}
}
