// Package archive is the server's side of logging: it folds events into records, one
// record per request id of an account, and answers questions about them.
//
// Everything that decides is here and pure: Decode reads an event, State.Fold merges it,
// State.View and State.Row show the result, and a Group says what a batch of events, a
// deletion, an edit or the retention makes of the records that a Store has loaded. The Store
// only loads and writes, in one durable transaction each; package databasetest is the suite
// that every Store passes.
//
// Folding is commutative, associative and idempotent: whatever the order, the batches and
// the repetitions in which the events of a record arrive, the record ends up the same.
// Two rules ensure that. Each event has a Stamp that never changes once it is stored, and
// each place in a record belongs to the lowest stamp (the request itself) or to the
// highest (a score by its name, a metadata key, the template link). And an event whose id
// is in the record's history changes nothing.
//
// What a large record gains is stored beside its state rather than with it. Stored has
// the rule, and State.Join puts both together, because the order does not matter.
//
// A record whose request has not arrived yet is an orphan: its enrichments are kept and
// join the request when that arrives. Until then no list shows it.
//
// The packages below it need no Store: query defines what searches and statistics mean,
// rowcode is the form of a list's row, counting continues statistics that take longer than
// their caller waits.
//
// What is left here is one noun and what is asked of it: how events become a State
// (event.go, request.go, stamp.go, state.go, metadata.go, long.go, stored.go), what a State
// shows and weighs (view.go, events.go, weight.go, deleted.go, orphan.go, price.go), the
// Store and what is done with records over it (store.go, group.go, delete.go, change.go, keep.go,
// committer.go), and the Archive over all that. Nearly all of it reads the State's fields or changes them.
package archive
