package wire

import "time"

// Orphan is a request of which only later events have come: scores, metadata and links that wait for it.
type Orphan struct {
	RequestID      string    `json:"request_id"`
	Events         int       `json:"events"`           // that wait
	Kinds          []Kind    `json:"kinds"`            // of them, sorted, each once
	Sidecars       []string  `json:"sidecars"`         // who accepted them, sorted, each once; the first 16
	FirstArrivedAt time.Time `json:"first_arrived_at"` // by the server's clock
	LastArrivedAt  time.Time `json:"last_arrived_at"`
}

// OrphanPage answers GET /api/public/v2/requests/orphans: by request id, ascending, which is about the order in which the
// requests were made.
type OrphanPage struct {
	Success    bool     `json:"success"`
	Items      []Orphan `json:"items"`
	Total      int64    `json:"total"`  // requests that are missing, on all pages
	Events     int64    `json:"events"` // events that wait for them
	NextCursor *string  `json:"next_cursor"`
}

// OrphanQuery asks for a page of orphans.
type OrphanQuery struct {
	PerPage int    // 1..PageItemsMax
	Cursor  string // next_cursor of an earlier page; "" for the first
}
