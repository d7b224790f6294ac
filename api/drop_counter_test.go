package api

import (
	"slices"
	"testing"

	"promptspool/api/wire"
)

func TestDropsCountByAccountAndFromZeroEachDay(t *testing.T) {
	var d DropCounter
	lines, metrics := wire.Drop{Count: 2, What: "line"}, wire.Drop{Count: 1, What: "metric"}
	for i, drop := range []wire.Drop{lines, metrics, lines, lines} {
		if isNews := d.add("a", drop); isNews != (i < 2) {
			t.Errorf("drop %d of the account is logged: %v", i, isNews)
		}
	}
	if !d.add("b", lines) {
		t.Error("the first one of another account is not logged")
	}
	a, all := d.Of("a"), d.Of("")
	if !slices.Equal(a, []wire.Drop{{Count: 6, What: "line"}, metrics}) ||
		!slices.Equal(all, []wire.Drop{{Count: 8, What: "line"}, metrics}) {
		t.Errorf("of a %+v, of all %+v", a, all)
	}

	d.day-- // as if the counts were of yesterday
	if got := d.Of(""); got != nil || !d.add("a", lines) {
		t.Errorf("on the next day %+v, or nothing is logged", got)
	}
}
