package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/runfence/runfence/backend/onboard"
)

func (a *app) doctorCommand() *cobra.Command {
	var o onboard.DiagnoseOptions
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look at what this machine has for running on a device",
		Long: `Doctor looks for the Ascend runtime, its version, its functions, and the devices
of the machine, and says what is missing and what to do about it. It works on a
machine that has none of that, and says so.

With --self-test a device carries out a small run: bytes go to the device on one
stream and come back on another that waits for the first, each with its boundary.
It needs no kernels, and gives back what it took.

Something that stands in the way is a finding, exit 1.`,
		Example: `  runfence doctor
  runfence doctor --self-test
  runfence doctor --self-test --device 3 --json
  runfence doctor --acl-lib /usr/local/Ascend/ascend-toolkit/latest/lib64`,
		Args:              arguments(0, 0, ""),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Device != 0 && !o.SelfTest {
				return misused(cmd, "--device goes with --self-test")
			}
			d := onboard.Diagnose(o)
			if a.json {
				if err := a.out.json(d); err != nil {
					return err
				}
			} else {
				a.diagnosis(d)
			}
			if !d.OK() {
				return found("")
			}
			return nil
		},
	}
	libraryFlag(cmd, &o.Library)
	cmd.Flags().BoolVar(&o.SelfTest, "self-test", false, "have a device carry out a small run")
	cmd.Flags().Int32Var(&o.Device, "device", 0, "the device that does")
	must(cmd.RegisterFlagCompletionFunc("device", cobra.NoFileCompletions))
	a.jsonFlag(cmd)
	return cmd
}

// diagnosis prints what was found, and what stands in the way.
func (a *app) diagnosis(d *onboard.Diagnosis) {
	s := a.styled()
	rows := [][]string{{s.bold("platform"), d.Platform}}
	for _, p := range d.Attempts {
		if p.Failure != "" {
			rows = append(rows, []string{s.bold("looked at"), p.Path + " (" + p.Source + "): " + oneLine(p.Failure)})
		}
	}
	if d.Library != "" {
		rows = append(rows, []string{s.bold("library"), d.Library + " (" + d.Attempts[len(d.Attempts)-1].Source + ")"})
	}
	if d.Version != "" {
		text := d.Version
		if d.Package != "" {
			text += " of CANN " + d.Package
		}
		rows = append(rows, []string{s.bold("interface"), text})
	}
	if len(d.Symbols) > 0 {
		rows = append(rows, []string{s.bold("functions"), functions(d.Symbols)})
	}
	if len(d.Devices) > 0 {
		rows = append(rows, []string{s.bold("devices"), deviceList(d)})
	}
	for i, t := range d.SelfTest {
		name := ""
		if i == 0 {
			name = s.bold("self-test")
		}
		text := s.green("ok") + "  " + t.Name
		if t.Failure != "" {
			text = s.red("FAIL") + "  " + t.Name
		}
		rows = append(rows, []string{name, text})
	}
	a.out.table("", rows)
	for _, p := range d.Problems {
		a.out.println("")
		for l := range strings.Lines(p.What) {
			a.out.println(s.red(printable(strings.TrimRight(strings.ReplaceAll(l, "\t", "  "), "\n"))))
		}
		for _, l := range wrap(p.Advice, a.columns()-2) {
			a.out.println("  " + printable(l))
		}
	}
	if d.OK() {
		a.out.println(s.green("Nothing stands in the way."))
	}
}

// functions tells how many of the functions are there, and which are not.
func functions(all []onboard.Symbol) string {
	var needed, spare []string
	covered := ""
	for i, f := range all {
		switch {
		case f.Present || f.Name == covered:
		case f.Needed:
			needed = append(needed, f.Name)
		case f.Or != "" && !all[i+1].Present:
			needed, covered = append(needed, f.Name+" or "+f.Or), f.Or
		default:
			spare = append(spare, f.Name)
		}
	}
	text := fmt.Sprintf("%d of %d are there", present(all), len(all))
	if len(needed) > 0 {
		text += "; needed: " + strings.Join(needed, ", ")
	}
	if len(spare) > 0 {
		text += "; done without: " + strings.Join(spare, ", ")
	}
	return text
}

func present(all []onboard.Symbol) (n int) {
	for _, f := range all {
		if f.Present {
			n++
		}
	}
	return n
}

func deviceList(d *onboard.Diagnosis) string {
	var ids []string
	for _, id := range d.Devices {
		ids = append(ids, strconv.Itoa(int(id)))
	}
	text := strings.Join(ids, ", ")
	if d.Chip != "" {
		text += " (" + printable(d.Chip) + ")"
	}
	return text
}

// oneLine makes one line of a text of several.
func oneLine(text string) string { return printable(strings.Join(strings.Fields(text), " ")) }
