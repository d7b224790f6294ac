// Package postgres is a server's database in PostgreSQL, for those whom one machine no longer serves: any number of servers
// share it, and none of them holds a state that another lacks. It promises what package badgerdb does: a write is durable
// when its method returns, as far as the database's synchronous_commit and fsync say; a batch is there whole or not at all;
// and nothing read under one account belongs to another.
//
// It uses only SQL that Citus takes, so that the same tables may be spread over several machines (citus.sql); a test keeps that.
//
// While the database is away every call fails with CodeUnavailable and a message that names the remedy. It is asked anew with
// every call, so nothing needs a restart when it is back.
//
// # Records
//
// A record is a row of record_states, under its id; once its request has come also a row of records, the header, under its place in
// the account's list; and a row of record_bodies for each body that is kept. A large state is
// not written with each event: rows of record_deltas hold what came since it was
// (archive.Stored). All four are partitioned by the week in the record's id.
// Lists walk over the weeks that account_weeks tells of, newest first. What a filter asks of texts is asked of the index on their hashes,
// terms; what the columns cannot tell is asked in Go, of the rows that they leave (archive.Query.Match). The day has a term as well, so that
// what a filter finds within a few days is counted in that one index.
//
// Searches, statistics and exports may go to a standby (pool.go); everything else is read where writes go.
//
// # Writes
//
// A server gathers what waits into groups, each one transaction. It reads the states, folds the events in Go, and writes what has changed
// under the revisions that it has read. If another server was faster, the revision is another, nothing is written, and it begins anew:
// no row is locked while events are folded, which Citus could not do over several nodes. All touch records in the order of their
// ids, so that they do not wait for each other in a circle.
//
// Whoever writes to an account holds its advisory lock together with all other writers. Whoever deletes, or makes a summary, holds it alone:
// so no event can slip in beside a tombstone that its writer did not see, and no change beside a summary that does not have it.
// On Citus all servers must connect to one node, for advisory locks are of the node that gave them.
package postgres
