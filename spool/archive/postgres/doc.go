// Package postgres is a server's database in PostgreSQL, for those whom one machine no longer serves: any number of servers
// share it, and none of them holds a state that another lacks. It promises what package badgerdb does: a write is durable
// when its method returns, as far as the database's synchronous_commit and fsync say; a batch is there whole or not at all;
// and nothing read under one account belongs to another.
//
// It uses only SQL that Citus takes, so that the same tables may be spread over several machines; a test keeps that.
//
// While the database is away every call fails with CodeUnavailable and a message that names the remedy. It is asked anew with
// every call, so nothing needs a restart when it is back.
package postgres
