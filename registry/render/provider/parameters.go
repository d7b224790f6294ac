package provider

import (
	"encoding/json"
	"strings"

	"promptspool/api/wire"
	"promptspool/registry/render/rawjson"
)

// canonical is what a parameter means that the providers spell differently.
var canonical = map[string]string{
	"max_tokens": "max_tokens", "max_completion_tokens": "max_tokens", "max_output_tokens": "max_tokens", "maxOutputTokens": "max_tokens", "maxTokens": "max_tokens", "max_tokens_to_sample": "max_tokens",
	"stop": "stop", "stop_sequences": "stop", "stopSequences": "stop",
	"top_p": "top_p", "topP": "top_p", "p": "top_p",
	"top_k": "top_k", "topK": "top_k", "k": "top_k",
	"seed": "seed", "random_seed": "seed",
	"temperature": "temperature",
}

// spelling is how each family of APIs spells them, the preferred way first; what is not there it does not have.
var spelling = map[string]map[string]string{
	"openai":    {"max_tokens": "max_completion_tokens max_tokens", "stop": "stop", "top_p": "top_p", "seed": "seed", "temperature": "temperature"},
	"responses": {"max_tokens": "max_output_tokens", "top_p": "top_p", "temperature": "temperature"},
	"text":      {"max_tokens": "max_tokens", "stop": "stop", "top_p": "top_p", "seed": "seed", "temperature": "temperature"}, // openai's completions
	"anthropic": {"max_tokens": "max_tokens max_tokens_to_sample", "stop": "stop_sequences", "top_p": "top_p", "top_k": "top_k", "temperature": "temperature"},
	"google": {"max_tokens": "max_output_tokens maxOutputTokens", "stop": "stop_sequences stopSequences", "top_p": "top_p topP", "top_k": "top_k topK",
		"seed": "seed", "temperature": "temperature"},
	"mistral":        {"max_tokens": "max_tokens", "stop": "stop", "top_p": "top_p", "seed": "random_seed", "temperature": "temperature"},
	"amazon.bedrock": {"max_tokens": "maxTokens", "stop": "stopSequences", "top_p": "topP", "top_k": "top_k", "temperature": "temperature"},
	"cohere":         {"max_tokens": "max_tokens", "stop": "stop_sequences", "top_p": "p", "top_k": "k", "seed": "seed", "temperature": "temperature"},
}

// spell brings the parameters into the spelling of an API: {"maxOutputTokens": 5} becomes {"max_completion_tokens": 5} for
// OpenAI. Of parameters that were published for another family of models, only those are kept that the providers have in
// common; the names of the others come back.
func spell(api string, parameters wire.Object, foreign bool) (spelt wire.Object, left []string) {
	spelt = make(wire.Object, 0, len(parameters))
	for _, p := range parameters {
		meaning := canonical[p.Name]
		accepted := strings.Fields(spelling[api][meaning])
		switch {
		case contains(accepted, p.Name):
		case len(accepted) > 0:
			p.Name = accepted[0]
		case foreign:
			left = append(left, p.Name)
			continue
		}
		if meaning == "stop" && p.Name != "stop" && len(p.Value) > 0 && p.Value[0] == '"' { // only OpenAI and Mistral take a string
			p.Value = rawjson.Array([]json.RawMessage{p.Value})
		}
		spelt = rawjson.Set(spelt, p.Name, p.Value)
	}
	return spelt, left
}

func contains(list []string, name string) bool {
	for _, e := range list {
		if e == name {
			return true
		}
	}
	return false
}
