package dashboard

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"promptspool/api/wire"
)

// shownFinding is a finding by the name that people know the place by.
type shownFinding struct {
	Index   int    // of the message; -1 if it is about none
	Place   string // "Message 2, line 1, column 7"
	Message string
}

// textPath reads the path of a finding in a text: the message's index, and the block's.
var textPath = regexp.MustCompile(`^(?:messages\[(\d+)\]\.)?(content\[(\d+)\])\.`)

// shownFindings names the places of findings.
func shownFindings(findings []wire.Finding) []shownFinding {
	shown := make([]shownFinding, len(findings))
	for i, f := range findings {
		shown[i] = shownFinding{-1, f.Path, f.Message}

		m := textPath.FindStringSubmatch(f.Path)
		if m == nil {
			continue
		}
		name := "Text"
		shown[i].Index = 0
		if m[1] != "" {
			shown[i].Index, _ = strconv.Atoi(m[1])
			name = fmt.Sprintf("Message %d", shown[i].Index+1)
		}
		if m[3] != "0" {
			name += ", " + m[2]
		}
		shown[i].Place = fmt.Sprintf("%s, line %d, column %d", name, f.Line, f.Column)
	}
	return shown
}

// FindingsAt are those about a message of the draft; -1 for those about none.
func (v editView) FindingsAt(index int) (at []shownFinding) {
	for _, f := range v.Refused {
		if f.Index == index {
			at = append(at, f)
		}
	}
	return at
}

// tells reports whether an error says the same.
func (f shownFinding) tells(err error) bool {
	return slices.ContainsFunc(wire.AsError(err).Fields, func(e wire.FieldError) bool { return e.Reason == f.Message })
}
