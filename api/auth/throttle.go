package auth

import (
	"context"
	"time"

	"promptspool/api/wire"
)

const throttleWindow = 15 * time.Minute

// source is what failures have in common, and how many of them may come in a window.
type source struct {
	key string
	max int
}

func emailSource(email string) source { return source{"email " + email, 10} }
func ipSource(ip string) source       { return source{"ip " + ip, 50} }

// codeSource is an address that tries codes. Its failures are counted apart from those of sign-ins, so that neither
// locks out the other.
func codeSource(ip string) source { return source{"code " + ip, 50} }

func hashes(sources []source) [][32]byte {
	all := make([][32]byte, len(sources))
	for i, s := range sources {
		all[i] = hash(wire.Secret(s.key))
	}
	return all
}

// throttle counts failures by what they have in common, for all servers of a database.
type throttle struct{ store FailureStore }

// check returns an error with this message while one of the sources has failed too often.
func (t throttle) check(ctx context.Context, now time.Time, message string, sources ...source) error {
	failures, err := t.store.Failures(ctx, hashes(sources))
	if err != nil {
		return err
	}

	for i, f := range failures {
		if f.Count >= sources[i].max && now.Before(f.Until) {
			return &wire.Error{Code: wire.CodeTooMany, RetryAfter: f.Until.Sub(now), Message: message}
		}
	}
	return nil
}

// failed counts a failure of each source.
func (t throttle) failed(ctx context.Context, now time.Time, sources ...source) error {
	return t.store.AddFailure(ctx, hashes(sources), now, now.Add(throttleWindow))
}

// forget forgets the failures of a source.
func (t throttle) forget(ctx context.Context, s source) error {
	return t.store.ForgetFailures(ctx, hash(wire.Secret(s.key)))
}
