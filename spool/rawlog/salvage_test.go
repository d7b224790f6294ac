package rawlog_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"promptspool/spool/rawlog"
)

const (
	inTransaction    = 1 << 6
	endOfTransaction = 1 << 7
)

// appendEntry appends an entry as Badger writes it.
func appendEntry(log []byte, meta byte, key string, value []byte) []byte {
	at := len(log)
	log = append(log, meta, 0)
	log = binary.AppendUvarint(log, uint64(len(key)+8))
	log = binary.AppendUvarint(log, uint64(len(value)))
	log = append(log, 0)
	log = append(log, key+"version!"...)
	log = append(log, value...)
	sum := crc32.Checksum(log[at:], crc32.MakeTable(crc32.Castagnoli))
	return binary.BigEndian.AppendUint32(log, sum)
}

// drawBad blanks some blocks of a log.
func drawBad(t *rapid.T, log []byte) (bad []rawlog.Span) {
	blocks := (len(log) + rawlog.BlockBytes - 1) / rawlog.BlockBytes
	for block := range blocks {
		if rapid.IntRange(0, 3).Draw(t, "bad") > 0 {
			continue
		}
		from := block * rawlog.BlockBytes
		end := min(from+rawlog.BlockBytes, len(log))
		clear(log[from:end])
		bad = append(bad, rawlog.Span{From: int64(from), End: int64(end)})
	}
	return bad
}

// touched reports whether any byte of an entry is in a bad block.
func touched(from, end int, bad []rawlog.Span) bool {
	return slices.ContainsFunc(bad, func(s rawlog.Span) bool { return int64(from) < s.End && s.From < int64(end) })
}

// A salvaged value log has each entry that is in no bad block at its old place, and no place where
// Badger would stop before the last of them.
func TestASalvagedValueLogHasWhatCanBeReadAtItsPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := make([]byte, rawlog.HeaderBytes)
		ends := []int{len(log)}
		for i := range rapid.IntRange(1, 30).Draw(t, "entries") {
			value := bytes.Repeat([]byte{byte(i)}, rapid.IntRange(1024, 9000).Draw(t, "bytes"))
			log = appendEntry(log, 0, fmt.Sprintf("key %d", i), value)
			ends = append(ends, len(log))
		}
		whole := slices.Clone(log)
		bad := drawBad(t, log)

		var out bytes.Buffer
		if err := rawlog.SalvageValueLog(&out, log, bad); err != nil {
			t.Fatal(err)
		}
		found, end := map[int]bool{}, rawlog.HeaderBytes
		for e := range rawlog.Entries(out.Bytes()) {
			found[e.At], end = true, e.End
		}
		if end != out.Len() {
			t.Fatalf("Badger would stop at %d of %d bytes", end, out.Len())
		}
		for i := 1; i < len(ends); i++ {
			at, next := ends[i-1], ends[i]
			if touched(at, next, bad) {
				continue
			}
			if !found[at] || !bytes.Equal(out.Bytes()[at:next], whole[at:next]) {
				t.Fatalf("entry %d at %d is lost; bad are %v", i-1, at, bad)
			}
		}
	})
}

// A salvaged write-ahead log has each entry that is in no bad block, in the old order. Of what was
// being written when the process ended it has nothing.
func TestASalvagedWriteAheadLogHasWhatCanBeRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := make([]byte, rawlog.HeaderBytes)
		type place struct {
			key       string
			from, end int
		}
		var places []place
		add := func(meta byte, key string, bytes int) {
			from := len(log)
			log = appendEntry(log, meta, key, make([]byte, bytes))
			if meta&endOfTransaction == 0 {
				places = append(places, place{key, from, len(log)})
			}
		}
		transactions := rapid.IntRange(1, 12).Draw(t, "transactions")
		for i := range transactions {
			for j := range rapid.IntRange(1, 5).Draw(t, "entries") {
				add(inTransaction, fmt.Sprintf("key %d %d", i, j), rapid.IntRange(0, 1000).Draw(t, "bytes"))
			}
			add(endOfTransaction, "!badger!txn", 3)
		}
		bad := drawBad(t, log)

		var want []string
		for _, p := range places {
			if !touched(p.from, p.end, bad) {
				want = append(want, p.key)
			}
		}
		for range rapid.IntRange(0, 2).Draw(t, "open") { // never answered
			log = appendEntry(log, inTransaction, "open", nil)
		}
		if len(bad) > 0 && bad[len(bad)-1].End == int64(len(log)) {
			return // whether these were answered is not known
		}

		var out bytes.Buffer
		if err := rawlog.SalvageWriteAheadLog(&out, log, bad); err != nil {
			t.Fatal(err)
		}
		var got []string
		for e := range rawlog.Entries(out.Bytes()) {
			if e.Meta&(inTransaction|endOfTransaction) != 0 {
				t.Fatalf("%q is part of a transaction", e.Key)
			}
			got = append(got, string(e.Key))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("with bad %v (-want +got):\n%s", bad, diff)
		}
	})
}
