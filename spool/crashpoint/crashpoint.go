// Package crashpoint kills the process at chosen moments, for tests.
//
// It has an effect only in a binary built with the tag crashpoints: see Reach.
package crashpoint

// The moments at which a test can have a sidecar killed, in the order in which an event meets
// them.
const (
	BeforeCommit      = "before-commit"        // a batch has its sequences; nothing of it is on the disk
	BeforeSync        = "before-sync"          // Badger has written it; nothing of it is fsynced
	AfterCommit       = "after-commit"         // it is fsynced; no caller has been answered
	GenerationMake    = "generation-make"      // a generation is about to be made; nothing of it exists
	GenerationMkdir   = "generation-mkdir"     // its folder exists, empty
	GenerationOpened  = "generation-opened"    // Badger has made its files; their names are not synced
	GenerationNamed   = "generation-named"     // it has its name, not synced; the one before is not sealed
	GenerationSeal    = "generation-seal"      // it is full, and about to be closed
	GenerationClosed  = "generation-closed"    // Badger has closed it; it has no SEAL
	GenerationRenamed = "generation-renamed"   // it is acknowledged, and has the name of trash
	BetweenSendAndAck = "between-send-and-ack" // the server has a batch, and nothing is acknowledged
	LaneSynced        = "lane-synced"          // events are fsynced in a lane, and not acknowledged
	LaneDropCounted   = "lane-drop-counted"    // dead letters of limits are no longer counted; their files are there
	LaneDropped       = "lane-dropped"         // their files are gone; what takes their place is not in the lane
)

// The moments at which a test can have a server killed that renews what an earlier version wrote.
const (
	StepBegun    = "step-begun"    // a step to another format is about to be taken; nothing of it is written
	StepWritten  = "step-written"  // all of it is written; PostgreSQL has not committed it
	FillPart     = "fill-part"     // some rows may have the values of new columns
	FillDone     = "fill-done"     // all have them, and that is not noted
	RenewWritten = "renew-written" // an index of words was made again, with what belongs to it
	BodiesPacked = "bodies-packed" // bodies of a session were packed against each other
)
