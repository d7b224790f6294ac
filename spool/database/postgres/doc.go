// Package postgres keeps a server's data in a PostgreSQL database that any number of servers
// share.
//
// It promises what package badgerdb does: a write is durable when its method returns, as far
// as the database's synchronous_commit and fsync are on; a batch is applied as a whole or not
// at all; and nothing that is read for one account belongs to another. No server keeps state
// that another lacks, so any of them may be stopped, replaced or added at any time.
//
// While the database is away every call fails with CodeUnavailable and a message that names
// the remedy. Each call tries it anew, so nothing needs a restart when it is back.
//
// The package uses only SQL that Citus supports, so that the tables of records may be spread
// over several machines, by account (schema.Tables.Distribute). A test checks every statement
// in these files.
//
// # Records
//
// A record is spread over four tables:
//
//	record_states  one row per record, by its id: the folded state, packed
//	records        one row per record whose request has arrived (the header), by its place in
//	               the account's list: what lists show, and columns and terms for filters
//	record_bodies  one row per body that is kept
//	record_deltas  what was added to a large state since it was last written as a whole; a
//	               large state is not rewritten with each event (archive.Stored)
//
// All four are partitioned by the week in the record's id (a UUIDv7).
//
// A list is read week by week, newest first; account_weeks tells which weeks an account has.
// Filters on texts use one index, on the hashes of all texts of a record (term.go). Filters
// that the columns cannot answer are evaluated in Go, on the rows that the others leave
// (query.Query.Match). The day is a term as well, so that a filter within a few days is
// counted from that one index.
//
// Searches, statistics and exports may go to a standby (package connection). Everything else is read
// from the database that takes the writes.
//
// # Writes
//
// A server gathers waiting events into groups and applies each group in one transaction:
// read the states, fold the events in Go, write what changed on condition that the revisions
// are still those that were read. If another server was faster, nothing is written and the
// transaction starts over. No row is locked while events are folded, which Citus could not
// do across nodes. All writers touch records in the order of their ids, so they cannot
// deadlock.
//
// Writers to an account hold its advisory lock shared. Whoever deletes or makes a summary
// holds it exclusively: no event can slip in beside a tombstone that its writer did not see,
// and no change beside a summary that lacks it. With Citus all servers must connect to the
// same node, because advisory locks are local to a node.
//
// # Files
//
//	db.go, run.go                                opening and closing; maintenance
//	apply.go, commit.go, aside.go, fold.go       events to records
//	write.go, write_add.go, write_change.go      what a group changes, in few statements
//	key.go, codec.go, header.go, term.go         how a record is represented in rows
//	search.go, scan.go, content.go, window.go,
//	excerpts.go                                  reading a list
//	predicate.go                                 a filter as SQL
//	summary.go, sorted.go                        statistics and sorted lists from summaries
//	record.go, state.go, orphan.go               reading single records
//	delete.go, retain.go,
//	check.go                                     maintenance of records
//	keyed.go, watch.go, size.go                  what is small, its changes at other servers; totals
//	nodes.go                                     the workers of a Citus
//	export.go, import.go                         copying to and from another database
//
// Below it are package connection (pools, transactions, errors) and package schema (tables,
// weeks). What is left stays together, because it works on the same rows: a
// deletion, an import and a change of old records are all a folding, and statistics, exports
// and checks are all a scan.
package postgres
