package promela

// A queue model of the device and of what the host knows of itself: the same
// as run.pml.tmpl says in Promela. Stream 2s is the AICore stream of slot s,
// 2s+1 its AICPU stream, and the last one the caller's; event e is recorded on
// stream e.
const (
	mostSlots   = 2
	mostEvents  = 2 * mostSlots
	mostStreams = mostEvents + 1
	mostDepth   = 6
	mostTokens  = 4
)

// An entry of a stream.
const (
	kernelEntry = 1
	recordEntry = 2
	waitEntry   = 3 // and the event
)

// What became of the call that is out for a boundary.
const (
	quietCall = iota
	submittingCall
	submittedCall
	recordingCall
	recordedCall
	overCall
)

// What became of a token's wait.
const (
	unqueuedWait = iota
	queuedWait
	deadWait
)

// around is all of a state but the rules' instances: a flat value.
type around struct {
	stream  [mostStreams][mostDepth]uint8
	length  [mostStreams]uint8
	done    [mostEvents]bool
	made    [mostSlots]bool
	met     [mostSlots]bool
	kernels [mostEvents]uint8
	records [mostEvents]uint8
	waits   [mostEvents]uint8

	runs     uint8
	occupant [mostSlots]uint8
	drained  [mostSlots]bool
	call     [mostEvents]uint8
	joined   [mostEvents]bool
	held     [mostSlots]bool
	queued   [mostTokens]uint8
	resets   uint8
}

func (a *around) head(i int) uint8 {
	if a.length[i] == 0 {
		return 0
	}
	return a.stream[i][0]
}

func (a *around) pop(i int) {
	copy(a.stream[i][:], a.stream[i][1:a.length[i]])
	a.length[i]--
	a.stream[i][a.length[i]] = 0
}

func (a *around) room(i, depth int) bool { return int(a.length[i]) < depth }

func (a *around) push(i int, entry uint8) {
	a.stream[i][a.length[i]] = entry
	a.length[i]++
}

func (a *around) enqueueKernel(i int) broken {
	a.push(i, kernelEntry)
	a.kernels[i]++
	return ""
}

func (a *around) enqueueRecord(i int) broken {
	if !a.made[i/2] || a.waits[i] > 0 || a.records[i] > 0 {
		return "nothing-freed-in-use"
	}
	a.push(i, recordEntry)
	a.records[i]++
	a.done[i] = false
	return ""
}

func (a *around) enqueueWait(i, e int) broken {
	switch {
	case !a.made[e/2]:
		return "nothing-freed-in-use"
	case !a.done[e] && a.records[e] == 0:
		return "record-before-wait"
	}
	a.push(i, waitEntry+uint8(e))
	a.waits[e]++
	return ""
}

// passed reports whether no wait for the event stands in the stream.
func (a *around) passed(i, e int) bool {
	for _, x := range a.stream[i][:a.length[i]] {
		if x == waitEntry+uint8(e) {
			return false
		}
	}
	return true
}

// broken is the id of an invariant that does not hold, or "".
type broken string
