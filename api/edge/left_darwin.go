package edge

import "golang.org/x/sys/unix"

// hasHungUp reports whether the other end of a socket has closed it, or sends nothing more. A
// kqueue knows that even while bytes before the end are unread; poll does not.
func hasHungUp(socket uintptr) bool {
	queue, err := unix.Kqueue()
	if err != nil {
		return false
	}
	defer unix.Close(queue)

	var watch unix.Kevent_t
	unix.SetKevent(&watch, int(socket), unix.EVFILT_READ, unix.EV_ADD)
	happened := make([]unix.Kevent_t, 1)

	// Without a timeout it asks, and does not wait.
	n, err := unix.Kevent(queue, []unix.Kevent_t{watch}, happened, &unix.Timespec{})

	return err == nil && n > 0 && happened[0].Flags&unix.EV_EOF != 0
}
