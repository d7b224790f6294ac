package wire

// Kept is how much a server keeps of an account. Both are exact.
type Kept struct {
	Requests int64
	Bytes    int64 // of the bodies of all their events, as they were sent; the disk holds them packed
}
