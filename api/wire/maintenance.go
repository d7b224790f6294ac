package wire

import "time"

// Kept is how much a server stores for an account; both numbers are exact.
type Kept struct {
	Requests int64
	Bytes    int64 // of the bodies of all events, as they were sent; on disk they are compressed
}

// Repriced reports the progress of a repricing.
type Repriced struct {
	Success bool          `json:"success"`
	Seen    int           `json:"seen"`    // requests that were looked at
	Changed int           `json:"changed"` // of them, those that are read otherwise, or have a new price
	Parts   RepricedParts `json:"parts"`   // what changed in these
	Cursor  string        `json:"cursor"`  // send it to continue
	Done    bool          `json:"done"`
}

// RepricedParts are numbers of requests by what changed in them.
type RepricedParts struct {
	Tokens int `json:"tokens"` // the numbers of tokens
	Price  int `json:"price"`  // the cost, or what a price list says beside a given one
	Status int `json:"status"` // the status, or the type of an error
	Model  int `json:"model"`  // the model, its provider or the service tier
	Text   int `json:"text"`   // the texts, or what else is known of the answer
}

// Add adds the numbers of others.
func (p *RepricedParts) Add(o RepricedParts) {
	p.Tokens += o.Tokens
	p.Price += o.Price
	p.Status += o.Status
	p.Model += o.Model
	p.Text += o.Text
}

// SecretKind is how a secret was recognised.
type SecretKind string

// The kinds of secrets.
const (
	SecretName   SecretKind = "credential_name" // by the name of its member
	SecretKey    SecretKind = "provider_key"    // by the shape of a well-known key
	SecretAWS    SecretKind = "aws_secret"      // because it is beside the id of an AWS key
	SecretBearer SecretKind = "bearer_token"    // a JSON web token
	SecretURL    SecretKind = "url_password"    // user and password of a URL, and keys in its query
)

// SecretFinding says what kind of secret was found, but not what it is.
type SecretFinding struct {
	Kind   SecretKind `json:"kind"`             // how the secret was recognised
	Begins string     `json:"begins,omitempty"` // a well-known key's prefix, shared by its kind: sk-a...
}

// FoundSecret is a secret in a stored record.
type FoundSecret struct {
	RequestID string `json:"request_id"`
	EventID   string `json:"event_id,omitempty"` // empty: in the summary of events whose bodies were dropped
	SecretFinding
}

// Continue continues with work that one request did not finish.
type Continue struct {
	// The cursor of the last answer; left out at first.
	Cursor string `json:"cursor,omitempty"`
}

// ScanQuery is the body of a request that looks for secrets in stored records.
type ScanQuery struct {
	// The cursor of the last answer; left out at first.
	Cursor string `json:"cursor,omitempty"`
	// Whether to mask them.
	Mask bool `json:"mask,omitempty"`
	// How many records to look at. Without it, one request looks at as many as two seconds allow.
	Limit int `json:"limit,omitempty" jsonschema:"minimum=1"`
}

// Scanned reports the progress of a scan for secrets.
type Scanned struct {
	Success bool               `json:"success"`
	Seen    int                `json:"seen"`   // records that were looked at
	Found   int                `json:"found"`  // of them, those with a secret
	Masked  int                `json:"masked"` // of them, those whose secrets are masked now
	Kinds   map[SecretKind]int `json:"kinds"`  // how many secrets of each kind
	Items   []FoundSecret      `json:"items"`  // some of what was found: 1,000 at most
	Cursor  string             `json:"cursor"` // send it to continue
	Done    bool               `json:"done"`
}

// ScanItemsMax and ScanEventItems bound the secrets that one answer lists; Scanned.Kinds
// counts all.
const (
	ScanItemsMax   = 1000
	ScanEventItems = 20 // of one event
)

// Orphan is a request that has not arrived, though scores, metadata or links for it have.
type Orphan struct {
	RequestID      string    `json:"request_id"`
	Events         int       `json:"events"`           // waiting for the request
	Kinds          []Kind    `json:"kinds"`            // of these events, sorted, each once
	Sidecars       []string  `json:"sidecars"`         // that accepted them, sorted, each once; the first 16
	FirstArrivedAt time.Time `json:"first_arrived_at"` // by the server's clock
	LastArrivedAt  time.Time `json:"last_arrived_at"`
}

// OrphanPage answers GET /api/public/v2/requests/orphans. Items are sorted by request id,
// which is about the order in which the requests were made.
type OrphanPage struct {
	Success    bool     `json:"success"`
	Items      []Orphan `json:"items"`  // the requests that have not arrived
	Total      int64    `json:"total"`  // missing requests, on all pages
	Events     int64    `json:"events"` // events waiting for them
	NextCursor *string  `json:"next_cursor"`
}

// OrphanQuery asks for a page of orphans.
type OrphanQuery struct {
	// How many requests a page has at most.
	PerPage int `json:"per_page,omitempty" jsonschema:"minimum=1,maximum=1000,default=100"`
	// The next_cursor of an earlier page.
	Cursor string `json:"cursor,omitempty"`
}

// Deletion selects what to delete: one record, or all with a metadata value, of a session or
// of a trace. It also keeps out what arrives later: events of a deleted record are not folded
// any more.
//
// A record has the value if it had it at Before, whatever came later, or if it has it now
// and its request is not later than Before. The value of a request that lost against
// another one with the same id counts as well.
type Deletion struct {
	RequestID string    `json:"request_id,omitempty"` // of one record; or
	SessionID string    `json:"session_id,omitempty"` // of its calls, and of traces with no others; or
	TraceID   string    `json:"trace_id,omitempty"`   // of its spans and calls; or
	Key       string    `json:"metadata_key,omitempty"`
	Value     string    `json:"metadata_value,omitempty"`
	Before    time.Time `json:"before,omitzero"` // not of one record: up to this moment; zero means up to now
}

// Deleted answers a deletion. By then the records cannot be found or read any more, and a
// crash does not bring them back. Their bytes leave the disk soon after.
type Deleted struct {
	Success bool  `json:"success"`
	Records int64 `json:"records"` // records that were deleted
	Events  int64 `json:"events"`  // events that those records had

	// Spans of traces in which the deleted session was, that stayed because another session is in them.
	SpansStayed int `json:"spans_stayed,omitempty"`

	// GoneBy is when the bytes are gone from the server's files at the latest. It is left
	// out where a separate database decides: PostgreSQL reuses the space after a vacuum.
	GoneBy time.Time `json:"gone_by,omitzero"`
}

// DeletionQuery is the query of a deletion by metadata. Key and value must both be given, so that a
// slip deletes nothing.
type DeletionQuery struct {
	// The key of the metadata.
	Key string `json:"metadata_key" jsonschema:"minLength=1"`
	// The value, as a whole.
	Value string `json:"metadata_value" jsonschema:"minLength=1"`
	// Only what came up to this time; up to now, if it is left out.
	Before time.Time `json:"before,omitzero"`
}
