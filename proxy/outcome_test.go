package proxy

import (
	"fmt"
	"maps"
	"testing"

	"promptspool/api/wire"
	"promptspool/spool/queue"
)

// The answer names ids: of two events of one id it does not tell which was refused.
func TestAnIdThatStandsTwiceInABatchHoldsUpNoOther(t *testing.T) {
	entry := func(seq uint64, id int) queue.Entry {
		return queue.Entry{Seq: seq, Data: fmt.Appendf(nil, `{"id":"event-%d"}`, id)}
	}
	batch := []queue.Entry{entry(7, 1), entry(8, 1), entry(9, 2)}
	id := eventID(batch[0])
	refused := func(results ...wire.Result) wire.BatchAnswer {
		return wire.BatchAnswer{Success: true, Accepted: len(batch) - len(results), Refused: results}
	}

	later := wire.Result{ID: id, Code: wire.ResultLater, Reason: "r"}
	bothLater := map[uint64]wire.Result{7: later, 8: later}
	if v := divide(batch, refused(later)); v.outcome != taken || !maps.Equal(v.refused, bothLater) {
		t.Errorf("one is to be sent again: %+v", v)
	}
	invalid := wire.Result{ID: id, Code: wire.ResultInvalid, Reason: "r"}
	if v := divide(batch, refused(invalid, later)); v.outcome != taken || !maps.Equal(v.refused, bothLater) {
		t.Errorf("one is invalid, one to be sent again: %+v", v)
	}
	if v := divide(batch, refused(later, later, later)); v.outcome != retry || v.reason != "answer" {
		t.Errorf("three of two are refused: %+v", v)
	}
}
