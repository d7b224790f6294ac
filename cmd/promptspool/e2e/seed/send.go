package seed

import (
	"context"
	"slices"

	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/demo"
)

// batchEvents is how many events go into a call of Calls.
const batchEvents = 500

// APICalls returns the calls of the API that publish the templates of a set, and log everything else of it.
func (s Set) APICalls() (calls []demo.Call) {
	for _, r := range s.Templates {
		calls = append(calls, demo.Call{Path: "/rest/prompt-templates", Body: string(encode(r))})
	}
	for batch := range slices.Chunk(s.Events, batchEvents) {
		var lines []byte
		for i := range batch {
			lines = batch[i].AppendLine(lines)
		}
		calls = append(calls, demo.Call{Path: "/sync/events", Body: string(lines)})
	}
	for batch := range slices.Chunk(s.Traces, tracesInACall) {
		body := encode(map[string]any{"resourceSpans": batch})
		calls = append(calls, demo.Call{Path: "/v1/traces", Body: string(body)})
	}

	return calls
}

// Send makes the calls at a running server. The key must be allowed to do all of it.
func (s Set) Send(ctx context.Context, server string, key wire.Secret) error {
	for _, c := range s.APICalls() {
		if err := c.Send(ctx, server, key); err != nil {
			return err
		}
	}

	return nil
}
