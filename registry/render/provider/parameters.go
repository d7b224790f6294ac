package provider

import (
	"encoding/json"
	"slices"
	"strings"

	"promptspool/api/wire"
	"promptspool/registry/render/rawjson"
)

// spelling is how each family of APIs spells the parameters, the preferred way first.
// Parameters missing here do not exist in the API.
var spelling = map[string]map[string]string{
	"openai": {
		"max_tokens":  "max_completion_tokens max_tokens",
		"stop":        "stop",
		"top_p":       "top_p",
		"seed":        "seed",
		"temperature": "temperature",
	},
	"responses": { // of OpenAI
		"max_tokens":  "max_output_tokens",
		"top_p":       "top_p",
		"temperature": "temperature",
	},
	"text": { // OpenAI's completions
		"max_tokens":  "max_tokens",
		"stop":        "stop",
		"top_p":       "top_p",
		"seed":        "seed",
		"temperature": "temperature",
	},
	"anthropic": {
		"max_tokens":  "max_tokens max_tokens_to_sample",
		"stop":        "stop_sequences",
		"top_p":       "top_p",
		"top_k":       "top_k",
		"temperature": "temperature",
	},
	"google": {
		"max_tokens":  "max_output_tokens maxOutputTokens",
		"stop":        "stop_sequences stopSequences",
		"top_p":       "top_p topP",
		"top_k":       "top_k topK",
		"seed":        "seed",
		"temperature": "temperature",
	},
	"mistral": {
		"max_tokens":  "max_tokens",
		"stop":        "stop",
		"top_p":       "top_p",
		"seed":        "random_seed",
		"temperature": "temperature",
	},
	"amazon.bedrock": {
		"max_tokens":  "maxTokens",
		"stop":        "stopSequences",
		"top_p":       "topP",
		"top_k":       "top_k",
		"temperature": "temperature",
	},
	"cohere": {
		"max_tokens":  "max_tokens",
		"stop":        "stop_sequences",
		"top_p":       "p",
		"top_k":       "k",
		"seed":        "seed",
		"temperature": "temperature",
	},
}

// canonical is the meaning of each name that an API has for a parameter.
var canonical = meanings()

func meanings() map[string]string {
	byName := make(map[string]string)
	for _, names := range spelling {
		for meaning, spelt := range names {
			for _, name := range strings.Fields(spelt) {
				byName[name] = meaning
			}
		}
	}

	return byName
}

// spell rewrites parameters in the spelling of an API: {"maxOutputTokens": 5} becomes
// {"max_completion_tokens": 5} for OpenAI.
//
// If foreign is set, the parameters were published for another family of models. Then
// only those are kept that the providers have in common; left names the others.
func spell(api string, parameters wire.Object, foreign bool) (spelt wire.Object, left []string) {
	spelt = make(wire.Object, 0, len(parameters))
	for _, p := range parameters {
		// A parameter that no family shares has no meaning here; it stays, unless it is
		// foreign.
		meaning := canonical[p.Name]
		accepted := strings.Fields(spelling[api][meaning])
		switch {
		case slices.Contains(accepted, p.Name):
		case len(accepted) > 0:
			p.Name = accepted[0]
		case foreign:
			left = append(left, p.Name)
			continue
		}

		// Only OpenAI and Mistral, whose parameter is called stop, take a single string.
		isString := len(p.Value) > 0 && p.Value[0] == '"'
		if meaning == "stop" && p.Name != "stop" && isString {
			p.Value = rawjson.Array([]json.RawMessage{p.Value})
		}
		spelt = rawjson.Set(spelt, p.Name, p.Value)
	}

	return spelt, left
}
