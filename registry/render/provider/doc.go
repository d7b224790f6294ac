// Package provider makes the arguments of a model call (llm_kwargs) from a filled prompt,
// one file for each provider's own client. It is pure; a prompt that a provider cannot
// express is rejected with the path of what does not fit.
package provider
