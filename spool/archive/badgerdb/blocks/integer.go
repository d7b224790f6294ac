package blocks

import (
	"math"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive/rowcode"
)

// isInteger reports whether blocks keep a column as integers, if they can.
func isInteger(c rowcode.Column) bool {
	switch c {
	case rowcode.ColumnInputTokens, rowcode.ColumnOutputTokens,
		rowcode.ColumnCachedTokens, rowcode.ColumnReasoningTokens,
		rowcode.ColumnTurns, rowcode.ColumnReadable, rowcode.ColumnVersion,
		rowcode.ColumnCost, rowcode.ColumnLatency, rowcode.ColumnStart, rowcode.ColumnEnd,
		rowcode.ColumnAccepted:
		return true
	}
	return false
}

// integerOf returns what a row has in a column that blocks keep as integers. exact is
// false if an integer cannot represent it.
func integerOf(c rowcode.Column, row *wire.Row) (n int64, present, exact bool) {
	switch c {
	case rowcode.ColumnCost:
		return billionths(row.Price, dollarsOf)
	case rowcode.ColumnLatency:
		return billionths(row.Latency, secondsOf)
	case rowcode.ColumnStart:
		return nanosOf(row.StartTime)
	case rowcode.ColumnEnd:
		return nanosOf(row.EndTime)
	case rowcode.ColumnAccepted:
		if row.AcceptedAt.Equal(row.ListTime) {
			return 0, false, true
		}
		return nanosOf(&row.AcceptedAt)
	}

	// All others are integers in a row already.
	n, present = rowcode.IntegerOf(c, row)
	return n, present, true
}

// billionths converts x to an integer, and checks that back returns the same x.
func billionths(x *float64, back func(int64) float64) (n int64, present, exact bool) {
	if x == nil {
		return 0, false, true
	}

	// Up to here the billionths stay below 2^53, where a float64 has every integer.
	if math.Abs(*x) > 1e6 {
		return 0, true, false
	}

	n = int64(math.Round(*x * 1e9))
	return n, true, back(n) == *x
}

// secondsOf returns a latency from its nanoseconds, as a row has it, to the last bit.
func secondsOf(n int64) float64 { return time.Duration(n).Seconds() }

// dollarsOf returns a price from its billionths, as a row has it, to the last bit.
func dollarsOf(n int64) float64 { return float64(n) / 1e9 }

// nanosOf returns a time in nanoseconds since 1970.
func nanosOf(t *time.Time) (n int64, present, exact bool) {
	if t == nil {
		return 0, false, true
	}

	// Outside 1677 to 2262 the result is undefined, which the comparison finds out.
	n = t.UnixNano()
	return n, true, t.Equal(time.Unix(0, n))
}

// numbers is what a lent row points to.
type numbers struct {
	input, output     int64
	cached, reasoning int64
	version           int
	cost, latency     float64
	start, end        time.Time
}

// set makes a field of a row point to a number, or to nothing unless ok.
func (n *numbers) set(of rowcode.Column, v int64, ok bool, row *wire.Row) {
	switch of {
	case rowcode.ColumnInputTokens:
		n.input, row.InputTokens = v, pointer(&n.input, ok)
	case rowcode.ColumnOutputTokens:
		n.output, row.OutputTokens = v, pointer(&n.output, ok)
	case rowcode.ColumnCachedTokens:
		n.cached, row.CachedTokens = v, pointer(&n.cached, ok)
	case rowcode.ColumnReasoningTokens:
		n.reasoning, row.ReasoningTokens = v, pointer(&n.reasoning, ok)

	// These two are values, not pointers.
	case rowcode.ColumnTurns:
		if row.Turns = 0; ok {
			row.Turns = int(v)
		}
	case rowcode.ColumnReadable:
		row.Readable = ok

	case rowcode.ColumnVersion:
		n.version, row.PromptVersion = int(v), pointer(&n.version, ok)
	case rowcode.ColumnCost:
		n.cost, row.Price = dollarsOf(v), pointer(&n.cost, ok)
	case rowcode.ColumnLatency:
		n.latency, row.Latency = secondsOf(v), pointer(&n.latency, ok)
	case rowcode.ColumnStart:
		n.start, row.StartTime = time.Unix(0, v).UTC(), pointer(&n.start, ok)
	case rowcode.ColumnAccepted:
		if ok {
			row.AcceptedAt = time.Unix(0, v).UTC()
		}
	case rowcode.ColumnEnd:
		n.end, row.EndTime = time.Unix(0, v).UTC(), pointer(&n.end, ok)
	}
}

// pointer returns p if ok, otherwise nil.
func pointer[T any](p *T, ok bool) *T {
	if !ok {
		return nil
	}
	return p
}
