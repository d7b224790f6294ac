//go:build linux && soak

package delivery

import (
	"testing"
	"time"

	"promptspool/cmd/promptspool/e2e/harness"
)

func TestAStopEndsInTimeWithTheServerAwayAndWritersThatGoOn(t *testing.T) {
	t.Parallel()
	sidecar := harness.StartSidecar(t, t.TempDir(), harness.FreePort(t))
	o := harness.StartOracle(t, harness.AdminKey)
	o.Load(sidecar, 2, 100, 0)
	sidecar.Eventually(func() bool { return o.Count().Acked > 10 }, func() string { return "nothing is taken" })

	begun := time.Now()
	sidecar.Stop() // within 25 s, with exit code 0
	acked := o.Halt().Acked
	if took := time.Since(begun); took < 7*time.Second {
		t.Errorf("the sidecar ended after %v, during writes", took)
	}
	wantLeft(t, sidecar, acked)
}
