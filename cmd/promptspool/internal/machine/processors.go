package machine

import (
	"os"
	"runtime"
	"sync"
)

// UseProcessors lets twice as many threads run Go code as there are processors.
//
// Badger reads and writes files through mappings. A thread that the kernel makes wait for a page
// (10 ms and more when a new file is begun) holds what the runtime takes for a processor, and
// with it all goroutines that are queued there. GOMAXPROCS overrides it.
var UseProcessors = sync.OnceFunc(func() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(2 * runtime.GOMAXPROCS(0))
	}
})
