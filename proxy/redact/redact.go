// Package redact removes personal data and credentials from a write before a sidecar
// stores it.
//
// A rule either names a value by its path, or looks for data in all decoded strings: in
// every field, at any depth, in names of members, in JSON within a string (as the
// arguments of tools are), and in the pieces of a streamed answer as one text. Everything
// else keeps its bytes.
//
// The time is linear in the size of a body: patterns are RE2, and builtins are scanners.
// The package does no I/O, and is safe for concurrent use.
package redact

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"promptspool/api/wire"
	"promptspool/metrics"
)

// The actions on a value.
const (
	Mask = "mask" // replace it by the rule's name in brackets
	Hash = "hash" // add a keyed hash to that, so that equal values stay equal
	Drop = "drop" // remove it
)

// Builtins are the kinds of data that need no pattern.
var Builtins = []string{"email", "phone", "card", "bearer_token", "provider_key"}

// Rule is one entry of a configuration: what to look for, and what to do with it. It uses
// one of Builtin, Path and Pattern.
type Rule struct {
	Builtin []string // of Builtins
	Path    string   // such as kwargs.messages[*].content, metadata.* or ..password
	Pattern string   // RE2, looked for in every string
	Action  string   // Mask, Hash or Drop; "" is Mask
}

// kind is the name under which a match is counted and masked.
type kind string

// Rules are checked rules. The zero value changes nothing.
type Rules struct {
	builtin  scans
	patterns []pattern
	paths    []pathRule
	secret   []byte
}

type pattern struct {
	re     *regexp.Regexp
	action string
}

type pathRule struct {
	steps  []step
	action string
}

// patternsMax bounds the rules, because each one costs time in every write.
const patternsMax = 64

// New checks rules. The secret is the key of hashes; sidecars that share it make the same
// ones. An error is about the rule with the returned index, or about all if it is -1.
func New(rules []Rule, secret []byte) (_ *Rules, index int, _ error) {
	r := &Rules{builtin: scans{}, secret: secret}
	if len(rules) > patternsMax {
		return nil, -1, fmt.Errorf("there are %d rules; at most %d are accepted", len(rules), patternsMax)
	}

	for i, rule := range rules {
		if err := r.add(rule); err != nil {
			return nil, i, err
		}
	}

	return r, -1, nil
}

// add checks one rule.
func (r *Rules) add(rule Rule) error {
	if rule.Action == "" {
		rule.Action = Mask
	}
	given := 0
	for _, is := range []bool{len(rule.Builtin) > 0, rule.Path != "", rule.Pattern != ""} {
		if is {
			given++
		}
	}

	switch {
	case given != 1:
		return fmt.Errorf("a rule needs one of builtin, path and pattern")
	case !slices.Contains([]string{Mask, Hash, Drop}, rule.Action):
		return fmt.Errorf("the action %q is not one of mask, hash, drop", rule.Action)
	case rule.Action == Hash && len(r.secret) == 0:
		return fmt.Errorf("the action hash needs --redact-secret-file; " +
			"without a secret, short values can be guessed")
	case rule.Pattern != "":
		re, err := regexp.Compile(rule.Pattern)
		if err != nil {
			return fmt.Errorf("the pattern is not RE2: %w", err)
		}
		// It would put a replacement between any two characters.
		if re.MatchString("") {
			return fmt.Errorf("the pattern %q matches the empty string, and so everywhere", rule.Pattern)
		}
		r.patterns = append(r.patterns, pattern{re, rule.Action})
	case rule.Path != "":
		steps, err := parsePath(rule.Path)
		if err != nil {
			return err
		}
		r.paths = append(r.paths, pathRule{steps, rule.Action})
	}

	for _, name := range rule.Builtin {
		if !slices.Contains(Builtins, name) {
			return fmt.Errorf("unknown builtin %q; use one of: %s", name, strings.Join(Builtins, ", "))
		}
		// One pass finds all builtins, so each can have one action only.
		if before := r.builtin[kind(name)]; before != "" {
			return fmt.Errorf("the builtin %s is named twice", name)
		}
		r.builtin[kind(name)] = rule.Action
	}

	return nil
}

// Empty reports whether there are no rules.
func (r *Rules) Empty() bool {
	return r == nil || len(r.builtin) == 0 && len(r.patterns) == 0 && len(r.paths) == 0
}

// replace returns the replacement for a text that a rule matched.
func (r *Rules) replace(k kind, action string, text []byte) string {
	switch action {
	case Drop:
		return ""
	case Hash:
		mac := hmac.New(sha256.New, r.secret)
		mac.Write(normal(k, text))
		// Eight bytes tell values apart well enough, and keep the text readable.
		return "[" + string(k) + ":" + hex.EncodeToString(mac.Sum(nil)[:8]) + "]"
	}
	return "[" + string(k) + "]"
}

// normal returns the normal form of a value, so that all of its spellings have the same
// hash.
func normal(k kind, text []byte) []byte {
	switch k {
	case "email":
		return bytes.ToLower(text)
	case "phone", "card":
		return bytes.Map(func(c rune) rune {
			if c < '0' || c > '9' {
				return -1
			}
			return c
		}, text)
	}
	return text
}

// Before applies rules to events before it passes them to Next. Safe for concurrent use.
type Before struct {
	Next    wire.Recorder
	Metrics *metrics.Metrics
	rules   atomic.Pointer[Rules]
}

// Set puts rules in force for all writes from now on.
func (b *Before) Set(rules *Rules) { b.rules.Store(rules) }

// Record hands events on with redacted bodies. The caller's are not changed.
func (b *Before) Record(ctx context.Context, id wire.Identity, events []wire.Event) ([]wire.Result, error) {
	// Once: a reload must not change the rules within a batch.
	rules := b.rules.Load()
	if rules.Empty() {
		return b.Next.Record(ctx, id, events)
	}

	count := func(rule, action string) {
		b.Metrics.Redacted.WithLabelValues(rule, action).Inc()
	}

	// A copy: the caller's events must not change.
	redacted := make([]wire.Event, len(events))
	for i, e := range events {
		e.Body = rules.Body(e.Body, count)
		// It is derived from the body as it is stored.
		if e.Kind.DerivesID() {
			if id, err := wire.SpanEventID(e.RequestID, e.Body); err == nil {
				e.ID = id
			}
		}
		redacted[i] = e
	}

	return b.Next.Record(ctx, id, redacted)
}

// step is one part of a path: a member's name or an index, at any depth if it is deep.
type step struct {
	name  string
	index int  // -1 for a name
	any   bool // every name and index
	deep  bool
}

// state is the progress along a path: its rule, and the next step.
type state struct{ rule, step int }

// pathStep matches a step of a path, in a part of RFC 9535: .name ..name .* [*] [3]
// ['name'].
var pathStep = regexp.MustCompile(`^(?:(\.\.?)(\*|[^.\[\]'"*\s]+)|\[(\*|\d+|'[^']+'|"[^"]+")\])`)

// parsePath reads a path. A leading $. may be left out.
func parsePath(path string) ([]step, error) {
	wrong := func(rest string) error {
		return fmt.Errorf("the path %q has a syntax error at %q; "+
			"write it like kwargs.messages[*].content, metadata.* or ..password", path, rest)
	}

	rest := strings.TrimPrefix(path, "$")
	if rest != "" && rest[0] != '.' && rest[0] != '[' {
		rest = "." + rest
	}

	var steps []step
	for rest != "" {
		m := pathStep.FindStringSubmatch(rest)
		// Each step may be a separate state at every member of a body: their number is
		// bounded.
		if m == nil || len(steps) == 32 {
			return nil, wrong(rest)
		}
		s := step{name: m[2], index: -1, deep: m[1] == ".."}
		if m[3] != "" {
			s.name = strings.Trim(m[3], `'"`)
			if n, err := strconv.Atoi(m[3]); err == nil {
				s.index = n
			}
		}
		s.any = m[2] == "*" || m[3] == "*"
		steps = append(steps, s)
		rest = rest[len(m[0]):]
	}

	switch {
	case len(steps) == 0:
		return nil, wrong(path)
	case len(steps) == 1 && kept[steps[0].name] && !steps[0].deep:
		return nil, fmt.Errorf("the server needs %s as it is; it cannot be redacted", steps[0].name)
	}

	return steps, nil
}

// step follows all paths into one child. It returns the states there, and the action of
// the first rule that ends there, or "".
func (w *walker) step(states []state, object bool, name []byte, index int) (next []state, action string) {
	follow := func(s state) {
		// Deep steps reach the same state in many ways.
		if !slices.Contains(next, s) {
			next = append(next, s)
		}
	}

	for _, s := range states {
		rule := &w.r.paths[s.rule]
		at := rule.steps[s.step]
		// A deep step may match further down as well, also below a match.
		if at.deep {
			follow(s)
		}

		matches := at.any || !object && at.index == index || object && at.index < 0 && at.name == string(name)
		if !matches {
			continue
		}

		// Of several rules that end here the first one acts, as they are written.
		if s.step+1 < len(rule.steps) {
			follow(state{s.rule, s.step + 1})
		} else if action == "" {
			action = rule.action
		}
	}

	return next, action
}
