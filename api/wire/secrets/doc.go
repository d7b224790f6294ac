// Package secrets finds credentials in the bodies that apps send, and masks them. It
// knows credentials by the names of their members and by the shapes of well-known keys;
// see finder for the rules.
//
// Bodies may be 32 MiB and hostile, so everything here runs on the bytes as they were
// sent, in time linear in their number.
package secrets
