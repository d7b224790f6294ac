// Package jsonscan reads JSON in place: it checks, walks and skips values in their bytes,
// and decodes only the strings that a caller asks for. It also writes strings. It
// allocates nothing but the texts that it returns, and the time of each function is
// linear in the bytes that it looks at.
package jsonscan
