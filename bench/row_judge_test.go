package bench

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestJudge(t *testing.T) {
	r := row{name: "work", peers: []peer{{name: "other", times: 10}}, allocs: 1, within: 20 * time.Nanosecond}
	round := func(ours, other float64, allocs int64) []sample {
		return []sample{{ours, allocs}, {other, 5}}
	}
	// The third round slows both sides, and is not the median.
	got := r.judge([][]sample{round(10, 100, 0), round(11, 121, 1), round(200, 1900, 0)})
	require.Equal(t, []verdict{
		{"work", "10x as fast as other", "10.0x (11 ns, other 121 ns)", true},
		{"work", "at most 20 ns", "11 ns", true},
		{"work", "at most 1 allocs", "1", true},
	}, got)

	got = r.judge([][]sample{round(21, 190, 0), round(21, 209, 2), round(21, 400, 0)})
	require.Equal(t, []verdict{
		{"work", "10x as fast as other", "10.0x (21 ns, other 209 ns)", false},
		{"work", "at most 20 ns", "21 ns", false},
		{"work", "at most 1 allocs", "2", false},
	}, got)

	// What did not run is no pass.
	for _, v := range r.judge([][]sample{round(math.NaN(), math.NaN(), 0)})[:2] {
		require.False(t, v.pass)
	}

	r = row{allocs: -1}
	require.Empty(t, r.judge([][]sample{round(1, 1, 9)}))
}

func TestTakeMeasuresEachVersion(t *testing.T) {
	r := row{
		ours: func(b *testing.B) {
			m := measured(b)
			for b.Loop() {
			}
			m.stop()
		},
		peers: []peer{{"broken", func(b *testing.B) { b.FailNow() }, 1}},
	}
	got := r.take()
	require.Len(t, got, 2)
	require.Positive(t, got[0].ns)
	require.True(t, math.IsNaN(got[1].ns))
}

func TestNanoseconds(t *testing.T) {
	require.Equal(t, "17.4 ns", nanoseconds(17.44))
	require.Equal(t, "6 µs", nanoseconds(6000))
	require.Equal(t, "1.23 ms", nanoseconds(1.2345e6))
}

func TestChosen(t *testing.T) {
	all := []row{{name: "one"}, {name: "two words"}}
	for pattern, want := range map[string]int{".": 2, "Speed": 2, "Speed/two_words": 1, "Speed/two_words/looplab": 1, "Speed/three": 0, "Levels": 0} {
		require.Len(t, chosen(all, pattern), want, pattern)
	}
}
