package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/onboard"
	"github.com/runfence/runfence/scenario"
)

// deviceFlags say which device a scenario is played on. The zero value is the
// simulated one.
type deviceFlags struct {
	backend          option
	library, kernels string
	opened           []*onboard.Device
}

func (d *deviceFlags) flags(cmd *cobra.Command) {
	d.backend = option{value: "sim", what: "backend", words: []string{"sim", "onboard"}}
	cmd.Flags().Var(&d.backend, "backend", "the device: simulated, or that of the Ascend runtime on this machine")
	libraryFlag(cmd, &d.library)
	cmd.Flags().StringVar(&d.kernels, "kernels", "", "directory of the kernel images, NAME.o for the AICore and NAME.json for the AICPU; kernels/ beside --acl-lib if not given")
	must(cmd.RegisterFlagCompletionFunc("backend", cobra.FixedCompletions(d.backend.words, cobra.ShellCompDirectiveNoFileComp)))
	must(cmd.MarkFlagDirname("kernels"))
}

func libraryFlag(cmd *cobra.Command, library *string) {
	cmd.Flags().StringVar(library, "acl-lib", "", onboard.LibraryName+" of the Ascend runtime, or its directory; looked for if not given: "+
		onboard.LibraryVariable+", "+onboard.HomeVariable+", the loader's path")
	must(cmd.MarkFlagFilename("acl-lib", "so"))
}

func (d *deviceFlags) onboard() bool { return d.backend.value == "onboard" }

// misused says which other flags do not go with the device.
func (d *deviceFlags) misused(cmd *cobra.Command, f runFlags) error {
	switch {
	case !d.onboard() && (d.library != "" || d.kernels != ""):
		return misused(cmd, "--acl-lib and --kernels go with --backend onboard")
	case d.onboard() && f.seed.given:
		return misused(cmd, "--seed is for the simulated device: nobody decides what happens next on a real one")
	case d.onboard() && f.rewrite:
		return misused(cmd, "--rewrite is for the simulated device: the answers of a file have its times")
	}
	return nil
}

// maker makes the device of a scenario; nil leaves it to the simulated one.
func (d *deviceFlags) maker() func(scenario.DeviceSpec) (scenario.Device, error) {
	if !d.onboard() {
		return nil
	}
	return func(s scenario.DeviceSpec) (scenario.Device, error) {
		dev, err := onboard.Open(onboard.Config{Library: d.library, Device: s.ID, Borrow: s.Borrowed})
		if err != nil {
			return scenario.Device{}, err
		}
		d.opened = append(d.opened, dev)
		kernels, err := d.load(dev)
		return scenario.Device{Backend: dev, Kernels: kernels}, err
	}
}

// load makes the kernels known that there are images of.
func (d *deviceFlags) load(dev *onboard.Device) (map[string]backend.Kernel, error) {
	dir, given := d.kernels, d.kernels != ""
	if !given {
		dir = d.library
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			dir = filepath.Dir(dir)
		}
		dir = filepath.Join(dir, "kernels")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	kernels := map[string]backend.Kernel{}
	files, err := os.ReadDir(dir)
	if err != nil && (given || !errors.Is(err, os.ErrNotExist)) {
		return nil, fmt.Errorf("--kernels: %w", err)
	}
	for _, f := range files {
		ext := filepath.Ext(f.Name())
		class := slices.Index([]string{".o", ".json"}, ext)
		if class < 0 {
			continue
		}
		name := strings.TrimSuffix(f.Name(), ext)
		if _, twice := kernels[name]; twice {
			return nil, fmt.Errorf("--kernels: there are two images of %s in %s", name, dir)
		}
		k, err := dev.Load(onboard.Image{Class: backend.Class(class), Path: filepath.Join(dir, f.Name()), Function: name})
		if err != nil {
			return nil, err
		}
		kernels[name] = k
	}
	return kernels, nil
}

// end gives the devices back. What a scenario left on one is not proven over,
// and stays.
func (d *deviceFlags) end() {
	for _, dev := range d.opened {
		if dev.Close() != nil {
			dev.Detach()
		}
	}
	d.opened = nil
}

// simulated is what answers say that only the simulated device knows: its
// clock, and how it was misused.
var simulated = regexp.MustCompile(`(?m), now [0-9.]+us$|^! .*\n`)

// compared leaves out the mismatches that are of what only the simulated device
// knows, as is what a timeline shows of its inside.
func (d *deviceFlags) compared(r *scenario.Result) []scenario.Mismatch {
	if !d.onboard() {
		return r.Mismatches
	}
	timelines := map[int]bool{}
	for _, b := range r.Blocks {
		timelines[b.Line] = slices.ContainsFunc(b.Commands, func(c scenario.Command) bool {
			verb, _, _ := strings.Cut(c.Text, " ")
			return verb == "timeline"
		})
	}
	return slices.DeleteFunc(r.Mismatches, func(m scenario.Mismatch) bool {
		return timelines[m.Line] || simulated.ReplaceAllString(m.Expected, "") == m.Actual
	})
}
