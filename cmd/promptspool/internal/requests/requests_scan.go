package requests

import (
	"maps"
	"slices"

	"github.com/urfave/cli/v2"

	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/print"
)

// scanListMax bounds how many places of secrets one run lists.
const scanListMax = 10_000

func scanRequests(c *cli.Context) error {
	cl, id, err := config.Read(c).Remote()
	if err != nil {
		return err
	}

	sum := wire.Scanned{
		Success: true,
		Kinds:   map[wire.SecretKind]int{},
		Items:   []wire.FoundSecret{},
		Cursor:  config.Read(c).Text("cursor"),
	}
	err = inParts(c, "records", &sum.Cursor, &sum.Done, func() (int, error) {
		step, err := cl.Scan(c.Context, id, wire.ScanQuery{Mask: c.Bool("mask"), Cursor: sum.Cursor})
		if err != nil {
			return 0, err
		}

		addScan(&sum, &step)
		return sum.Seen, nil
	})
	if err != nil {
		return err
	}

	return print.Output(c, sum, func(t *print.Table) { showScan(t, &sum) })
}

// addScan adds what one request found to what those before it did.
func addScan(sum, step *wire.Scanned) {
	sum.Seen += step.Seen
	sum.Found += step.Found
	sum.Masked += step.Masked
	sum.Cursor, sum.Done = step.Cursor, step.Done
	for kind, n := range step.Kinds {
		sum.Kinds[kind] += n
	}
	// Bounded here as well: an archive from before the masking may be full of them.
	sum.Items = append(sum.Items, step.Items[:min(len(step.Items), scanListMax-len(sum.Items))]...)
}

func showScan(t *print.Table, sum *wire.Scanned) {
	t.Row("records", sum.Seen)
	t.Row("with credentials", sum.Found)
	for _, kind := range slices.Sorted(maps.Keys(sum.Kinds)) {
		t.Row("  "+string(kind), sum.Kinds[kind])
	}
	for _, item := range sum.Items {
		t.Row(item.RequestID, string(item.Kind), item.Path, item.Begins)
	}
	if sum.Found == 0 {
		return
	}

	if sum.Masked == 0 {
		t.Row("Mask them with --mask, and replace the keys: they have been stored in the clear.")
		return
	}
	t.Row("masked", sum.Masked)
	t.Row("Replace these keys nevertheless. The server's files hold their bytes for up to an hour;")
	t.Row("backups and exports made before, and PostgreSQL until VACUUM FULL, hold them still.")
}
