package calls

// readInput reads what was sent, from the named arguments and, where those say nothing,
// from the first positional one.
func readInput(kwargs, args node) []Message {
	var in []Message
	add := func(usual string, n node) {
		if m := readMessage(n, usual); !m.empty() {
			in = append(in, m)
		}
	}

	for _, n := range systemOf(kwargs) {
		if !n.empty() {
			add("system", n)
		}
	}
	for i := range in {
		in[i].Role = "system" // Gemini writes its system instruction as a user's content
	}
	messages := kwargs.first("messages", "contents", "history", "chat_history")
	if messages.isArray() && !isMessages(messages) && kwargs.at("contents").exists() {
		add("user", messages) // Gemini accepts a list of parts as one user's content
	} else {
		in = append(in, readMessages(messages)...)
	}
	in = append(in, readItems(kwargs.at("input"))...)
	add("user", kwargs.at("message")) // Cohere v1: what follows chat_history
	eachPrompt(kwargs.first("prompt", "prompts", "inputText", "inputs", "texts"), func(n node) { add("user", n) })
	// A caller's wrapper may have passed everything by position.
	if len(in) == 0 {
		args = unwrapped(args)
		if isMessages(args) {
			return readMessages(args)
		}
		eachPrompt(args, func(n node) { add("user", n) })
	}

	return in
}

// systemOf returns the places of system prompts: Anthropic and Bedrock, OpenAI responses,
// Gemini, Cohere v1.
func systemOf(kwargs node) []node {
	config := kwargs.first("generation_config", "generationConfig", "config")

	return []node{
		kwargs.at("system"),
		kwargs.at("instructions"),
		kwargs.first("systemInstruction", "system_instruction"),
		config.first("system_instruction", "systemInstruction"),
		kwargs.at("preamble"),
	}
}

// unwrapped returns the first positional argument if it is a list of messages.
func unwrapped(args node) node {
	if first := args.element(); first.isArray() {
		return first
	}

	return args
}

// isMessages reports whether an array holds messages, by its elements that are objects.
func isMessages(n node) bool {
	// One is enough: what else is in the list is read as far as it can be.
	for e := range n.each {
		if e.isObject() && isMessage(e) {
			return true
		}
	}

	return false
}

// isMessage reports whether an object has a member that messages have, or a role
// as its type.
func isMessage(n node) bool {
	return n.first("role", "content", "parts", "blocks", "author", "data", "lc").exists() ||
		roles[n.texts("type")] != ""
}

// readMessages reads a list of messages, or a single one.
func readMessages(n node) (all []Message) {
	add := func(n node) {
		if m := readMessage(n, "user"); !m.empty() {
			all = append(all, m)
		}
	}

	if n.isObject() || n.isText() {
		add(n)
	}
	for e := range n.each {
		if !e.isArray() || !isMessages(e) {
			add(e)
			continue
		}
		// LangChain sends a list of messages for each prompt.
		for m := range e.each {
			add(m)
		}
	}

	return all
}

// readItems reads the input of OpenAI's responses API: a text, or messages, calls and
// their outputs in one list.
func readItems(n node) []Message {
	if n.isText() {
		return readMessages(n)
	}
	// Calls and their results are their own items here, beside the messages.
	return readEach(n, readItem, "user")
}

// readEach reads the elements of a list, each of which has the usual role unless it names one.
func readEach(list node, read func(n node, usual string) Message, usual string) (messages []Message) {
	for e := range list.each {
		if m := read(e, usual); !m.empty() {
			messages = append(messages, m)
		}
	}

	return messages
}

// eachPrompt visits the prompts of a completion or an embedding: one text, or several.
// Prompts of token ids are skipped.
func eachPrompt(n node, visit func(node)) {
	if n.isText() {
		visit(n)
	}
	for e := range n.each {
		if e.isText() {
			visit(e)
		}
	}
}
