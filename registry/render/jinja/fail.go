package jinja

import (
	"fmt"

	"promptspool/registry/render/language"
)

// recoverFailure turns the panic of a fail into an error. Within a parse and a rendering errors travel as panics, as in
// text/template: nearly every step can fail, and none handles the failure of another.
func recoverFailure(err *error) {
	switch r := recover().(type) {
	case nil:
	case *language.Error:
		*err = r
	default: // a text that finds a mistake of ours must not end the process
		*err = &language.Error{Message: fmt.Sprintf("met a mistake in promptspool, please report it: %v", r)}
	}
}

// fail ends the rendering.
func fail(format string, args ...any) { failAt(0, format, args...) }

// failAt ends the parse because of what stands at a byte of the text.
func failAt(at int, format string, args ...any) {
	panic(&language.Error{Message: fmt.Sprintf(format, args...), At: at})
}
