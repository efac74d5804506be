package onboard

import "github.com/runfence/runfence/backend"

// Explanation is what a return code means for a host.
type Explanation struct {
	// Meaning is what happened.
	Meaning string
	// Next is what to look at, or to do.
	Next string
}

// explanations has the codes that are known. Those of an unknown one are not
// guessed.
var explanations = map[backend.Code]Explanation{
	backend.InvalidParam: {
		"the device rejected an argument; no call was queued",
		"timeouts must be positive, sizes and kernels must exist; for a synchronize, see what timeout was given",
	},
	backend.InvalidHandle: {
		"the stream, event or memory does not exist any more, or never did",
		"look for a destroy before this call, or a reset in between",
	},
	backend.ContextNull: {
		"no device context is current on the calling thread",
		"a host that lends its context must stay on that thread (runtime.LockOSThread) and set the context there; then call again",
	},
	backend.StreamContext: {
		"the context that is current on the calling thread is another than the one the handle belongs to",
		"restore the context that was lent, then call again; nothing was done meanwhile",
	},
	backend.TaskAbort: {
		"the device is aborting its tasks, by a reset or on request",
		"find who reset the device; runs under way are lost, and a confirmed reset is the proof that they are over",
	},
	backend.StreamCaptured: {
		"the stream is recording a graph, which eager work must not join",
		"end the capture, or submit on another stream",
	},
	backend.FeatureNotSupported: {
		"this device, or the runtime that is installed, has no such function",
		"runfence doctor lists the functions that the library lacks",
	},
	backend.OutOfMemory: {
		"there is no memory left on the device",
		"npu-smi info shows who has it; memory of runs that are unproven stays taken",
	},
	backend.InternalError: {
		"the runtime failed inside; whether the call took effect is unknown",
		"read the runtime's own log (~/ascend/log) at this time; treat the run as partial",
	},
	backend.AICoreTimeout: {
		"an AICore kernel ran for longer than the device allows",
		"was the AICPU kernel that it waits for submitted, and before anything that waits for the AICore?",
	},
	backend.AICoreException: {
		"an AICore kernel failed",
		"the runtime's log names the core and the address; check the arguments and that their memory was alive",
	},
	backend.AICPUTimeout: {
		"an AICPU kernel ran for longer than the device allows",
		"does the AICore kernel that it waits for run? is its stream held back by a wait?",
	},
	backend.AICPUException: {
		"an AICPU kernel returned a fatal status",
		"it is told only by a synchronize, and from then on by every call on that stream; look at the run's own record first",
	},
	backend.StreamSyncTimeout: {
		"the stream was not drained when the time was up; the work goes on",
		"this proves nothing: free nothing, wait again, or reset the device",
	},
	backend.EventSyncTimeout: {
		"the event was not reached when the time was up; the work goes on",
		"this proves nothing: free nothing, wait again, or reset the device",
	},
	backend.DriverInternalError: {
		"the driver failed inside; often what follows an earlier fault of the device",
		"find the first fault in the driver's log (dmesg, ~/ascend/log); until a reset is confirmed nothing is proven",
	},
}

// Explain returns what a code means; ok is false for a code that is not known,
// about which nothing is guessed.
func Explain(c backend.Code) (e Explanation, ok bool) {
	e, ok = explanations[c]
	return e, ok
}

// Describe puts a code into words: its number, and for a known one its name,
// its meaning and what to look at next.
func Describe(c backend.Code) string {
	e, ok := Explain(c)
	if !ok {
		return c.String()
	}
	return c.String() + ": " + e.Meaning + "; " + e.Next
}
