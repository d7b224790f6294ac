package dialect

// All are the dialects, in the order in which their tables are searched. Those of products
// that wrap other libraries' spans come before those libraries.
var All = []*Dialect{
	&agents, &promptLayer, &langfuse, &genAI, &openInference, &openLLMetry, &vercel, &adk, &pydantic, &logfire,
	&langSmith, &liteLLM, &sentry, &mastra, &springAI, &braintrust, &anthropic,
	&others,
}

// kinds find what a span is, for the dialects that have words for it. The first that names
// a kind decides: an outer library knows better than a convention that it also follows.
var kinds = []func(Span) Kind{
	agentKind, copyKind, langfuseKind, openInferenceKind, langSmithKind, vercelKind, logfireKind, mastraKind,
	genAIKind, openLLMetryKind, adkKind, springKind, braintrustKind, toolKind, promptLayerKind, othersKind, stepKind,
}
