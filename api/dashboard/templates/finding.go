package templates

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"promptspool/api/wire"
)

// shownFinding is a finding with the name that the form shows for its place.
type shownFinding struct {
	Index   int    // of the message; -1 if it is not about one
	Place   string // such as "Message 2, line 1, column 7"
	Message string
}

// textPath matches the path of a finding in a text: the index of the message, and that of
// the block.
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

		// A completion has no messages. Its text is in the form's first one.
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

// FindingsAt returns the findings about a message of the draft, or with -1 those that are
// not about one.
func (v editView) FindingsAt(index int) (at []shownFinding) {
	for _, f := range v.Refused {
		if f.Index == index {
			at = append(at, f)
		}
	}

	return at
}

// Misplaced reports whether the draft has a format where nothing reads it.
func (v editView) Misplaced() bool { return v.misplaced() }

// listedIn reports whether an error lists the finding.
func (f shownFinding) listedIn(err error) bool {
	return slices.ContainsFunc(wire.AsError(err).Fields, func(e wire.FieldError) bool {
		return e.Reason == f.Message
	})
}
