package auth

import (
	"context"
	"net/netip"
	"time"

	"promptspool/api/wire"
)

// throttleWindow is how long failures count.
const throttleWindow = 15 * time.Minute

// Failed sign-ins are counted for an email, whose password someone may be guessing; for
// an address, which may be a proxy with many honest people behind it (see network); and
// for a browser or person that has signed in before. Failures of strangers do not count
// for the last two, so that no one can lock out people who are known.
const (
	emailFailuresMax   = 10
	addressFailuresMax = 1000
	knownFailuresMax   = 10
)

// source is what failures have in common, and how many of them are allowed in a window.
type source struct {
	key string
	max int
}

func emailSource(email string) source { return source{"email " + email, emailFailuresMax} }
func ipSource(ip string) source       { return source{"ip " + network(ip), addressFailuresMax} }

func browserSource(session wire.Secret) source {
	return source{"session " + string(session), knownFailuresMax}
}
func personSource(id string) source { return source{"person " + id, knownFailuresMax} }

// codeSource is an address that tries codes. They are counted separately from sign-ins,
// so that neither locks out the other.
func codeSource(ip string) source { return source{"code " + network(ip), 50} }

// takenSource is an address that signs up with names and emails that are taken.
func takenSource(ip string) source { return source{"taken " + network(ip), 20} }

// network returns what one caller usually has of the internet: an IPv4 address, or the /64
// of an IPv6 address, in which every host may choose any of 2^64 addresses.
func network(ip string) string {
	addr, err := netip.ParseAddr(ip)
	if err != nil {
		return ip
	}
	addr = addr.Unmap()
	if addr.Is4() {
		return addr.String()
	}

	return netip.PrefixFrom(addr.WithZone(""), 64).Masked().String()
}

func hashes(sources []source) [][32]byte {
	all := make([][32]byte, len(sources))
	for i, s := range sources {
		all[i] = hash(wire.Secret(s.key))
	}
	return all
}

// throttle counts failures by source, for all servers that share a database.
type throttle struct{ store FailureStore }

// begin counts an attempt as failed before it is verified, so that concurrent attempts
// get no further than attempts one by one. It returns an error with this message if a
// source has failed too often; the attempt must not be verified then.
func (t throttle) begin(ctx context.Context, now time.Time, message string, sources ...source) error {
	if err := t.check(ctx, now, message, 0, sources...); err != nil {
		return err
	}
	if err := t.store.AddFailure(ctx, hashes(sources), now, now.Add(throttleWindow)); err != nil {
		return err
	}

	// Others may have begun since the first check. The attempt's own failure does not count.
	return t.check(ctx, now, message, 1, sources...)
}

// check returns an error with this message if a source has failed too often. It does not
// count own of the failures, which are the caller's.
func (t throttle) check(
	ctx context.Context, now time.Time, message string, own int, sources ...source,
) error {
	failures, err := t.store.Failures(ctx, hashes(sources))
	if err != nil {
		return err
	}

	for i, f := range failures {
		// An attempt is counted before it is judged, so that many at once do not all
		// pass.
		if f.Count-own >= sources[i].max && now.Before(f.Until) {
			return &wire.Error{Code: wire.CodeTooMany, RetryAfter: f.Until.Sub(now), Message: message}
		}
	}

	return nil
}

// takeBack uncounts one failure of each source, for an attempt that succeeded or was not
// verified. It does so even if the request has ended.
func (t throttle) takeBack(ctx context.Context, sources ...source) error {
	return t.store.TakeBackFailure(context.WithoutCancel(ctx), hashes(sources))
}

// forget resets the failures of a source.
func (t throttle) forget(ctx context.Context, s source) error {
	return t.store.ForgetFailures(ctx, hash(wire.Secret(s.key)))
}
