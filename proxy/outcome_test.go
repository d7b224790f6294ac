package proxy

import (
	"fmt"
	"testing"

	"promptspool/api/wire"
	"promptspool/spool"
)

// The answer names ids: of two events of one id it does not tell which was refused.
func TestAnIdThatStandsTwiceInABatchHoldsUpNoOther(t *testing.T) {
	entry := func(n int) spool.Entry {
		return spool.Entry{Seq: uint64(n), Data: fmt.Appendf(nil, `{"id":"event-%d"}`, n)}
	}
	batch := []spool.Entry{entry(1), entry(1), entry(2)}
	id := eventID(batch[0])
	refused := func(results ...wire.Result) wire.BatchAnswer {
		return wire.BatchAnswer{Success: true, Accepted: len(batch) - len(results), Refused: results}
	}

	later := wire.Result{ID: id, Code: wire.ResultLater, Reason: "r"}
	if v, ok := divide(batch, refused(later)).(taken); !ok || len(v.later) != 2 || len(v.invalid) != 0 {
		t.Errorf("one is to be sent again: %+v", v)
	}
	invalid := wire.Result{ID: id, Code: wire.ResultInvalid, Reason: "r"}
	if v, ok := divide(batch, refused(invalid, later)).(taken); !ok || len(v.later) != 2 || len(v.invalid) != 0 {
		t.Errorf("one is invalid, one to be sent again: %+v", v)
	}
	if v := divide(batch, refused(later, later, later)); v != (retry{reason: "answer"}) {
		t.Errorf("three of two are refused: %+v", v)
	}
}
