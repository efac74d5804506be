package states

import (
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// wipeOnFork is MADV_WIPEONFORK: a child of a fork finds zeros in the memory,
// and so does a child of that child. Linux has it since 4.14.
const wipeOnFork = 18

// forkMark is a word that a fork wipes, or nil where the kernel cannot.
var forkMark = sync.OnceValue(func() *atomic.Int64 {
	page, err := syscall.Mmap(-1, 0, os.Getpagesize(), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil
	}
	// (An emulator that takes every advice follows none.)
	if syscall.Madvise(page, -1) == nil || syscall.Madvise(page, wipeOnFork) != nil {
		_ = syscall.Munmap(page)
		return nil
	}
	return (*atomic.Int64)(unsafe.Pointer(&page[0]))
})

// callingProcess returns a function that reports the calling process. Every
// operation asks, before anything else, so the answer is kept until a fork.
func callingProcess() func() int {
	mark := forkMark()
	if mark == nil {
		return os.Getpid
	}
	return func() int {
		if p := mark.Load(); p != 0 {
			return int(p)
		}
		p := os.Getpid()
		mark.Store(int64(p))
		return p
	}
}
