//go:build linux && soak

package releases

import (
	"path/filepath"
	"testing"

	"promptspool/cmd/promptspool/e2e/harness"
	"promptspool/spool/crashpoint"
)

// renewing are the moments of a server that renews what an earlier version wrote.
var renewing = []string{
	crashpoint.StepBegun,
	crashpoint.StepWritten,
	crashpoint.FillPart,
	crashpoint.FillDone,
	crashpoint.RenewWritten,
	crashpoint.BodiesPacked,
}

// A server is killed at each point of a step, and of what it renews after it in the background. The
// next start finds everything, and ends what the first began.
func TestDyingWithinAStepLosesNothing(t *testing.T) {
	t.Parallel()
	for _, release := range releaseDirs(t) {
		dir := filepath.Join(release, moreDir)
		for _, point := range renewing {
			t.Run("Badger "+point, func(t *testing.T) {
				data := unpacked(t, filepath.Join(dir, serverFile))
				dieAt(t, point, data, nil, read[said](t, dir, serverSaid))
				harness.Run(t, 0, "archive", "check", "--data", data)
			})
			t.Run("PostgreSQL "+point, func(t *testing.T) {
				dsn := restored(t, filepath.Join(dir, dumpFile))
				dieAt(t, point, t.TempDir(), []string{"PROMPTSPOOL_ARCHIVE=" + dsn}, read[said](t, dir, dumpSaid))
				harness.Run(t, 0, "archive", "check", "--archive", dsn)
			})
		}
	}
}

// dieAt has a server die at a point, and starts it again.
func dieAt(t *testing.T, point, data string, env []string, said said) {
	t.Helper()
	begin := func(program string, env ...string) *harness.Node {
		return harness.Begin(t, program, env, data, harness.FreePort(t), "server", "--name", "central")
	}
	program, err := harness.CrashBinary()
	if err != nil {
		t.Fatal(err)
	}
	dying := begin(program, append(env, "PROMPTSPOOL_CRASH_AT="+point)...)
	dying.Eventually(dying.Ended, func() string { return "the server does not reach " + point })

	server := begin(harness.Program(t), env...)
	if !server.Takes() {
		t.Fatal("the server does not start again")
	}
	for _, a := range said.Answers {
		a.still(t, server)
	}
	const wrote = 10 // calls of the second set that wrote to a cache
	found := func() int { return server.Total(map[string]any{"filter": "cache_write_tokens:>0"}) }
	server.Eventually(func() bool { return found() == wrote }, func() string { return "not all rows are filled in" })
	for _, a := range append(said.Answers, said.Deletions...) {
		a.still(t, server, "gone_by")
	}
	server.Stop()
}
