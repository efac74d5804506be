package scenario

import (
	"errors"
	"testing"
)

// FuzzScenario: no text makes the interpreter panic or run away, every error is
// an [*Error] with a line, and a file that was rewritten is as it should be.
func FuzzScenario(f *testing.F) {
	for _, file := range files(f) {
		f.Add(read1(f, file))
	}
	for _, s := range []string{
		"", "\n", "#", "----", "a\n----", "now\n----\n----\n----\n----\n", "open \\\n\\\n", "fire fence[0] arm run=a",
		"open\nhold CreateStream after\nopen\n", "hold OpenSlots\nopen\nresume open outcome=panicked\nclose",
		"open\nprepare a\nlaunch a\ncrash\nstate\noutcomes launch[0]\n",
		"lane slots=16 tokens=64\nopen\npure begin\nissue fence[15] arm run_epoch=18446744073709551615 generation=1 dispatch=1\n",
		"dev alloc m size=1048576\ndev write m text=(a, b, (c))\ndev read m size=256\n", "context none\nopen\nthread 7\ndev stream s",
		"lane \x00", "state fence[99999999999999999999]", "advance 24h\nadvance next",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		o := Options{MaxSteps: 200, MaxOutput: 1 << 20}
		r, err := Run("fuzz", src, o)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Line < 1 {
				t.Fatalf("%T without a place: %v", err, err)
			}
			return
		}
		again, err := Run("fuzz", r.Rewritten, o)
		if err != nil {
			t.Fatalf("rewritten: %v\n%s", err, r.Rewritten)
		}
		for _, m := range again.Mismatches {
			t.Fatal(m.Diff())
		}
		if string(again.Rewritten) != string(r.Rewritten) {
			t.Fatalf("rewriting again changes\n%s\ninto\n%s", r.Rewritten, again.Rewritten)
		}
	})
}
