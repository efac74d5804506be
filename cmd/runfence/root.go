package main

import (
	"context"
	"errors"
	"io"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/runfence/runfence/machine"
)

// environment is everything outside the program that a command may touch,
// except for files.
type environment struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	// terminal says that stdout is one; width is its columns, or 0.
	terminal bool
	width    int
	getenv   func(string) string
	build    *debug.BuildInfo // nil if unknown
	// console says that stderr is a terminal.
	console bool
	// rules are the rules that commands work with.
	rules func() *machine.Rules
	// explored makes what explore searches of the words that bound it.
	explored func(rules *machine.Rules, bounds []string) (subject, error)
	// interruptible returns a context that ends when the user wants to stop, and
	// what makes that end the process again.
	interruptible func() (context.Context, context.CancelFunc)
}

// app is one invocation of the program.
type app struct {
	environment
	out       *output
	color     option
	json      bool
	rulesFile string
	patches   []string
	device    deviceFlags
}

// execute runs the program and returns its exit code.
func execute(args []string, e environment) int {
	a := &app{environment: e, out: newOutput(e.stdout)}
	err := a.root(args).Execute()
	unwritten := a.out.Flush()
	code := a.report(err)
	if c := a.report(unwritten); code == exitHolds {
		code = c
	}
	return code
}

// root makes the tree of commands.
func (a *app) root(args []string) *cobra.Command {
	root := &cobra.Command{
		Use:   "runfence",
		Short: "Accelerator runs as declared state machines: run, replay, explain",
		Long: `Runfence drives the lifecycles of accelerator runs by declared rules: on a
simulated device here, on a real one in a host. It shows what happens, records
it, and replays the record under the rules.

Exit codes: 0 it holds, 1 a finding, 2 wrong usage or input that cannot be read.`,
		Example: `  runfence run                     # a demonstration: two runs, a fault in one
  runfence run --log demo.log && runfence replay demo.log
  runfence explain launch "core submitted"`,
		Version:       a.version().text(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetArgs(args)
	root.SetIn(a.stdin)
	root.SetOut(a.out)
	root.SetErr(a.stderr)
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(flagError)
	a.color = option{value: "auto", what: "mode of colour", words: []string{"auto", "always", "never"}}
	root.PersistentFlags().Var(&a.color, "color", "colours: auto is on a terminal, unless NO_COLOR is set")
	must(root.RegisterFlagCompletionFunc("color", cobra.FixedCompletions(a.color.words, cobra.ShellCompDirectiveNoFileComp)))

	root.AddCommand(a.runCommand(), a.replayCommand(), a.exploreCommand(), a.fuzzCommand(), a.mutateCommand(), a.graphCommand(), a.promelaCommand(), a.explainCommand(), a.logCommand(), a.doctorCommand(), a.versionCommand())
	root.SetHelpCommand(helpCommand())
	root.InitDefaultCompletionCmd(args...)
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			c.Args, c.RunE = noCommand, needsCommand
		}
	}
	return root
}

// helpCommand is cobra's, but a topic that is none is an error.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about a command",
		Long:  "Help prints what a command does, its flags, and examples.",
		Example: `  runfence help run
  runfence help log cat`,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			c, _, err := cmd.Root().Find(args)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return commandNames(c), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			c, rest, err := cmd.Root().Find(args)
			if err != nil {
				return err
			}
			if len(rest) > 0 {
				return unknownCommand(c, rest[0])
			}
			c.InitDefaultHelpFlag()
			return c.Help()
		},
	}
}

// noCommand refuses the arguments of a command that only has commands.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return unknownCommand(cmd, args[0])
	}
	return nil
}

// needsCommand is what a command does that only has commands.
func needsCommand(cmd *cobra.Command, _ []string) error {
	return misused(cmd, "%s needs a command: %s", cmd.CommandPath(), strings.Join(commandNames(cmd), ", "))
}

func unknownCommand(cmd *cobra.Command, name string) error {
	return misused(cmd, "%s", machine.Unknown("command", name, commandNames(cmd)))
}

func commandNames(cmd *cobra.Command) []string {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return names
}

// flagError makes cobra's complaint a usage error, with the nearest flag.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && len(unknown.GetSpecifiedName()) > 1 {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
		return misused(cmd, "%s", machine.Unknown("flag", "--"+unknown.GetSpecifiedName(), names))
	}
	return &usageError{cmd: cmd, err: err}
}

// arguments checks the number of arguments; names are those of the help.
func arguments(least, most int, names string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return misused(cmd, "%s needs %s", cmd.CommandPath(), names)
		case len(args) > most && most == 0:
			return misused(cmd, "%s takes no arguments: %q is one", cmd.CommandPath(), args[0])
		case len(args) > most:
			return misused(cmd, "%s takes %s: %q is one too many", cmd.CommandPath(), names, args[most])
		}
		return nil
	}
}

// jsonFlag gives a command the flag --json.
func (a *app) jsonFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&a.json, "json", false, "print JSON, for scripts")
}

// columns is how wide text may be: the terminal's width, or that of COLUMNS,
// or 80; but no wider than is good to read.
func (a *app) columns() int {
	w := a.width
	if n, err := strconv.Atoi(a.getenv("COLUMNS")); w == 0 && err == nil {
		w = n
	}
	if w <= 0 {
		w = 80
	}
	return min(max(w, 40), 120)
}

// must is for errors that only a wrong program has.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
