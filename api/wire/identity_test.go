package wire

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestASecretNeverPrints(t *testing.T) {
	const secret Secret = "ps_very-secret"
	holder := Identity{Account: "a", Key: secret}

	check := func(how, printed string) {
		t.Helper()
		for _, leak := range []string{string(secret), hex.EncodeToString([]byte(secret)), "very", "112 115 95"} {
			if strings.Contains(strings.ToLower(printed), leak) {
				t.Errorf("%s shows the secret: %s", how, printed)
			}
		}
		if !strings.Contains(printed, "[secret]") {
			t.Errorf("%s does not show [secret]: %s", how, printed)
		}
	}

	for _, verb := range strings.Fields("%v %+v %#v %s %q %#q %x %X %d %c %U %e %t %o %b %20s %-9.3v %z") {
		check(verb, fmt.Sprintf(verb, secret))
		check(verb+" of what holds it", fmt.Sprintf(verb, holder))
		check(verb+" of a map", fmt.Sprintf(verb, map[Secret][]Secret{secret: {secret}}))
	}

	check("Print", fmt.Sprint(secret))
	check("String", secret.String())
	check("an error", fmt.Errorf("key %v", secret).Error())

	for name, handler := range map[string]func(*bytes.Buffer) slog.Handler{
		"a log of text": func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) },
		"a log of JSON": func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) },
	} {
		for what, value := range map[string]any{
			"it":            secret,
			"what holds it": holder,
			"a list":        []Secret{secret},
		} {
			var b bytes.Buffer
			slog.New(handler(&b)).Info("x", "value", value)
			check(name+" with "+what, b.String())
		}
	}

	marshalled, err := json.Marshal([]any{secret, holder, &holder})
	if err != nil {
		t.Fatal(err)
	}
	check("JSON", string(marshalled))
}

func TestAKeyAllowsItsScope(t *testing.T) {
	read := ScopeRead | ScopePublish
	for _, tt := range []struct {
		id   Identity
		want bool
	}{
		{Identity{Scope: ScopeApp, Verified: true}, false},
		{Identity{Scope: ScopePublish, Verified: true}, true},
		{Identity{Scope: ScopeFull, Verified: true}, true},
		{Identity{Scope: ScopeFull}, false}, // its key was not verified
		{Identity{Verified: true}, false},
	} {
		if got := tt.id.Allows(read); got != tt.want {
			t.Errorf("%+v allows %s: %v; want %v", tt.id, read, got, tt.want)
		}
	}
}

func TestTheTextOfAScopeIsReadAsItIsPrinted(t *testing.T) {
	for s := range ScopeFull + 1 {
		text, _ := s.MarshalText()
		var again Scope
		if err := again.UnmarshalText(text); err != nil || again != s {
			t.Errorf("%q is read as %s, %v", text, again, err)
		}
	}

	for text, want := range map[string]Scope{
		"app":         ScopeLog | ScopeScore | ScopeFetch,
		"read, log":   ScopeLog | ScopeRead,
		"app,publish": ScopeApp | ScopePublish,
	} {
		if got, err := ParseScope(text); err != nil || got != want {
			t.Errorf("%q is %s, %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "none", "admin", "log,", "log score"} {
		if got, err := ParseScope(text); err == nil {
			t.Errorf("%q is accepted, as %s", text, got)
		}
	}
}

func TestWhenAKeyEndsCanBeWrittenInSeveralWays(t *testing.T) {
	for text, want := range map[string]time.Time{
		"90d":                       noon.AddDate(0, 0, 90),
		"12h30m":                    noon.Add(12*time.Hour + 30*time.Minute),
		"2027-01-31":                time.Date(2027, 1, 31, 0, 0, 0, 0, time.UTC),
		"2026-03-01T15:00:00+02:00": noon.Add(time.Hour).Truncate(time.Second),
		"36500d":                    noon.Add(36500 * 24 * time.Hour),
	} {
		if got, err := ParseKeyEnd(text, noon); err != nil || *got != want {
			t.Errorf("%s is %v, %v; want %v", text, got, err, want)
		}
	}
	if got, err := ParseKeyEnd("", noon); got != nil || err != nil {
		t.Errorf("nothing is %v, %v; want never", got, err)
	}

	for _, text := range []string{
		"0d", "-1d", "-1h", "36501d", "99999999999999999999d", "2562047h", "d", "1y", "soon", "90",
		"2026-03-01", "2020-01-01", "9999-12-31", "2027-02-30",
	} {
		if got, err := ParseKeyEnd(text, noon); !IsCode(err, CodeInvalid) || !strings.Contains(err.Error(), text[:1]) {
			t.Errorf("%s is %v, %v", text, got, err)
		}
	}
}

func TestAVerdictOfAnOlderServerMeansWhatItMeant(t *testing.T) {
	const older = `{"success":true,"account":"a","key_id":"k","scope":"app"}`
	var v KeyVerdict
	want := KeyVerdict{Success: true, Account: "a", KeyID: "k", Scope: ScopeApp}
	if err := json.Unmarshal([]byte(older), &v); err != nil || v != want {
		t.Errorf("%s is %+v, %v", older, v, err)
	}
	if text, err := json.Marshal(v); err != nil || string(text) != older {
		t.Errorf("it is written as %s, %v", text, err)
	}
}

func TestAVerdictOfANewerServerIsGoodForTheRightsThatAreKnown(t *testing.T) {
	for text, want := range map[string]Scope{
		"log,annotate":   ScopeLog,
		"annotate":       0,
		"annotate,app":   ScopeApp,
		"score, fetch,x": ScopeScore | ScopeFetch,
		"":               0,
	} {
		v := KeyVerdict{Scope: ScopeFull}
		newer := fmt.Sprintf(`{"success":true,"account":"a","key_id":"k","scope":%q,"quota":{"of":"day"}}`, text)
		err := json.Unmarshal([]byte(newer), &v)
		if err != nil || v != (KeyVerdict{Success: true, Account: "a", KeyID: "k", Scope: want}) {
			t.Errorf("%s is %+v, %v", newer, v, err)
		}
	}

	// What a person asks for must be there.
	var wanted WantedKey
	if err := json.Unmarshal([]byte(`{"scope":"log,annotate"}`), &wanted); !IsCode(err, CodeInvalid) {
		t.Errorf("a key with a right that does not exist is made as %+v, %v", wanted, err)
	}
}

func TestTheStateOfAKeySaysWhenItEnds(t *testing.T) {
	at := func(d time.Duration) *time.Time { end := noon.Add(d); return &end }
	for want, k := range map[string]Key{
		"active":           {ExpiresAt: at(7*24*time.Hour + 1)},
		"ends in 7 days":   {ExpiresAt: at(7 * 24 * time.Hour)},
		"ends in 3 days":   {ExpiresAt: at(49 * time.Hour)},
		"ends in 48 hours": {ExpiresAt: at(48 * time.Hour)},
		"ends in 1 hour":   {ExpiresAt: at(1)},
		"expired":          {ExpiresAt: at(0)},
		"revoked":          {ExpiresAt: at(0), RevokedAt: at(0)},
	} {
		off := want == "expired" || want == "revoked"
		if got := k.State(noon); got != want || k.Off(noon) != off {
			t.Errorf("the state is %q, off: %v; want %q, %v", got, k.Off(noon), want, off)
		}
	}
	if got := (Key{}).State(noon); got != "active" {
		t.Errorf("a key without an end is %q", got)
	}
}
