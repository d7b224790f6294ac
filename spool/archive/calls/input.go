package calls

// readInput reads what was sent, from the arguments by name and, where those say nothing, from the first by place.
func readInput(kwargs, args node) []Message {
	var in []Message
	add := func(usual string, n node) {
		if m := readMessage(n, usual); !m.empty() {
			in = append(in, m)
		}
	}
	// What the system is told: Anthropic and Bedrock, OpenAI responses, Gemini, Cohere v1.
	for _, n := range []node{
		kwargs.at("system"), kwargs.at("instructions"), kwargs.first("systemInstruction", "system_instruction"),
		kwargs.first("generation_config", "generationConfig", "config").first("system_instruction", "systemInstruction"), kwargs.at("preamble"),
	} {
		if !n.empty() {
			add("system", n)
		}
	}
	if system := in; len(system) > 0 {
		for i := range system {
			system[i].Role = "system" // Gemini writes its system instruction as a user's content
		}
	}
	messages := kwargs.first("messages", "contents", "history", "chat_history")
	if messages.isArray() && !isMessages(messages) && kwargs.at("contents") != nil {
		add("user", messages) // Gemini takes a list of parts as one user's content
	} else {
		in = append(in, readMessages(messages)...)
	}
	in = append(in, readItems(kwargs.at("input"))...)
	add("user", kwargs.at("message")) // Cohere v1: what comes after chat_history
	prompts(kwargs.first("prompt", "inputText", "inputs", "texts"), func(n node) { add("user", n) })
	if len(in) == 0 {
		args = flatten(args)
		if isMessages(args) {
			return readMessages(args)
		}
		prompts(args, func(n node) { add("user", n) })
	}
	return in
}

// flatten unwraps arguments by place whose first holds the messages.
func flatten(args node) node {
	if first := args.element(); first.isArray() {
		return first
	}
	return args
}

// isMessages says whether an array is of messages, by its first element that is an object.
func isMessages(n node) bool {
	found := false
	n.each(func(e node) {
		found = found || e.isObject() && (e.first("role", "content", "parts", "author", "data", "lc") != nil || roles[e.texts("type")] != "")
	})
	return found
}

// readMessages reads a list of messages, or a single one.
func readMessages(n node) []Message {
	var messages []Message
	read := func(e node) {
		if m := readMessage(e, "user"); !m.empty() {
			messages = append(messages, m)
		}
	}
	if n.isArray() {
		n.each(read)
	} else if n.isObject() || n.isText() {
		read(n)
	}
	return messages
}

// readItems reads the input of OpenAI's responses: a text, or messages, calls and their outputs in one list.
func readItems(n node) []Message {
	if n.isText() {
		return readMessages(n)
	}
	var messages []Message
	n.each(func(e node) {
		m := readItem(e, "user")
		if !m.empty() {
			messages = append(messages, m)
		}
	})
	return messages
}

// prompts visits each of the prompts of a completion or an embedding: one text, or many. Prompts of token ids are not read.
func prompts(n node, visit func(node)) {
	if n.isText() {
		visit(n)
	}
	n.each(func(e node) {
		if e.isText() {
			visit(e)
		}
	})
}
