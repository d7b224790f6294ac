package wire

// ExportMark stands in the lines of an export that are no events: {"export": ExportMark}.
type ExportMark struct {
	Cursor string `json:"cursor"` // goes on behind the lines before; "" at the end
	Done   bool   `json:"done"`
}
