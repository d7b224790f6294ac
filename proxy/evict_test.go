package proxy

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"promptspool/api/wire"
	"promptspool/spool/queue"
)

// everybody knows every key.
type everybody struct{}

func (everybody) Verdict(_ context.Context, key wire.Secret) (wire.KeyVerdict, error) {
	return wire.KeyVerdict{Success: true, Account: string(key), Scope: wire.ScopeApp}, nil
}

func TestAFullRingForgetsAKeyThatNoEventNeeds(t *testing.T) {
	logger, dir := slog.New(slog.NewTextHandler(io.Discard, nil)), t.TempDir()
	spool, err := queue.Open(queue.Config{Dir: filepath.Join(dir, "spool"), Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	defer spool.Close()
	ringDir := filepath.Join(dir, "keys")
	if err := os.Mkdir(ringDir, 0o700); err != nil {
		t.Fatal(err)
	}
	for number := uint32(1); number <= keysMax; number++ {
		text, err := encodeKey(&key{number: number, secret: wire.Secret(fmt.Sprintf("key %d", number)), state: keyGood})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(ringDir, fmt.Sprintf("%d.json", number)), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}

	keys, err := OpenKeyring(KeyringConfig{
		Dir: ringDir, Asker: everybody{}, Spool: spool, SpoolBytesMax: 1 << 30, Logger: logger,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer keys.Close()
	for number, key := range keys.byNumber {
		if number > 4 {
			key.writes++ // a write of it is on its way
		}
	}
	holdPinned(t, spool)
	for i, want := range []bool{true, true, false} {
		id := wire.Identity{Key: wire.Secret(fmt.Sprintf("new key %d", i)), Verified: true}
		_, err := keys.acquire(id, 1)
		if taken := err == nil; taken != want {
			t.Errorf("new key %d: taken is %v, %v; want %v", i, taken, err, want)
		}
	}
	for number, want := range map[uint32]bool{1: false, 2: false, 3: true, 4: true, keysMax: true} {
		if _, kept := keys.secret(number); kept != want {
			t.Errorf("key %d: kept is %v; want %v", number, kept, want)
		}
	}
	if entries, err := os.ReadDir(ringDir); err != nil || len(entries) != keysMax {
		t.Errorf("%d files are there, %v; want %d", len(entries), err, keysMax)
	}
}

// holdPinned puts an event of key 3 into the held lane, and one of key 4 among the dead letters.
func holdPinned(t *testing.T, spool *queue.Queue) {
	t.Helper()
	for key := uint32(3); key <= 4; key++ {
		if err := spool.Append(key, []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	entries, _, err := spool.Read(t.Context(), spool.Frontier(), 2, 1<<20)
	if err != nil || len(entries) != 2 {
		t.Fatalf("%d entries, %v", len(entries), err)
	}

	for _, err := range []error{
		spool.Hold(3, "refused", entries[:1]),
		spool.Bury(queue.LaneEntry{Entry: entries[1], Reason: "invalid"}),
		spool.Ack(entries[1].Seq),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
}
