package badgerdb

import (
	"context"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"

	"promptspool/api/wire"
)

// askedContext counts how often a walk looks whether somebody still waits for it.
type askedContext struct {
	context.Context
	asked int
}

func (c *askedContext) Done() <-chan struct{} {
	c.asked++
	return c.Context.Done()
}

// What is kept may be a million entries, so they are walked once and not for each step of deletions.
func TestTrimmingTheAuditLogReadsEachKeyOnce(t *testing.T) {
	const kept, gone = 8 * checkEvery, 8 * trimStep
	db := openIn(t, t.TempDir())
	k := keys("\x01\x04test")
	now := time.Now()
	err := db.commit.do(t.Context(), 0, func(*badger.Txn) (all []write, err error) {
		for n := range kept + gone {
			id, _ := parseUUID(wire.NewIDAt(now.Add(time.Duration(-n) * time.Second)))
			all = append(all, write{k.audit(id), []byte("{}")})
		}
		return all, nil
	})
	if err != nil {
		t.Fatal(err)
	}

	id := func(at time.Time) []byte {
		id, _ := parseUUID(wire.NewIDAt(at))
		return k.audit(id)
	}
	ctx := &askedContext{Context: t.Context()}
	if err := db.trimAudit(ctx, k, id(now.AddDate(-1, 0, 0)), id(now), kept); err != nil {
		t.Fatal(err)
	}

	// Of what is kept 8, and of each step of deletions a few.
	if ctx.asked > 60 {
		t.Errorf("it was asked %d times whether somebody waits", ctx.asked)
	}
	left := 0
	err = db.view(func(txn *badger.Txn) error {
		return db.eachItem(t.Context(), txn, k.table(tableAudit), nil, func(*badger.Item) (bool, error) {
			left++
			return true, nil
		})
	})
	if err != nil || left != kept {
		t.Errorf("%d are left, %v; want %d", left, err, kept)
	}
}
