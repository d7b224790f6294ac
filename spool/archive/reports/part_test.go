package reports_test

import (
	"slices"
	"testing"

	"promptspool/spool/archive/reports"
)

// among finds reports among a few.
type among []*reports.Report

func (all among) Under(p reports.Place) (found []*reports.Report, crowded bool, err error) {
	for _, r := range all {
		if slices.Contains(r.Places, p) {
			found = append(found, r)
		}
	}
	return found, false, nil
}

// Mastra's inference has the id of its step; an instrumented client below it has the provider's.
func TestTheIDThatPartsShareIsNotTheProviders(t *testing.T) {
	at := func(key byte, role reports.Role) reports.Place {
		return reports.Place{Key: reports.Key{15: key}, Role: role}
	}
	part := &reports.Report{ID: [16]byte{1}, Reporter: "mastra", Part: true, Response: "span:5b8e0000000000000001"}
	part.Places = []reports.Place{at(1, reports.Span), at(2, reports.Response)}
	client := &reports.Report{ID: [16]byte{2}, Reporter: "client", Response: "chatcmpl-5b8e0000000000000001"}
	client.Places = []reports.Place{at(1, reports.Below), at(3, reports.Response)}

	calls, err := reports.CallsWith(part, among{part, client})
	if len(calls) != 1 || len(calls[0].Reports) != 2 || err != nil {
		t.Errorf("%d calls, %v; want one", len(calls), err)
	}
}
