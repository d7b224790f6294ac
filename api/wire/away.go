package wire

import "fmt"

// Away is why a server did not answer a call. It stands in the chain of an Error with CodeUnavailable, and tells an answer of
// the server's own from one that something between gave in its place.
type Away struct {
	Status int   // of a foreign answer; 0 when there was none
	Err    error // what the network said; nil for a foreign answer
}

// Error tells what happened.
func (a *Away) Error() string {
	if a.Err != nil {
		return a.Err.Error()
	}
	return fmt.Sprintf("a foreign answer with status %d", a.Status)
}

// Unwrap returns the network's error.
func (a *Away) Unwrap() error { return a.Err }

// TimeHeader tells in every answer what time it is where the answer was made, in RFC 3339 with nanoseconds: by it a sidecar
// measures how far its clock is from the server's.
const TimeHeader = "Promptspool-Time"
