package language

import (
	"strings"

	"promptspool/api/wire"
)

// FaultsMax bounds how many faults, findings or warnings are reported for one thing.
const FaultsMax = 32

// VariablesMax bounds the variables of a blueprint.
const VariablesMax = wire.ObjectMembersMax

// Names lists variables in order of appearance, each once. The zero value is empty.
type Names struct {
	List []string
	seen map[string]bool
}

// Add appends names that are new and not empty. It stops one name beyond VariablesMax, so
// that callers can recognise too many.
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
	const bytesMax = 80
	if len(s) <= bytesMax {
		return s
	}
	// The cut may be within a character.
	return strings.ToValidUTF8(s[:bytesMax], "") + "..."
}
