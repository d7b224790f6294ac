package api

import (
	"encoding/binary"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"promptspool/api/wire"
)

func TestDropsCountByAccountAndFromZeroEachDay(t *testing.T) {
	var d DropCounter
	lines, metrics := wire.Drop{Count: 2, What: "line"}, wire.Drop{Count: 1, What: "metric"}
	for i, drop := range []wire.Drop{lines, metrics, lines, lines} {
		if isNews := d.add("a", drop); isNews != (i < 2) {
			t.Errorf("drop %d of the account is logged: %v", i, isNews)
		}
	}
	if !d.add("b", lines) {
		t.Error("the first one of another account is not logged")
	}
	a, all := d.Of("a"), d.Of("")
	if !slices.Equal(a, []wire.Drop{{Count: 6, What: "line"}, metrics}) ||
		!slices.Equal(all, []wire.Drop{{Count: 8, What: "line"}, metrics}) {
		t.Errorf("of a %+v, of all %+v", a, all)
	}

	d.day-- // as if the counts were of yesterday
	if got := d.Of(""); got != nil || !d.add("a", lines) {
		t.Errorf("on the next day %+v, or nothing is logged", got)
	}
}

// The reader of a message over gRPC gives what its frame says, or an error.
func FuzzTheFrameOfAMessage(f *testing.F) {
	for _, sent := range []string{
		"", "\x00", "\x00\x00\x00\x00\x03abc", "\x01\x00\x00\x00\x00", "\x00\x00\x00\x00\x03ab",
		"\x00\x00\x00\x00\x00x", "\x02\x00\x00\x00\x00", "\x00\xff\xff\xff\xffabc",
	} {
		f.Add(sent)
	}
	f.Fuzz(func(t *testing.T, sent string) {
		m := readFrame(iotest.OneByteReader(strings.NewReader(sent)))
		got, err := io.ReadAll(m)
		isWhole := len(sent) >= 5 && sent[0] <= 1 &&
			uint64(binary.BigEndian.Uint32([]byte(sent)[1:])) == uint64(len(sent)-5)
		if isWhole != (err == nil) || isWhole && (string(got) != sent[5:] || m.packed != (sent[0] == 1)) {
			t.Errorf("%q is read as %q, %v, %v", sent, got, m.packed, err)
		}
	})
}
