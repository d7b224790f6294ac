// Package logging keeps a log readable: what repeats is counted, not written each time.
package logging
