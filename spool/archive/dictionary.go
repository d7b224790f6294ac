package archive

// BodyDictionary is what most bodies have in common: the members of calls and responses as the
// SDKs send them, and the most common words of English. Stores compress bodies with it (zstd, a
// raw dictionary), which makes a body of 4 KB a seventh smaller.
//
// It never changes, because what was compressed with it cannot be read with another. A new
// dictionary gets a new id beside it.
const (
	BodyDictionaryID = 1
	BodyDictionary   = `{"type":"message","role":"assistant","content":[{"type":"text","text":""}],"stop_reason":"end_turn","stop_sequence":null,` +
		`"usage":{"input_tokens":1,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1}},` +
		`"tool_calls":[{"id":"call_","type":"function","function":{"name":"","arguments":"{\"\":\"\"}"}}],` +
		`"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":"STOP","safetyRatings":[]}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":1,"totalTokenCount":1}` +
		`{"args":[],"function_name":"anthropic.messages.create","openai.ChatCompletion.create","function_name":"openai.chat.completions.create","kwargs":{"messages":[{"content":"You are a helpful assistant. ",` +
		`"role":"system"},{"content":" the of and to in is that for it with as be this are from on by not or an at which can if will has have been use used ` +
		`when value returns function type error should must only also other than its into more may such each all one two first new same set given return called ` +
		`example data name string number list true false null ","role":"user"}],"model":"gpt-4o-2024-08-06","temperature":0.7,"max_tokens":1024},` +
		`"metadata":{"session":"","user":"user-","session_id":"","user_id":""},"prompt_id":"","prompt_input_variables":{"":""},"prompt_version":1,` +
		`"provider_type":"openai","request_end_time":17,"request_response":{"choices":[{"finish_reason":"stop","index":0,"message":{"content":"","role":"assistant"},` +
		`"logprobs":null}],"created":17,"id":"chatcmpl-","model":"gpt-4o-mini-2024-07-18","object":"chat.completion","system_fingerprint":"fp_",` +
		`"usage":{"completion_tokens":1,"prompt_tokens":1,"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},` +
		`"completion_tokens_details":{"reasoning_tokens":0},"total_tokens":1}},"request_start_time":17,"status":"SUCCESS","tags":["production"]}`
)
