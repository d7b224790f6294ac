package otel

// liteLLM is LiteLLM's own callback. It follows the conventions, and flattens messages as
// OpenLLMetry did.
var liteLLM = dialect{
	name: "LiteLLM",
	table: []attribute{
		{"metadata.user_api_key_user_id", metadata, userKey},
		{"metadata.user_api_key_alias", metadata, "key_alias"},
		{"metadata.user_api_key_team_alias", metadata, "team"},
		{"metadata.requester_metadata", metadataMap, ""},
	},
}
