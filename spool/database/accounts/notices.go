package accounts

import (
	"cmp"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/database/keyed"
)

// Bounds of what a target has not been told.
const (
	QueueMax = 5_000
	DeadMax  = 5_000
)

// notices are those that no target's queue has yet, by id.
const notices keyed.Kind = "notices" // wire.Notice

// Notify puts a notice on its way to an account's targets, in the caller's transaction.
//
// The notice is told if the transaction is committed, also after a crash, and otherwise not. That is
// one write and no read, so tx may be a change of the account or of the server. Within a second, a
// server appends it to the queue of each target: those that n.Targets names and, without names, those
// that subscribe to its type. If there are none, it is forgotten. Queues are in the order of ids.
//
// An id and a time that are missing are made here. A caller whose transaction may run again should give
// the id, or two may be told. A queue has QueueMax notices: what comes to a full one becomes a dead
// letter at once. With DeadMax dead letters, it is dropped, and the target counts it.
func Notify(tx *keyed.Tx, account string, now time.Time, n wire.Notice) error {
	n.ID = cmp.Or(n.ID, wire.NewID())
	if n.Time.IsZero() {
		n.Time = now.UTC()
	}
	return tx.Put(keyed.Key{Kind: notices, Account: account, Name: n.ID}, n)
}
