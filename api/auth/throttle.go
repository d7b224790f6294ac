package auth

import (
	"context"
	"time"

	"promptspool/api/wire"
)

const throttleWindow = 15 * time.Minute

// A source of failed sign-ins is an email, whose password is guessed; an address, which may be that of a proxy with many
// honest people behind it; or a browser or a person that has signed in before. Failures of strangers do not count against
// the last two, so that nobody can lock out those who are known.
const (
	emailFailuresMax   = 10
	addressFailuresMax = 1000
	knownFailuresMax   = 10
)

// source is what failures have in common, and how many of them may come in a window.
type source struct {
	key string
	max int
}

func emailSource(email string) source { return source{"email " + email, emailFailuresMax} }
func ipSource(ip string) source       { return source{"ip " + ip, addressFailuresMax} }

func browserSource(session wire.Secret) source {
	return source{"session " + string(session), knownFailuresMax}
}
func personSource(id string) source { return source{"person " + id, knownFailuresMax} }

// codeSource is an address that tries codes. Its failures are counted apart from those of sign-ins, so that neither
// locks out the other.
func codeSource(ip string) source { return source{"code " + ip, 50} }

// takenSource is an address that signs up under names and emails that are taken.
func takenSource(ip string) source { return source{"taken " + ip, 20} }

func hashes(sources []source) [][32]byte {
	all := make([][32]byte, len(sources))
	for i, s := range sources {
		all[i] = hash(wire.Secret(s.key))
	}
	return all
}

// throttle counts failures by what they have in common, for all servers of a database.
type throttle struct{ store FailureStore }

// begin counts an attempt as failed before it is judged: of many at the same time no more are judged than one by one. It
// returns an error with this message if one of the sources has failed too often, and the attempt must not be judged.
func (t throttle) begin(ctx context.Context, now time.Time, message string, sources ...source) error {
	if err := t.check(ctx, now, message, 0, sources...); err != nil {
		return err
	}
	if err := t.failed(ctx, now, sources...); err != nil {
		return err
	}
	return t.check(ctx, now, message, 1, sources...)
}

// check returns an error with this message while one of the sources has failed too often, apart from as many of its
// failures as are the caller's own.
func (t throttle) check(ctx context.Context, now time.Time, message string, own int, sources ...source) error {
	failures, err := t.store.Failures(ctx, hashes(sources))
	if err != nil {
		return err
	}

	for i, f := range failures {
		if f.Count-own >= sources[i].max && now.Before(f.Until) {
			return &wire.Error{Code: wire.CodeTooMany, RetryAfter: f.Until.Sub(now), Message: message}
		}
	}
	return nil
}

// failed counts a failure of each source.
func (t throttle) failed(ctx context.Context, now time.Time, sources ...source) error {
	return t.store.AddFailure(ctx, hashes(sources), now, now.Add(throttleWindow))
}

// takeBack counts one failure less of each source: of an attempt that succeeded, or was not judged. It does so also when
// the call has ended.
func (t throttle) takeBack(ctx context.Context, sources ...source) error {
	return t.store.TakeBackFailure(context.WithoutCancel(ctx), hashes(sources))
}

// forget forgets the failures of a source.
func (t throttle) forget(ctx context.Context, s source) error {
	return t.store.ForgetFailures(ctx, hash(wire.Secret(s.key)))
}
