package proxy

import (
	"errors"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/queue"
)

// outcome is what an attempt to deliver a batch came to. After retry, busy, tooLarge and
// misfit nothing is known of the batch, and it is sent again, forever. With taken,
// keyRefusal and contentRefusal the server has judged it, for good.
type outcome int

const (
	retry          outcome = iota // the server is away, or not well: all keys wait
	busy                          // the server asks this key, or its account, to come back: no other key waits
	tooLarge                      // a proxy in front of the server rejected the size: smaller batches may pass
	misfit                        // the answer has no meaning here: sent again without hurry; a person has to look
	taken                         // the server has the batch, but for the events that it refuses
	keyRefusal                    // the server does not accept the key
	contentRefusal                // the server rejects the batch as it is: one of its events is at fault
	ended                         // the sender itself is stopping
)

// verdict is an outcome, with what else is known of it.
type verdict struct {
	outcome
	reason string        // of retry, a label of the metric: network, foreign, status, answer
	after  time.Duration // at least; of retry and busy
	alone  bool          // busy, though the server did not ask: it fails for this key, and answers others
	err    error         // of ended

	answers uint64                 // of retry: what the circuit counted by then
	refused map[uint64]wire.Result // of taken, by sequence: two events of a batch may have the same id
}

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
			// No delay was asked for: the backoff alone spreads the sidecars.
			return verdict{outcome: retry, reason: "network"}
		case away.Status == 413:
			return verdict{outcome: tooLarge, reason: e.Message}
		}
		return verdict{outcome: retry, reason: "foreign", after: e.RetryAfter}
	}

	// The server itself has answered. A status that is not listed is none that
	// it should send.
	switch e.Status() {
	case 401, 403:
		return verdict{outcome: keyRefusal, reason: e.Message}
	case 400, 413, 422:
		return verdict{outcome: contentRefusal, reason: e.Message}
	case 408, 425, 429, 500, 502, 503, 504:
		if isOfKey(e) {
			return verdict{outcome: busy, reason: e.Message, after: e.RetryAfter}
		}
		return verdict{outcome: retry, reason: "status", after: e.RetryAfter}
	}

	return verdict{outcome: misfit, reason: e.Error()}
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
		return verdict{outcome: retry, reason: "answer"}
	}
	if len(answer.Refused) == 0 {
		return verdict{outcome: taken}
	}

	// The answer names events by id alone, and an event that is not in this batch may
	// be named, too.
	refused := make(map[string]wire.Result, len(answer.Refused))
	// The refusals that no event of the batch has met.
	open := make(map[string]int, len(answer.Refused))
	for _, r := range answer.Refused {
		open[r.ID]++
		// Sending again weighs more than giving up.
		if refused[r.ID].Code != wire.ResultLater {
			refused[r.ID] = r
		}
	}

	v := verdict{outcome: taken, refused: make(map[uint64]wire.Result, len(refused))}
	for _, e := range events {
		id := eventID(e)
		if r, named := refused[id]; named {
			open[id]--
			v.refused[e.Seq] = r
		}
	}

	for _, n := range open {
		if n > 0 {
			// It names an event that is not ours.
			return verdict{outcome: retry, reason: "answer"}
		}
	}

	return v
}
