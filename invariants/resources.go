package invariants

import (
	"fmt"

	"github.com/runfence/runfence/machine"
)

// Of the orchestrator's world, which is not the lane's, the sentences are a
// list of their own.
var ofResources = []Invariant{
	{
		ID: "one-owner", Sentence: "What is charged has an owner; the run being built is the only one that is building, and what is built is charged to no other.",
		Source: "R1, R4, R5", Needs: NeedsWorld,
		world: func(v *view) error {
			pointer := uint64(0)
			if o, ok := v.at("orchestrator", 0); ok {
				pointer = o.word("building")
			}
			if err := v.each("resources", func(r instance) error {
				if r.in("building") != (pointer == r.ref.Pack()) {
					return r.fail("is %s, and the pointer is at %d", r.state(), pointer)
				}
				return nil
			}); err != nil {
				return err
			}
			return v.each("resource", func(r instance) error {
				if r.in("charged") && r.word("owner") == 0 {
					return r.fail("is charged to nobody")
				}
				return nil
			})
		},
	},
	{
		ID: "nothing-stranded", Sentence: "No release is put off to a run that has retired, and a run counts those that are put off to it.",
		Source: "R6, R9", Needs: NeedsWorld,
		world: func(v *view) error {
			return v.each("resources", func(r instance) error {
				queued := v.count("domain", func(d instance) bool { return d.in("queued") && d.word("owner") == r.ref.Pack() })
				if uint64(queued) != r.word("queued") {
					return r.fail("counts %d releases put off, there are %d", r.word("queued"), queued)
				}
				if queued > 0 && r.in("retired", "gone", "free") {
					return r.fail("is %s with %d releases put off", r.state(), queued)
				}
				return nil
			})
		},
	},
	{
		ID: "one-release-under-way", Sentence: "The lock is held exactly while one domain is being freed.",
		Source: "R11, R12, R22", Needs: NeedsWorld,
		world: func(v *view) error {
			freeing := v.count("domain", func(d instance) bool { return d.in("freeing") })
			l, ok := v.at("free_lock", 0)
			if held := 0; ok {
				if l.in("held") {
					held = 1
				}
				if freeing != held {
					return l.fail("is %s, and %d domains are being freed", l.state(), freeing)
				}
			}
			return nil
		},
	},
	{
		ID: "retired-owns-nothing", Sentence: "A run that has retired owns nothing but what could not be released.",
		Source: "R2, R14", Needs: NeedsWorld,
		world: func(v *view) error {
			return v.each("resources", func(r instance) error {
				if !r.in("retired") {
					return nil
				}
				if r.word("pending") != 0 {
					return r.fail("retired with %d tasks pending", r.word("pending"))
				}
				left := v.count("resource", func(x instance) bool { return x.in("charged") && x.word("owner") == r.ref.Pack() })
				if left > 0 {
					return r.fail("retired, and owns %d objects", left)
				}
				return nil
			})
		},
	},
	{
		ID: "tasks-counted", Sentence: "A run counts its tasks that are pending, and the task whose error it keeps is one of its own that is over.",
		Source: "R2, R20", Needs: NeedsWorld,
		world: func(v *view) error {
			if err := v.each("resources", func(r instance) error {
				pending := v.count("task", func(x instance) bool { return x.in("pending") && x.word("owner") == r.ref.Pack() })
				if uint64(pending) != r.word("pending") {
					return r.fail("counts %d tasks pending, there are %d", r.word("pending"), pending)
				}
				return nil
			}); err != nil {
				return err
			}
			return v.each("task", func(x instance) error {
				accused := v.count("resources", func(r instance) bool { return r.word("culprit") == x.ref.Pack() })
				own := v.count("resources", func(r instance) bool {
					return r.word("culprit") == x.ref.Pack() && x.word("owner") == r.ref.Pack()
				})
				if accused > 0 && (accused != own || !x.in("over", "gone")) {
					return x.fail("is %s, and %d runs failed by it, of which it is one of %d", x.state(), accused, own)
				}
				return nil
			})
		},
	},
	{
		ID: "endpoint-told", Sentence: "No task is under way at an endpoint that failed, once those that were have been told.",
		Source: "R20", Needs: NeedsWorld,
		world: func(v *view) error {
			return v.each("endpoint", func(e instance) error {
				left := v.count("task", func(x instance) bool { return x.in("pending") && x.word("endpoint") == e.ref.Pack() })
				if left > 0 && e.in("failed", "gone", "unused") {
					return e.fail("is %s with %d tasks under way", e.state(), left)
				}
				return nil
			})
		},
	},
	{
		ID: "teardown-last", Sentence: "The workers are being closed, or are, only when no run is under way and nothing that can be released is left.",
		Source: "R15, R16, R25", Needs: NeedsWorld,
		world: func(v *view) error {
			e, ok := v.at("ending", 0)
			if !ok || !e.in("tearing", "owed", "closed") {
				return nil
			}
			runs := v.count("resources", func(r instance) bool { return !r.in("free", "retired", "gone") })
			domains := v.count("domain", func(d instance) bool { return d.in("allocating", "live", "queued", "freeing") })
			objects := v.count("resource", func(r instance) bool { return r.in("charged") })
			if runs+domains+objects > 0 {
				return e.fail("is %s with %d runs, %d domains and %d objects", e.state(), runs, domains, objects)
			}
			return nil
		},
	},
}

// CheckResources tells every invariant of an orchestrator's world that does not
// hold in w, and how many predicates it looked at.
func CheckResources(w *machine.World) (findings []*Finding, checks int) {
	v := look(w)
	for i := range ofResources {
		in := &ofResources[i]
		checks++
		if err := in.world(v); err != nil {
			findings = append(findings, &Finding{Invariant: in, Seq: w.Seq(), Detail: err.Error()})
		}
	}
	return findings, checks
}

// ReleaseCounter counts, in a stream of records, the backend's releases of each
// allocation. It is not safe for concurrent use.
type ReleaseCounter struct {
	Rules *machine.Rules
	seen  map[uint64]bool
}

// Record takes the next record. It is an error if an allocation reaches the
// backend's release a second time (R11).
func (c *ReleaseCounter) Record(r *machine.Record) error {
	if r.Kind != machine.Issued || c.Rules.CallName(r.Call) != "ReleaseDomain" {
		return nil
	}
	if c.seen == nil {
		c.seen = map[uint64]bool{}
	}
	if a := r.CallArgs[0]; c.seen[a] {
		return fmt.Errorf("record %d: allocation %d is released again (R11)", r.Seq, a)
	}
	c.seen[r.CallArgs[0]] = true
	return nil
}
