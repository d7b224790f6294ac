package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// receive answers a message. Prompts are the templates that the caller's key sees, of which the SDK knows none: it
// has a fixed list of them.
func (s *Server) receive(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, r sdk.Request) (result sdk.Result, err error) {
		// The SDK handles each message in another goroutine than its caller's, where a panic ends the process.
		defer func() {
			if p := recover(); p != nil {
				s.panicked(p)
				result, err = nil, wire.AsError(errors.New("panic"))
			}
		}()

		switch params := r.GetParams().(type) {
		case *sdk.ListPromptsParams:
			result, err = s.listPrompts(ctx, params)
		case *sdk.GetPromptParams:
			result, err = s.getPrompt(ctx, params)
		case *sdk.SubscriptionsListenParams:
			// It would wait for news, which a server without sessions never sends.
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "there is nothing to listen for"}
		default:
			return next(ctx, method, r)
		}
		if err != nil {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: wire.AsError(err).Message}
		}

		return result, nil
	}
}

// listPrompts lists a page of templates. The cursor is the number of the page.
func (s *Server) listPrompts(ctx context.Context, params *sdk.ListPromptsParams) (*sdk.ListPromptsResult, error) {
	page := 1
	if params != nil && params.Cursor != "" {
		page, _ = strconv.Atoi(params.Cursor)
	}
	found, err := s.call(ctx, "GET", fmt.Sprintf("/prompt-templates?per_page=100&page=%d", page), nil)
	if err != nil {
		return nil, err
	}
	var list wire.TemplateList
	if err := json.Unmarshal(found, &list); err != nil {
		return nil, err
	}

	result := &sdk.ListPromptsResult{Prompts: []*sdk.Prompt{}, Cacheable: sdk.Cacheable{CacheScope: "private"}}
	for _, t := range list.Items {
		var blueprint struct {
			Variables []string `json:"input_variables"`
		}
		// A template that was published by other means may have no list of them.
		_ = json.Unmarshal(t.Blueprint, &blueprint)
		prompt := &sdk.Prompt{Name: t.Name, Description: fmt.Sprintf("Template %s, version %d", t.Name, t.Version)}
		for _, name := range blueprint.Variables {
			prompt.Arguments = append(prompt.Arguments, &sdk.PromptArgument{Name: name})
		}
		result.Prompts = append(result.Prompts, prompt)
	}
	if list.HasNext {
		result.NextCursor = strconv.Itoa(page + 1)
	}

	return result, nil
}

// getPrompt returns the latest version of a template, with its variables filled in.
func (s *Server) getPrompt(ctx context.Context, params *sdk.GetPromptParams) (*sdk.GetPromptResult, error) {
	variables := params.Arguments
	if variables == nil {
		variables = map[string]string{}
	}
	// Its messages are in one form, whichever provider the template is for.
	body, _ := jsonscan.Marshal(map[string]any{"provider": "openai", "input_variables": variables})
	found, err := s.call(ctx, "POST", "/prompt-templates/"+url.PathEscape(params.Name), body)
	if err != nil {
		return nil, err
	}

	var rendered struct {
		Kwargs  json.RawMessage `json:"llm_kwargs"`
		Warning string          `json:"warning"`
	}
	var call struct {
		Messages, Input []struct {
			Role    sdk.Role
			Content json.RawMessage
		}
	}
	if err := json.Unmarshal(found, &rendered); err != nil {
		return nil, err
	}
	if isEmpty(rendered.Kwargs) {
		return nil, wire.Errorf(wire.CodeInvalid, "The template cannot be rendered here. %s", rendered.Warning)
	}
	// Other arguments than those of chat completions and of responses are shown as they are.
	_ = json.Unmarshal(rendered.Kwargs, &call)

	result := &sdk.GetPromptResult{}
	add := func(role sdk.Role, content json.RawMessage) {
		// Parts other than one text are JSON.
		text := string(content)
		_ = json.Unmarshal(content, &text)
		result.Messages = append(result.Messages, &sdk.PromptMessage{Role: role, Content: &sdk.TextContent{Text: text}})
	}
	for _, m := range append(call.Messages, call.Input...) {
		// Prompts have no other roles.
		if m.Role != "assistant" {
			m.Role = "user"
		}
		add(m.Role, m.Content)
	}
	if result.Messages == nil {
		add("user", rendered.Kwargs)
	}

	return result, nil
}
