package wire

// Repriced tells how far a repricing has come.
type Repriced struct {
	Success bool   `json:"success"`
	Seen    int    `json:"seen"`    // requests that were looked at
	Changed int    `json:"changed"` // of them, those that have another price now, or of which more could be read
	Cursor  string `json:"cursor"`  // send it to go on
	Done    bool   `json:"done"`
}
