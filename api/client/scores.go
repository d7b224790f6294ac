package client

import (
	"context"
	"net/url"

	"promptspool/api/wire"
)

// ScoreDefinitions lists the definitions of the project's scores.
func (c *Client) ScoreDefinitions(ctx context.Context, id wire.Identity) (wire.ScoreDefinitions, error) {
	list, err := ask[wire.ScoreDefinitionList](ctx, c, get(id, definitionsPath, nil))
	return list.Items, err
}

// DefineScore makes a definition, or replaces the one of its name.
func (c *Client) DefineScore(ctx context.Context, id wire.Identity, d wire.ScoreDefinition) error {
	path := definitionsPath + "/" + url.PathEscape(d.Name)
	return c.do(ctx, request{method: "PUT", path: path, key: id.Key, json: d})
}

// UndefineScore removes a definition.
func (c *Client) UndefineScore(ctx context.Context, id wire.Identity, name string) error {
	path := definitionsPath + "/" + url.PathEscape(name)
	return c.do(ctx, request{method: "DELETE", path: path, key: id.Key})
}

const definitionsPath = "/api/public/v2/score-definitions"
