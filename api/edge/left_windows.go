package edge

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

var wsaPoll = windows.NewLazySystemDLL("ws2_32.dll").NewProc("WSAPoll")

// pollSocket is the system's WSAPOLLFD.
type pollSocket struct {
	socket           uintptr
	events, happened int16
}

// Events of a socket that WSAPoll reports, and those to ask for.
const (
	pollErr    = 0x1
	pollHup    = 0x2
	pollNormal = 0x100
)

// hasHungUp reports whether the other end of a socket has closed it. A poll without a timeout
// asks, and does not wait.
func hasHungUp(socket uintptr) bool {
	ends := []pollSocket{{socket: socket, events: pollNormal}}
	n, _, _ := wsaPoll.Call(uintptr(unsafe.Pointer(&ends[0])), 1, 0)

	return int32(n) > 0 && ends[0].happened&(pollErr|pollHup) != 0
}
