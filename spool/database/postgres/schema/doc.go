// Package schema makes the tables of the database, and their partitions by week.
//
// Tables are made in one transaction, by one server at a time. The tables of records have a
// partition for each week, which is made before the first record of the week is written, and
// dropped as a whole when all of it is too old.
//
//	create.go                  the tables, made from schema.sql
//	partition.go               partitions, and the week that an id belongs to
//	spread.go                  the tables spread over the nodes of a Citus
//	key.go                     accounts, ids and times, as they are stored
//
// The contents of the tables are the business of package postgres.
package schema
