package backend

import (
	"fmt"
	"strings"
)

// Code is a return code of the device runtime. Names and numbers are those of
// the public CANN headers. An unknown code is shown as its number, never guessed.
type Code int32

// The codes that the rules and the host's advice know.
const (
	Success             Code = 0
	InvalidParam        Code = 107000 // ACL_ERROR_RT_PARAM_INVALID
	InvalidHandle       Code = 107017 // ACL_ERROR_RT_INVALID_HANDLE
	ContextNull         Code = 107002 // ACL_ERROR_RT_CONTEXT_NULL
	StreamContext       Code = 107003 // ACL_ERROR_RT_STREAM_CONTEXT
	TaskAbort           Code = 107022 // ACL_ERROR_RT_DEVICE_TASK_ABORT
	StreamCaptured      Code = 107027 // ACL_ERROR_RT_STREAM_CAPTURED
	FeatureNotSupported Code = 207000 // ACL_ERROR_RT_FEATURE_NOT_SUPPORT
	OutOfMemory         Code = 207001 // ACL_ERROR_RT_MEMORY_ALLOCATION
	InternalError       Code = 507000 // ACL_ERROR_RT_INTERNAL_ERROR
	AICoreTimeout       Code = 507014 // ACL_ERROR_RT_AICORE_TIMEOUT
	AICoreException     Code = 507015 // ACL_ERROR_RT_AICORE_EXCEPTION
	AICPUTimeout        Code = 507017 // ACL_ERROR_RT_AICPU_TIMEOUT
	AICPUException      Code = 507018 // ACL_ERROR_RT_AICPU_EXCEPTION
	StreamSyncTimeout   Code = 507046 // ACL_ERROR_RT_STREAM_SYNC_TIMEOUT
	EventSyncTimeout    Code = 507047 // ACL_ERROR_RT_EVENT_SYNC_TIMEOUT
	DriverInternalError Code = 507899 // ACL_ERROR_RT_DRV_INTERNAL_ERROR
)

var codeNames = map[Code]string{
	Success:             "success",
	InvalidParam:        "ACL_ERROR_RT_PARAM_INVALID",
	InvalidHandle:       "ACL_ERROR_RT_INVALID_HANDLE",
	ContextNull:         "ACL_ERROR_RT_CONTEXT_NULL",
	StreamContext:       "ACL_ERROR_RT_STREAM_CONTEXT",
	TaskAbort:           "ACL_ERROR_RT_DEVICE_TASK_ABORT",
	StreamCaptured:      "ACL_ERROR_RT_STREAM_CAPTURED",
	FeatureNotSupported: "ACL_ERROR_RT_FEATURE_NOT_SUPPORT",
	OutOfMemory:         "ACL_ERROR_RT_MEMORY_ALLOCATION",
	InternalError:       "ACL_ERROR_RT_INTERNAL_ERROR",
	AICoreTimeout:       "ACL_ERROR_RT_AICORE_TIMEOUT",
	AICoreException:     "ACL_ERROR_RT_AICORE_EXCEPTION",
	AICPUTimeout:        "ACL_ERROR_RT_AICPU_TIMEOUT",
	AICPUException:      "ACL_ERROR_RT_AICPU_EXCEPTION",
	StreamSyncTimeout:   "ACL_ERROR_RT_STREAM_SYNC_TIMEOUT",
	EventSyncTimeout:    "ACL_ERROR_RT_EVENT_SYNC_TIMEOUT",
	DriverInternalError: "ACL_ERROR_RT_DRV_INTERNAL_ERROR",
}

// Name returns the header's name of the code, or "" for a code this package
// does not know.
func (c Code) Name() string { return codeNames[c] }

// ShortName returns Name without ACL_ERROR_RT_, which the names of all failures
// begin with.
func (c Code) ShortName() string { return strings.TrimPrefix(c.Name(), "ACL_ERROR_RT_") }

// Brief returns the code as the command line and scenarios write it: the number
// and the short name, as in "507018 AICPU_EXCEPTION"; of success, and of a code
// this package does not know, the number alone.
func (c Code) Brief() string {
	if n := c.ShortName(); n != "" && c != Success {
		return fmt.Sprintf("%d %s", int32(c), n)
	}
	return fmt.Sprintf("%d", int32(c))
}

// String returns the number, followed by the name if it is known.
func (c Code) String() string {
	if n := codeNames[c]; n != "" {
		return fmt.Sprintf("%d (%s)", int32(c), n)
	}
	return fmt.Sprintf("%d", int32(c))
}
