// Package filterline reads and prints the filter line, in which people write which requests they
// want to see:
//
//	status:error template:support/triage@3 latency:>2s customer:acme "purple elephant" -env:staging
//
// The API, the dashboard and the command line all read it here. A line is carried out as the JSON
// filter of a search: Parse reads a line, Line.Compile makes the filter of it, and Fields is the
// table of what a line can ask for.
//
// The grammar; terms are separated by blanks, and all of them must hold:
//
//	line  = terms {"OR" terms}
//	terms = term {term}
//	term  = ["-"] (text | key ":" value | "(" line ")")
//	text  = ["*"] (word | quoted) ["*"]
//	key   = name | name "." (name | quoted)
//	value = item | "(" item {("or" | ",") item} ")"
//	item  = "*" | [">" | ">=" | "<" | "<="] part | [part] ".." [part] | ["*"] part ["*"]
//	part  = bare | quoted
//
// A quoted text is in double quotes, in which \" is a quote and \\ a backslash. A key that is not
// in the table is one of metadata.
package filterline
