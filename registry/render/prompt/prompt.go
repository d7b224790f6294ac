// Package prompt takes a checked blueprint apart into messages, content blocks and tools,
// with their texts parsed. The result of Parse never changes and may be shared.
package prompt

import (
	"encoding/json"
	"strings"

	"promptspool/api/wire"
	"promptspool/registry/render/language"
	"promptspool/registry/render/rawjson"
)

// Prompt is a blueprint taken apart. Its texts hold variables until they are filled in.
//
// It never changes, and shares what it can with the bytes of the blueprint.
type Prompt struct {
	Chat      bool
	Messages  []Message // of a chat
	Content   []Block   // of a completion
	Tools     []Tool
	Functions []Tool // the older form of tools
	Choice    Choice // tool_choice
	Call      Choice // function_call
}

// Message is one message of a chat.
type Message struct {
	At           string // where it is, for errors: prompt_template.messages[0]
	Role         string
	Name         string
	ToolCallID   string
	Content      []Block
	Calls        []ToolCall
	FunctionCall *ToolCall // the older form, without an id
}

// Block is one block of content.
type Block struct {
	At       string
	Kind     string
	Text     string            // of text; the url of image_url and media
	Template language.Template // of Text; nil if it has no variables
	Fault    error             // why Text cannot be rendered; it stays as it is
	Variable string            // image_variable, or the name of a media_variable: it holds images
	Raw      wire.Object       // all members
}

// ToolCall is a call that an assistant's message contains.
type ToolCall struct {
	ID, Name  string
	Arguments string // JSON, if the model wrote JSON
}

// Tool is what the model may call: a function, or a tool that the provider runs.
type Tool struct {
	At          string
	Kind        string // function, or the type of a provider's tool
	Name        string
	Description string
	Parameters  json.RawMessage // a JSON schema; nil if absent
	Raw         json.RawMessage // the function, or the whole tool with its provider and config
}

// Choice is the tool that the model must call. The zero value leaves it open.
type Choice struct {
	Mode string          // auto, none, required, function; anything else is as it was written
	Name string          // of the function
	Raw  json.RawMessage // as written; nil if absent
}

// Place shortens a path for messages to people: it is within the blueprint.
func Place(at string) string { return strings.TrimPrefix(at, "prompt_template.") }

// Blocks iterates over all blocks of content, except those of placeholders, which
// variables replace.
func (p *Prompt) Blocks(yield func(*Block) bool) {
	walk := func(blocks []Block) bool {
		for i := range blocks {
			if !yield(&blocks[i]) {
				return false
			}
		}
		return true
	}

	if !walk(p.Content) {
		return
	}
	for i := range p.Messages {
		if p.Messages[i].Role != "placeholder" && !walk(p.Messages[i].Content) {
			return
		}
	}
}

// IsUnfilled reports whether the block is a variable for images that the caller did not
// give. It is then left out.
func (b *Block) IsUnfilled() bool { return b.Variable != "" && b.Text == "" }

// Has reports whether the block has a member.
func (b *Block) Has(name string) bool {
	_, ok := b.Raw.Get(name)
	return ok
}

// StringMember returns a member that is a string; "" if there is none.
func (b *Block) StringMember(name string) string {
	v, _ := b.Raw.Get(name)
	return rawjson.Text(v)
}
