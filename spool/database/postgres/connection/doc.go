// Package connection is a server's connections to its PostgreSQL: pools, transactions that
// survive a failover, and errors that name the remedy.
//
// It knows SQL and no tables.
//
//	settings.go, pool.go    the connection string; the pools, their transactions, statements and health
//	retry.go                what happens again after a conflict or a lost connection
//	bound.go                an end for statements that the database does not end
//	failure.go              the database's errors as ours
//
// While the database is away every call fails with CodeUnavailable. Each call tries it again,
// so nothing needs a restart when it is back.
package connection
