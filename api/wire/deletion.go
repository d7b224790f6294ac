package wire

import "time"

// Deletion says what to delete: one record, or those with a metadata value. It also keeps out what arrives later: no event of
// a deleted record is folded any more. A record has the value if it had it as of Before, whatever came later, or has it now
// and its request is not later than Before; also where a request has it that lost to another under the same id.
type Deletion struct {
	RequestID string    `json:"request_id,omitempty"` // of one record, or
	Key       string    `json:"metadata_key,omitempty"`
	Value     string    `json:"metadata_value,omitempty"`
	Before    time.Time `json:"before,omitzero"` // with Key: up to this moment; zero: up to now
}

// Deleted answers a deletion. When it comes, the records can no longer be found or read, and a crash does not bring them
// back; their bytes leave the disk soon after.
type Deleted struct {
	Success bool  `json:"success"`
	Records int64 `json:"records"` // records that were deleted
	Events  int64 `json:"events"`  // events that those records had
	// GoneBy is when the bytes are gone from the server's files at the latest; zero, and left out, where a database of its own decides
	// (PostgreSQL: when it has vacuumed, and the room is used again).
	GoneBy time.Time `json:"gone_by,omitzero"`
}

// ExportQuery says which records to export, whole, newest first.
type ExportQuery struct {
	FilterGroup *Filter `json:"filter_group,omitempty"`
	Q           string  `json:"q,omitempty"`
	Cursor      string  `json:"cursor,omitempty"` // to go on behind a record that came with it
}

// Exported is one record of an export, and the cursor that goes on behind it.
type Exported struct {
	Record Record
	Cursor string
}

// DecodeDeletion reads the query of a deletion by metadata: metadata_key, metadata_value and, optionally, before. Both must be
// given, so that a slip deletes nothing.
func DecodeDeletion(key, value, before string) (Deletion, error) {
	d := Deletion{Key: key, Value: value}
	var faults []FieldError
	if key == "" {
		faults = append(faults, FieldError{"metadata_key", "is missing from the query"})
	}
	if value == "" {
		faults = append(faults, FieldError{"metadata_value", "is missing from the query"})
	}
	if before != "" {
		var err error
		if d.Before, err = time.Parse(time.RFC3339Nano, before); err != nil {
			faults = append(faults, FieldError{"before", "must be a time such as 2026-03-01T12:00:00Z"})
		}
	}
	if faults != nil {
		return Deletion{}, Invalid(faults...)
	}
	return d, nil
}
