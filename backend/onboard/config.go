package onboard

import "github.com/runfence/runfence/backend"

const (
	// LibraryVariable is the environment variable that names the runtime's
	// library file, or the directory that it is in.
	LibraryVariable = "RUNFENCE_ACL_LIB"
	// HomeVariable is the one that the runtime's own installer sets.
	HomeVariable = "ASCEND_HOME_PATH"
	// LibraryName is the file that is looked for.
	LibraryName = "libascendcl.so"
	// RuntimeName is the file of the functions whose names begin with rt.
	RuntimeName = "libruntime.so"
)

// MaxDevices bounds the ids of devices: 0 to MaxDevices-1.
const MaxDevices = 64

// MaxNotices bounds the notices that are kept for a device.
const MaxNotices = 256

// Config describes how a device is opened.
type Config struct {
	// Library is the runtime's library file or the directory that it is in. If
	// it is empty, the library is looked for: where [LibraryVariable] says, below
	// the directory that [HomeVariable] names, and where the loader looks.
	Library string
	// Device is the logical id.
	Device int32
	// Borrow adopts the context that is current on the calling thread. It is
	// never set, reset or destroyed.
	Borrow bool
	// Notices is how many exception notices are kept until they are taken,
	// at most [MaxNotices]; 0 means that.
	Notices int
}

// Image says where a kernel is.
type Image struct {
	Class backend.Class
	// Path is the absolute path of the image: a binary for the AICore, the
	// description of an operator library (JSON) for the AICPU.
	Path string
	// Function is the kernel's name in the image. In a description it is the
	// name under which the function stands, its op type.
	Function string
	// OpType, if it is not empty, registers the AICPU function Function under
	// this name instead of looking it up.
	OpType string
	// UserLibrary says that the AICPU library lies beside its description and
	// has to be loaded with it; otherwise the runtime has it already.
	UserLibrary bool
}
