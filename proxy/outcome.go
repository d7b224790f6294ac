package proxy

import (
	"errors"
	"time"

	"promptspool/api/wire"
)

// verdict is what an attempt to deliver a batch came to. There are two kinds: the batch is to be sent again, after a delay, or the
// server has judged it for good.
type verdict interface{ isVerdict() }

// retry: nothing is known of the batch. It is sent again, forever.
type retry struct {
	after  time.Duration // at least
	reason string        // a label of the metric: network, status, foreign
	halve  bool          // something between refused the size
}

// taken: the server has the batch, but for the events it names.
type taken struct{ refused []wire.Result }

// keyRefusal: the server does not take the key.
type keyRefusal struct{ reason string }

// contentRefusal: the server does not take the batch as it is; one of its events is at fault.
type contentRefusal struct{ reason string }

// ended: the sender itself is stopping.
type ended struct{ err error }

func (ended) isVerdict()          {}
func (retry) isVerdict()          {}
func (taken) isVerdict()          {}
func (keyRefusal) isVerdict()     {}
func (contentRefusal) isVerdict() {}

// judge reads the outcome of a call. Only what the server itself answered can refuse anything: a proxy's 403 or 413 is a retry.
func judge(answer wire.BatchAnswer, err error) verdict {
	if err == nil {
		return taken{answer.Refused}
	}
	e := wire.AsError(err)
	var away *wire.Away
	if errors.As(err, &away) {
		reason := "foreign"
		if away.Err != nil {
			reason = "network"
		}
		return retry{e.RetryAfter, reason, away.Status == 413}
	}
	switch e.Status() {
	case 401, 403:
		return keyRefusal{e.Message}
	case 400, 413, 422:
		return contentRefusal{e.Message}
	case 408, 425, 429, 500, 502, 503, 504:
		return retry{e.RetryAfter, "status", false}
	}
	return retry{suspectDelay, "status", false} // an answer outside the contract: no hurry
}
