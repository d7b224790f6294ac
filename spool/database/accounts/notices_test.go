package accounts_test

import (
	"errors"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/database/accounts"
	"promptspool/spool/database/keyed"
	"promptspool/spool/database/keyed/keyedtest"
)

// waiting returns the notices of an account that no server has put into queues yet, in their order.
func waiting(t *testing.T, rows keyed.Store, account string) (all []wire.Notice) {
	t.Helper()
	items, err := keyed.List[wire.Notice](t.Context(), rows, keyed.Key{Kind: "notices", Account: account})
	for _, item := range items {
		all = append(all, *item.Of)
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestANoticeIsToldIfItsTransactionIsCommitted(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	rows, ctx := &keyedtest.Memory{}, t.Context()
	refused := errors.New("refused")
	for _, end := range []error{nil, refused} {
		err := rows.Change(ctx, "a", true, func(tx *keyed.Tx) error {
			for _, title := range []string{"first", "second", "third"} {
				n := wire.Notice{Type: wire.NoticeAlertFiring, Title: title}
				if err := accounts.Notify(tx, "a", now, n); err != nil {
					return err
				}
			}
			return end
		})
		if !errors.Is(err, end) {
			t.Fatal(err)
		}
	}

	all := waiting(t, rows, "a")
	if len(all) != 3 || all[0].Title != "first" || all[1].Title != "second" || all[2].Title != "third" {
		t.Fatalf("waiting: %+v", all)
	}
	if _, err := wire.ParseID(all[0].ID); err != nil || !all[0].Time.Equal(now) {
		t.Errorf("id %q (%v), time %v", all[0].ID, err, all[0].Time)
	}
	if others := waiting(t, rows, "b"); len(others) > 0 {
		t.Errorf("another account has %+v", others)
	}
}
