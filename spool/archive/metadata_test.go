package archive_test

import (
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/archivetest"
)

// A deletion by metadata is for a record of two requests also with the one that has no metadata: with it,
// the value that an event gave stands.
func TestARequestWithoutMetadataCountsForADeletion(t *testing.T) {
	id := archivetest.ID(1000)
	var s archive.State
	s.Fold(archivetest.Event(t, 1, wire.KindMetadata, id, `{"metadata":{"user":"ann"}}`))
	s.Fold(archivetest.Event(t, 2, wire.KindRequest, id, `{"metadata":{"user":"bob"},"function_name":"x.y"}`))
	s.Fold(archivetest.Event(t, 4, wire.KindRequest, id, `{"function_name":"x.y"}`))

	ann := func(key, value string) (time.Time, bool) {
		return archivetest.Start.Add(time.Hour), key == "user" && value == "ann"
	}
	if !s.Deleted(ann) {
		t.Error("the record is not deleted")
	}
}
