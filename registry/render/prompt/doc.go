// Package prompt takes a checked blueprint apart into messages, content blocks and tools,
// with their texts parsed. What Parse returns never changes and may be shared.
package prompt
