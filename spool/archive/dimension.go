package archive

import (
	"cmp"
	"maps"
	"slices"

	"promptspool/api/wire"
)

// dimension is a series for each of some names: models, templates, versions.
type dimension[K comparable] struct {
	clock   *clock
	by      map[K]buckets
	cells   int
	leftOut int64 // requests of names beyond cellsMax
}

func newDimension[K comparable](c *clock) *dimension[K] {
	return &dimension[K]{clock: c, by: make(map[K]buckets)}
}

// at returns the tally for a name in a bucket; nil if there is no room for another. more is false when longer buckets
// would make room.
func (d *dimension[K]) at(name K, bucket int64) *tally {
	b := d.by[name]
	if b == nil {
		if d.cells >= cellsMax {
			return nil
		}
		b = make(buckets)
		d.by[name] = b
	}
	if d.cells >= cellsMax && b[bucket] == nil {
		return nil
	}
	t, isNew := b.at(bucket)
	if isNew {
		d.cells++
	}
	return t
}

func (d *dimension[K]) full() bool { return d.cells >= cellsMax }

func (d *dimension[K]) add(name K, bucket int64, row *wire.Row, n int64) {
	if t := d.at(name, bucket); t != nil {
		t.add(row, n)
		return
	}
	d.leftOut += n
}

// prune lets go of what holds no request, because all were taken back.
func (d *dimension[K]) prune() {
	for name, b := range d.by {
		maps.DeleteFunc(b, func(_ int64, t *tally) bool { return t.requests == 0 })
		if len(b) == 0 {
			delete(d.by, name)
		}
	}
}

// recut goes over to the clock's longer buckets.
func (d *dimension[K]) recut() {
	d.cells = 0
	for name, b := range d.by {
		d.by[name] = b.recut(d.clock)
		d.cells += len(d.by[name])
	}
}

// share is one name's part of the whole.
type share[K comparable] struct {
	name K
	sum  *tally
	by   buckets
}

// shares are the names' parts, those with the most requests first.
func (d *dimension[K]) shares(compare func(a, b K) int) []share[K] {
	all := make([]share[K], 0, len(d.by))
	for name, b := range d.by {
		all = append(all, share[K]{name, b.sum(), b})
	}
	slices.SortFunc(all, func(a, b share[K]) int {
		return cmp.Or(cmp.Compare(b.sum.requests, a.sum.requests), compare(a.name, b.name))
	})
	return all
}

// counts are requests, cost and tokens by name, for many names: no more than countsMax are told apart.
type counts[K comparable] map[K]*count

type count struct{ requests, costNanos, input, output int64 }

const countsMax = 20_000

// at returns the count of a name; nil if there is no room for another.
func (c counts[K]) at(name K) *count {
	n := c[name]
	if n == nil && len(c) < countsMax {
		n = &count{}
		c[name] = n
	}
	return n
}

// add counts a row n times, as tally.add does.
func (c counts[K]) add(name K, row *wire.Row, n int64) {
	if at := c.at(name); at != nil {
		at.add(row, n)
	}
}

func (c *count) add(row *wire.Row, n int64) {
	c.requests += n
	if row.Price != nil {
		c.costNanos += n * nanos(*row.Price)
	}
	c.input += n * orZero(row.InputTokens)
	c.output += n * orZero(row.OutputTokens)
}

func (c *count) merge(other count) {
	c.requests += other.requests
	c.costNanos += other.costNanos
	c.input += other.input
	c.output += other.output
}

func (c counts[K]) prune() {
	maps.DeleteFunc(c, func(_ K, n *count) bool { return n.requests == 0 })
}

// top are the first AnalyticsListMax names by order.
func (c counts[K]) top(order func(a, b *count) int, names func(a, b K) int) []K {
	all := slices.SortedFunc(maps.Keys(c), func(a, b K) int { return cmp.Or(order(c[a], c[b]), names(a, b)) })
	return all[:min(len(all), wire.AnalyticsListMax)]
}

func byRequests(a, b *count) int { return cmp.Compare(b.requests, a.requests) }

func byCost(a, b *count) int {
	return cmp.Or(cmp.Compare(b.costNanos, a.costNanos), byRequests(a, b))
}
