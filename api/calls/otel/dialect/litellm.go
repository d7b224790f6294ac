package dialect

// liteLLM is LiteLLM's own callback. It follows the conventions, and flattens messages as
// OpenLLMetry did.
var liteLLM = Dialect{
	Name: "LiteLLM",
	Table: []Attribute{
		{"metadata.user_api_key_user_id", Metadata, UserKey},
		{"metadata.user_api_key_alias", Metadata, "key_alias"},
		{"metadata.user_api_key_team_alias", Metadata, "team"},
		{"metadata.requester_metadata", MetadataMap, ""},
	},
}
