package counting

import (
	"encoding/json"
	"time"

	"promptspool/api/wire"
)

// Bounds of what is kept of answers.
const (
	keptCountsMax = 64
	keptBytesMax  = 8 << 20 // of the answers as JSON
)

// countKey names a question whose answer takes long.
type countKey struct{ account, kind, query string }

// countedPart is an answer that counts some of the rows that a question finds, or all.
type countedPart struct {
	answer   any   // nil: nothing has been counted yet
	steps    int64 // of the walk: further ones have counted more
	progress wire.Progress
}

// keptCount is the best known answer to a question: a whole one until a newer one is
// whole, otherwise the part that counts the most.
type keptCount struct {
	countedPart

	ended time.Time // of a walk that came as far as any would
	walk  *walk     // the running one, or nil
	used  time.Time
	bytes int
}

// fresh reports whether the answer will do without another walk.
func (k *keptCount) fresh() bool {
	return k.walk == nil && !k.ended.IsZero() && time.Since(k.ended) < walkFreshFor
}

// keptCounts holds the answers that were asked for last. Service.mu guards it.
type keptCounts struct {
	by    map[countKey]*keptCount
	bytes int
}

// touch returns what is kept for a question, and makes space for a new one.
func (c *keptCounts) touch(key countKey) *keptCount {
	k := c.by[key]
	if k == nil {
		k = &keptCount{bytes: len(key.query)}
		c.by[key] = k
		c.bytes += k.bytes
	}
	k.used = time.Now()
	// This question stays, because its caller is about to use it.
	c.shrink(key)

	return k
}

// keepPart keeps what is counted so far, unless more is known from an earlier walk.
func (c *keptCounts) keepPart(key countKey, k *keptCount, part countedPart) {
	if k.answer == nil || k.progress.Incomplete && part.steps >= k.steps {
		c.keep(key, k, part)
	}
}

// keep replaces the answer to a question.
func (c *keptCounts) keep(key countKey, k *keptCount, part countedPart) {
	k.countedPart = part
	// The question was displaced meanwhile: its answer serves those who wait,
	// but is not kept, so its bytes do not count.
	if c.by[key] != k {
		return
	}
	c.bytes -= k.bytes
	k.bytes = len(key.query)
	if text, err := json.Marshal(part.answer); err == nil {
		k.bytes += len(text)
	}
	c.bytes += k.bytes
	c.shrink(key)
}

// shrink drops the questions that were asked least recently, except for one.
func (c *keptCounts) shrink(but countKey) {
	for len(c.by) > keptCountsMax || c.bytes > keptBytesMax && len(c.by) > 1 {
		var oldest countKey
		for key, k := range c.by {
			if key != but && (c.by[oldest] == nil || k.used.Before(c.by[oldest].used)) {
				oldest = key
			}
		}
		k := c.by[oldest]
		// No caller could join this walk any more, because it is found by its question.
		if k.walk != nil {
			k.walk.cancel(errWalkUnasked)
		}
		c.bytes -= k.bytes
		delete(c.by, oldest)
	}
}
