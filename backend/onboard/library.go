//go:build cgo && linux

package onboard

// #cgo CFLAGS: -std=c11 -Wall
// #cgo LDFLAGS: -ldl -lpthread
// #include <stdlib.h>
// #include "acl.h"
import "C"

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"unsafe"

	"github.com/runfence/runfence/backend"
)

// Supported reports whether this program can load the runtime at all.
const Supported = true

// knownMajor is the major version of the interface whose functions are
// declared here.
const knownMajor = 1

// Library is the runtime's library, loaded. It stays loaded for the life of the
// process, and there is one for each file. It is safe for concurrent use.
type Library struct {
	acl     *C.rf_acl
	path    string
	missing []string

	mu   sync.Mutex
	ours bool // it was our call that initialised the runtime
}

// Load finds the library, loads it, and checks its version and functions. The
// path is as in [Config]; empty means to look for it. The errors are a
// [*LibraryError], a [*SymbolError] or a [*VersionError].
func Load(path string) (*Library, error) {
	library, attempts := find(path)
	if library == nil {
		return nil, &LibraryError{attempts}
	}
	l := bind(library, attempts[len(attempts)-1])
	if err := l.check(); err != nil {
		return nil, err
	}
	return l, nil
}

// check holds a library against what is needed.
func (l *Library) check() error {
	if lacks := l.lacks(); lacks != nil {
		return &SymbolError{Library: l.path, Missing: lacks}
	}
	v := C.rf_version(l.acl)
	if v.code != C.RF_OK {
		return &CallError{Call: "aclrtGetVersion", Code: backend.Code(v.code)}
	}
	got := Version{int32(v.major), int32(v.minor), int32(v.patch)}
	if got.Major != knownMajor {
		return &VersionError{Library: l.path, Got: got, Want: knownMajor}
	}
	return nil
}

// Path returns the file that was loaded.
func (l *Library) Path() string { return l.path }

// Version returns the version of the library's interface.
func (l *Library) Version() Version {
	v := C.rf_version(l.acl)
	return Version{int32(v.major), int32(v.minor), int32(v.patch)}
}

// Missing returns the functions that the library lacks and this package can do
// without. Calls that need them are refused with [backend.FeatureNotSupported].
func (l *Library) Missing() []string { return l.missing }

// find tries the places where the library may be. The last attempt is the one
// that succeeded, if any did.
func find(path string) (library unsafe.Pointer, attempts []Attempt) {
	for _, a := range places(path) {
		if filepath.IsAbs(a.Path) {
			if _, err := os.Stat(a.Path); err != nil {
				a.Failure = "no such file"
				attempts = append(attempts, a)
				continue
			}
		}
		name := C.CString(a.Path)
		loaded := C.rf_load_library(name)
		C.free(unsafe.Pointer(name))
		if loaded.library == nil {
			a.Failure = C.GoString(&loaded.error[0])
		}
		attempts = append(attempts, a)
		if loaded.library != nil {
			return loaded.library, attempts
		}
		if _, err := os.Stat(a.Path); err == nil && a.Source != loaderSource {
			break // what is there and cannot be loaded is the thing to tell
		}
	}
	return nil, attempts
}

const loaderSource = "loader"

// places lists where to look. What is named outright is the only place.
func places(path string) []Attempt {
	source := "configuration"
	if path == "" {
		path, source = os.Getenv(LibraryVariable), LibraryVariable
	}
	if path != "" {
		return []Attempt{{Source: source, Path: file(path)}}
	}
	var list []Attempt
	if home := os.Getenv(HomeVariable); home != "" {
		for _, dir := range []string{"lib64", "runtime/lib64"} {
			list = append(list, Attempt{Source: HomeVariable, Path: absolute(filepath.Join(home, dir, LibraryName))})
		}
	}
	return append(list, Attempt{Source: loaderSource, Path: LibraryName})
}

func file(path string) string {
	path = absolute(path)
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		path = filepath.Join(path, LibraryName)
	}
	return path
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// bind looks up the functions. Those whose names begin with rt may be in the
// library beside it. A library that was loaded before is found again.
func bind(library unsafe.Pointer, at Attempt) *Library {
	process.mu.Lock()
	defer process.mu.Unlock()
	if l := process.libraries[library]; l != nil {
		return l
	}
	name := C.CString(filepath.Join(filepath.Dir(at.Path), RuntimeName))
	if !filepath.IsAbs(at.Path) {
		C.free(unsafe.Pointer(name))
		name = C.CString(RuntimeName)
	}
	runtime := C.rf_load_library(name) // without it, rt functions may be missing
	C.free(unsafe.Pointer(name))
	l := &Library{acl: C.rf_bind(library, runtime.library), path: at.Path}
	if p := C.GoString(C.rf_library_path(l.acl)); filepath.IsAbs(p) {
		l.path = p
	}
	for _, s := range l.symbols() {
		if !s.Present {
			l.missing = append(l.missing, s.Name)
		}
	}
	if process.libraries == nil {
		process.libraries = map[unsafe.Pointer]*Library{}
	}
	process.libraries[library] = l
	return l
}

// symbols lists the functions and whether they are there.
func (l *Library) symbols() []Symbol {
	n := C.rf_function_count()
	list := make([]Symbol, n)
	for i := range list {
		list[i] = Symbol{
			Name:    C.GoString(C.rf_function_name(C.int(i))),
			Present: C.rf_function_present(l.acl, C.int(i)) != 0,
			Needed:  C.rf_function_need(C.int(i)) == C.RF_REQUIRED,
		}
		if C.rf_function_need(C.int(i)) == C.RF_OR_NEXT {
			list[i].Or = C.GoString(C.rf_function_name(C.int(i + 1)))
		}
	}
	return list
}

// lacks lists what cannot be done without.
func (l *Library) lacks() (names []string) {
	list := l.symbols()
	for i, s := range list {
		switch {
		case s.Present:
		case s.Needed:
			names = append(names, s.Name)
		case s.Or != "" && !list[i+1].Present:
			names = append(names, s.Name+" or "+s.Or)
		}
	}
	return names
}

// init sees to it that the runtime is initialised. It asks every time: others
// in the process may have finalised it.
func (l *Library) init() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := C.rf_init(l.acl)
	if s.code != C.RF_OK {
		return callError(&s)
	}
	l.ours = l.ours || s.number != 0
	return nil
}

// Finalize takes back the initialisation of the runtime, if it was this package
// that initialised it. It is for the end of the process: older runtimes cannot
// be initialised again. It answers with a [*DeviceInUseError] while a device is
// open.
func (l *Library) Finalize() error {
	process.mu.Lock()
	defer process.mu.Unlock()
	for id := range process.devices {
		if process.library == l {
			return &DeviceInUseError{id}
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ours {
		return nil
	}
	if s := C.rf_finalize(l.acl); s.code != C.RF_OK {
		return callError(&s)
	}
	l.ours = false
	return nil
}

func callError(s *C.rf_setup) *CallError {
	return &CallError{
		Call: C.GoString(s.call), Code: backend.Code(s.code),
		Message: strings.TrimSpace(C.GoString(&s.message[0])),
	}
}

// process is what there is one of in a process: the place for exception
// callbacks, which tells notices by device, and each library.
var process struct {
	mu      sync.Mutex
	devices map[int32]*Device
	library *Library // whose devices they are
	// The libraries that are loaded, by the loader's handle of them.
	libraries map[unsafe.Pointer]*Library
}

// StrayNotices counts the exception notices that were for no open device.
func StrayNotices() uint64 { return uint64(C.rf_ring_strays()) }

// sanitizer says what the C code is compiled with: "none", "address" or "thread".
func sanitizer() string { return C.GoString(C.rf_sanitizer()) }
