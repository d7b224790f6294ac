//go:build linux

package e2e

import (
	"fmt"
	"testing"
)

// The label that was moved by mistake, and the person who asked to be forgotten.
func TestWhatWasJustDoneIsUndoneAndWhatIsDeletedIsCountedFirst(t *testing.T) {
	server, b := founded(t)
	publishVersions(server)
	b.visit("/template?name=greet+customers&v=2")
	b.fill(".facts .row [name=label]", "prod")
	b.press(".facts form.row button")
	b.shows(".notice", "prod now points to version 2 (was 1)", "Undo")
	b.screenshots("undo")
	b.press(".notice .undo button")
	b.shows(".notice", "Undone: it is as it was before.")

	// What keys do is in the audit log, too.
	const requests = "/api/public/v2/requests"
	id := server.track("/rest/track-request", adminKey, asked("A slip.", "A secret."))
	server.call("POST", requests+"/export", map[string]any{"filter": "status:success"}, "X-API-KEY", adminKey)
	server.call("DELETE", requests+"/"+id, nil, "X-API-KEY", adminKey)
	b.visit("/audit")
	b.shows("main", "save template\tgreet customers\tversion 1, prod", "move label\tgreet customers\tprod to version 2",
		"export requests\tevents\tstatus is \"success\"", "delete requests\trequest "+id+"\t1 record, 1 event")

	// One step from the record to the question for all of a person's data.
	for n := range 3 {
		call := asked("Forget me.", fmt.Sprint("Answer ", n))
		call["metadata"] = map[string]string{"user_id": []string{"user-42", "user-1"}[n%2]}
		server.track("/rest/track-request", adminKey, call)
	}
	b.visit("/requests")
	b.press("tbody tr:nth-child(1) a")
	b.press(".actions a[href*='/requests/delete']")
	b.shows("#erase", "Delete 1 request", "cannot be restored")
	b.press("#others a")
	b.shows("#erase", "This deletes 2 requests with user_id = user-42")
	b.screenshots("delete")
	b.press("#erase button")
	b.shows(".notice", "Deleted: 2 records, 2 events.")
	b.shows(".count", "1 request")
	b.visit("/audit")
	b.shows("main", "delete requests", "all with one value of user_id", "2 records, 2 events")
}
