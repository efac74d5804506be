package mutate

import (
	"context"
	"encoding/json"
	"fmt"
	"github.com/runfence/runfence/machine/patch"
	"github.com/runfence/runfence/scenario"
	"io/fs"
	"os"
	"sort"
	"strings"
	"testing"
	"time"
)

func TestX(t *testing.T) {
	r := Ours()
	base, err := r.Base()
	if err != nil {
		t.Fatal(err)
	}
	dir, _ := fs.Sub(scenario.Examples, "testdata")
	var ks []Killer
	start := time.Now()
	if os.Getenv("NOSCEN") == "" {
		s, err := NewScenarios(dir, base)
		if err != nil {
			t.Fatal(err)
		}
		ks = append(ks, s)
	}
	c := Campaign{Rules: r, Progress: func(d int, o Outcome) {
		if d%200 == 0 {
			fmt.Println(d, time.Since(start))
		}
	}}
	if os.Getenv("NOEXP") == "" {
		x, err := NewExplorations(append(Small(), Large()...), base)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println(x.Bounds(), time.Since(start))
		ks = append(ks, x)
		c.Differ = x
	}
	c.Killers = ks
	if v := os.Getenv("LIST"); v != "" {
		var l []string
		b, _ := os.ReadFile(v)
		json.Unmarshal(b, &l)
		for _, s := range l {
			p, err := patch.Parse(s)
			if err != nil {
				t.Fatal(err)
			}
			c.Mutants = append(c.Mutants, p)
		}
	} else {
		c.Mutants = r.Mutants()
	}
	out, err := c.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	n := map[Fate]int{}
	f, _ := os.Create(os.Getenv("OUT"))
	byM := map[string]int{}
	by := map[string]int{}
	for _, o := range out {
		n[o.Fate]++
		by[o.By]++
		if o.Fate == Hole {
			byM[o.Patch.Machine]++
		}
		json.NewEncoder(f).Encode(o)
	}
	fmt.Println(n, by, time.Since(start))
	var k2 []string
	for k, v := range byM {
		k2 = append(k2, fmt.Sprintf("%4d %s", v, k))
	}
	sort.Strings(k2)
	fmt.Println(strings.Join(k2, "\n"))
}
