package auth

import (
	"context"
	"time"

	"promptspool/api/wire"
)

const (
	throttleWindow  = 15 * time.Minute
	failuresByEmail = 10
	failuresByIP    = 50
)

// throttle counts failed sign-ins by what they have in common, for all servers of a database.
type throttle struct{ store FailureStore }

// sourcesOf are what sign-ins with an email from an address have in common with others, and how many of each may fail in a window.
func sourcesOf(email, ip string) (sources [][32]byte, bounds []int) {
	return [][32]byte{hash(wire.Secret("email " + email)), hash(wire.Secret("ip " + ip))}, []int{failuresByEmail, failuresByIP}
}

// check is an error while one of the sources has failed too often.
func (t throttle) check(ctx context.Context, now time.Time, email, ip string) error {
	sources, bounds := sourcesOf(email, ip)
	failures, err := t.store.Failures(ctx, sources)
	if err != nil {
		return err
	}
	for i, f := range failures {
		if f.Count >= bounds[i] && now.Before(f.Until) {
			return &wire.Error{Code: wire.CodeTooMany, RetryAfter: f.Until.Sub(now),
				Message: "Too many sign-ins failed. Wait a quarter of an hour, or ask an owner for a new password."}
		}
	}
	return nil
}

// failed counts a failure of both sources.
func (t throttle) failed(ctx context.Context, now time.Time, email, ip string) error {
	sources, _ := sourcesOf(email, ip)
	return t.store.AddFailure(ctx, sources, now, now.Add(throttleWindow))
}

// succeeded forgets the failures of an email.
func (t throttle) succeeded(ctx context.Context, email string) error {
	sources, _ := sourcesOf(email, "")
	return t.store.ForgetFailures(ctx, sources[0])
}
