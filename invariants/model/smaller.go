package model

import "github.com/runfence/runfence/backend/sim"

// Smaller returns changes that each make bounds smaller, those that change most
// first. A change reports whether it changed anything.
func (c *Config) Smaller() (out []func(*Config) bool) {
	for i := range c.flags() {
		out = append(out, func(c *Config) bool {
			f := c.flags()[i].on
			was := *f
			*f = false
			return was
		})
	}
	for i, n := range c.numbers() {
		least := max(n.no, 0)
		if n.name == "runs" {
			least = 1
		}
		lower := func(to func(int) int) func(*Config) bool {
			return func(c *Config) bool {
				v := c.numbers()[i].v
				was := *v
				if n.name == "slots" {
					defer func() { c.Depth = min(c.Depth, c.Slots) }()
				}
				*v = max(least, min(was, to(was)))
				return *v < was
			}
		}
		out = append(out,
			lower(func(int) int { return least }),
			lower(func(int) int { return least + 1 }),
			lower(func(n int) int { return n / 2 }),
			lower(func(n int) int { return n - 1 }))
	}
	for k := firstFault; k <= lastFault; k++ {
		out = append(out, func(c *Config) bool {
			less := c.Faults &^ sim.Faults(k)
			if less == c.Faults || less == 0 || c.Budget == 0 {
				return false
			}
			c.Faults = less
			return true
		})
	}
	return append(out, func(c *Config) bool {
		// All calls are less to say than some.
		was := c.FaultOps
		c.FaultOps = 0
		return was != 0
	})
}
