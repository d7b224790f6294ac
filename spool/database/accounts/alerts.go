package accounts

import (
	"cmp"
	"context"

	"promptspool/api/wire"
	"promptspool/spool/database/keyed"
)

const alerts keyed.Kind = "alerts" // wire.Alert by name

// Alerts returns the alerts of an account, sorted by name; see alerts.Store.
func (s *Store) Alerts(ctx context.Context, account string) ([]wire.Alert, error) {
	return named[wire.Alert](ctx, s.rows, alerts, account)
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
			if err == nil && now != nil && was == nil {
				err = hasRoom(ctx, tx, keys[i], wire.AlertsMax)
			}
			if err != nil {
				return err
			}
			for _, n := range notices {
				err = cmp.Or(err, Notify(tx, account, s.now(), n))
			}
			if now == nil {
				tx.Delete(keys[i])
			} else {
				err = cmp.Or(err, tx.Put(keys[i], now))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}
