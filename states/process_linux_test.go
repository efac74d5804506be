//go:build amd64 || arm64

package states

import (
	"os"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

func TestCallingProcessIsAskedForOnce(t *testing.T) {
	mark := forkMark()
	if mark == nil {
		t.Skip("this kernel wipes nothing on a fork: the process is asked for each time")
	}
	process := callingProcess()
	for range 2 {
		require.Equal(t, os.Getpid(), process())
		require.EqualValues(t, os.Getpid(), mark.Load())
		mark.Store(0) // as a fork does
	}
	defer mark.Store(0)
	mark.Store(1)
	require.Equal(t, 1, process(), "the kept answer is the answer")
}

// A child of a fork finds the mark wiped, and so does a child of that child
// after the first has set it anew.
func TestForkWipesTheMark(t *testing.T) {
	mark := forkMark()
	if mark == nil {
		t.Skip("this kernel wipes nothing on a fork")
	}
	mark.Store(int64(os.Getpid()))
	pid, errno := forkTwice((*int64)(unsafe.Pointer(mark)))
	require.Zero(t, errno)
	var status syscall.WaitStatus
	for {
		if _, err := syscall.Wait4(pid, &status, 0, nil); err != syscall.EINTR {
			require.NoError(t, err)
			break
		}
	}
	require.True(t, status.Exited())
	require.Zero(t, status.ExitStatus(), "1: the child, 2: its child saw the mark of its parent")
	require.EqualValues(t, os.Getpid(), mark.Load())
}

// forkTwice forks a child that looks at the mark, sets it and forks another. A
// child has lost the other threads of the runtime, so it must need none of it.
//
//go:nosplit
//go:norace
func forkTwice(mark *int64) (pid int, errno syscall.Errno) {
	child, _, errno := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 || child != 0 {
		return int(child), errno
	}
	code := uintptr(0)
	if *mark != 0 {
		code = 1
	}
	*mark = 1
	grandchild, _, errno := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	switch {
	case errno != 0:
		code = 3
	case grandchild == 0:
		if *mark != 0 {
			code = 2
		}
	default:
		var status int32
		syscall.RawSyscall6(syscall.SYS_WAIT4, grandchild, uintptr(unsafe.Pointer(&status)), 0, 0, 0, 0)
		if status != 0 {
			code = uintptr(status>>8) & 0xff
		}
	}
	for {
		syscall.RawSyscall(syscall.SYS_EXIT_GROUP, code, 0, 0)
	}
}
