package proxy

import (
	"errors"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/queue"
)

// verdict is the result of an attempt to deliver a batch. After retry, busy, tooLarge and
// misfit nothing is known of the batch, and it is sent again, forever. With taken,
// keyRefusal and contentRefusal the server has judged it, for good.
type verdict interface{ isVerdict() }

// retry means that the server is away, or not well. All keys wait.
type retry struct {
	after  time.Duration // at least
	reason string        // a label of the metric: network, foreign, status, answer
}

// busy means that the server asks this key, or its account, to come back. No other key waits.
type busy struct {
	after  time.Duration // at least
	reason string
	alone  bool // the server did not ask: it fails for this key, and answers others
}

// tooLarge means that a proxy in front of the server rejected the size. Smaller
// batches may pass.
type tooLarge struct{ reason string }

// misfit means that the server gave an answer that has no meaning here. The batch is sent
// again, without hurry; a person has to look.
type misfit struct{ reason string }

// taken means that the server has the batch, but for the events refused, by their sequence.
// Two events of a batch may have the same id.
type taken struct{ refused map[uint64]wire.Result }

// keyRefusal means that the server does not accept the key.
type keyRefusal struct{ reason string }

// contentRefusal means that the server rejects the batch as it is. One of its events
// is at fault.
type contentRefusal struct{ reason string }

// ended means that the sender itself is stopping.
type ended struct{ err error }

func (retry) isVerdict()          {}
func (busy) isVerdict()           {}
func (tooLarge) isVerdict()       {}
func (misfit) isVerdict()         {}
func (taken) isVerdict()          {}
func (keyRefusal) isVerdict()     {}
func (contentRefusal) isVerdict() {}
func (ended) isVerdict()          {}

// judge reads the outcome of a request. Only what the server itself answered can refuse
// anything: a proxy's 403 or 413 is a retry.
func judge(events []queue.Entry, answer wire.BatchAnswer, err error) verdict {
	if err == nil {
		return divide(events, answer)
	}

	e := wire.AsError(err)
	if away := (*wire.Away)(nil); errors.As(err, &away) {
		switch {
		case away.Err != nil:
			return retry{reason: "network"} // no delay was asked for; the backoff alone spreads the sidecars
		case away.Status == 413:
			return tooLarge{e.Message}
		}
		return retry{after: e.RetryAfter, reason: "foreign"}
	}

	// The server itself has answered. A status that is not listed is none that
	// it should send.
	switch e.Status() {
	case 401, 403:
		return keyRefusal{e.Message}
	case 400, 413, 422:
		return contentRefusal{e.Message}
	case 408, 425, 429, 500, 502, 503, 504:
		if isOfKey(e) {
			return busy{after: e.RetryAfter, reason: e.Message}
		}
		return retry{after: e.RetryAfter, reason: "status"}
	}

	return misfit{e.Error()}
}

// isOfKey reports whether the server's error concerns only the key that it was called with, or
// its account. It serves others meanwhile.
func isOfKey(err error) bool {
	e := wire.AsError(err)
	return e.Code == wire.CodeTooMany || e.Affects != ""
}

// divide sorts a batch's events by the server's answer. An answer that does not account
// for every event of this batch, and for no other, counts as none: believing it could
// lose the rest.
//
// An id may be in a batch twice, with different events, if a program sent them so. The
// answer then does not show which of them was refused: all of them count as refused. For
// one that was taken this does no harm.
func divide(events []queue.Entry, answer wire.BatchAnswer) verdict {
	sum := answer.Accepted + answer.Duplicate + len(answer.Refused)
	if answer.Accepted < 0 || answer.Duplicate < 0 || sum != len(events) {
		return retry{reason: "answer"}
	}
	if len(answer.Refused) == 0 {
		return taken{}
	}

	// The answer names events by id alone, and an event that is not in this batch may
	// be named, too.
	refused := make(map[string]wire.Result, len(answer.Refused))
	open := make(map[string]int, len(answer.Refused)) // refusals that no event of the batch has met
	for _, r := range answer.Refused {
		open[r.ID]++
		if refused[r.ID].Code != wire.ResultLater { // sending again weighs more than giving up
			refused[r.ID] = r
		}
	}

	t := taken{make(map[uint64]wire.Result, len(refused))}
	for _, e := range events {
		id := eventID(e)
		if r, named := refused[id]; named {
			open[id]--
			t.refused[e.Seq] = r
		}
	}

	for _, n := range open {
		if n > 0 {
			return retry{reason: "answer"} // it names an event that is not ours
		}
	}

	return t
}
