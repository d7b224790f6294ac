package jinja

// The bounds of a template and of its rendering. Those of a rendering hold for all texts
// of a blueprint together.
const (
	sourceBytesMax = 256 << 10 // bytes of one text
	depthMax       = 100       // nesting of blocks and of expressions
	chainMax       = 1000      // parts of an expression in a row: a + b + c

	stepsMax      = 1_000_000 // steps of one rendering
	stepsPerCheck = 1000      // steps between checks whether the caller still waits
	bytesPerStep  = 256       // bytes of a string that can be read in one step
	valueBytesMax = 32 << 20  // bytes of all values that one rendering makes
	valueDepthMax = 600       // nesting of values
	callsMax      = 200       // macros that call each other or themselves
	rangeMax      = 100_000   // elements of range(), the same as in Jinja's own sandbox
)
