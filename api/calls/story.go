package calls

import (
	"hash/maphash"
	"slices"
	"strings"
)

// Story finds what each call of a session added, though most apps send the whole conversation
// again. It is told of the calls one after the other, oldest first.
//
// A session may have several conversations at a time, such as those of an agent and of the agents
// that it calls.
type Story struct {
	seed   maphash.Seed
	starts map[uint64]bool // of conversations: what calls sent, and that with its answer
	seen   map[uint64]bool // pieces of messages
}

// NewStory returns the story of a session before its first call.
func NewStory() *Story {
	return &Story{maphash.MakeSeed(), map[uint64]bool{}, map[uint64]bool{}}
}

// Next returns the numbers of the messages in the next call's input that it added. It returns none
// if all of them were there before, as in a retry. Every message is added by one call at least.
func (s *Story) Next(c *Call) (added []int) {
	// The beginning of a conversation is old if an earlier call had it, whatever its system
	// prompt. An app that shortens a conversation has another beginning: then everything after
	// the last known answer is new.
	at, known, answered := uint64(0), 0, 0
	all := make([][]uint64, len(c.Input))
	for i := range c.Input {
		m := &c.Input[i]
		all[i] = s.pieces(m, m.Role)
		if m.isSystem() || len(all[i]) == 0 {
			continue
		}
		at = s.chain(at, all[i])
		if s.starts[at] {
			known = i + 1
		}
		s.starts[at] = true
		if m.Role == "assistant" && s.saw(all[i]) {
			answered = i + 1
		}
	}
	for i, pieces := range all {
		isSystem := c.Input[i].isSystem()
		isOld := i < known && !isSystem || (i < answered || isSystem) && s.saw(pieces)
		if !isOld {
			added = append(added, i)
		}
	}

	// Of several choices, the app continues one.
	for i := range c.Output {
		pieces := s.pieces(&c.Output[i], "assistant")
		s.starts[s.chain(at, pieces)] = true
		all = append(all, pieces)
	}
	for _, p := range slices.Concat(all...) {
		s.seen[p] = true
	}

	return added
}

// isSystem reports whether a message is what an app sends with each call.
func (m *Message) isSystem() bool { return m.Role == "system" || m.Role == "developer" }

// pieces returns hashes of what a message consists of, which apps may send back in several
// messages. Thoughts, ids and spaces are left out, because they may be lost on the way.
func (s *Story) pieces(m *Message, role string) (pieces []uint64) {
	add := func(texts ...string) {
		pieces = append(pieces, maphash.String(s.seed, role+"\x00"+strings.Join(texts, "\x00")))
	}
	for _, p := range m.Parts {
		switch p.Kind {
		case PartThinking:
		case PartMedia:
			add("media", p.Text, string(p.Media))
		default:
			add("text", strings.TrimSpace(p.Text))
		}
	}
	for _, c := range m.ToolCalls {
		add("call", c.Name, strings.Join(strings.Fields(c.Arguments), ""))
	}

	return pieces
}

// chain returns the hash of a beginning with more pieces.
func (s *Story) chain(at uint64, pieces []uint64) uint64 {
	for _, p := range pieces {
		at = maphash.Comparable(s.seed, [2]uint64{at, p})
	}

	return at
}

// saw reports whether all pieces were there before.
func (s *Story) saw(pieces []uint64) bool {
	return !slices.ContainsFunc(pieces, func(p uint64) bool { return !s.seen[p] })
}
