package records

import (
	"cmp"
	"context"
	"time"

	"promptspool/spool/archive"
)

// leftPause is how often a server looks for what another one, or an upgrade, left.
const leftPause = time.Minute

// DoLeft does what was left to do in all accounts: now, and now and then until ctx ends.
func (svc *Service) DoLeft(ctx context.Context) error {
	for {
		accounts, err := svc.config.Store.Accounts(ctx)
		for _, account := range accounts {
			svc.doLeft(account)
		}
		if err != nil && ctx.Err() == nil {
			svc.config.Logger.Warn("Cannot look for traces that do not show everything yet", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(leftPause):
		}
	}
}

// doLeft does what was left to do in an account, unless this server is doing it.
func (svc *Service) doLeft(account string) {
	// No request waits for it, and after a restart it continues.
	ctx := context.Background()
	for {
		todos, err := archive.ToDos(ctx, svc.config.Store, account)
		if err == nil && len(todos) == 0 {
			return
		}
		if _, busy := svc.doing.LoadOrStore(account, true); busy {
			return // the one that does it looks again at the end
		}

		err = cmp.Or(err, archive.DoLeft(ctx, svc.config.Store, account))
		if err != nil {
			svc.config.Logger.Warn("Calls do not show the user and session of their trace yet; this is tried again",
				"project", account, "error", err)
		}
		svc.doing.Delete(account)
		if err != nil {
			return
		}
	}
}

// isLeft reports whether this server does what was left to do in an account: until then answers are not
// complete.
func (svc *Service) isLeft(account string) bool {
	_, busy := svc.doing.Load(account)
	return busy
}
