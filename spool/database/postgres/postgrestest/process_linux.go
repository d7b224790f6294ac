package postgrestest

import "syscall"

// resume continues a process that was stopped.
const resume = syscall.SIGCONT

// process makes a process run as the owner, or as we do if that is nil. It gets the signal, unless
// that is 0, when the thread ends that started it.
func (o *owner) process(end syscall.Signal) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Pdeathsig: end}
	if o != nil {
		attr.Credential = &syscall.Credential{Uid: uint32(o.uid), Gid: uint32(o.gid)}
	}

	return attr
}
