package templates

import (
	"fmt"
	"regexp"
	"strconv"

	"promptspool/api/wire"
)

// shownFinding is a finding with the name that the form shows for its place.
type shownFinding struct {
	Field   string // of the form, such as "text-1"; "" if it is not about one
	Line    int    // in the field
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
		shown[i] = shownFinding{Place: f.Path, Message: f.Message}

		m := textPath.FindStringSubmatch(f.Path)
		if m == nil {
			continue
		}

		// A completion has no messages. Its text is in the form's first one.
		index, name := 0, "Text"
		if m[1] != "" {
			index, _ = strconv.Atoi(m[1])
			name = fmt.Sprintf("Message %d", index+1)
		}
		if m[3] != "0" {
			name += ", " + m[2]
		} else {
			shown[i].Line = f.Line
		}

		shown[i].Field = "text-" + strconv.Itoa(index)
		shown[i].Place = fmt.Sprintf("%s, line %d, column %d", name, f.Line, f.Column)
	}

	return shown
}

// FindingsAt returns the findings about a field of the form, such as "text-1".
func (v editView) FindingsAt(field string) (at []shownFinding) {
	findings := v.Refused
	if len(findings) == 0 {
		findings = v.Preview.Findings
	}
	for _, f := range findings {
		if f.Field == field {
			at = append(at, f)
		}
	}

	return at
}
