//go:build cgo && linux

package onboard

// #include "acl.h"
import "C"

import (
	"errors"
	"fmt"
)

func diagnose(d *Diagnosis, o DiagnoseOptions) {
	library, attempts := find(o.Library)
	d.Attempts = attempts
	if library == nil {
		d.problem("the Ascend runtime was not found: there is no usable "+LibraryName,
			"install the CANN toolkit and source its set_env.sh, or name the library with "+LibraryVariable)
		return
	}
	l := bind(library, attempts[len(attempts)-1])
	d.Library, d.Symbols = l.path, l.symbols()
	err := l.check()
	var symbols *SymbolError
	if errors.As(err, &symbols) {
		d.problem(err.Error(), "install a newer CANN toolkit, or name the right library with "+LibraryVariable)
		return
	}
	v := C.rf_version(l.acl)
	d.Version, d.Package = l.Version().String(), C.GoString(&v._package[0])
	if err != nil {
		d.call(err, "use the release of this program that is made for that version")
		return
	}
	d.devices(l, o)
}

// devices asks for the devices, and lets one carry out a run.
func (d *Diagnosis) devices(l *Library, o DiagnoseOptions) {
	if err := l.init(); err != nil {
		d.call(err, "is the driver loaded (npu-smi info), and may this user open /dev/davinci*?")
		return
	}
	s := C.rf_count_devices(l.acl)
	if s.code != C.RF_OK {
		d.call(callError(&s), "is the driver loaded (npu-smi info), and may this user open /dev/davinci*?")
		return
	}
	for i := range int32(s.number) {
		d.Devices = append(d.Devices, i)
	}
	about := C.rf_soc(l.acl)
	d.Chip = C.GoString(&about.soc[0])
	if len(d.Devices) == 0 {
		d.problem("the runtime sees no device", "npu-smi info lists the devices; ASCEND_RT_VISIBLE_DEVICES may hide them")
	} else if o.SelfTest {
		d.selfTest(l, o.Device)
	}
	if err := l.Finalize(); err != nil {
		d.call(err, "what was done before is not in doubt")
	}
}

func (d *Diagnosis) call(err error, advice string) {
	var c *CallError
	if errors.As(err, &c) {
		if e, ok := Explain(c.Code); ok {
			advice = e.Next
		}
		d.problem(fmt.Sprintf("%s failed with %v: %s", c.Call, c.Code, c.Message), advice)
		return
	}
	d.problem(err.Error(), advice)
}
