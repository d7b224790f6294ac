// Package rawjson reads and writes JSON values that keep their text: numbers and unknown
// members leave it as they came. Its input was validated before.
package rawjson
