package spool

// The moments at which a test can have the process killed, in the order in which an event
// meets them. They have an effect only in a binary built with the tag crashpoints, see
// CrashPoint.
const (
	CrashBeforeCommit      = "before-commit"        // a batch has its sequences; nothing of it is on the disk
	CrashAfterCommit       = "after-commit"         // it is fsynced; nobody has been answered
	CrashGenerationMake    = "generation-make"      // a generation is about to be made; nothing of it exists
	CrashGenerationMkdir   = "generation-mkdir"     // its folder exists, empty
	CrashGenerationOpened  = "generation-opened"    // Badger has made its files; their names are not synced
	CrashGenerationNamed   = "generation-named"     // it has its name, not synced; the one before is not sealed
	CrashGenerationSeal    = "generation-seal"      // it is full, and about to be closed
	CrashGenerationClosed  = "generation-closed"    // Badger has closed it; it has no SEAL
	CrashGenerationRenamed = "generation-renamed"   // it is acknowledged, and has the name of trash
	CrashBetweenSendAndAck = "between-send-and-ack" // the server has a batch, and nothing is acknowledged
	CrashLaneSynced        = "lane-synced"          // events are fsynced in a lane, and not acknowledged
)

// CrashPoints are all names that CrashPoint is called with.
var CrashPoints = []string{
	CrashBeforeCommit,
	CrashAfterCommit,
	CrashGenerationMake,
	CrashGenerationMkdir,
	CrashGenerationOpened,
	CrashGenerationNamed,
	CrashGenerationSeal,
	CrashGenerationClosed,
	CrashGenerationRenamed,
	CrashBetweenSendAndAck,
	CrashLaneSynced,
}
