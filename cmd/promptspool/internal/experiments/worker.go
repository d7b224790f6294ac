package experiments

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"promptspool/api/calls"
	"promptspool/api/experiment"
	"promptspool/api/wire"
)

const attemptsMax = 5

// worker does one task after the other, with processes that no other worker uses.
type worker struct {
	*run
	process
	judges []*process // one for each evaluator
}

func newWorker(r *run) *worker {
	w := &worker{run: r, process: process{args: r.command, timeout: r.timeout}}
	for _, e := range r.evaluators {
		w.judges = append(w.judges, &process{args: e.command, timeout: r.timeout})
	}
	return w
}

// stop ends the processes.
func (w *worker) stop() {
	w.process.stop()
	for _, p := range w.judges {
		p.stop()
	}
}

// do brings a task from where it is to its end: asked, logged and scored.
func (w *worker) do(ctx context.Context, t task, of row) (err error) {
	s, logged := w.journal.of(t), w.loggedAnswer(t)
	switch {
	case logged != nil:
		s = step{task: t, ID: logged.RequestID}
	case s.Body == nil:
		s, err = w.answer(ctx, t, of)
		if err != nil {
			return err
		}
	}

	if logged == nil {
		err = w.post(ctx, "/track-request", s.Body)
	}
	if s.Failed || err != nil {
		return errors.Join(err, w.count(s.Failed))
	}
	return errors.Join(w.score(ctx, s, of, logged), w.count(false))
}

// post logs something. The same again changes nothing.
func (w *worker) post(ctx context.Context, path string, body json.RawMessage) error {
	_, err := again(ctx, func() (json.RawMessage, error) { return w.client.Call(ctx, w.id, "POST", path, body) })
	return err
}

// again repeats what a server was away for, for half a minute.
func again[T any](ctx context.Context, do func() (T, error)) (answer T, err error) {
	for wait := time.Second; ; wait *= 2 {
		answer, err = do()
		retries := wire.IsCode(err, wire.CodeUnavailable) || wire.IsCode(err, wire.CodeTooMany)
		if !retries || wait > 16*time.Second {
			return answer, err
		}
		select {
		case <-time.After(max(wait, wire.AsError(err).RetryAfter)):
		case <-ctx.Done():
			return answer, err
		}
	}
}

// request is the line that the command is given.
type request struct {
	ID         string          `json:"id"`
	Experiment string          `json:"experiment"`
	Attempt    int             `json:"attempt"`
	Row        row             `json:"row"`
	Template   string          `json:"template"`
	Version    int             `json:"version"`
	Provider   string          `json:"provider"`
	Model      string          `json:"model"`
	Kwargs     json.RawMessage `json:"llm_kwargs"`
}

// reply is the line that the command answers.
type reply struct {
	Response   json.RawMessage `json:"response"` // as the provider sent it
	Error      string          `json:"error"`    // in its place
	RetryAfter *float64        `json:"retry_after"`
}

// answer renders a row and gives it to the command. Its step is in the journal, unless there is no answer.
func (w *worker) answer(ctx context.Context, t task, of row) (s step, err error) {
	if of.Variables == nil {
		of.Variables, err = w.variables(ctx, of.ID)
	}
	var rendered wire.RenderedTemplate
	if err == nil {
		fetch := wire.TemplateFetch{Selector: wire.Selector{Version: t.Version}, Variables: of.Variables}
		rendered, err = again(ctx, func() (wire.RenderedTemplate, error) {
			return w.client.Fetch(ctx, w.id, w.Template, fetch)
		})
	}
	var metadata struct {
		Model struct{ Provider, Name string }
	}
	_ = json.Unmarshal(rendered.Metadata, &metadata)
	line := request{
		ID: wire.NewID(), Experiment: w.Name, Row: of, Template: w.Template, Version: t.Version,
		Provider: metadata.Model.Provider, Model: metadata.Model.Name, Kwargs: rendered.LLMKwargs,
	}
	s = step{task: t, ID: line.ID}
	begun, said := time.Now(), reply{}
	switch {
	case wire.IsCode(err, wire.CodeInvalid), wire.IsCode(err, wire.CodeNotFound):
		line.Kwargs, said.Error = json.RawMessage("{}"), wire.AsError(err).Message
	case err != nil:
		return s, err
	case len(line.Kwargs) == 0 || string(line.Kwargs) == "null":
		return s, fmt.Errorf("version %d of %s names no provider and model, so it gives no llm_kwargs",
			t.Version, w.Template)
	default:
		err = w.journal.add(s)
		if err != nil {
			return s, err
		}
		begun, said = w.attempts(ctx, line)
	}

	s.Body, err = logBody(line, said, begun)
	if err != nil {
		said = reply{Error: "the answer cannot be logged: " + err.Error()}
		s.Body, err = logBody(line, said, begun)
	}
	noted := s
	if said.Error != "" {
		w.note("row %s of version %d: %s", t.Row, t.Version, said.Error)
		s.Failed, noted = true, step{task: t, Failed: true}
	}

	return s, errors.Join(err, w.journal.add(noted))
}

// variables returns those of a past call.
func (w *worker) variables(ctx context.Context, id string) (map[string]json.RawMessage, error) {
	past, err := again(ctx, func() (wire.Record, error) { return w.client.Request(ctx, w.id, id) })
	all := map[string]json.RawMessage{}
	if err == nil && past.Prompt != nil && len(past.Prompt.InputVariables) > 0 {
		err = json.Unmarshal(past.Prompt.InputVariables, &all)
	}
	return all, err
}

// attempts gives the command a line, again if it asks for that, and returns its last reply.
func (w *worker) attempts(ctx context.Context, line request) (begun time.Time, said reply) {
	for line.Attempt = 1; ; line.Attempt++ {
		begun, said = time.Now(), reply{}
		text, err := w.ask(line.ID, line)
		if err == nil {
			err = json.Unmarshal(text, &said)
		}
		if err == nil && said.Error == "" && len(said.Response) == 0 {
			err = errors.New("the answer has neither response nor error: " + shown(text))
		}

		switch {
		case err != nil:
			return begun, reply{Error: err.Error()}
		case said.Error == "" || said.RetryAfter == nil || line.Attempt == attemptsMax:
			return begun, said
		}
		select {
		case <-time.After(time.Duration(*said.RetryAfter * float64(time.Second))):
		case <-ctx.Done():
			return begun, said
		}
	}
}

// logBody returns the body that logs an answer as a call like any other.
func logBody(line request, said reply, begun time.Time) (json.RawMessage, error) {
	metadata := map[string]string{experiment.NameKey: line.Experiment, experiment.RowKey: line.Row.ID}
	for key, value := range line.Row.Metadata {
		if metadata[key] == "" {
			metadata[key] = value
		}
	}
	body := map[string]any{
		"request_id": line.ID, "metadata": metadata, "function_name": "promptspool.experiments.run",
		"provider_type": line.Provider, "kwargs": line.Kwargs, "request_response": said.Response,
		"prompt_id": line.Template, "prompt_version": line.Version, "prompt_input_variables": line.Row.Variables,
		"request_start_time": float64(begun.UnixMicro()) / 1e6,
		"request_end_time":   float64(time.Now().UnixMicro()) / 1e6,
	}
	if said.Error != "" {
		body["status"], body["error_message"] = "ERROR", shown([]byte(said.Error))
	}

	text, err := json.Marshal(body)
	if err == nil {
		_, err = wire.ParseObject(text)
	}
	return text, err
}

// score lets the evaluators judge an answer that is logged, and logs the scores that it does not have yet.
func (w *worker) score(ctx context.Context, s step, of row, logged *wire.Row) error {
	record, err := again(ctx, func() (wire.Record, error) { return w.client.Request(ctx, w.id, s.ID) })
	// A sidecar may not have forwarded it yet.
	if err != nil && !wire.IsCode(err, wire.CodeNotFound) {
		return err
	}
	w.spend(record.Price)
	if s.Body == nil {
		s.Body = record.Request
	}
	// As they were rendered.
	var asked struct {
		Variables map[string]json.RawMessage `json:"prompt_input_variables"`
	}
	_ = json.Unmarshal(s.Body, &asked)
	of.Variables = asked.Variables
	a := &answer{row: of, call: calls.Read(s.Body), latency: record.LatencyMS, price: record.Price}
	if a.call.Failure != nil {
		return nil
	}

	_, a.text = a.call.Texts()
	for i, e := range w.evaluators {
		if hasScore(logged, e.name) {
			continue
		}
		score, fault := e.score(w.judges[i], s, a)
		if fault == nil {
			err := w.post(ctx, "/rest/track-score", score)
			if err != nil && !wire.IsCode(err, wire.CodeInvalid) {
				return err
			}
			fault = err
		}
		if fault != nil {
			w.note("%s could not judge row %s of version %d: %v", e.name, s.Row, s.Version, fault)
		}
	}

	return nil
}
