package jinja

import (
	"fmt"

	"promptspool/registry/render/language"
)

// Within a parse and a rendering, errors travel as panics, as in text/template: nearly
// every step can fail, and none handles the failure of another. Every panic of the
// package starts in fail or failAt and ends in recoverFailure.

// recoverFailure turns a panic into an error. Call it deferred.
func recoverFailure(err *error) {
	switch r := recover().(type) {
	case nil:
	case *language.Error:
		*err = r
	default: // a text that triggers a bug of ours must not end the process
		*err = &language.Error{Message: fmt.Sprintf("met a mistake in promptspool, please report it: %v", r)}
	}
}

// fail ends the rendering.
func fail(format string, args ...any) { failAt(0, format, args...) }

// failAt ends the parse because of what is at a byte of the text.
func failAt(at int, format string, args ...any) {
	panic(&language.Error{Message: fmt.Sprintf(format, args...), At: at})
}
