// Package otel reads stored OpenTelemetry spans: the model call, agent, tool or other
// operation that a span describes, in whichever of the field's dialects.
//
// A model call becomes the body of the track-request that would have logged it, so that
// everything that knows logged requests knows traced ones too. Any other span keeps its
// kind, and what went in and came out. Nothing here fails: what cannot be read is missing,
// and the raw attributes stay with the record. Spans come from anybody, so reading one
// costs time and memory in proportion to its bytes.
//
// Package dialect below has a table for each library's attributes; forms.go lists what reads
// the content that they hold.
package otel
