// Package prompt takes a checked blueprint apart into messages, content blocks and tools,
// with their texts parsed. The result of Parse never changes and may be shared.
package prompt
