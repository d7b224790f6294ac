// Package redact takes personal data and credentials out of a write before a sidecar puts it on disk. Rules look at the decoded strings
// of every field, at any depth, names of members included, and into JSON that lies in a string, as the arguments of tools
// do, and at the pieces of a streamed answer as one text; or they name a value by its path. What no rule meets keeps its bytes. The time is linear in the size of a
// body: patterns are RE2, what is built in are scanners. Nothing here reads or writes anything. Safe for concurrent use.
package redact

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// The actions. Mask puts the rule's name in brackets there; hash also a keyed hash of what was there, so that equal values stay equal
// wherever they stand; drop takes it out.
const (
	Mask = "mask"
	Hash = "hash"
	Drop = "drop"
)

// Builtins are the kinds of data that are known here.
var Builtins = []string{"email", "phone", "card", "bearer_token", "provider_key"}

// Rule is one entry of a configuration: what is looked for, in one of three ways, and what is done about it.
type Rule struct {
	Builtin []string // of Builtins
	Path    string   // such as kwargs.messages[*].content, metadata.* or ..password
	Pattern string   // RE2, looked for in every string
	Action  string   // Mask, Hash or Drop; "" is Mask
}

// kind is what a match is counted and masked as.
type kind string

// Rules are rules in force. The zero value changes nothing.
type Rules struct {
	builtin  map[kind]string // action by builtin
	scans    scans
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

// patternsMax bounds the rules, for each costs time in every write.
const patternsMax = 64

// New checks rules. The secret keys the hashes; two sidecars with the same one make the same. An error is of the rule with this index,
// -1 for all.
func New(rules []Rule, secret []byte) (_ *Rules, index int, _ error) {
	r := &Rules{builtin: map[kind]string{}, secret: secret}
	if len(rules) > patternsMax {
		return nil, -1, fmt.Errorf("there are %d rules; at most %d are taken", len(rules), patternsMax)
	}
	for i, rule := range rules {
		if err := r.add(rule); err != nil {
			return nil, i, err
		}
	}
	return r, -1, nil
}

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
		return fmt.Errorf("the action hash needs --redact-secret-file, or anybody could find short values by trying")
	case rule.Pattern != "":
		re, err := regexp.Compile(rule.Pattern)
		if err != nil {
			return fmt.Errorf("the pattern is not RE2: %w", err)
		}
		if re.MatchString("") {
			return fmt.Errorf("the pattern %q matches nothing at all, and so everywhere", rule.Pattern)
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
			return fmt.Errorf("there is no builtin %q; there are: %s", name, strings.Join(Builtins, ", "))
		}
		if before := r.builtin[kind(name)]; before != "" {
			return fmt.Errorf("the builtin %s is named twice", name)
		}
		r.builtin[kind(name)] = rule.Action
		r.scans.set(kind(name))
	}
	return nil
}

// Empty says whether there is nothing to do.
func (r *Rules) Empty() bool {
	return r == nil || len(r.builtin) == 0 && len(r.patterns) == 0 && len(r.paths) == 0
}

// replace is what stands for a text that a rule met.
func (r *Rules) replace(k kind, action string, text []byte) string {
	switch action {
	case Drop:
		return ""
	case Hash:
		mac := hmac.New(sha256.New, r.secret)
		mac.Write(normal(k, text))
		return "[" + string(k) + ":" + hex.EncodeToString(mac.Sum(nil)[:8]) + "]"
	}
	return "[" + string(k) + "]"
}

// normal is a value without what does not change its meaning, so that its spellings have one hash.
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
