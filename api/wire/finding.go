package wire

import "fmt"

// Finding is a place in a template that cannot be rendered. A version that has some is published all the same; an app that fetches it
// gets that text as it was written.
type Finding struct {
	Path    string `json:"path"`    // of the text within the blueprint: messages[1].content[0].text
	Line    int    `json:"line"`    // within that text, from 1
	Column  int    `json:"column"`  // in characters, from 1
	Message string `json:"message"` // a predicate: "has a { that is not closed"
}

// String is the finding in one line.
func (f Finding) String() string {
	return fmt.Sprintf("%s:%d:%d: %s", f.Path, f.Line, f.Column, f.Message)
}
