package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/runfence/runfence/machine/translog"
)

// version is what the program knows about itself.
type version struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Time     string `json:"time,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go,omitempty"`
	// Schema is the log schema it reads and writes, Rules the hash of its rules.
	Schema int    `json:"log_schema"`
	Rules  string `json:"rules"`
}

func (a *app) version() version {
	v := version{Version: "(devel)", Schema: translog.Schema, Rules: a.rules().Hash().String()}
	if a.build == nil {
		return v
	}
	if a.build.Main.Version != "" {
		v.Version = a.build.Main.Version
	}
	v.Go = a.build.GoVersion
	for _, s := range a.build.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.time":
			v.Time = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

// text is the version in one line.
func (v version) text() string {
	var b strings.Builder
	b.WriteString("runfence " + v.Version)
	if v.Revision != "" {
		b.WriteString(", revision " + v.Revision[:min(12, len(v.Revision))])
		if v.Modified {
			b.WriteString(" modified")
		}
		if v.Time != "" {
			b.WriteString(" of " + v.Time)
		}
	}
	if v.Go != "" {
		b.WriteString(", " + v.Go)
	}
	return b.String()
}

func (a *app) versionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of the program, of its rules and of its logs",
		Long: `Version prints which program this is, the hash of the rules it runs by, and the
schema of the logs it reads and writes. Logs of rules with another hash replay
with --other-rules only.`,
		Example: `  runfence version
  runfence version --json`,
		Args:              arguments(0, 0, ""),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			v := a.version()
			if a.json {
				return a.out.json(v)
			}
			a.out.println(v.text())
			a.out.printf("rules %s, log schema %d\n", v.Rules, v.Schema)
			return nil
		},
	}
	a.jsonFlag(cmd)
	return cmd
}
