//go:build !race

package postgres_test

import (
	"testing"

	"promptspool/spool/archive/archivetest"
)

func TestLargeArchive(t *testing.T) { archivetest.RunLarge(t, openEmpty) }
