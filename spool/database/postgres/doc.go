// Package postgres keeps a server's data in a PostgreSQL database that any number of servers
// share.
//
// It promises what package badgerdb does: a write is durable when its method returns, as far
// as the database's synchronous_commit and fsync are on; a batch is applied as a whole or not
// at all; and nothing that is read for one account belongs to another. No server keeps state
// that another lacks, so any of them may be stopped, replaced or added at any time.
//
// While the database is away every call fails with CodeUnavailable and a message that
// names the remedy. Each call tries it again, so nothing needs a restart when it is back.
//
// The package uses only SQL that Citus supports, so that the tables of records may be spread
// over several machines, by account (schema.Tables.Distribute). A test checks every statement
// in these files.
//
// # Records
//
// A record is spread over these tables:
//
//	record_states  one row per record, by its id: the folded state, packed
//	records        one row per record whose request has arrived (the header), by its place in
//	               the account's list: what lists show, and columns and terms for filters
//	record_bodies  one row per body that is kept
//	record_deltas  what was added to a large state since it was last written as a whole; a
//	               large state is not rewritten with each event (archive.Stored)
//	record_calls   what belongs together: one row per span, response id and trace
//	               (archive.Set)
//	rollups        what the records of a session, trace or user add up to (package rollup)
//
// All are partitioned by the week in the record's id (a UUIDv7). rollup_totals adds up the weeks of
// rollups, as lists of many sessions have no time for that.
//
// A list is read week by week, newest first; account_weeks tells which weeks an account has.
// Filters on texts use one index, on the hashes of all texts of a record (package filter). Filters
// that the columns cannot answer are evaluated in Go, on the rows that the others leave
// (query.Query.Match). The day is a term as well, so that a filter within a few days is
// counted from that one index.
//
// Words are looked for by an index: once a minute, one server makes units of rows that follow each other
// in a list, with what package textindex says about them (text_units, text_pages).
//
// Searches, statistics and exports may go to a standby (package connection). Everything else is read
// from the database that takes the writes.
//
// # Writes
//
// A server collects waiting events into groups and applies each group in one transaction:
// read the states, fold the events in Go, write what changed on condition that the revisions
// are still those that were read. If another server was faster, nothing is written and the
// transaction starts over. No row is locked while events are folded, which Citus could not
// do across nodes. All writers touch records in the order of their ids, so they cannot
// deadlock.
//
// Writers to an account hold its advisory lock shared. A deletion and the making of a
// summary hold it exclusively: no event is written that did not see a tombstone, and no
// change is missing in a summary. With Citus all servers must connect to the same node,
// because advisory locks are local to a node.
//
// # Files
//
//	db.go                          opening, closing and maintenance
//	apply.go, commit.go, fold.go   events to records: grouped, committed, folded
//	write.go, write_rows.go        what a group changes, in few statements
//	record.go                      a record's state, deltas and bodies, packed and read
//	search.go, scan.go, window.go  what callers ask for; a pass over the list; its partitions
//	bodies.go, texts.go, sorted.go searching in bodies; indexes of their words; orders other than time
//	sum.go, summarize.go           statistics from summaries; making these
//	span.go                        what no list shows: spans, traces, orphans
//	delete.go, retain.go           what a deletion, and the retention, look for
//	check.go                       a proof that all of this agrees
//	keyed.go                       what is small; its changes at other servers
//	size.go                        totals; the workers of a Citus
//	move.go                        copies to and from another kind of database
//
// A file of the same name in package badgerdb is about the same.
//
// Below it are package connection (pools, transactions, errors), package schema (tables,
// weeks, ids) and package filter (the header of a record, and conditions on it as SQL).
// The rest stays together, because it works on the same rows: a deletion, an import and a
// change of old records are all a folding, and statistics, exports and checks are all a
// scan.
package postgres
