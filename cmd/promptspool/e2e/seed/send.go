package seed

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
)

// batchEvents is how many events go into a call of Send.
const batchEvents = 500

// Send publishes the templates of a set on a running server and logs its calls there. The key must be allowed to do
// both. Sending the same set again changes nothing but the templates' versions.
func (s Set) Send(ctx context.Context, server, key string) error {
	for _, r := range s.Templates {
		if err := post(ctx, server+"/rest/prompt-templates", key, encode(r)); err != nil {
			return err
		}
	}
	for batch := range slices.Chunk(s.Events, batchEvents) {
		var lines []byte
		for i := range batch {
			lines = batch[i].AppendLine(lines)
		}
		if err := post(ctx, server+"/sync/events", key, lines); err != nil {
			return err
		}
	}

	return nil
}

// post makes a call and expects that everything in it is accepted.
func post(ctx context.Context, address, key string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("X-API-KEY", key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()

	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode >= 300 || bytes.Contains(answer, []byte(`"invalid"`)) {
		return fmt.Errorf("%s: %s %.500s", address, res.Status, answer)
	}

	return nil
}
