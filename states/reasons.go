package states

import "github.com/runfence/runfence/machine"

// Reasons that rows name. errors.Is matches them in the errors that host
// operations return.
const (
	// ErrForeignProcess: the caller is not the process that made the
	// environment. Nothing was locked, entered or changed (F54, F55).
	ErrForeignProcess machine.Reason = "foreign process"
	// ErrExecutionContextRefused: another device context is current than the
	// one adopted. Nothing was lost: the same handle may retry once the
	// context is restored (F59).
	ErrExecutionContextRefused machine.Reason = "execution context refused"
	// ErrContextQuery: which context is current could not be found out.
	ErrContextQuery machine.Reason = "the current context could not be queried"
	// ErrNoCurrentContext: borrowing needs a context that is already current (F170).
	ErrNoCurrentContext machine.Reason = "no context is current to borrow"
	// ErrGenerationRequired: a borrowed context has a nonzero generation of the caller's (F48).
	ErrGenerationRequired machine.Reason = "a borrowed context needs a nonzero generation"
	// ErrGenerationNotAccepted: an owned context takes its generation from its own incarnation (F52).
	ErrGenerationNotAccepted machine.Reason = "an owned context takes no generation from the caller"
	// ErrZeroIdentity: a part of an identity is zero, which names nothing.
	ErrZeroIdentity machine.Reason = "an identity is zero"
	// ErrStaleIdentity: the identity is not that of the present occupant (F122).
	ErrStaleIdentity machine.Reason = "stale identity"
	// ErrNotInitialised: there is no environment yet.
	ErrNotInitialised machine.Reason = "not initialised"
	// ErrAlreadyInitialised: there is an environment already.
	ErrAlreadyInitialised machine.Reason = "already initialised"
	// ErrInitialisation: the environment could not be made; it may be retried.
	ErrInitialisation machine.Reason = "initialisation failed"
	// ErrCleanupOwed: an earlier teardown failed; identity and binding are kept
	// until one succeeds (F53, F64).
	ErrCleanupOwed machine.Reason = "cleanup is owed"
	// ErrTeardown: a teardown failed; it may be retried (F63).
	ErrTeardown machine.Reason = "teardown failed"
	// ErrFinalized: the environment is over for good (F65).
	ErrFinalized machine.Reason = "finalized"
	// ErrDetached: the environment was given up without a close; its storage is kept (F66).
	ErrDetached machine.Reason = "detached"
	// ErrClosing: a close was claimed.
	ErrClosing machine.Reason = "closing"

	// ErrModeLatched: the handle already runs in the other mode (F92, F93).
	ErrModeLatched machine.Reason = "the execution mode is latched"
	// ErrModeUnclaimed: no mode was claimed; that is not PROGRAM (F90).
	ErrModeUnclaimed machine.Reason = "no execution mode is claimed"
	// ErrPhase: the initialisation phase does not allow it (F91, F93).
	ErrPhase machine.Reason = "wrong initialisation phase"

	// ErrReferenceHeld: a queued wait may still name the fence's events (F139).
	ErrReferenceHeld machine.Reason = "a wait reference is held"
	// ErrNotRetired: the run before has not retired from the slot.
	ErrNotRetired machine.Reason = "the run before is not retired"
	// ErrNotArmed: the fence stands for no run.
	ErrNotArmed machine.Reason = "the fence is not armed"
	// ErrBoundaryOrder: the boundary is not where the event needs it: a record
	// follows its own submission, a wait follows its record (F96, F134).
	ErrBoundaryOrder machine.Reason = "boundary out of order"
	// ErrUnproven: the device may still be working for the run (F100, F132).
	ErrUnproven machine.Reason = "unproven: the device may still be at work"
	// ErrFenceReleased: the fence's events are gone.
	ErrFenceReleased machine.Reason = "the fence is released"
	// ErrEventCreate: the slot's events could not be made; the run has submitted nothing (F124).
	ErrEventCreate machine.Reason = "the slot's events could not be made"

	// ErrWrongWaiter: the proof is of another stream than the one that holds the wait (F135).
	ErrWrongWaiter machine.Reason = "the proof covers another stream"
	// ErrNotCommitted: the reference is reserved only: its wait was not queued.
	ErrNotCommitted machine.Reason = "the reference is not committed"
	// ErrTokenEmpty: the token was released, revoked, discarded or moved from.
	ErrTokenEmpty machine.Reason = "the token is empty"
	// ErrTokenHeld: a live token would be overwritten (F137).
	ErrTokenHeld machine.Reason = "the token holds a reference"
	// ErrTokenCurrent: the fence still counts the token: it is not stale (F141).
	ErrTokenCurrent machine.Reason = "the token is current"
	// ErrForeignToken: another fence minted the token (F141).
	ErrForeignToken machine.Reason = "another fence minted the token"
	// ErrNoQuiescence: neither a verified reset nor a declared quarantine is on record (F136).
	ErrNoQuiescence machine.Reason = "no verified reset and no declared quarantine"
	// ErrWaitMaybeQueued: queueing the wait failed after the attempt; it may be
	// queued all the same, so the reference is kept (F34).
	ErrWaitMaybeQueued machine.Reason = "the wait may be queued all the same"

	// ErrAdmissionClosed: the lane takes no new run (F78, F132).
	ErrAdmissionClosed machine.Reason = "admission is closed"
	// ErrSlotOccupied: the slot hosts a run already.
	ErrSlotOccupied machine.Reason = "the slot is occupied"
	// ErrPreparationRefused: preparation did not touch anything; it may be retried.
	ErrPreparationRefused machine.Reason = "preparation refused"
	// ErrPreparationAmbiguous: preparation failed without evidence of what it
	// left behind; its borrows are kept and admission is poisoned (F69).
	ErrPreparationAmbiguous machine.Reason = "preparation failed without evidence of its release"
	// ErrNotPrepared: the run is not prepared.
	ErrNotPrepared machine.Reason = "the run is not prepared"
	// ErrNotLaunched: the run was not launched.
	ErrNotLaunched machine.Reason = "the run is not launched"
	// ErrNotStarted: the launch submitted nothing (F76).
	ErrNotStarted machine.Reason = "launch not started: nothing was submitted"
	// ErrPartial: the launch may have submitted something and cannot be
	// completed; admission is closed until a proof (F78, F143).
	ErrPartial machine.Reason = "launch partial: something may be submitted"
	// ErrRunFailed: the device reports a fault for the run (F104).
	ErrRunFailed machine.Reason = "the device reports a fault"
	// ErrDiagnosed: the run's own record reports a failure that the device does
	// not (F117).
	ErrDiagnosed machine.Reason = "the run's own record reports a failure"
	// ErrQueryFailed: a query failed. It is neither "not ready" nor "complete" (F126).
	ErrQueryFailed machine.Reason = "a query failed"
	// ErrWaitTimeout: a bounded wait expired. It proves nothing (F100).
	ErrWaitTimeout machine.Reason = "the wait expired, which proves nothing"
	// ErrRelease: the run's resources could not be released; finalize may be retried.
	ErrRelease machine.Reason = "the run's resources could not be released"
	// ErrRunLive: a run of the lane is not finalized.
	ErrRunLive machine.Reason = "a run is not finalized"
	// ErrStreams: the lane's streams could not be made or destroyed.
	ErrStreams machine.Reason = "the streams could not be made or destroyed"
	// ErrStreamError: a stream carries a sticky error, by its query (F119).
	ErrStreamError machine.Reason = "a stream is in error"
	// ErrCloseRejected: the close claimed nothing, and the lifecycle is as it was (F62).
	ErrCloseRejected machine.Reason = "close rejected: nothing was claimed"
	// ErrDepthReached: as many runs as the lane's depth allows are admitted.
	ErrDepthReached machine.Reason = "the admission depth is reached"

	// Of the callable registry.
	// ErrInvalidArgument: an explicit id that is taken, an id that names no
	// callable, or a stale occupancy (F81, F87).
	ErrInvalidArgument machine.Reason = "INVALID_ARGUMENT"
	// ErrInvalidState: no id is free until one is unregistered, or the worker is
	// not initialised (F83, F86).
	ErrInvalidState machine.Reason = "INVALID_STATE"
	// ErrUnsupportedEntry: the runtime lacks the optional entry that automatic
	// registration needs; everything else works (F82).
	ErrUnsupportedEntry machine.Reason = "unsupported entry: automatic registration"
	// ErrUpload: an image could not be put on the device, or taken off it.
	ErrUpload machine.Reason = "the image could not be put on or taken off the device"

	// ErrDecided: the outcome is decided, or is not waiting for that.
	ErrDecided machine.Reason = "the outcome is not waiting for that"

	// Of ordering runs and callers.
	// ErrWaitCycle: the wait would point back at a run that waits for it (F134).
	ErrWaitCycle machine.Reason = "the waits would form a cycle"
	// ErrJoinDeclined: the run cannot be queued behind its predecessor, which
	// must be drained first (F43).
	ErrJoinDeclined machine.Reason = "join declined: drain the predecessor first"
	// ErrCaptureActive: the caller's stream is recording a graph; this entry is
	// eager only (F17, F38).
	ErrCaptureActive machine.Reason = "the caller's stream is capturing"
	// ErrCallerStream: the caller's stream could not be validated (F41).
	ErrCallerStream machine.Reason = "the caller's stream is not valid"
	// ErrOrderEvents: the slot's ordering events could not be made; nothing was submitted.
	ErrOrderEvents machine.Reason = "the ordering events could not be made"

	// Of preparation.
	// ErrResourceWait: a resource is not to be had now; the plan is kept, and
	// the run may be tried again or given up (F70).
	ErrResourceWait machine.Reason = "waiting for a resource"
	// ErrRunPreparationRefused: preparation failed and proved, with a release
	// marker of its own epoch, that nothing of it is left (F68).
	ErrRunPreparationRefused machine.Reason = "run preparation refused: everything of it is released"

	// Of submission and recovery.
	// ErrSubmit: the run was not submitted, for the cause that it carries.
	ErrSubmit machine.Reason = "not submitted"
	// ErrNothingToRecover: every run is proven, and the device is trusted.
	ErrNothingToRecover machine.Reason = "there is nothing to recover from"
	// ErrBorrowedDevice: the device is a caller's: the lane is poisoned, and the
	// caller recovers (F15).
	ErrBorrowedDevice machine.Reason = "the device is borrowed: its owner recovers it"
	// ErrDeviceUnusable: the reset was not confirmed; nothing is let go (F113).
	ErrDeviceUnusable machine.Reason = "the device is unusable: its reset was not confirmed"

	// ErrReset: a verified reset of the device ended the run (F14).
	ErrReset machine.Reason = "ended by a verified reset of the device"
)
