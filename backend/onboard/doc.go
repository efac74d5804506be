// Package onboard drives a real accelerator through the Ascend runtime, behind
// the interface of package backend.
//
// The runtime is opened when it is first needed, not linked: a program that
// imports this package builds and starts on a machine without it, and without
// cgo, where [Open] then says what is missing.
//
// # Threads
//
// The runtime keeps the current context and the last error for each thread, and
// goroutines move between threads. So each call is one trip into C that asks
// which context is current there, makes its own current if it is another, makes
// the call and reads the thread's last error before it comes back. Nothing is
// remembered from call to call, because other code in the process may have
// switched the context meanwhile.
//
// A borrowed context belongs to the host. It is compared and never set: a call
// under another context is [backend.Refused] with [backend.ContextNull] or
// [backend.StreamContext] and touches nothing, and can be made again once the
// host has restored its context. A host that lends a context must therefore
// stay on the thread where it is current: runtime.LockOSThread.
//
// # Memory
//
// No pointer to Go memory is ever kept in C. The pinned source of an
// asynchronous copy is memory of the runtime, which lives until [Device.Free].
//
// # Reset
//
// A device reset takes everything from the device. Handles of streams and
// memory outlive it here, as the interface wants: they are given new streams
// and new memory, which holds zeros. Events do not outlive it.
package onboard
