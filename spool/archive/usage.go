package archive

import (
	"strconv"

	"promptspool/api/wire"
	"promptspool/metrics"
)

// used returns what a record that lists show counts for in the metrics of usage, as in statistics, without
// its project.
func (s *State) used(keys []string) (c metrics.UsedCall) {
	r := s.shown()
	c.By[metrics.UsedStatus], c.By[metrics.UsedProvider], c.By[metrics.UsedModel] = r.Status, r.Provider, r.Model
	if link := s.TemplateLink(); link != nil {
		c.By[metrics.UsedTemplate] = link.Value.Name
		if link.Value.Version > 0 {
			c.By[metrics.UsedVersion] = strconv.Itoa(link.Value.Version)
		}
	}
	for i, key := range keys {
		c.SetKey(i, s.named(key))
	}

	c.Of[metrics.UsedRequests] = 1
	c.Of[metrics.UsedInput], c.Of[metrics.UsedInputs] = wire.OrZero(r.Tokens.Input), one(r.Tokens.Input != nil)
	c.Of[metrics.UsedOutput], c.Of[metrics.UsedOutputs] = wire.OrZero(r.Tokens.Output), one(r.Tokens.Output != nil)
	c.Of[metrics.UsedCached] = wire.OrZero(r.Tokens.Cached)
	c.Of[metrics.UsedCacheWrites] = wire.OrZero(r.Tokens.CacheWrite)
	c.Of[metrics.UsedReasoning] = wire.OrZero(r.Tokens.Reasoning)
	switch {
	case r.Price != nil:
		c.Of[metrics.UsedCost] = int64(*r.Price)
	case r.Status != "ERROR" || wire.OrZero(r.Tokens.Input) != 0 || wire.OrZero(r.Tokens.Output) != 0:
		c.Of[metrics.UsedUnpriced] = 1
	}
	if d := r.latency(); d != nil {
		c.Of[metrics.UsedTimed], c.Of[metrics.UsedMicroseconds] = 1, d.Microseconds()
	}

	return c
}

// CountUsage counts what the group's changes to an account mean, once they are durable. project is the
// account's id. Calls that the retention deletes were made nevertheless: they stay counted.
func (g *Group) CountUsage(account string) {
	if g.usage == nil {
		return
	}

	moved := map[string]bool{} // to another report of the call
	for _, r := range g.Records {
		if r.Changed && r.Before.Listed && !r.After.Listed && r.State.Same != nil {
			moved[r.State.Same.Head] = true
		}
	}
	for _, r := range g.Records {
		if r.Account != account || !r.Changed || r.Removed && !r.Buried {
			continue
		}
		var now metrics.UsedCall
		if r.After.Listed {
			now = r.State.used(g.usage.Keys())
		}
		if r.Before.Listed || moved[r.State.RequestID] {
			g.usage.Correct(account, r.used, now)
		} else if r.After.Listed {
			g.usage.Count(account, now)
		}
	}
}
