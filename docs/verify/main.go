// Command verify explores the models of package explore and writes what came of
// it to docs/verification.md.
//
//	go run ./docs/verify           explore all, and write the page
//	go run ./docs/verify -short    explore those that take seconds, write nothing
//
// It exits with 1 if a model has a finding, or a short one does not finish.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/runfence/runfence/invariants/explore"
	"github.com/runfence/runfence/invariants/explore/mutate"
	"github.com/runfence/runfence/invariants/model"
)

func main() {
	short := flag.Bool("short", false, "explore the models that take seconds, and write nothing")
	limit := flag.Duration("limit", 10*time.Minute, "how long to explore one model")
	page := flag.String("o", filepath.Join("docs", "verification.md"), "`file` to write")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *short, *limit, *page); err != nil {
		fmt.Fprintln(os.Stderr, "docs/verify:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, short bool, limit time.Duration, page string) error {
	var all []explored
	for _, m := range explore.Models {
		if short && m.Long {
			continue
		}
		e, err := search(ctx, m.Bounds, limit)
		if err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
		e.Model = m
		fmt.Printf("%-16s %s\n", m.Name, e.line())
		all = append(all, e)
		if len(e.result.Findings) > 0 {
			return fmt.Errorf("%s: %w\n%s", m.Name, &e.result.Findings[0].Finding, story(e))
		}
		if short && !e.result.Finished {
			return fmt.Errorf("%s: not finished within %v", m.Name, limit)
		}
	}
	answers, err := everyAnswer(ctx, short, limit)
	if err != nil || short {
		return err
	}
	var curves []curve
	for _, c := range curveBounds {
		k := curve{about: c.about}
		for _, b := range c.bounds {
			e, err := search(ctx, b, limit/10)
			if err != nil {
				return fmt.Errorf("%s: %w", b, err)
			}
			fmt.Printf("%-16s %s\n", b, e.line())
			k.points = append(k.points, e)
		}
		curves = append(curves, k)
	}
	return os.WriteFile(page, write(all, answers, curves, limit), 0o666)
}

// everyAnswer explores rules alone, against a device that may answer anything.
func everyAnswer(ctx context.Context, short bool, limit time.Duration) (out []explored, err error) {
	base, err := mutate.Ours().Base()
	if err != nil {
		return nil, err
	}
	for _, m := range mutate.Models() {
		if !m.Checked || short && m.Bad > 0 {
			continue
		}
		sys, err := mutate.System("answers: "+m.Name, base)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.Name, err)
		}
		e := explored{Model: explore.Model{Name: m.Name, About: fmt.Sprint(m.Bad)}}
		if e.result, err = visit(ctx, sys, limit); err != nil {
			return nil, fmt.Errorf("%s: %w", m.Name, err)
		}
		fmt.Printf("%-32s %s\n", m.Name, e.line())
		out = append(out, e)
		if f := e.result.Findings; len(f) > 0 {
			return nil, fmt.Errorf("%s: %w, after %q", m.Name, &f[0].Finding, f[0].Texts)
		}
	}
	return out, nil
}

// explored is what came of exploring some bounds.
type explored struct {
	explore.Model
	config model.Config
	result *explore.Result
	rows   []string // all there are
}

func search(ctx context.Context, bounds string, limit time.Duration) (e explored, err error) {
	e.Bounds = bounds
	if e.config, err = model.ParseConfig(bounds); err != nil {
		return e, err
	}
	sys, err := explore.Lane(e.config)
	if err != nil {
		return e, err
	}
	e.rows = sys.(explore.RowNamer).RowNames()
	e.result, err = visit(ctx, sys, limit)
	return e, err
}

// visit searches for so long. That ctx ended is an error, that the time ended is
// none.
func visit(ctx context.Context, sys explore.System, limit time.Duration) (*explore.Result, error) {
	within, stop := context.WithTimeout(ctx, limit)
	defer stop()
	r, err := explore.Search(within, sys, explore.Options{Memory: 8 << 30})
	if err != nil {
		return nil, err
	}
	return r, ctx.Err()
}

// story tells the way to the first finding as a scenario.
func story(e explored) []byte {
	f := &e.result.Findings[0]
	b, err := explore.Story{Config: e.config, About: "Breaks " + f.Finding.Kind + ".", Moves: f.Texts}.Scenario(nil)
	if err != nil {
		return []byte(err.Error())
	}
	return b
}
