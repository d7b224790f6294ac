//go:build linux && portable

package harness

// systemTag is the tag that the binary under test is built with, beside those of a test.
const systemTag = "portable"
