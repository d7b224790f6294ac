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

// do brings a task from where it is to its end: asked, logged and scored. Each step is in the journal
// before the next begins. It returns what the call has cost, as far as that is known.
func (w *worker) do(ctx context.Context, t task, of row) (cost float64, err error) {
	if of.Variables == nil {
		of.Variables, err = w.variables(ctx, of.ID)
		if err != nil {
			return 0, err
		}
	}
	logged := w.logged[t.Version][t.Row]
	if logged != nil && experiment.Failed(logged) {
		logged = nil
	}
	s := w.journal.of(t)
	switch {
	case s.Body != nil:
	case logged != nil:
		s = step{task: t, ID: logged.RequestID}
	default:
		s, err = w.answer(ctx, t, of)
		if err != nil {
			return 0, err
		}
	}

	if logged == nil {
		err = again(ctx, func() error { return w.post(ctx, s.Path, s.Body) })
		if err != nil {
			return 0, err
		}
	}
	if !s.Failed {
		cost, err = w.score(ctx, s, of, logged)
	}

	return cost, errors.Join(err, w.journal.forget(s))
}

// variables returns those of a past call.
func (w *worker) variables(ctx context.Context, id string) (all map[string]json.RawMessage, err error) {
	err = again(ctx, func() error {
		record, err := w.client.Request(ctx, w.id, id)
		if err == nil && record.Prompt != nil && len(record.Prompt.InputVariables) > 0 {
			err = json.Unmarshal(record.Prompt.InputVariables, &all)
		}
		return err
	})
	if all == nil {
		all = map[string]json.RawMessage{}
	}
	return all, err
}

func (w *worker) post(ctx context.Context, path string, body json.RawMessage) error {
	_, err := w.client.Call(ctx, w.id, "POST", path, body)
	return err
}

// waitMax is the longest pause before a server that is away is asked again; that of half a minute together.
const waitMax = 16 * time.Second

// again repeats what a server was away for.
func again(ctx context.Context, do func() error) error {
	for wait := time.Second; ; wait *= 2 {
		err := do()
		retries := wire.IsCode(err, wire.CodeUnavailable) || wire.IsCode(err, wire.CodeTooMany)
		if err == nil || !retries || wait > waitMax {
			return err
		}
		select {
		case <-time.After(max(wait, wire.AsError(err).RetryAfter)):
		case <-ctx.Done():
			return err
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

// reply is the line that the command answers: a response, a text or an error.
type reply struct {
	Response   json.RawMessage `json:"response"` // as the provider sent it
	Text       *string         `json:"text"`
	Error      string          `json:"error"`
	RetryAfter *float64        `json:"retry_after"` // seconds; nil if another attempt is of no use

	// Beside a text, as far as they are known.
	InputTokens  *int64   `json:"input_tokens"`
	OutputTokens *int64   `json:"output_tokens"`
	Price        *float64 `json:"price"`
}

// answer renders a row and gives it to the command. Its step is in the journal unless there is no answer.
func (w *worker) answer(ctx context.Context, t task, of row) (s step, err error) {
	var rendered wire.RenderedTemplate
	err = again(ctx, func() (err error) {
		rendered, err = w.client.Fetch(ctx, w.id, w.Template, wire.TemplateFetch{
			Selector: wire.Selector{Version: t.Version}, Variables: of.Variables,
		})
		return err
	})
	var metadata struct {
		Model struct{ Provider, Name string }
	}
	_ = json.Unmarshal(rendered.Metadata, &metadata)
	line := request{
		ID: wire.NewIDAt(time.Now()), Experiment: w.Name, Row: of, Template: w.Template, Version: t.Version,
		Provider: metadata.Model.Provider, Model: metadata.Model.Name, Kwargs: rendered.LLMKwargs,
	}
	s = step{task: t, ID: line.ID, Path: "/track-request"}
	begun := time.Now()
	var said reply
	switch {
	case wire.IsCode(err, wire.CodeInvalid):
		said.Error = wire.AsError(err).Message
	case err != nil:
		return s, err
	case len(line.Kwargs) == 0 || string(line.Kwargs) == "null":
		return s, fmt.Errorf("version %d of %s names no provider and model, so it gives no llm_kwargs",
			t.Version, w.Template)
	default:
		err = w.journal.add(step{task: t, ID: s.ID})
		if err != nil {
			return s, err
		}
		begun, said = w.attempts(ctx, line)
	}

	s.Path, s.Body, err = logBody(line, said, rendered.Blueprint, begun)
	if err != nil {
		said.Error = "the answer cannot be logged: " + err.Error()
		s.Path, s.Body, err = logBody(line, said, nil, begun)
	}
	s.Failed = said.Error != ""
	if err == nil && !s.Failed {
		err = w.journal.add(s)
	}

	return s, errors.Join(err, w.count(said.Error))
}

// attempts gives the command a line, again if it asks for that, and returns its last reply.
func (w *worker) attempts(ctx context.Context, line request) (begun time.Time, said reply) {
	for line.Attempt = 1; ; line.Attempt++ {
		begun, said = time.Now(), reply{}
		text, err := w.ask(line.ID, line)
		if err == nil {
			err = json.Unmarshal(text, &said)
		}

		switch {
		case err != nil:
			return begun, reply{Error: err.Error()}
		case said.Error == "" && said.Text == nil && len(said.Response) == 0:
			return begun, reply{Error: "the answer has neither response, text nor error: " + shown(text)}
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

// logBody returns the body that logs an answer as a call like any other, and where. Its error says what of
// the answer no call may have.
func logBody(line request, said reply, input json.RawMessage, begun time.Time) (string, json.RawMessage, error) {
	metadata := map[string]string{}
	maps.Copy(metadata, line.Row.Metadata)
	metadata[experiment.NameKey], metadata[experiment.RowKey] = line.Experiment, line.Row.ID
	body := map[string]any{
		"request_id": line.ID, "metadata": metadata, "prompt_input_variables": line.Row.Variables,
		"request_start_time": seconds(begun), "request_end_time": seconds(time.Now()),
	}

	path, isText := "/track-request", said.Text != nil && said.Error == ""
	if isText {
		path = "/log-request"
		content := []any{map[string]string{"type": "text", "text": *said.Text}}
		body["provider"], body["model"], body["input"] = line.Provider, line.Model, input
		body["output"] = map[string]any{
			"type": "chat", "messages": []any{map[string]any{"role": "assistant", "content": content}},
		}
		body["prompt_name"], body["prompt_version_number"] = line.Template, line.Version
		body["input_tokens"], body["output_tokens"], body["price"] = said.InputTokens, said.OutputTokens, said.Price
	} else {
		body["function_name"], body["provider_type"] = "promptspool.experiments.run", line.Provider
		body["kwargs"], body["request_response"] = line.Kwargs, said.Response
		body["prompt_id"], body["prompt_version"] = line.Template, line.Version
	}
	if said.Error != "" {
		body["status"], body["request_response"] = "ERROR", nil
		body["error_type"], body["error_message"] = "UNKNOWN_ERROR", shown([]byte(said.Error))
	}
	if len(line.Kwargs) == 0 && !isText {
		body["kwargs"] = map[string]any{}
	}

	text, err := json.Marshal(body)
	if err != nil {
		return path, nil, err
	}
	object, err := wire.ParseObject(text)
	if err == nil && isText {
		_, err = wire.DecodeLog(object, time.Now())
	} else if err == nil {
		_, err = wire.DecodeRequest(object, false, time.Now())
	}

	return path, text, err
}

// seconds returns a time as a call is logged with it.
func seconds(at time.Time) float64 { return float64(at.UnixMicro()) / 1e6 }

// score lets the evaluators judge an answer that is logged, and logs what they say. It returns the cost of
// the call, 0 if that is not known.
func (w *worker) score(ctx context.Context, s step, of row, logged *wire.Row) (cost float64, err error) {
	var record wire.Record
	err = again(ctx, func() (err error) {
		record, err = w.client.Request(ctx, w.id, s.ID)
		return err
	})
	// A sidecar has not forwarded it yet.
	if err != nil && !wire.IsCode(err, wire.CodeNotFound) {
		return 0, err
	}
	if s.Body == nil {
		s.Body = record.Request
	}
	a := newAnswer(of, s.Body, record.Price)
	if !s.Scored && a.call.Failure == nil {
		for i, e := range w.evaluators {
			if hasScore(logged, e.name) {
				continue
			}
			score, err := e.score(w.judges[i], s, a)
			if err != nil {
				w.unjudged(e.name, err)
				continue
			}
			s.Scores = append(s.Scores, score)
		}
		if err := w.journal.add(step{task: s.task, Scores: s.Scores, Scored: true}); err != nil {
			return 0, err
		}
	}
	for _, score := range s.Scores {
		if err := again(ctx, func() error { return w.post(ctx, "/rest/track-score", score) }); err != nil {
			return 0, err
		}
	}

	return wire.OrZero(record.Price), nil
}
