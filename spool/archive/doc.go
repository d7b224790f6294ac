// Package archive is what the server keeps of model calls: it folds events into records,
// one record per request id of an account, and says what a Store must do with them.
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
// Additions to a large record are stored beside its state rather than with it. Stored has
// the rule, and State.Join puts both together, because the order does not matter.
//
// A record whose request has not arrived yet is an orphan: its enrichments are kept and
// join the request when that arrives. Until then no list shows it.
//
// The files, by what a change of them is about:
//
//   - an event and what is read of it: event.go (a new kind begins here), request.go (a new
//     column begins here), span.go, long.go (values too long for a row)
//   - folding: state.go (with which event wins), metadata.go, unlist.go and weight.go
//     (limits of one record)
//   - what other records add, in the same transaction: set.go (the records under a key: those
//     of a span, a response id or a trace), unite.go (what a change means for others; log
//     records and scores of a span), same_call.go (reports of one call), trace_context.go (whose
//     trace it is), joint.go (the words that find a record)
//   - what a record shows: view.go (records, rows of lists, spans), events.go (as events again)
//   - what it adds to its session, trace and user: rollups.go
//   - what is stored of it: stored.go (its bytes), orphan.go (limits of what waits), deleted.go
//     (which deletion applies to it)
//   - the transaction: store.go (what a database must do), group.go (records loaded and
//     written together), change.go (edits, masked secrets, what an earlier version wrote),
//     delete.go (with the retention)
//
// The packages below it: reports is the rule of which reports are of one call, records is the
// service over a Store, query defines what searches and statistics mean, rollup sums up sessions,
// traces and users, rowcode is the form of a list's row.
package archive
