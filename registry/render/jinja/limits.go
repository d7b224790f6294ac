package jinja

// Bounds of jinja2.
const (
	stepsMax       = 1_000_000 // steps of one rendering, over all texts of a blueprint
	stepsPerCheck  = 1000      // after which it is asked whether the caller still waits
	valueBytesMax  = 32 << 20  // bytes of values that one rendering makes, over all texts
	bytesPerStep   = 256       // bytes of text that can be read for a step
	sourceBytesMax = 256 << 10 // bytes of one text
	depthMax       = 100       // nesting of blocks and of expressions
	chainMax       = 1000      // parts of an expression in a row: a + b + c
	valueDepthMax  = 600       // nesting of values
	rangeMax       = 100_000   // of range(), as Jinja's own sandbox has it
)
