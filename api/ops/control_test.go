package ops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"promptspool/api/wire"
)

// ring holds the keys of a server in memory.
type ring struct {
	mu   sync.Mutex
	keys []wire.Key
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func (r *ring) CreateKey(_ context.Context, n wire.NewKey) (wire.Secret, wire.Key, error) {
	r.mu.Lock()
	defer r.mu.Unlock()

	switch n.Account {
	case "":
		return "", wire.Key{}, wire.Invalid(
			wire.FieldError{Field: "account", Reason: "is missing"},
			wire.FieldError{Field: "scope", Reason: "is odd"})
	case "broken":
		return "ps_secret", wire.Key{}, errors.New("the disk is gone")
	}

	k := wire.Key{ID: "key_/" + n.Name, AccountName: n.Account, Name: n.Name, Scope: n.Scope, CreatedAt: noon}
	r.keys = append(r.keys, k)

	return "ps_secret", k, nil
}

func (r *ring) Keys(context.Context) ([]wire.Key, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.keys, nil
}

func (r *ring) RotateKey(_ context.Context, id string, overlap time.Duration) (wire.Secret, wire.Key, wire.Key, error) {
	old := wire.Key{ID: id, AccountID: "a1", ExpiresAt: new(noon.Add(overlap)), Successor: "key_new"}
	return "ps_next", wire.Key{ID: "key_new", AccountID: "a1"}, old, nil
}

func (r *ring) RevokeKey(_ context.Context, id string) (wire.Key, error) {
	r.mu.Lock()
	defer r.mu.Unlock()

	for i := range r.keys {
		if r.keys[i].ID == id {
			r.keys[i].RevokedAt = &noon
			return r.keys[i], nil
		}
	}

	return wire.Key{}, wire.Errorf(wire.CodeNotFound, "There is no key %q.", id)
}

// control starts a control socket for these keys in a folder.
func control(t *testing.T, dir string, keys wire.Keys) {
	t.Helper()
	controlBy(t, dir, ControlConfig{Keys: keys})
}

// controlBy starts a control socket with this configuration in a folder.
func controlBy(t *testing.T, dir string, c ControlConfig) {
	t.Helper()
	c.Status, c.Logger = func() any { return "fine" }, slog.New(slog.DiscardHandler)

	ln, err := ListenControl(dir)
	if err != nil {
		t.Fatal(err)
	}
	serve(t, NewControl(c), ln)
}

func TestKeysAreMadeListedAndRevoked(t *testing.T) {
	dir := t.TempDir()
	var log audited
	controlBy(t, dir, ControlConfig{Keys: &ring{}, Audit: &log})
	call := func(method, path string, body, answer any) {
		t.Helper()
		if err := Control(t.Context(), dir, method, path, body, answer); err != nil {
			t.Fatal(err)
		}
	}

	var list KeyList
	call("GET", "/keys", nil, &list)
	same(t, "no keys yet", list, KeyList{Items: []wire.Key{}})

	var made CreatedKey
	wanted := NewKey{NewKey: wire.NewKey{Account: "acme", Name: "a b%", Scope: wire.ScopeApp}}
	call("POST", "/keys", wanted, &made)
	want := wire.Key{ID: "key_/a b%", AccountName: "acme", Name: "a b%", Scope: wire.ScopeApp, CreatedAt: noon}
	same(t, "made", made, CreatedKey{want, "ps_secret"})
	call("GET", "/keys", nil, &list)
	same(t, "one key", list, KeyList{Items: []wire.Key{want}})

	var next RotatedKey
	call("POST", "/keys/rotate", Rotation{ID: want.ID, Overlap: time.Hour}, &next)
	hour := noon.Add(time.Hour)
	same(t, "rotated", next, RotatedKey{
		CreatedKey{wire.Key{ID: "key_new", AccountID: "a1"}, "ps_next"},
		wire.Key{ID: want.ID, AccountID: "a1", ExpiresAt: &hour, Successor: "key_new"},
	})

	var revoked wire.Key
	call("DELETE", "/keys/key_%2Fa%20b%25", nil, &revoked)
	want.RevokedAt = &noon
	same(t, "revoked", revoked, want)
	call("GET", "/keys", nil, &list)
	same(t, "a revoked key", list, KeyList{Items: []wire.Key{want}})

	if want := (audited{
		"operator create key key_/a b%: app, a b%",
		"operator rotate key key_/a b%: none, ends 2026-03-01 13:00 UTC, replaced by key_new",
		"operator revoke key key_/a b%: a b%",
	}); !slices.Equal(log, want) {
		t.Errorf("the audit log has %q; want %q", log, want)
	}

	var status string
	call("GET", "/status", nil, &status)
	same(t, "status", status, "fine")
}

// audited is an audit log in memory.
type audited []string

func (a *audited) Audit(_ context.Context, _ string, e wire.AuditEntry) error {
	*a = append(*a, fmt.Sprintf("%s %s %s: %s", e.Actor, e.Action, e.Target, e.Detail))
	return nil
}

func TestAProjectIsNamedAsPeopleDo(t *testing.T) {
	k := wire.Key{AccountID: "7", AccountName: "acme", Name: `{"account": "x"}`}
	var shown map[string]any
	if err := json.Unmarshal(InProject(k), &shown); err != nil {
		t.Fatal(err)
	}
	same(t, "key", []any{shown["project"], shown["account"], shown["project_id"], shown["account_id"], shown["name"]},
		[]any{"acme", nil, "7", nil, `{"account": "x"}`})
}

// founded are the people of a server where a stranger created the account "eves" by
// signing up.
type founded struct{ everybody }

type everybody = People

func (founded) People(_ context.Context, account string) ([]wire.User, error) {
	if account == "eves" {
		return []wire.User{{Email: "ann@example.com"}, {Email: "eve@example.com", Founder: true}}, nil
	}
	return []wire.User{{Email: "ann@example.com"}}, nil
}

func TestAKeyOfAStrangersAccountIsAskedForTwice(t *testing.T) {
	dir := t.TempDir()
	controlBy(t, dir, ControlConfig{Keys: &ring{}, People: founded{}})

	for _, tt := range []struct {
		key  NewKey
		want wire.Code
	}{
		{NewKey{NewKey: wire.NewKey{Account: "eves", Scope: wire.ScopeApp}}, wire.CodeConflict},
		{NewKey{NewKey: wire.NewKey{Account: "eves", Scope: wire.ScopeApp}, Shared: true}, ""},
		{NewKey{NewKey: wire.NewKey{Account: "default", Scope: wire.ScopeApp}}, ""},
	} {
		err := Control(t.Context(), dir, "POST", "/keys", tt.key, new(any))
		switch {
		case tt.want == "" && err != nil, tt.want != "" && !wire.IsCode(err, tt.want):
			t.Errorf("%+v: %v", tt.key, err)
		case err != nil &&
			(!strings.Contains(err.Error(), "eve@example.com") || !strings.Contains(err.Error(), "--shared")):
			t.Errorf("%+v: %v does not name the founder and the flag", tt.key, err)
		}
	}
}

func TestAProcessesErrorsArrive(t *testing.T) {
	dir := t.TempDir()
	controlBy(t, dir, ControlConfig{
		Keys:  &ring{},
		Spool: &shelf{err: wire.Unavailable(0, "The disk is gone.")},
	})

	const invalid = "The body is not valid"
	for _, tt := range []struct {
		method, path string
		body         any
		code         wire.Code
		says         string
	}{
		{"POST", "/keys", NewKey{}, wire.CodeInvalid, "account is missing."},
		{
			"POST", "/keys", NewKey{NewKey: wire.NewKey{Account: "broken"}}, wire.CodeInternal,
			"Something failed inside promptspool.",
		},
		{"POST", "/keys", 7, wire.CodeBadJSON, invalid + ": json: cannot unmarshal number"},
		{"DELETE", "/keys/key_2", nil, wire.CodeNotFound, `There is no key "key_2".`},
		{"DELETE", "/keys", nil, wire.CodeMethod, "This path takes GET, POST, not DELETE."},
		{"DELETE", "/keys/", nil, wire.CodeNotFound, "There is no route /keys/ here. The API is"},

		{"GET", "/spool/check", nil, wire.CodeUnavailable, "The disk is gone."},
		{"POST", "/spool/replay", Pick{}, wire.CodeUnavailable, "The disk is gone."},
		{"POST", "/spool/purge", Pick{}, wire.CodeUnavailable, "The disk is gone."},
		{"POST", "/spool/replay", nil, wire.CodeBadJSON, invalid},
		{"POST", "/spool/replay", 7, wire.CodeBadJSON, invalid},
		{"POST", "/spool/purge", []int{7}, wire.CodeBadJSON, invalid},
		{"POST", "/spool/purge", map[string]any{"sequences": []int{-1}}, wire.CodeBadJSON, invalid},
		{"POST", "/spool/purge", map[string]any{"lane": strings.Repeat("x", bodyBytesMax)}, wire.CodeTooLarge,
			"too large"},
		{"DELETE", "/spool/events", nil, wire.CodeMethod, "This path takes GET, not DELETE."},
		{"PUT", "/spool/purge", Pick{All: true}, wire.CodeMethod, "This path takes POST, not PUT."},
		{"GET", "/spool", nil, wire.CodeNotFound, "There is no route /spool here."},
	} {
		err := Control(t.Context(), dir, tt.method, tt.path, tt.body, new(any))
		if e := wire.AsError(err); e.Code != tt.code || !strings.Contains(e.Message, tt.says) {
			t.Errorf("%s %s with %.40v: error %v, want %s, %q", tt.method, tt.path, tt.body, err, tt.code, tt.says)
		}
	}

	err := Control(t.Context(), dir, "POST", "/keys", NewKey{}, new(any))
	same(t, "fields", wire.AsError(err).Fields, []wire.FieldError{
		{Field: "account", Reason: "is missing"}, {Field: "scope", Reason: "is odd"},
	})
}

func TestAProcessWithoutKeysOrSpoolSaysWhoHasThem(t *testing.T) {
	dir := t.TempDir()
	control(t, dir, nil)
	for _, call := range []string{
		"GET /keys", "POST /keys", "DELETE /keys/key_1",
		"GET /spool/check", "GET /spool/events", "POST /spool/replay", "POST /spool/purge",
	} {
		method, path, _ := strings.Cut(call, " ")
		err := Control(t.Context(), dir, method, path, Pick{All: true}, new(any))
		if e := wire.AsError(err); e.Code != wire.CodeNotImplemented || !strings.Contains(e.Message, "--data") {
			t.Errorf("%s: %v", call, err)
		}
	}
}

func TestTheSocketIsItsOwnersAlone(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	ln, err := ListenControl(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()

	info, err := os.Stat(filepath.Join(dir, SocketName))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "mode", info.Mode(), os.ModeSocket|0o600)
}

func TestASocketThatAKilledProcessLeftIsReplaced(t *testing.T) {
	dir := t.TempDir()
	left, err := ListenControl(dir)
	if err != nil {
		t.Fatal(err)
	}
	_ = left.Close() // its file stays

	err = Control(t.Context(), dir, "GET", "/status", nil, new(string))
	if !errors.Is(err, syscall.ECONNREFUSED) || !strings.Contains(err.Error(), "--data") {
		t.Errorf("calling a socket without a listener: %v", err)
	}

	control(t, dir, nil)
	if err := Control(t.Context(), dir, "GET", "/status", nil, new(string)); err != nil {
		t.Error(err)
	}
}

func TestAFolderMayLieDeep(t *testing.T) {
	for _, length := range []int{100 - len("/control.sock"), 101 - len("/control.sock"), 108, 1000} {
		dir := t.TempDir()
		for len(dir) < length {
			dir = filepath.Join(dir, strings.Repeat("d", max(1, min(200, length-len(dir)-1))))
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}

		control(t, dir, nil)
		if _, err := os.Lstat(filepath.Join(dir, SocketName)); err != nil {
			t.Error(err)
		}
		if err := Control(t.Context(), dir, "GET", "/status", nil, new(string)); err != nil {
			t.Errorf("a folder of %d bytes: %v", len(dir), err)
		}
	}
}

func TestAFolderWithoutAProcess(t *testing.T) {
	for name, dir := range map[string]string{
		"empty":           t.TempDir(),
		"absent":          "/no/such/folder",
		"absent and deep": "/no/" + strings.Repeat("d", 200),
	} {
		err := Control(t.Context(), dir, "GET", "/status", nil, new(string))
		if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "--data") ||
			strings.Contains(err.Error(), "http:") {
			t.Errorf("%s: %v", name, err)
		}
	}

	if _, err := ListenControl("/no/such/folder"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("listening in a folder that does not exist: %v", err)
	}
}

func TestACallEndsWithItsContext(t *testing.T) {
	dir := t.TempDir()
	ln, err := ListenControl(dir) // it accepts nothing, like a stopped process
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := Control(ctx, dir, "GET", "/status", nil, new(string)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the call returned %v", err)
	}
}

func TestASocketOfSomebodyElse(t *testing.T) {
	dir := t.TempDir()
	ln, err := ListenControl(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()

	for _, answer := range []string{
		"HTTP/1.1 500 No\r\nContent-Length: 4\r\n\r\nhtml",
		"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{",
		"garbage\r\n\r\n",
	} {
		go func() {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			answerAndClose(conn, answer)
		}()

		var status string
		if err := Control(t.Context(), dir, "GET", "/status", nil, &status); err == nil ||
			!strings.Contains(err.Error(), dir) {
			t.Errorf("%.20q was accepted as an answer: %q, error %v", answer, status, err)
		}
	}
}

// answerAndClose reads the first bytes of a call, answers it, and closes the connection.
func answerAndClose(conn net.Conn, answer string) {
	_, _ = conn.Read(make([]byte, 4096))
	_, _ = conn.Write([]byte(answer))
	_ = conn.Close()
}
