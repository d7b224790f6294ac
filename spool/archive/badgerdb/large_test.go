//go:build !race

package badgerdb_test

import (
	"testing"

	"promptspool/spool/archive/archivetest"
)

func TestLargeArchive(t *testing.T) { inEachLayout(t, archivetest.RunLarge) }
