package wire

// ExportMark is in the lines of an export that are not events: {"export": {"cursor", "done"}}.
type ExportMark struct {
	Cursor string `json:"cursor"` // continues after the lines before it; "" at the end
	Done   bool   `json:"done"`
}

// The forms of an export.
const (
	FormatEvents = "events" // newline-delimited, with an ExportMark now and then; the usual one
	FormatCSV    = "csv"    // a line for each record, without its texts; see CSVColumns
)

// Export is the body of POST /api/public/v2/requests/export.
type Export struct {
	Search
	Format string `json:"format,omitempty"` // FormatEvents or FormatCSV; "" is FormatEvents
}

// DecodeExport reads the body of an export.
func DecodeExport(object Object) (Export, error) {
	f := fields{object: object}
	format := f.oneOf("format", []string{FormatEvents, FormatCSV})
	if err := f.err(); err != nil {
		return Export{}, err
	}
	s, err := DecodeSearch(object)
	return Export{s, format}, err
}
