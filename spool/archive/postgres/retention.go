package postgres

import "time"

// Retention says what is kept of each account. Zero values keep everything.
type Retention struct {
	Age   time.Duration // records whose order time is older go, and so do orphans
	Bytes int64         // of bodies as they were sent; beyond it the oldest records go
}
