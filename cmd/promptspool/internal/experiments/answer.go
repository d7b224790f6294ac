package experiments

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"promptspool/api/experiment"
	"promptspool/api/wire"
)

const attemptsMax = 5

// request is the line that the command is given.
type request struct {
	ID         string          `json:"id"`
	Experiment string          `json:"experiment"`
	Row        row             `json:"row"`
	Template   string          `json:"template"`
	Version    int             `json:"version"`
	Provider   string          `json:"provider"`
	Kwargs     json.RawMessage `json:"llm_kwargs"`
}

// answer has the command answer a task, unless it has, and logs that.
func (r *run) answer(ctx context.Context, t task) (err error) {
	s, failure := r.steps[t], ""
	if s.Body == nil {
		s, failure, err = r.ask(ctx, t)
	}
	if err == nil {
		err = r.post(ctx, "/track-request", s.Body)
	}
	if err != nil {
		return err
	}

	// A sidecar may not have forwarded it yet.
	record, _ := r.client.Request(ctx, r.id, s.ID)
	r.mutex.Lock()
	r.spent += wire.OrZero(record.Price)
	r.mutex.Unlock()
	if failure != "" {
		return fault{errors.New(failure)}
	}
	return nil
}

// post logs something. The same again changes nothing.
func (r *run) post(ctx context.Context, path string, body json.RawMessage) error {
	return again(ctx, func() error {
		_, err := r.client.Call(ctx, r.id, "POST", path, body)
		return err
	})
}

// ask renders a row and gives it to the command. The answer is in the journal; a failure, which is logged as
// well, is not.
func (r *run) ask(ctx context.Context, t task) (s step, failure string, err error) {
	line, err := r.render(ctx, t)
	s = step{task: t, ID: line.ID}
	var call wire.RequestWrite
	switch {
	case wire.IsCode(err, wire.CodeInvalid), wire.IsCode(err, wire.CodeNotFound):
		call.Start, call.End, call.ErrorMessage = time.Now(), time.Now(), wire.AsError(err).Message
		line.Kwargs = json.RawMessage("{}")
	case err == nil:
		err = r.journal.add(s)
		if err != nil {
			return s, "", err
		}
		call = r.attempt(ctx, line)
	default:
		return s, "", err
	}

	call.RequestID, call.FunctionName, call.ProviderType = line.ID, "promptspool.experiments.run", line.Provider
	call.Kwargs, call.Name, call.Version = line.Kwargs, line.Template, line.Version
	call.Metadata = map[string]string{}
	maps.Copy(call.Metadata, line.Row.Metadata)
	call.Metadata[experiment.NameKey], call.Metadata[experiment.RowKey] = line.Experiment, line.Row.ID
	call.InputVariables, err = json.Marshal(line.Row.Variables)
	if err == nil {
		s.Body, err = json.Marshal(call)
	}
	noted := s
	if call.ErrorMessage != "" {
		noted = step{task: t}
	}
	if err == nil {
		err = r.journal.add(noted)
	}

	return s, call.ErrorMessage, err
}

// render returns the line for a task.
func (r *run) render(ctx context.Context, t task) (line request, err error) {
	line = request{
		ID: wire.NewID(), Experiment: r.Name, Row: r.rows[t.Row], Template: r.Template, Version: t.Version,
	}
	if line.Row.Variables == nil {
		var past wire.Record
		err = again(ctx, func() (err error) {
			past, err = r.client.Request(ctx, r.id, t.Row)
			return err
		})
		line.Row.Variables = variablesOf(past)
	}
	var rendered wire.RenderedTemplate
	if err == nil {
		fetch := wire.TemplateFetch{Selector: wire.Selector{Version: t.Version}, Variables: line.Row.Variables}
		err = again(ctx, func() (err error) {
			rendered, err = r.client.Fetch(ctx, r.id, r.Template, fetch)
			return err
		})
	}
	if err != nil {
		return line, err
	}

	if rendered.Warning != nil {
		r.warn(fmt.Sprintf("Version %d: %s", t.Version, *rendered.Warning))
	}
	var metadata struct {
		Model struct{ Provider string }
	}
	_ = json.Unmarshal(rendered.Metadata, &metadata)
	line.Provider, line.Kwargs = metadata.Model.Provider, rendered.LLMKwargs
	if len(line.Kwargs) == 0 || string(line.Kwargs) == "null" {
		err = fmt.Errorf("version %d of %s names no provider and model, so it gives no llm_kwargs",
			t.Version, r.Template)
	}

	return line, err
}

// variablesOf returns the input variables of a call.
func variablesOf(call wire.Record) map[string]json.RawMessage {
	all := map[string]json.RawMessage{}
	if call.Prompt != nil {
		_ = json.Unmarshal(call.Prompt.InputVariables, &all)
	}
	return all
}

// attempt gives the command a line, again if it asks for that, and returns what its last answer says.
func (r *run) attempt(ctx context.Context, line request) (call wire.RequestWrite) {
	for attempt := 1; ; attempt++ {
		var said struct {
			Response   json.RawMessage
			Error      string
			RetryAfter float64 `json:"retry_after"`
		}
		call.Start = time.Now()
		err := r.command.ask(line.ID, line, &said)
		if err == nil && said.Error == "" {
			_, err = wire.ParseObject(said.Response)
		}
		call.End, call.Response, call.ErrorMessage = time.Now(), said.Response, said.Error
		if err != nil {
			call.Response, call.ErrorMessage = nil, err.Error()
		}
		if said.Error == "" || said.RetryAfter <= 0 || attempt == attemptsMax {
			return call
		}

		select {
		case <-time.After(time.Duration(said.RetryAfter * float64(time.Second))):
		case <-ctx.Done():
			return call
		}
	}
}
