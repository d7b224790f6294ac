package dialect

// anthropic is Anthropic's own SDKs, which follow the conventions.
var anthropic = Dialect{
	Name: "Anthropic SDK",
	Table: []Attribute{
		{"anthropic.message.stop_reason", FinishReason, ""},
		{"anthropic.response.service_tier", ServiceTier, ""},
		{"anthropic.request.service_tier", Parameter, "service_tier"},
	},
}
