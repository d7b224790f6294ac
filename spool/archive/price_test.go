package archive_test

import (
	"strings"
	"testing"
	"time"

	"promptspool/api/calls"
	"promptspool/api/wire"
	"promptspool/registry/prices"
	"promptspool/spool/archive"
)

func TestThePriceOfARequest(t *testing.T) {
	const tokens = `"prompt_tokens":1000,"completion_tokens":100`
	const usage, answer = `"usage":{` + tokens + `}`, `"request_response":{"usage":{` + tokens + `}}`
	const azure = `{"provider_type":"openai.azure","kwargs":{"model":`
	for _, c := range []struct{ name, body, want, table string }{
		{"the table's", `{"kwargs":{"model":"gpt-4o-mini"},` + answer + `}`, "0.00021", ""},
		{"the provider's own, beside the table's",
			`{"request_response":{"model":"gpt-4o-mini","usage":{` + tokens + `,"cost":7}}}`,
			"7", "0.00021"},
		{"the caller's own", `{"provider":"openai","model":"gpt-4o-mini","input":{},"output":{},"price":7,` +
			`"input_tokens":1000,"output_tokens":100}`, "7", "0.00021"},
		{"a library's, for a span with the provider's", `{"resource":{},"scope":{},"span":{"name":"n","attributes":{` +
			`"gen_ai.operation.name":"chat","gen_ai.usage.cost":7,"gen_ai.response.model":"gpt-4o-mini",` +
			`"output.value":"{\"choices\":[],\"usage\":{\"prompt_tokens\":1000,` +
			`\"completion_tokens\":100,\"cost\":6}}"}}}`,
			"7", "0.00021"},

		// A deployment called gpt-4 may run any model.
		{"a deployment's model, answered",
			azure + `"gpt-4"},"request_response":{"model":"gpt-4o-mini",` + usage + `}}`,
			"0.00021", ""},
		{"a deployment's model, answered in a stream", `{"provider_type":"azure","kwargs":{"model":"gpt-4"},` +
			`"request_response":[{"choices":[{"delta":{"content":"a"}}]},` +
			`{"model":"gpt-4o-mini","choices":[],` + usage + `}]}`,
			"0.00021", ""},
		{"a deployment under an old name",
			azure + `"gpt-35-turbo"},` + answer + `}`, "", ""},
		{"a deployment under an old name, as a span", `{"resource":{},"scope":{},"span":{"name":"n","attributes":{` +
			`"gen_ai.operation.name":"chat","gen_ai.provider.name":"azure.ai.openai","gen_ai.request.model":"gpt-4",` +
			`"gen_ai.usage.input_tokens":1000,"gen_ai.usage.output_tokens":100}}}`, "", ""},
		{"a deployment under the name of its model",
			azure + `"gpt-4o-mini"},` + answer + `}`, "0.00021", ""},
		{"an old model of its maker",
			`{"provider_type":"openai","kwargs":{"model":"gpt-4"},` + answer + `}`, "0.036", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			kind := wire.KindRequest
			if strings.HasPrefix(c.body, `{"resource"`) {
				kind = wire.KindSpan
			}
			state := archive.State{}
			e := event(t, 1, kind, c.body)
			state.Fold(e)
			r := &state.Request.Value
			r.SetPrice(prices.BuiltIn(), time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC))

			got, table := "", ""
			if r.Price != nil {
				got = r.Price.String()
			}
			if r.TablePrice != nil {
				table = r.TablePrice.String()
			}
			if got != c.want || table != c.table {
				t.Errorf("it costs %q, and %q by the table; want %q and %q", got, table, c.want, c.table)
			}
		})
	}
}

// What an older version took for the provider's price does not stay where today's reads none.
func TestAPriceThatWasReadIsReadAgain(t *testing.T) {
	const usage = `"usage":{"prompt_tokens":1000,"completion_tokens":100,"cost":0.00001,"is_byok":true}`
	for body, want := range map[string]string{
		`{"request_response":{"model":"gpt-4o-mini",` + usage + `}}`: "0.00021",
		`{"provider":"openai","model":"gpt-4o-mini","input":{},"output":{},"price":7,` +
			`"input_tokens":1000,"output_tokens":100}`: "7",
	} {
		e := event(t, 1, wire.KindRequest, body)
		state := archive.State{}
		state.Fold(e)
		r := &state.Request.Value
		wrong := calls.Dollars(9)
		r.Price, r.PriceGiven = &wrong, true
		object, err := wire.ParseObject([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		r.ReadAgain(wire.KindRequest, object)
		r.SetPrice(prices.BuiltIn(), time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC))
		if r.Price == nil || r.Price.String() != want {
			t.Errorf("%s costs %v, want %s", body, r.Price, want)
		}
	}
}
