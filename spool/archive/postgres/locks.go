package postgres

// Advisory locks are numbers that all who use a database agree on. Ours begin with the letters "psp"; each kind of
// work has a number of its own, so that none waits for another.
const (
	_             = 0x707370<<32 + iota
	migrationLock // changes the tables
	partitionLock // makes or drops partitions
	runLock       // maintains the database: one server at a time, for minutes
	lockPeople    // makes a person
)
