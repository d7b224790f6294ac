package language

import (
	"strings"

	"promptspool/api/wire"
)

// FaultsMax bounds how many faults, findings or warnings are reported for one thing.
const FaultsMax = 32

// VariablesMax bounds the variables of a blueprint.
const VariablesMax = wire.ObjectMembersMax

// Names are variables in order of appearance, each once. The zero value is empty.
type Names struct {
	List []string
	seen map[string]bool
}

// Add takes one name more than a blueprint may have, so that inputVariables can tell. An empty one is none.
func (n *Names) Add(more ...string) {
	if n.seen == nil {
		n.seen = make(map[string]bool)
	}
	for _, name := range more {
		if name != "" && !n.seen[name] && len(n.List) <= VariablesMax {
			n.seen[name] = true
			n.List = append(n.List, name)
		}
	}
}

// Shorten cuts a caller's text for a message.
func Shorten(s string) string {
	if len(s) <= 80 {
		return s
	}
	return strings.ToValidUTF8(s[:80], "") + "..."
}
