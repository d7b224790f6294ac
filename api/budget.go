package api

import "sync"

// budget bounds the bytes of all bodies held at once, so that many large uploads meet a 503 and not the kernel's
// out-of-memory killer. Within it, nobody's large bodies keep out what others need:
//
//   - an eighth is left for bodies of up to smallBytes, which nearly all writes, fetches and pages are;
//   - the larger bodies of one key may take a half, and those of all callers who have not shown a key (strangers) a
//     quarter; or the room of one body of the largest size, where that is more. A sidecar's budget is too small for
//     shares: the beginnings of several bodies of one key would keep each of them from getting whole.
//
// Safe for concurrent use.
type budget struct {
	forSmall, ofKey, ofStrangers int64

	mu    sync.Mutex
	left  int64            // under mu
	large map[string]int64 // under mu; bytes of larger bodies, by owner; none is 0
}

const (
	smallBytes = 64 << 10 // up to which capacity a body counts as small
	stranger   = ""       // owns the bodies of callers who have not shown a key
)

func newBudget(bytes, bodyBytesMax int64) *budget {
	one := min(bytes, bodyBytesMax+1)
	ofKey, ofStrangers := max(bytes/2, one), max(bytes/4, one)
	if bytes < 3*one {
		ofKey, ofStrangers = bytes, bytes
	}

	return &budget{
		forSmall:    bytes / 8,
		ofKey:       ofKey,
		ofStrangers: ofStrangers,
		left:        bytes,
		large:       map[string]int64{},
	}
}

// take reports whether a body of owner that holds one size may hold another, larger one, and counts it.
func (b *budget) take(owner string, held, wanted int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()

	left := b.left
	if wanted > smallBytes {
		left -= b.forSmall
		share := b.ofKey
		if owner == stranger {
			share = b.ofStrangers
		}
		if b.large[owner]+wanted-largeOf(held) > share {
			return false
		}
	}
	if wanted-held > left {
		return false
	}

	b.left -= wanted - held
	b.own(owner, largeOf(wanted)-largeOf(held))

	return true
}

// give takes back all that a body of owner holds.
func (b *budget) give(owner string, held int64) {
	b.mu.Lock()
	defer b.mu.Unlock()

	b.left += held
	b.own(owner, -largeOf(held))
}

// pass makes a stranger's body that of a key. It may take the key beyond its share for as long as it is held.
func (b *budget) pass(owner string, held int64) {
	b.mu.Lock()
	defer b.mu.Unlock()

	b.own(stranger, -largeOf(held))
	b.own(owner, largeOf(held))
}

// own counts more bytes of larger bodies. Called with mu held.
func (b *budget) own(owner string, more int64) {
	if more == 0 {
		return
	}
	if b.large[owner] += more; b.large[owner] == 0 {
		delete(b.large, owner)
	}
}

// largeOf is what a body that holds so many bytes counts among the larger ones.
func largeOf(held int64) int64 {
	if held <= smallBytes {
		return 0
	}

	return held
}
