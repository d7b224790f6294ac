package accounts

import (
	"context"

	"promptspool/api/wire"
	"promptspool/spool/database/keyed"
)

// Kinds of what watches a project.
const (
	alerts       keyed.Kind = "alerts"        // wire.Alert by name
	alertHistory keyed.Kind = "alert history" // wire.Notice of alerts, by inverted id
)

// historyListed is how much of an account's history is read at a time.
const historyListed = 100

// Alerts returns the alerts of an account, sorted by name, and the newest of their history; see alerts.Store.
func (s *Store) Alerts(ctx context.Context, account string) ([]wire.Alert, []wire.Notice, error) {
	all, err := named[wire.Alert](ctx, s.rows, alerts, account)
	if err != nil {
		return nil, nil, err
	}
	history, err := decoded[wire.Notice](
		s.rows.Scan(ctx, keyed.Key{Kind: alertHistory, Account: account}, 0, historyListed))

	return all, history, err
}

// EachAlert calls fn with the alerts of all accounts; see alerts.Store.
func (s *Store) EachAlert(ctx context.Context, fn func(account string, a wire.Alert) error) error {
	return keyed.EachOfAll(ctx, s.rows, alerts, func(key keyed.Key, a *wire.Alert) error {
		return fn(key.Account, *a)
	})
}

// ChangeAlerts changes alerts with the notices about them; see alerts.Store.
func (s *Store) ChangeAlerts(
	ctx context.Context, account string, names []string,
	change func(name string, was *wire.Alert) (*wire.Alert, []wire.Notice, error),
) error {
	keys := make([]keyed.Key, len(names))
	for i, name := range names {
		keys[i] = keyed.Key{Kind: alerts, Account: account, Name: name}
	}

	return s.rows.Change(ctx, account, true, func(tx *keyed.Tx) error {
		all, err := keyed.LoadAll[wire.Alert](ctx, tx, keys...)
		if err != nil {
			return err
		}
		for i, was := range all {
			now, notices, err := change(names[i], was)
			switch {
			case err != nil:
			case now == nil:
				tx.Delete(keys[i])
			case was == nil:
				err = hasRoom(ctx, tx, keys[i], wire.AlertsMax)
			}
			if err == nil && now != nil {
				err = tx.Put(keys[i], now)
			}
			if err == nil {
				err = s.tell(ctx, tx, account, notices)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// tell puts notices on their way, and into the history.
func (s *Store) tell(ctx context.Context, tx *keyed.Tx, account string, notices []wire.Notice) error {
	if len(notices) == 0 {
		return nil
	}
	old, err := tx.Scan(ctx, keyed.Key{Kind: alertHistory, Account: account}, wire.AlertHistoryMax, historyListed)
	for _, e := range old {
		tx.Delete(e.Key)
	}
	for _, n := range notices {
		key, bad := newestFirst(alertHistory, account, n.ID)
		if err == nil {
			err = bad
		}
		if err == nil {
			err = tx.Put(key, n)
		}
		if err == nil {
			err = Notify(tx, account, s.now(), n)
		}
	}

	return err
}
