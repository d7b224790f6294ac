// Package spooltool has the commands `promptspool spool ...` and `promptspool dead ...`.
//
// They work on a sidecar's spool: through the control socket of a running sidecar, or in the folder of a stopped one.
package spooltool
