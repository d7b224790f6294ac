package machine

import "os"

// EndBy ends the process as an interruption does.
func EndBy(os.Signal) { os.Exit(1) }
