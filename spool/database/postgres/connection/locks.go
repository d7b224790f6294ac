package connection

// Advisory locks are numbers that all users of a database have to agree on. Ours begin with
// the letters "psp". Each kind of work has its own number, so that none waits for another.
const (
	_             = 0x707370<<32 + iota
	TablesLock    // changes the tables
	PartitionLock // creates or drops partitions
	RunLock       // maintains the database: one server at a time, for minutes
)
