package states

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/machine"
)

// TestOutcomeTable decides every combination of evidence and compares with the
// rule in words: exactly one shape certifies, a diagnosis needs a record that
// is readable and one's own, and everything else asks (F105, F106, F117).
func TestOutcomeTable(t *testing.T) {
	rules, err := machine.Compile(outcome())
	require.NoError(t, err)
	m := rules.Machine("outcome")
	decide, sync := m.MustEvent("decide"), m.MustEvent("synchronised")
	word := machine.BoolWord
	shapes, certified, disagreed := 0, 0, 0
	for _, complete := range []bool{false, true} {
		for _, transferred := range []bool{false, true} {
			for _, trusted := range []bool{false, true} {
				for _, own := range []bool{false, true} {
					for record, name := range []string{"absent", "all_ok", "header_failed", "participant_failed", "unclaimed", "unmarked"} {
						shapes++
						w, err := rules.NewWorld(machine.Config{Pools: map[string]int{"slot": 1}})
						require.NoError(t, err)
						ref := w.Ref(m.ID(), 0)
						require.Equal(t, machine.Accepted, w.Issue(ref, decide, word(complete), word(transferred), word(trusted), word(own), uint64(record)).Status)
						readable := transferred && trusted && own
						want := "asking"
						switch {
						case readable && complete && name == "all_ok":
							want, certified = "certified", certified+1
						case readable && (name == "header_failed" || name == "participant_failed"):
							want = "diagnosed"
						}
						shape := fmt.Sprint(complete, transferred, trusted, own, name)
						require.Equal(t, want, w.StateName(ref), shape)
						require.Equal(t, machine.StepRefused, w.Issue(ref, decide, 1, 1, 1, 1, 1).Status, "a decision is made once")
						for _, faulted := range []bool{false, true} {
							w := w.Clone()
							s := w.Issue(ref, sync, word(faulted), machine.CodeWord(507018))
							if want == "certified" {
								require.Equal(t, machine.StepRefused, s.Status, shape)
								continue
							}
							disagree, _ := w.Fact(ref, m.MustFact("disagreed"))
							ok := want == "asking" && !faulted
							require.Equal(t, map[bool]string{true: "succeeded", false: "failed"}[ok], w.StateName(ref), shape)
							// A diagnosis that the device does not share, or a record that
							// says all is well beside a fault: logged, and not overriding (F118).
							require.Equal(t, want == "diagnosed" && !faulted || readable && name == "all_ok" && faulted, disagree == 1, shape)
							disagreed += int(disagree)
						}
					}
				}
			}
		}
	}
	require.Equal(t, 96, shapes)
	require.Equal(t, 1, certified, "one shape succeeds without the device")
	require.Equal(t, 5, disagreed)
}
