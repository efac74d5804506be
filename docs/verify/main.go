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
	if short {
		return nil
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
	return os.WriteFile(page, write(all, curves, limit), 0o666)
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
	within, stop := context.WithTimeout(ctx, limit)
	defer stop()
	if e.result, err = explore.Search(within, sys, explore.Options{Memory: 8 << 30}); err != nil {
		return e, err
	}
	return e, ctx.Err()
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
