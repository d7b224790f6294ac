package accounts_test

import (
	"testing"

	"promptspool/api/wire"
)

// A person removes an alert while its window is judged with those of others.
func TestAnAlertThatIsGoneKeepsNoOtherFromBeingChanged(t *testing.T) {
	s, ctx := open(), t.Context()
	change := func(fired int, names ...string) {
		t.Helper()
		err := s.ChangeAlerts(ctx, "a", names, func(name string, was *wire.Alert) (*wire.Alert, []wire.Notice, error) {
			if name == "gone" {
				return nil, nil, nil
			}
			is := &wire.Alert{AlertRule: wire.AlertRule{Name: name}}
			is.State.Fired = fired
			return is, nil, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	change(1, "first", "last")
	change(2, "first", "gone", "last")

	all, err := s.Alerts(ctx, "a")
	if err != nil || len(all) != 2 || all[0].State.Fired != 2 || all[1].State.Fired != 2 {
		t.Errorf("the alerts are %+v (%v)", all, err)
	}
}
