package auth

import (
	"context"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"net/netip"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"

	"promptspool/api/wire"
)

const (
	passwordRunesMin = 12
	passwordBytesMax = 1 << 10
)

// argonCost is the cost of new hashes: the smaller of the two settings for argon2id with
// one thread in OWASP's password storage cheat sheet. Each hash stores its cost, so that
// this can be raised later.
var argonCost = cost{memoryKiB: 19 << 10, passes: 2}

type cost struct{ memoryKiB, passes uint32 }

// hashers bounds how many hashes are computed at the same time, since each takes 19 MiB,
// and how many callers wait.
type hashers struct {
	turns chan struct{}
	queue chan struct{} // callers who are not known
}

func newHashers() hashers {
	return hashers{make(chan struct{}, hashersMax), make(chan struct{}, strangersMax)}
}

// run calls fn when it is its turn, or gives up when ctx ends. Callers who are known, by
// a session or a code, must not queue behind a crowd of strangers, so strangers are
// rejected while many of them wait.
func (h hashers) run(ctx context.Context, known bool, fn func()) error {
	if !known {
		select {
		case h.queue <- struct{}{}:
			defer func() { <-h.queue }()
		default:
			return wire.Unavailable(2*time.Second,
				"Too many people are signing in right now. Try again in a few seconds.")
		}
	}

	select {
	case h.turns <- struct{}{}:
		defer func() { <-h.turns }()
		fn()
		return nil
	case <-ctx.Done():
		return wire.Unavailable(0, "The request ended before it had its turn: %w", ctx.Err())
	}
}

// hash returns what is stored of a password, as run permits.
func (h hashers) hash(ctx context.Context, known bool, password string) (stored string, err error) {
	err = h.run(ctx, known, func() { stored = hashPassword(password) })
	return stored, err
}

// checkPassword returns what is wrong with a new password, or "". Only its length counts,
// as NIST SP 800-63B recommends.
func checkPassword(password string) (fault string) {
	switch {
	case !utf8.ValidString(password) || len(password) > passwordBytesMax:
		return fmt.Sprintf("must be UTF-8 of at most %d bytes", passwordBytesMax)
	case utf8.RuneCountInString(password) < passwordRunesMin:
		return fmt.Sprintf("must have at least %d characters; a few words are easy to remember",
			passwordRunesMin)
	}
	return ""
}

// hashPassword returns what is stored of a password: algorithm, cost, salt and hash in
// the PHC string format.
func hashPassword(password string) string {
	salt := random(16)
	c := argonCost
	key := argon(password, salt, c)

	encode := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=1$%s$%s",
		argon2.Version, c.memoryKiB, c.passes, encode(salt), encode(key))
}

func argon(password string, salt []byte, c cost) []byte {
	return argon2.IDKey([]byte(password), salt, c.passes, c.memoryKiB, 1, 32)
}

// verifyPassword reports whether stored is a hash of password. Malformed hashes match no
// password.
func verifyPassword(stored, password string) bool {
	parts := strings.Split(stored, "$")
	if len(parts) != 6 || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return false
	}

	// The stored cost counts: the hash may be older than argonCost. argon2 panics without a pass.
	var c cost
	_, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=1", &c.memoryKiB, &c.passes)
	if err != nil || c.passes == 0 {
		return false
	}

	salt, err := base64.RawStdEncoding.DecodeString(parts[4])
	if err != nil {
		return false
	}
	want, err := base64.RawStdEncoding.DecodeString(parts[5])
	return err == nil && subtle.ConstantTimeCompare(argon(password, salt, c), want) == 1
}

// decoyHash is the hash to verify against if a person does not exist, so that the response
// time does not reveal whether they do.
var decoyHash = "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA" +
	"$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

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

// resetAge is how long a reset link works.
const resetAge = 24 * time.Hour

// MakeReset makes a code with which a member chooses a new password, once and within a
// day. It replaces any earlier one.
//
// Only owners of all accounts that the member is in can make one, and not for themselves.
// To change one's own password one must know the old one, or a browser left open would be
// enough to take over an account for good.
func (p *People) MakeReset(ctx context.Context, by wire.User, id string) (wire.Secret, wire.User, error) {
	if err := by.Allow(wire.RoleOwner); err != nil {
		return "", wire.User{}, err
	}
	if by.ID == id {
		return "", wire.User{}, wire.Errorf(wire.CodeForbidden,
			"Change your own password on the page Password, or ask another owner for a link.")
	}

	// A password opens all of a person's accounts.
	var owned []string
	for _, m := range by.Projects {
		if m.Role == wire.RoleOwner {
			owned = append(owned, m.AccountID)
		}
	}
	return p.makeReset(ctx, by, by.AccountID, append(owned, by.AccountID), id)
}

func (p *People) makeReset(
	ctx context.Context, by wire.User, account string, owned []string, id string,
) (wire.Secret, wire.User, error) {
	code, now := newCode(), p.now().UTC()
	r := wire.Reset{UserID: id, By: by.Email, CreatedAt: now, ExpiresAt: now.Add(resetAge)}
	u, err := p.store.CreateReset(ctx, account, owned, hash(code), r)
	if err == nil {
		err = p.mayUsePassword(u.Email)
	}
	if err != nil {
		return "", u, err
	}

	return code, u, p.Note(ctx, by, "make reset link", u.Email, "")
}

// ResetOf returns the person whose password a code resets, without using it. ip is the
// caller's address. An invalid code is wire.CodeForbidden, and wire.CodeTooMany after too
// many of them.
func (p *People) ResetOf(ctx context.Context, code wire.Secret, ip string) (wire.User, error) {
	r, u, err := p.store.Reset(ctx, hashCode(code))
	switch {
	case wire.IsCode(err, wire.CodeNotFound):
		err = errReset()
	case err == nil && (!p.now().Before(r.ExpiresAt) || u.Role == ""):
		err = errReset()
	case err == nil:
		err = p.mayUsePassword(u.Email)
	}
	if err != nil {
		return wire.User{}, p.judgeCode(ctx, err, ip)
	}
	return u, nil
}

func errReset() error {
	return wire.Errorf(wire.CodeForbidden, "This link is invalid, has expired or has been used. "+
		"Ask an owner of your project for a new one.")
}

// ResetPassword uses a code to set the password of its person. It ends all their
// sessions, forgets their failed sign-ins, and begins a session. Errors are those of
// ResetOf, and wire.CodeInvalid for a password that is not accepted, which leaves the
// code usable.
func (p *People) ResetPassword(
	ctx context.Context, code wire.Secret, password, ip string,
) (wire.SignedIn, error) {
	if _, err := p.ResetOf(ctx, code, ip); err != nil {
		return wire.SignedIn{}, err
	}
	if fault := checkPassword(password); fault != "" {
		return wire.SignedIn{}, wire.Invalid(wire.FieldError{Field: "password", Reason: fault})
	}

	stored, err := p.hashers.hash(ctx, true, password)
	if err != nil {
		return wire.SignedIn{}, err
	}

	r, u, err := p.store.SpendReset(ctx, hashCode(code), stored, p.now().UTC())
	// Used or expired while the hash was computed.
	if wire.IsCode(err, wire.CodeNotFound) {
		return wire.SignedIn{}, errReset()
	}
	if err != nil {
		return wire.SignedIn{}, err
	}

	// Failures with the old password must not lock the person out with the new one.
	if err := p.throttle.forget(ctx, emailSource(u.Email)); err != nil {
		return wire.SignedIn{}, err
	}
	return p.begin(ctx, u, wire.User{}, wire.Session{}, "reset password", "with a link made by "+r.By)
}
