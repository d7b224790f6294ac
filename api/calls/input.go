package calls

// systemNames are the arguments that are system prompts: of Anthropic, Bedrock, OpenAI, Gemini and Cohere.
var systemNames = []string{"system", "instructions", "systemInstruction", "system_instruction", "preamble"}

// readInput reads what was sent, from the named arguments and, where those say nothing,
// from the first positional one.
func readInput(kwargs, args node) (in []Message) {
	add := func(m Message) {
		if !m.empty() {
			in = append(in, m)
		}
	}

	for _, n := range []node{kwargs, kwargs.first("generation_config", "generationConfig", "config")} {
		for _, name := range systemNames {
			m := readMessage(n.at(name), "system")
			// Gemini writes its system instruction as a user's content.
			m.Role = "system"
			add(m)
		}
	}
	messages := kwargs.first("messages", "contents", "history", "chat_history")
	if messages.isArray() && !isMessages(messages) && kwargs.at("contents").exists() {
		// Gemini accepts a list of parts as one user's content.
		add(readMessage(messages, "user"))
	} else {
		in = append(in, readMessages(messages)...)
	}
	// Calls and their results are their own items in the responses API, beside the messages.
	in = append(in, readEach(kwargs.at("input"), readItem, "user")...)
	// Cohere v1: what follows chat_history.
	add(readMessage(kwargs.at("message"), "user"))
	in = append(in, readMessages(kwargs.first("prompt", "prompts", "inputText", "inputs", "texts"))...)
	// A caller's wrapper may have passed everything by position.
	if len(in) == 0 {
		return readMessages(args)
	}

	return in
}

// isMessages reports whether a list holds messages. One is enough: what else is in it is read as far as it
// can be.
func isMessages(n node) bool {
	for e := range n.each {
		if isMessage(e) {
			return true
		}
	}

	return false
}

// isMessage reports whether an object has a member that messages have, or a role as its type.
func isMessage(n node) bool {
	return n.first("role", "content", "parts", "blocks", "author", "data", "lc").exists() ||
		roles[n.texts("type")] != ""
}

// readMessages reads a list of messages, or a single one.
func readMessages(n node) []Message { return readEach(n, readMessage, "user") }

// readEach reads the elements of a list, or what is in its place. Each has the usual role unless it names one.
func readEach(list node, read func(n node, usual string) Message, usual string) (messages []Message) {
	add := func(n node) {
		if m := read(n, usual); !m.empty() {
			messages = append(messages, m)
		}
	}

	if !list.isArray() {
		add(list)
	}
	for e := range list.each {
		// LangChain sends a list of messages for each prompt.
		if e.isArray() && isMessages(e) {
			messages = append(messages, readEach(e, read, usual)...)
		} else {
			add(e)
		}
	}

	return messages
}
