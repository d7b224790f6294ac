// Package wire defines what crosses the wire between an app, a sidecar and a server: the
// types, their validation and limits, ids and errors. It does no I/O and keeps no state,
// so that both roles judge a body by the same code.
//
// Field comments name what a JSON member means. jsonscan reads JSON below these types;
// secrets masks credentials in bodies.
//
// Each file is one noun, with its types and their decoder. They stay together, because a
// field is checked by one reader (field.go) that makes one kind of error (error.go), and
// both roles need all of them.
//
// Other modules may import it. From the first release on, the types that api/client takes and
// returns change only by adding. The rest, and the packages below, may change with any release.
package wire
