// Package badgerdb is a server's database in one folder: an embedded Badger that holds records, templates and keys. It
// promises that a write is on disk, fsynced, when its method returns; that a batch is there whole or not at all, also
// after a crash; and that nothing read under one account belongs to another.
//
// # Writes
//
// All writes go through one committer, which puts every write that waits into one transaction with one fsync. It runs
// one change after the other, each seeing those before it, so no two writers ever work from the same state and Badger's
// own conflict detection is off.
//
// # Layout
//
// The folder holds Badger's files and FORMAT, a text that names the version of this layout. In the database, numbers are
// big-endian, ids are the 16 bytes of the UUID, and everything else is JSON unless it says otherwise. A key begins
// with 0 if it belongs to the server, or with 1 and its account, length first, so that no account's keys lie among
// another's:
//
//	00 'a' name                                  account
//	00 'k' hash 32                               key, by the SHA-256 of its secret
//	00 'u' id                                    person, with the hash of the password
//	00 'e' email                                 id of the person who signs in with it
//	00 'i' hash 32                               wire.Invite, by the SHA-256 of its code
//	00 's' hash 32                               wire.Session, by the SHA-256 of its token
//	01 len 1, account, 'r' request 16            archive.State: a record apart from its bodies
//	01 len 1, account, 'b' request 16, event 16  body of an event, as it was sent
//	01 len 1, account, 't' ^time 12, ^request 16 wire.Row: the line of a list
//	01 len 1, account, 'n'                       how many records have come: uint64
//	01 len 1, account, 'o' request 16            wire.Orphan: a record whose request has not come
//	01 len 1, account, 'w'                       archive.Orphans: the tally of these
//	01 len 1, account, 's' sidecar 16            wire.FleetSidecar: what a sidecar told of itself last
//	01 len 1, account, 'h' name                  wire.Template: the head of a template
//	01 len 1, account, 'i' id 8                  name of the template with this id: text
//	01 len 1, account, 'v' id 8, number 4        wire.Version
//	01 len 1, account, 'c' revision 8            name of the template that this revision changed last: text
//	01 len 1, account, 'm'                       last ids and revision given out
//	01 len 1, account, 'l' ^id 16                wire.AuditEntry
//
// ^time is the order time with every bit inverted, 8 bytes of seconds and 4 of nanoseconds, and ^request the
// request id likewise: a plain walk meets the newest record first. Its values are rows so that a list never touches
// states or bodies. A template has one 'c' key, that of its last change: the feed grows with the templates, not with
// their changes.
package badgerdb
