package api

import (
	"testing"

	"promptspool/api/wire"
)

func TestDropsCountByAccountAndFromZeroEachDay(t *testing.T) {
	var d DropCounter
	for _, sender := range []string{"one", "one", "two"} {
		d.add("a", sender, wire.DropCounts{LogRecords: 2})
	}
	d.add("b", "three", wire.DropCounts{Metrics: 1})
	if a, all := d.Of("a"), d.Of(""); a != (wire.DropCounts{LogRecords: 6}) || all.Sum() != 7 {
		t.Errorf("of a %+v, of all %+v", a, all)
	}
	if d.add("a", "one", wire.DropCounts{}) || !d.add("a", "four", wire.DropCounts{}) {
		t.Error("a sender is logged twice, or another not at all")
	}

	d.day-- // as if the counts were of yesterday
	if got := d.Of(""); got != (wire.DropCounts{}) {
		t.Errorf("on the next day %+v", got)
	}
	if !d.add("a", "one", wire.DropCounts{}) {
		t.Error("on the next day nothing is logged")
	}
}
