package otel

// Wrappers returns the ids of those calls of one trace that have another call below them:
// a library's call around that of the provider's client, or a gateway's. The outer one
// repeats the inner one's content and usage, so only the inner one counts.
func Wrappers(spans []Span) map[string]bool {
	byID := make(map[string]*Span, len(spans))
	for i := range spans {
		byID[spans[i].SpanID] = &spans[i]
	}

	wrappers := map[string]bool{}
	walked := map[string]bool{}
	for i := range spans {
		if !spans[i].IsCall() {
			continue
		}
		// Above a span that was walked already everything is known. That also ends a
		// circle, which a hostile sender may make.
		for above := byID[spans[i].ParentID]; above != nil && !walked[above.SpanID]; above = byID[above.ParentID] {
			walked[above.SpanID] = true
			if above.IsCall() && above.SpanID != spans[i].SpanID {
				wrappers[above.SpanID] = true
			}
		}
	}

	return wrappers
}
